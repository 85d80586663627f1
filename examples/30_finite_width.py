"""A finite network and its limit."""

# %% [markdown]
# # A finite network and its limit
# The description that gives the infinite kernels also gives the network with real weights.

# %%
import numpy as np

import widelimit as wl

net = wl.resnet(depth=2, alpha=0.5)
angles = np.linspace(-np.pi, np.pi, 33)
x = np.float32(np.stack([np.cos(angles), np.sin(angles)], 1))

network = wl.finite(net, width=300)
params = network.init(key=0, input_dim=2)
print(f"{network.num_params(input_dim=2):,} parameters, outputs {network.apply(params, x).shape}")

# %% [markdown]
# Its tangent kernel needs no Jacobian: every layer adds the product of two small Gram matrices.

# %%
theta, limit = network.ntk(params, x), wl.ntk(net, x.astype(float))
print(f"one network: within {abs(theta - limit).max() / limit.max():.1%} of the peak")

# %% [markdown]
# The deviation falls like the inverse square root of the width.

# %%
rate = wl.width_convergence(net, x[::8], widths=(50, 200), samples=16)
print(f"error ~ n^({rate.rate:.2f} +- {rate.rate_stderr:.2f})")

# %% [markdown]
# Gradient descent on six samples. The limit predicts where it ends, up to the network's own
# initial function.

# %%
b = -np.pi + 2 * np.pi * np.arange(6) / 6
x_train, y_train = np.stack([np.cos(b), np.sin(b)], 1), np.cos(b) / 2 + np.sin(4 * b)
run = wl.optimise(network, x_train, y_train, steps=300, record=5, drift=True)
for step, loss, drift in zip(run.steps, run.loss, run.drift, strict=True):
    print(f"step {step:4d}  loss {loss:.2e}  kernel drift {drift:.3f}")

# %% [markdown]
# Around its initial weights a wide network is nearly a linear model in its parameters.

# %%
linear = wl.linearise(network.apply, params)
close = abs(np.asarray(linear(run.params, x)) - network.apply(run.params, x)).max()
print(f"linearised model at the trained weights: off by {close:.3f}")
assert run.loss[-1] < 1e-2 * run.loss[0]

# %%
fig = wl.plot.run(run)
