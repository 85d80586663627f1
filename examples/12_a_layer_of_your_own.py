# %% [markdown]
# # A layer of your own
# A layer is a class with fields, and one rule that says what it does to a signal. Here: root-mean-square
# normalisation, x -> x / sqrt(mean(x^2)) over the coordinates of one input, behind a factor. At infinite
# width the mean is the variance. Signals know how to be normalised and scaled, so the rule is one line;
# kernels, trace, checks, shapes, LaTeX, kink, exact digits and finite networks follow from it.

# %%
import numpy as np

import widelimit as wl
from widelimit import testing
from widelimit.extend import Layer, State, propagate


class Normalise(Layer):
    """Divides each input's coordinates by their root mean square, and multiplies by a gain."""

    gain: float = 1.0


@propagate.register
def propagate_normalise(layer: Normalise, state: State) -> State:
    return state.normalised().scaled(layer.gain)


# %% One question is refused, rightly: x/|x| has no bounded derivative at 0, so there is no Jacobian bound.
(missing,) = testing.missing_rules(Normalise())
assert missing.question == "Jacobian bound"

# %% The laws hold (finite networks of this layer approach the limit), and scaling an input changes nothing.
net = wl.Dense() >> Normalise(1.5) >> wl.Repeat(wl.Phi("erf") >> wl.Dense(), 3)
testing.check_network(net)
x = np.random.default_rng(0).standard_normal((4, 3))
assert np.allclose(wl.ntk(net, x), wl.ntk(net, 7 * x), rtol=1e-13)
print(net, wl.ntk(net, x).round(3), wl.latex(net), sep="\n")

# %% Before training, on the circle.
fig = wl.plot.prior(net)
