"""The description language: a network is an expression made of these words."""

from ._layer import Layer as Layer
from ._layer import Serial as Serial
from ._layer import Sum as Sum
from ._models import mlp as mlp
from ._models import resnet as resnet
from ._nodes import Dense as Dense
from ._nodes import Identity as Identity
from ._nodes import Phi as Phi
from ._nodes import Repeat as Repeat
from ._nodes import Residual as Residual
from ._nodes import Scale as Scale
