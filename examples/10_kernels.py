# %% [markdown]
# # Kernels of infinitely wide networks
# Describe a network once and ask for its kernels.

# %%
import numpy as np

import widelimit as wl

mlp = wl.mlp(depth=5)
resnet = wl.resnet(depth=5, alpha=0.1)
print(mlp)
print(resnet)

# %% On the circle a kernel is a function of the angle; per unit peak it shows its shape.
angles = np.linspace(0, np.pi, 7)
for net in (mlp, wl.resnet(depth=5, alpha=1.0), resnet):
    profile = wl.profile(net, variance=0.5)  # unit vectors in two dimensions
    shape = profile.ntk_at_angle(angles) / profile.ntk(1.0)
    print(np.round(shape, 4), f"degree {profile.degree}, error {profile.error:.0e}")

# %% The same numbers as a Gram matrix; NumPy in, NumPy out, float64.
x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
theta = wl.ntk(resnet, x)
assert theta.dtype == np.float64
assert np.allclose(theta[0], wl.profile(resnet, variance=0.5).ntk_at_angle(angles), rtol=1e-13)

# %% Layer by layer, under the papers' names (Tirer, Bruna and Giryes 2022, Theorem 2).
t = wl.trace(resnet, x)
inner = (t.Pi[1:] * (t.Sigma + t.K[:-1] * t.Sigma_dot)).sum(axis=0)
assert np.allclose(t.K[-1] + t.Pi[0] * t.K[0] + 0.1**2 * inner, theta, rtol=1e-13)

# %% In LaTeX, as JSON, with its references.
print(wl.latex_kernels(resnet))
assert wl.from_json(wl.to_json(resnet)) == resnet
print(wl.cite(resnet))

# %% As a picture: the matrix on the circle, and both kernels as functions of the angle.
fig = wl.plot.kernel(resnet)
