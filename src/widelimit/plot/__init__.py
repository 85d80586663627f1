"""Figures: the only importer of Matplotlib."""

from ._bounds import alpha_threshold as alpha_threshold
from ._bounds import jacobian_bounds as jacobian_bounds
from ._bounds import singular_values as singular_values
from ._smoothness import along_lines as along_lines
from ._smoothness import gradient_norms as gradient_norms
from ._smoothness import smoothness as smoothness
from ._style import COLOURS as COLOURS
from ._style import angle_axis as angle_axis
from ._style import figure as figure
from ._style import pyplot as pyplot
