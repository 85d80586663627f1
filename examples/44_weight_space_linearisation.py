# %% [markdown]
# # Linearisation in weight space
# `linearise` replaces a model by its first-order expansion in the weights, around where they start. It is trained like
# the model; the wider the model, the closer the two stay. The second order follows further.

# %%
import jax
import numpy as np

import widelimit as wl

rng = np.random.default_rng(1)
x = np.float32(rng.standard_normal((16, 3)))
y = np.sin(2 * x[:, 0]) * x[:, 1]
net = wl.mlp(depth=1, activation="gelu", w_std=1.4, b_std=0.1)


def critical(network: wl.FiniteNetwork, params: object) -> float:
    """The largest learning rate at which the linearised model converges."""
    return 2 / np.linalg.eigvalsh(network.ntk(params, x).astype(float))[-1]


def distance(a: object, b: object) -> float:
    pairs = zip(*map(jax.tree.leaves, (a, b)), strict=True)
    return float(np.sqrt(sum(np.sum((np.asarray(u) - np.asarray(v)) ** 2) for u, v in pairs)))


gaps = {}
for width in (1024, 64):
    network = wl.finite(net, width)
    params = network.init(0, input_dim=3)
    line = wl.linearise(network.apply, params)
    rate = 0.2 * critical(network, params)
    how = {"params": params, "steps": 50, "learning_rate": rate}
    real, linear = wl.optimise(network, x, y, **how), wl.optimise(line, x, y, **how)
    outputs = np.abs(network.apply(real.params, x)[:, 0] - line(linear.params, x)[:, 0]).max()
    weights = distance(real.params, linear.params) / distance(real.params, params)
    gaps[width] = outputs, weights
    print(
        f"width {width:4d}: outputs differ by {outputs:.3f}, weights by {weights:.1%} of their path"
    )
assert gaps[1024][0] < gaps[64][0]
assert gaps[1024][1] < gaps[64][1]

# %% [markdown]
# ## The closed form
# Gradient descent on the linearised model is gradient descent with a fixed kernel: no step need be taken.

# %%
f0 = np.asarray(network.apply(params, x), float)[:, 0]
closed = wl.train(None, network.ntk(params, x).astype(float), y, kernel="precomputed", f0=f0)
off = np.abs(closed.descend(steps=50, learning_rate=rate) - line(linear.params, x)[:, 0]).max()
print(f"closed form against 50 steps: {off:.1e}")
assert off < 1e-4

# %% [markdown]
# ## The second order
# Halfway to the trained weights of the real network the parabola is closer than the line.

# %%
halfway = jax.tree.map(lambda a, b: (a + b) / 2, params, real.params)
exact = np.asarray(network.apply(halfway, x))
errors = [
    float(np.abs(np.asarray(model(halfway, x)) - exact).max())
    for model in (line, wl.taylor(network.apply, params, order=2))
]
print(f"first order off by {errors[0]:.4f}, second by {errors[1]:.4f}")
assert errors[1] < errors[0]
