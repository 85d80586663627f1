# %% [markdown]
# # A cook-book: from a prior over functions to trained networks
# The steps of neural-tangents' cook-book in widelimit's words: describe a network, look at its prior, fit five points
# of a sine, and compare the infinite ensemble with a real one.

# %%
import numpy as np

import widelimit as wl

net = wl.mlp(depth=2, activation="erf", w_std=1.5, b_std=0.05)
rng = np.random.default_rng(10)
x = rng.uniform(-np.pi, np.pi, (5, 1))
y = np.sin(x[:, 0]) + 0.1 * rng.standard_normal(5)
grid = np.linspace(-np.pi, np.pi, 25)[:, None]

# %% [markdown]
# ## The prior
# Before training a wide network is a draw from a Gaussian process. Functions that its kernel draws and functions that
# finite networks with random weights compute have the same spread.

# %%
prior = wl.prior(net, grid)
finite = wl.finite(net, width=128)
draw = lambda key: finite.apply(finite.init(key, input_dim=1), np.float32(grid))[:, 0]
networks = np.array([draw(key) for key in range(50)])
print("std of the kernel  ", prior.std[::6].round(3))
print("std of 50 networks ", networks.std(0)[::6].round(3))
assert np.abs(networks.std(0) / prior.std - 1).max() < 0.5

# %% [markdown]
# ## Inference
# The Bayesian network (NNGP), and the ensemble of networks that are trained by gradient descent from random weights
# (NTK). Their means and their spreads differ.

# %%
bayes = wl.posterior(net, x, y, grid, noise=1e-4)
trained = wl.ensemble(net, x, y, grid)
truth = np.sin(grid[:, 0])
for name, found in (("Bayesian", bayes), ("trained", trained)):
    error = np.sqrt(np.mean((found.mean - truth) ** 2))
    print(f"{name:8s}: error {error:.3f}, mean std {found.std.mean():.3f}")

# %% [markdown]
# ## The whole history
# The loss of the ensemble at any time is in closed form: the squared mean error plus the variance. Late in training
# what is left of it belongs to the slowest directions, whose rates at width 128 are not yet those of the limit.

# %%
times = np.array([0.0, 0.3, 3.0, 30.0])
path = wl.ensemble(net, x, y, x, t=times)
expected = ((path.mean - y) ** 2 + path.variance).sum(1) / 2
rate = 0.03
runs = wl.optimise_many(
    finite, x, y, keys=20, learning_rate=rate, steps=1000, record=[round(t / rate) for t in times]
)
seen = np.array([run.loss for run in runs])
for t, limit, some in zip(times, expected, seen.T, strict=True):
    error = some.std() / np.sqrt(len(some))
    print(f"t = {t:4.1f}: expected loss {limit:.4f}, 20 networks {some.mean():.4f} +- {error:.4f}")
assert (np.abs(seen.mean(0) - expected) < 5 * seen.std(0) / 20**0.5 + 0.02).all()

# %%
from widelimit import plot  # noqa: E402

fig = plot.band(grid[:, 0], trained, x[:, 0], y, samples=5)
