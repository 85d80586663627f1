"""A convolutional network and its limit."""

# %% [markdown]
# # A convolutional network trains beside its limit
# Images go in as (images, height, width, channels). The same description gives the kernels of infinitely many
# channels and the network with real weights.

# %%
import numpy as np
from sklearn.datasets import load_digits

import widelimit as wl

digits = load_digits()
chosen = digits.target < 2
x = np.float32(digits.images[chosen][:, ::2, ::2, None] / 16)
y = np.where(digits.target[chosen] == 1, 1.0, -1.0)
x, y, x_new, y_new = x[:40], y[:40], x[40:], y[40:]

net = wl.cnn(depth=2, readout="pool", b_std=0.1)
network = wl.finite(net, width=128)
params = network.init(key=0, input_dim=x.shape[1:])
print(net, f"{network.num_params(x.shape[1:]):,} parameters", sep="\n")

# %% [markdown]
# The tangent kernel of one network: a convolution adds Gram matrices of patches times those of signals sent back.

# %%
theta, limit = network.ntk(params, x), wl.ntk(net, x.astype(float))
distance = np.linalg.norm(theta - limit) / np.linalg.norm(limit)
print(f"one network: {distance:.1%} from its limit")

# %% [markdown]
# Gradient descent, step by step, against the flow of the limit: the error of each eigenvector of the kernel decays by
# itself, $e_t=e^{-\Theta t}e_0$.

# %%
rates, modes = np.linalg.eigh(limit)
step = 1 / rates[-1]
run = wl.optimise(network, x, y, params=params, steps=400, learning_rate=step, record=8)
start = modes.T @ (network.apply(params, x)[:, 0] - y)
flow = 0.5 * (np.exp(-np.outer(run.steps * step, rates)) ** 2 @ start**2)
for t, trained, predicted in zip(run.steps, run.loss, flow, strict=True):
    print(f"step {t:3d}   loss of the network {trained:7.4f}   of the limit {predicted:7.4f}")
assert abs(np.log(run.loss / flow)).max() < 0.5

# %% [markdown]
# New images: the trained network, and the limit trained for the same time from zero.

# %%
weights = modes @ ((1 - np.exp(-rates * step * run.steps[-1])) / rates * (modes.T @ y))
of_limit = wl.ntk(net, x_new.astype(float), x.astype(float)) @ weights
of_network = network.apply(run.params, x_new)[:, 0]
for name, f in (("network", of_network), ("limit", of_limit)):
    print(f"{name}: {np.mean(np.sign(f) == y_new):.1%} of {len(y_new)} new digits are right")
