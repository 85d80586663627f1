"""Infinite width: kernel propagation, profiles, Gram matrices."""

from ._cost import Cost as Cost
from ._cost import cost as cost
from ._kernel import Kernels as Kernels
from ._kernel import PreparedKernel as PreparedKernel
from ._kernel import prepare as prepare
from ._kernels import kernels as kernels
from ._kernels import nngp as nngp
from ._kernels import ntk as ntk
from ._kernels import profile as profile
from ._pair import Pair as Pair
from ._profile import Profile as Profile
from ._trace import Trace as Trace
from ._trace import trace as trace
from ._variances import Variances as Variances
