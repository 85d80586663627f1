"""How wide is wide enough?"""

# %% [markdown]
# # How wide is wide enough?
# A network of width n has a tangent kernel that scatters from one initialisation to the next, by n^(-1/2), around a
# mean that is off the limit by 1/n. `fluctuations` knows both constants, exactly, without a single random number.

# %%
import numpy as np

import widelimit as wl

x = np.array([[1.0, 0.0], [0.6, 0.8]])
for net in (wl.mlp(depth=5, w_std=2**0.5), wl.resnet(depth=5, alpha=0.1)):
    fl = wl.fluctuations(net, x)
    relative = fl.ntk_var[0, 0] / fl.ntk[0, 0] ** 2
    print(
        f"n Var/Theta^2 = {relative:5.2f}: 10 % needs width {fl.width_for(0.1):5d}, 1 % {fl.width_for(0.01):7d}"
    )

# %% [markdown]
# Sampled networks agree. They are drawn exactly in law, without weight matrices, so 2,000 of them take a moment.

# %%
net, width = wl.resnet(depth=3, alpha=0.5), 64
fl = wl.fluctuations(net, x)
found = wl.monte_carlo_kernels(net, x, width=width, samples=1_000, method="law")
print("spread, predicted and sampled:", fl.ntk_std(width)[0].round(4), found.ntk.std[0].round(4))
print(
    "mean,   predicted and sampled:", fl.expected_ntk(width)[0].round(4), found.ntk.mean[0].round(4)
)
assert (abs(found.ntk.std / fl.ntk_std(width) - 1) < 0.15).all()
print(wl.finite(net, width))

# %% [markdown]
# Required width against depth: an MLP needs a width proportional to its depth, a residual network with weak branches
# hardly more for a hundred layers than for one.

# %%
depths = [1, 2, 4, 8, 16, 32]
families = {"MLP": lambda depth: wl.mlp(depth, w_std=2**0.5)}
for alpha in (1.0, 0.5, 0.1):
    families[f"ResNet, alpha = {alpha:g}"] = lambda depth, alpha=alpha: wl.resnet(depth, alpha)
widths = {
    name: [wl.fluctuations(family(depth), x[:1]).width_for(0.1) for depth in depths]
    for name, family in families.items()
}
for name, values in widths.items():
    print(f"{name:20s}", *(f"{n:6d}" for n in values))

# %% [markdown]
# The figure of it.

# %%
fig = wl.plot.required_width(depths, widths, rtol=0.1)

# %% [markdown]
# In training the kernel of a network with a smooth activation moves by a constant over n, which is known as well.

# %%
drift = wl.ntk_drift(wl.mlp(2, "erf", w_std=1.4, b_std=0.3), x, [1.0, -0.5])
print("n (Theta_trained - Theta_0) =", drift.round(3).tolist())
