"""Infinite width: kernel propagation, profiles, Gram matrices."""

from ._cost import Cost as Cost
from ._cost import cost as cost
from ._host import HostPoints as HostPoints
from ._host import host_correlation as host_correlation
from ._host import host_points as host_points
from ._kernel import Kernels as Kernels
from ._kernel import PreparedKernel as PreparedKernel
from ._kernel import prepare as prepare
from ._kernels import kernels as kernels
from ._kernels import nngp as nngp
from ._kernels import ntk as ntk
from ._kernels import profile as profile
from ._loops import with_loops as with_loops
from ._pair import Pair as Pair
from ._plan import Form as Form
from ._plan import Numbers as Numbers
from ._plan import join as join
from ._plan import split as split
from ._profile import Profile as Profile
from ._trace import Trace as Trace
from ._trace import trace as trace
from ._variances import Variances as Variances
from ._variances import choose_how as choose_how
