"""How smooth is what a network learns?"""

# %% [markdown]
# # How smooth is what a network learns?
# Networks of infinite width interpolate a few samples on the circle. The multilayer perceptron leaves
# kinks at the samples; a residual network with attenuated branches leaves hardly any.

# %%
from pathlib import Path

import numpy as np

import widelimit as wl

target = lambda b: np.cos(b) / 2 + np.sin(4 * b)
b = -np.pi + 2 * np.pi * np.arange(10) / 10
networks = {
    "MLP": wl.mlp(depth=5),
    "ResNet, 1": wl.resnet(depth=5, alpha=1.0),
    "ResNet, 0.1": wl.resnet(depth=5, alpha=0.1),
}
fits = {name: wl.smoothness.interpolate(net, b, target(b)) for name, net in networks.items()}
gauss = wl.smoothness.interpolate("gaussian", b, target(b))

# %% [markdown]
# Two measures. The first says *smaller is smoother*; a kink makes it grow like the root of N, so N
# belongs to the result. The second says *larger is smoother*; its floor belongs to the result.

# %%
for name, f in fits.items():
    print(f"{name:12s}", wl.smoothness.second_derivative(f))
    print(f"{'':12s}", wl.smoothness.gaussian_rkhs(f, gauss))
rough, smooth = (wl.smoothness.second_derivative(fits[n]) for n in ("MLP", "ResNet, 0.1"))
assert smooth.smoother_than(rough)

# %% [markdown]
# In any dimension: second differences along lines through the data, and the exact input gradient. The
# root mean square sees the kinks, and alpha attenuates them. The mean of the absolute value (the
# "variation") does not care whether a slope turns at once or gradually, and the gradients hardly differ.

# %%
x = wl.smoothness.circle_points(b)
around = wl.smoothness.circle_points(np.linspace(-np.pi, np.pi, 500))
start, end = wl.smoothness.data_lines(x, count=16)
for name, f in fits.items():
    kinks = wl.smoothness.second_differences(f, start, end, norm="rms")
    slope = wl.smoothness.input_gradient(f, around)
    print(f"{name:12s} {kinks}; gradient: mean {slope.mean:.3g}, max {slope.maximum:.3g}")

# %% [markdown]
# Why: the norm of the Jacobian of a wide network is bounded, and for small alpha the bound of the
# residual network is the smaller one. It is far from tight: a measured network lies well below.

# %%
for name, net in networks.items():
    bound = wl.bounds.jacobian(net, width=200, input_dim=2)
    finite = wl.finite(net, width=200)
    norms = wl.bounds.jacobian_norms(finite.apply, finite.init(0, 2), x)
    print(f"{name:12s} bound {float(bound):.4g}, measured {norms.maximum:.3g}")
print(
    "alpha must be below", [round(wl.bounds.alpha_threshold(depth), 3) for depth in (1, 3, 5, 15)]
)

# %%
if __name__ == "__main__" and Path("figures").is_dir():
    from widelimit import plot

    plot.smoothness(fits, samples=(b, target(b))).savefig("figures/smoothness.png")
