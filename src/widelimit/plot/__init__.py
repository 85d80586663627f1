"""Figures: the only importer of Matplotlib."""

from ._style import COLOURS as COLOURS
from ._style import angle_axis as angle_axis
from ._style import figure as figure
from ._style import pyplot as pyplot
