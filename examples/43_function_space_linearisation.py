# %% [markdown]
# # Linearisation in function space
# A wide network in training moves as its tangent kernel at the start says. Here a real network learns to tell two
# digits apart, and its outputs, on points that it has seen and on others, are compared with what the kernel of its
# random weights predicts, and with what the limit predicts for the mean over all networks.

# %%
import numpy as np
from sklearn.datasets import load_digits

import widelimit as wl

images, labels = load_digits(n_class=2, return_X_y=True)
images = np.float32((images - images.mean()) / images.std())
targets = np.where(labels == 0, -1.0, 1.0)
x, y, x_test, y_test = images[:24], targets[:24], images[100:130], targets[100:130]

net = wl.mlp(depth=1, activation="erf", w_std=1.5, b_std=0.05)
network = wl.finite(net, width=1024)
params = network.init(key=0, input_dim=64)

# %% [markdown]
# ## The network itself
# Gradient descent on half the sum of squares, at half of the largest learning rate that converges.

# %%
steps = [0, 5, 20, 100, 400]
start = wl.train(None, network.ntk(params, x).astype(float), y, kernel="precomputed")
rate = 0.5 * start.critical_learning_rate
probe = np.concatenate([x, x_test])
run = wl.optimise(
    network, x, y, params=params, learning_rate=rate, steps=steps[-1], record=steps, probe=probe
)

# %% [markdown]
# ## What its kernel at the start predicts
# Kernel matrices that one has computed oneself are given as `kernel="precomputed"`. After k steps of gradient descent
# the outputs are known in closed form.

# %%
f0, f0_test = (np.asarray(network.apply(params, points), float)[:, 0] for points in (x, x_test))
linear = wl.train(None, network.ntk(params, x).astype(float), y, kernel="precomputed", f0=f0)
cross = network.ntk(params, x_test, x).astype(float)
worst = 0.0
for k, outputs in zip(steps, run.outputs, strict=True):
    if k == 0:
        continue
    seen = linear.descend(steps=k, learning_rate=rate)
    new = linear.descend(cross, steps=k, learning_rate=rate, f0=f0_test)
    off = np.abs(outputs - np.concatenate([seen, new]))
    worst = max(worst, off.max())
    right = np.mean(np.sign(outputs[24:]) == y_test)
    print(f"step {k:3d}: loss {((outputs[:24] - y) ** 2).sum() / 2:.2e}, prediction off by {off.max():.3f}, "
          f"{right:.0%} of new digits right")  # fmt: skip
assert worst < 0.2

# %% [markdown]
# ## What the limit predicts
# The mean of all networks, without drawing any.

# %%
mean = wl.ensemble(net, x.astype(float), y, x_test.astype(float), t=steps[-1] * rate)
inside = np.abs(run.outputs[-1][24:] - mean.mean) < 3 * mean.std + 0.1
print(
    f"the network's outputs lie within three standard deviations at {inside.mean():.0%} of new points"
)
ensemble = np.mean(np.sign(mean.mean) == y_test)
print(
    f"the mean of all networks has {ensemble:.0%} of the new digits right; one network carries its random start"
)
assert inside.mean() > 0.9
