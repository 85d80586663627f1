# %% [markdown]
# # Order and chaos: the phase diagram
# Depth drives the correlation of two inputs to a fixed point. Where small differences die out (order) all inputs look
# alike after enough layers; where they grow (chaos) the network's function is noise. Deep networks train near the line
# between.

# %%
import numpy as np

import widelimit as wl

w_std, b_std = np.linspace(0.5, 3.0, 11), np.linspace(0.05, 0.5, 4)
diagram = wl.signal.phase_diagram("tanh", w_std, b_std)
for b, row in zip(b_std[::-1], diagram.chi[::-1], strict=True):
    print(f"b_std {b:.2f}  " + "".join("#" if chi > 1 else "." for chi in row))
print("w_std from 0.5 to 3: dots are ordered, # chaotic")
assert diagram.chi[0, 0] < 1 < diagram.chi[0, -1]

# %% [markdown]
# ## Where the line is
# At $\chi_1=1$ differences neither die nor grow. Without biases it is $\sigma_w=1$ for tanh.

# %%
critical = [np.interp(1.0, row, w_std) for row in diagram.chi]
for b, w in zip(b_std, critical, strict=True):
    print(f"b_std {b:.2f}: critical w_std {w:.3f}")
assert np.all(np.diff(critical) > 0)

# %% [markdown]
# ## Fixed points against depth
# The correlation of two inputs behind many layers is the diagram's $c^*$; it is reached over a depth of the order of
# `length`.

# %%
x = np.array([[1.0, 0.0], [0.6, 0.8]]) * np.sqrt(2)
for w in (0.75, 2.0):
    point = wl.signal.phase_diagram("tanh", [w], [0.2])
    path = []
    for depth in (1, 4, 16, 64):
        k = wl.nngp(wl.mlp(depth, "tanh", w_std=w, b_std=0.2), x)
        path.append(k[0, 1] / np.sqrt(k[0, 0] * k[1, 1]))
    print(
        f"w_std {w}: correlations {np.round(path, 4)}, c* = {point.c[0, 0]:.4f}, length {point.length[0, 0]:.2f}"
    )
    assert abs(path[-1] - point.c[0, 0]) < 1e-3

# %% [markdown]
# ## What training sees
# In the ordered phase the tangent kernel loses its rank with depth, so that gradient descent learns nothing but the
# mean; its condition number says so.

# %%
points = np.random.default_rng(0).standard_normal((8, 4))
for name, w in (("ordered", 0.75), ("near the line", 1.05), ("chaotic", 2.0)):
    kernel = wl.ntk(wl.mlp(32, "tanh", w_std=w, b_std=0.05), points)
    values = np.linalg.eigvalsh(kernel)
    print(
        f"{name:13s}: condition number of the tangent kernel at depth 32 {values[-1] / values[0]:.1e}"
    )

# %%
from widelimit import plot  # noqa: E402

fig = plot.phase_diagram(diagram)
