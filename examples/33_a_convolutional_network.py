"""A convolutional network and its limit."""

# %% [markdown]
# # A convolutional network trains beside its limit
# Images go in as (images, height, width, channels). The same description gives the kernels of infinitely many
# channels and the network with real weights.

# %%
import numpy as np
from sklearn.datasets import load_digits

import widelimit as wl

rows, labels = load_digits(n_class=2, return_X_y=True)
images = (rows.reshape(-1, 8, 8, 1)[:, ::2, ::2] / 16).astype(np.float32)
targets = np.where(labels == 1, 1.0, -1.0)
x, y, x_new, y_new = images[:24], targets[:24], images[24:], targets[24:]

net = wl.cnn(depth=2, b_std=0.1)
network = wl.finite(net, width=128)
params = network.init(key=0, input_dim=x.shape[1:])
print(net, f"{network.num_params(x.shape[1:]):,} parameters", sep="\n")

# %% [markdown]
# The tangent kernel of one network: a convolution adds Gram matrices of patches times those of signals sent back.

# %%
theta, limit = network.ntk(params, x), wl.ntk(net, x)
distance = np.linalg.norm(theta - limit) / np.linalg.norm(limit)
print(f"one network: {distance:.1%} from its limit")

# %% [markdown]
# Gradient descent of the network, and of the limit from the same initial function: each eigenvector of the kernel
# learns at a rate of its own.

# %%
model = wl.train(net, x, y, f0=(network, params))
rate = float(1 / np.linalg.eigvalsh(limit)[-1])
run = wl.optimise(network, x, y, params=params, steps=120, learning_rate=rate, record=4)
for t, loss in zip(run.steps, run.loss, strict=True):
    predicted = model.descend(x, steps=int(t), learning_rate=rate)
    of_limit = 0.5 * np.sum((predicted - y) ** 2)
    print(f"step {t:3d}   loss of the network {loss:7.4f}   of the limit {of_limit:7.4f}")
    assert abs(np.log(loss / of_limit)) < 0.5

# %% [markdown]
# New images: the network, its limit from the same start, and the limit alone, trained for ever.

# %%
answers = {
    "network": network.apply(run.params, x_new)[:, 0],
    "limit from there": model.descend(x_new, steps=120, learning_rate=rate),
    "limit": wl.train(net, x, y).predict(x_new),
}
for name, f in answers.items():
    print(f"{name}: {np.mean(np.sign(f) == y_new):.1%} of {len(y_new)} new digits are right")

# %%
fig = wl.plot.run(run)
