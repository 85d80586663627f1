"""Learning curves of kernel regression on spheres: predicted from the spectrum, and measured."""

from ._eigenlearning import Prediction as Prediction
from ._eigenlearning import predict as predict
from ._measured import Comparison as Comparison
from ._measured import Measured as Measured
from ._measured import compare as compare
from ._measured import measure as measure
from ._target import Target as Target
from ._target import target as target
