# %% [markdown]
# # A layer with weights and a bias of its own
# A leaky layer keeps a share of its input and mixes in fresh weights:
# $y=kx+\sqrt{1-k^2}\,(\sigma_wWx/\sqrt n+\sigma_bb)$. One rule gives everything at infinite width; two more
# give the finite network its weights (`draw`) and its output (`forward`).

# %%
import numpy as np

import widelimit as wl
from widelimit import testing
from widelimit.extend import Layer, State, apply_weights, draw, draw_weights, forward, propagate


class Leaky(Layer):
    """Keeps a share of its input, and adds fresh weights and a bias."""

    keep: float = 0.8
    w_std: float = 1.0
    b_std: float = 0.0

    @property
    def rest(self) -> float:
        """What the weights contribute, so that variances are kept."""
        return (1 - self.keep**2) ** 0.5  # numbers of layers may be traced: no math.sqrt


@propagate.register
def propagate_leaky(layer: Leaky, state: State) -> State:
    fresh = state.branched().weighted(None).scaled(layer.w_std).biased(layer.b_std).trained()
    return state.joined(layer.keep, [fresh.scaled(layer.rest)])


# %% Infinite width is complete. Finite networks need two rules, as the table says.
print(*testing.missing_rules(Leaky(b_std=0.3)), sep="\n")


@draw.register
def draw_leaky(layer: Leaky, visit, key, dtype, how):
    return draw_weights(visit, key, dtype, how, w_std=layer.w_std, b_std=layer.b_std)


@forward.register
def forward_leaky(layer: Leaky, params, x, shift, how):
    numbers = {"w_std": layer.w_std, "b_std": layer.b_std}
    z, tap = apply_weights(params, x, shift, how, **numbers)
    return layer.keep * x + layer.rest * z, tap


# %% Nothing is missing now. The laws include that finite networks approach the limit.
assert not testing.missing_rules(Leaky(b_std=0.3))
net = wl.Dense() >> wl.Repeat(Leaky(b_std=0.3) >> wl.Phi("erf") >> wl.Dense(), 2) >> wl.Dense()
testing.check_network(net)

x = np.random.default_rng(0).standard_normal((3, 4))
print(wl.shape(net, input_dim=4, width=100))
print(wl.ntk(net, x).round(3))
print(wl.monte_carlo_kernels(net, x, width=512, samples=20).ntk.mean.round(3))

# %% The tangent kernel on the circle.
fig = wl.plot.kernel(net)
