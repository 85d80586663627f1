"""Laws that every activation and every layer must obey, for our tests and for yours.

`check_activation(mine)`, `check_network(net)` and `check_relation(r, rng)` for r in `RELATIONS` raise at the first law
that fails; `check_width(net)` draws networks and compares their scatter with theory; `missing_rules(layer)` lists what
a layer of your own cannot answer yet. `check_kernel(k)` runs laws on a kernel of any library.
"""

from ._activation_laws import ACTIVATION_LAWS as ACTIVATION_LAWS
from ._activation_laws import check_activation as check_activation
from ._check_kernel import KernelReport as KernelReport
from ._check_kernel import check_kernel as check_kernel
from ._check_kernel import examine_kernel as examine_kernel
from ._kernel_laws import KERNEL_LAWS as KERNEL_LAWS
from ._missing import Missing as Missing
from ._missing import missing_rules as missing_rules
from ._network_laws import NETWORK_LAWS as NETWORK_LAWS
from ._network_laws import PIXEL_LAWS as PIXEL_LAWS
from ._network_laws import check_network as check_network
from ._oracles import mpmath_ntk as mpmath_ntk
from ._pixel_laws import RELATIONS as RELATIONS
from ._pixel_laws import Same as Same
from ._pixel_laws import check_relation as check_relation
from ._width_laws import check_width as check_width
