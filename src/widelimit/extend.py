r"""All that the author of a layer, an activation or a new question needs.

- An **activation**: `register(Activation("name", fn, ...))`; give what is known of its moments.
- A **layer**: a subclass of `Layer` with fields, and one rule by the operations of a `State`:

        @propagate.register
        def propagate_mine(layer: Mine, state: State) -> State:
            return state.weighted(None).scaled(layer.w_std).trained()

  It then has kernels, a trace, checks, shapes, LaTeX, kink, exact digits and spectrum. A layer with
  weights of its own needs two rules more for finite networks: `draw` and `forward`.
- A **question**: a subclass of `State` that says what each operation means for it, and
  `interpret(net, MyState(...))`.

`widelimit.testing.missing_rules(layer)` says what cannot be answered yet, and what to write;
`widelimit.testing.check_network` and `check_activation` run the laws.
"""

from widelimit.activations import Activation as Activation
from widelimit.activations import Cov as Cov
from widelimit.activations import register as register
from widelimit.describe import infer as infer
from widelimit.finite import Tap as Tap
from widelimit.finite import apply_weights as apply_weights
from widelimit.finite import draw as draw
from widelimit.finite import draw_weights as draw_weights
from widelimit.finite import forward as forward
from widelimit.infinite import Pair as Pair
from widelimit.interpret import Facts as Facts
from widelimit.interpret import State as State
from widelimit.interpret import Visit as Visit
from widelimit.interpret import facts as facts
from widelimit.interpret import interpret as interpret
from widelimit.interpret import propagate as propagate
from widelimit.interpret import visits as visits
from widelimit.layers import Layer as Layer
