"""Spectrum of the tangent kernel: decay, parity, kink, many digits."""

# %% [markdown]
# # Which functions does a network learn easily?
# The eigenvalues of the tangent kernel on a sphere say it: large ones are learnt first, and from
# few samples. ReLU networks have a kink at equal inputs, so eigenvalues decay like k^(-d).

# %%
import tempfile
from pathlib import Path

import widelimit as wl
from widelimit import plot

mlp, resnet = wl.mlp(depth=5), wl.resnet(depth=5, alpha=0.1)
spectra = {
    "MLP": wl.spectrum.circle(mlp, 1000),
    "ResNet, $\\alpha=0.1$": wl.spectrum.circle(resnet, 1000),
}
for name, s in spectra.items():
    print(name, s.values[:6].round(6), "decay", wl.spectrum.decay(s))

# %% [markdown]
# One hidden layer without bias is blind to odd harmonics beyond the first: exactly.

# %%
print(wl.spectrum.circle(wl.mlp(depth=1), 7).values)

# %% [markdown]
# The kink is weaker for the ResNet; attenuated, it nearly vanishes.

# %%
for net in (mlp, wl.resnet(depth=5), resnet):
    print(f"kink {wl.spectrum.kink(net):.5f} of {net}")

# %% [markdown]
# In ten dimensions eigenvalues fall below float64 at once; ask for digits.

# %%
deep = wl.spectrum.sphere(resnet, dim=10, degrees=200, digits=40)
print(deep.values[[10, 50, 200]], wl.spectrum.decay(deep, 100, 200))

# %%
folder = Path(tempfile.mkdtemp())
plot.spectrum(spectra, exponent=2).savefig(folder / "spectrum.png", dpi=200)
