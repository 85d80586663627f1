"""widelimit: neural networks of infinite width, exactly."""

from . import activations as activations
from . import linalg as linalg
from .activations import Activation as Activation
from .describe import check as check
from .infinite import Kernels as Kernels
from .infinite import Profile as Profile
from .infinite import kernels as kernels
from .infinite import nngp as nngp
from .infinite import ntk as ntk
from .infinite import profile as profile
from .layers import Dense as Dense
from .layers import Identity as Identity
from .layers import Layer as Layer
from .layers import Phi as Phi
from .layers import Repeat as Repeat
from .layers import Residual as Residual
from .layers import Scale as Scale
from .layers import Serial as Serial
from .layers import Sum as Sum
from .layers import mlp as mlp
from .layers import resnet as resnet

__version__ = "0.1.0"
