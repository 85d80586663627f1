"""Infinite width: kernel propagation, profiles, Gram matrices."""

from ._kernels import Kernels as Kernels
from ._kernels import kernels as kernels
from ._kernels import nngp as nngp
from ._kernels import ntk as ntk
from ._kernels import profile as profile
from ._pair import Pair as Pair
from ._prepare import PreparedKernel as PreparedKernel
from ._prepare import prepare as prepare
from ._profile import Profile as Profile
from ._trace import Trace as Trace
from ._trace import trace as trace
from ._variances import Variances as Variances
