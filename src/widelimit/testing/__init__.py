"""Laws that every activation and every layer must obey, for our tests and for yours.

Example:
    >>> import jax.numpy as jnp, widelimit as wl
    >>> from widelimit import testing
    >>> mine = wl.Activation("wave", lambda x: jnp.sin(2 * x), parity="odd",
    ...     dual=lambda c: jnp.exp(-2 * (c.q1 + c.q2)) * jnp.sinh(4 * c.k))
    >>> testing.check_activation(mine)

"""

from ._activation_laws import ACTIVATION_LAWS as ACTIVATION_LAWS
from ._activation_laws import check_activation as check_activation
from ._missing import Missing as Missing
from ._missing import missing_rules as missing_rules
from ._network_laws import NETWORK_LAWS as NETWORK_LAWS
from ._network_laws import check_network as check_network
from ._oracles import mpmath_ntk as mpmath_ntk
