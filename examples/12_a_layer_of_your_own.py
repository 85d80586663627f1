# %% [markdown]
# # A layer of your own
# A layer is a class with fields; what can be asked of it are rules. Here: root-mean-square
# normalisation, x -> x / sqrt(mean(x^2)) over the coordinates of one input. At infinite width the mean
# is the variance, so the layer makes every variance 1 and keeps correlations. The state carries both
# kernels divided by the variances, so nothing else changes.

# %%
import jax.numpy as jnp
import numpy as np

import widelimit as wl
from widelimit import testing
from widelimit.describe import activations_of, is_fresh, linear_factor, signal
from widelimit.infinite import Pair, propagate
from widelimit.infinite.rules import homogeneity, visit_variances


class Normalise(wl.Layer):
    """Divides each input's coordinates by their root mean square."""


@propagate.register
def propagate_normalise(layer: Normalise, pair: Pair, how) -> Pair:
    one = jnp.ones_like
    return Pair(one(pair.q1), one(pair.q2), pair.minus, pair.plus, pair.ntk)


signal.register(Normalise, lambda layer, incoming, width: (incoming, width))
linear_factor.register(Normalise, lambda layer: None)
is_fresh.register(Normalise, lambda layer: False)
activations_of.register(Normalise, lambda layer: ())
homogeneity.register(Normalise, lambda layer: 0.0)  # f(c x) = f(x)
visit_variances.register(Normalise, lambda layer, q, seen: jnp.ones_like(q))

# %% The laws hold, and scaling an input changes nothing.
net = wl.Dense() >> Normalise() >> wl.Repeat(wl.Phi("erf") >> wl.Dense(), 3)
testing.check_network(net)
x = np.random.default_rng(0).standard_normal((4, 3))
assert np.allclose(wl.ntk(net, x), wl.ntk(net, 7 * x), rtol=1e-13)
print(net, wl.ntk(net, x).round(3), sep="\n")
