# %% [markdown]
# # Training a network of infinite width
# Gradient flow moves the function along the eigenvectors of the NTK's Gram matrix, each at its own
# rate. Everything below is in closed form: no step is ever taken.

# %%
import numpy as np

import widelimit as wl

angles = np.array([-2.198, -1.812, -1.475, -0.211, 1.497, 1.685])
circle = lambda b: np.stack([np.cos(b), np.sin(b)], 1)
target = np.cos(angles) / 2 + np.sin(4 * angles)

model = wl.train(wl.resnet(depth=5, alpha=0.1), circle(angles), target)
print(
    f"lambda from {model.lambda_min:.2e} to {model.lambda_max:.2f}, condition {model.condition:.0f}"
)
print(f"gradient descent converges for learning rates below {model.critical_learning_rate:.3f}")
print("time scales:", " ".join(f"{t:.3g}" for t in model.time_scales))

# %% [markdown]
# ## How long is long enough?
# The slowest direction has a time scale of 755; a thousand steps of a finite network are far
# from the limit.

# %%
grid = np.linspace(-np.pi, np.pi, 9)
for t in (1.0, 100.0, 1e4, None):
    f = model.predict(circle(grid), t)
    print(f"t = {t}:", f.round(3))

# %% [markdown]
# ## Gradient descent, exactly
# A thousand steps cost the same as one. Below the critical rate descent and flow meet; momentum
# makes the slow directions faster.

# %%
rate = 0.9 * model.critical_learning_rate
after = lambda **how: float(
    np.linalg.norm(model.descend(steps=1000, learning_rate=rate, **how) - target)
)
flow = float(np.linalg.norm(model.error(1000 * rate)))
print(
    f"error after 1000 steps: {after():.4f}, flow {flow:.4f}, momentum 0.9 {after(momentum=0.9):.2e}"
)
assert after(momentum=0.9) < after()
assert abs(after() - flow) < 0.01

# %% [markdown]
# ## Other losses
# Any differentiable loss works; Diffrax integrates the flow.

# %%
labels = np.where(target > 0, 1.0, -1.0)
classifier = wl.train(wl.mlp(depth=3), circle(angles), labels, loss="logistic")
margins = labels * classifier.predict(t=200.0)
print("margins after t = 200:", margins.round(2))
assert margins.min() > 0

# %%
from widelimit import plot  # noqa: E402

line = np.linspace(-np.pi, np.pi, 300)
fig = plot.training(model, line, circle(line), [1.0, 30.0, 1000.0, 30000.0], points=angles)
