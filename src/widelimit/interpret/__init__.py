"""A network is interpreted over a state: a layer says once what it does, the state what is computed."""

from . import _pixels as _pixels  # rules
from ._delegated import Delegated as Delegated
from ._facts import Facts as Facts
from ._interpret import facts as facts
from ._interpret import interpret as interpret
from ._interpret import propagate as propagate
from ._recorded import Recorded as Recorded
from ._recorded import Visit as Visit
from ._recorded import visits as visits
from ._state import Located as Located
from ._state import Rule as Rule
from ._state import State as State
from ._state import is_one as is_one
from ._state import is_zero as is_zero
