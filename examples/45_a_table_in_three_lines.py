# %% [markdown]
# # A table in three lines
#
# An infinitely wide network is a scikit-learn estimator: no learning rate, no epochs, no seed. Columns
# are standardised inside, and the ridge is the one with the least leave-one-out error.

# %%
import tempfile
from pathlib import Path

from sklearn.datasets import load_diabetes, load_wine
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

import widelimit as wl
from widelimit.estimators import NetworkKernel, NTKClassifier, NTKRegressor, load, save

x, y = load_diabetes(return_X_y=True)
score = cross_val_score(NTKRegressor(), x, y, cv=5).mean()
print(f"diabetes, 5 folds: R^2 = {score:.3f}")
assert score > 0.45

# %% [markdown]
# The model is a Gaussian process, so it knows what it does not know. Its amplitude and its noise were
# fitted in closed form.

# %%
model = NTKRegressor().fit(x[:300], y[:300])
mean, std = model.predict(x[300:], return_std=True)
noisy = (std**2 + model.noise_variance_) ** 0.5
inside = (abs(y[300:] - mean) < 1.96 * noisy).mean()
print(f"ridge {model.ridge_:.3g}; {inside:.0%} of new targets lie in their 95% interval")
assert 0.9 < inside < 1

# %% [markdown]
# Classes by name, with probabilities; deeper networks by one word.

# %%
wine = load_wine(as_frame=True)
names = wine.target.map(dict(enumerate(["barolo", "grignolino", "barbera"])))
for depth in (1, 3):
    classifier = NTKClassifier(depth=depth)
    print(f"wine, depth {depth}: {cross_val_score(classifier, wine.data, names, cv=5).mean():.3f}")
classifier.fit(wine.data, names)
print(
    dict(zip(classifier.classes_, classifier.predict_proba(wine.data[:1])[0].round(3), strict=True))
)

# %% [markdown]
# One file without pickle holds the fitted model, its options and its network, under a checksum.

# %%
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "wine.npz"
    save(classifier, path)
    assert (load(path).predict(wine.data) == classifier.predict(wine.data)).all()
    print(f"{path.name}: {path.stat().st_size // 1024} KiB")

# %% [markdown]
# The kernel alone goes into scikit-learn's own models; a Gaussian process fits its numbers.

# %%
prior = NetworkKernel(depth=1, w_std_bounds="fixed") + WhiteKernel(1.0)
process = GaussianProcessRegressor(prior, normalize_y=True)
process.fit(StandardScaler().fit_transform(x[:120]), y[:120])
print(process.kernel_)

# %% [markdown]
# Predicted against true, with two standard deviations of what is not known.

# %%
fig, panels = wl.plot.figure(width=4.2, height=3.4)
panels[0, 0].errorbar(y[300:], mean, 2 * std, fmt="o", ms=3, lw=0.6)
panels[0, 0].axline((150, 150), slope=1, color="0.6", lw=1)
_ = panels[0, 0].set(xlabel="true", ylabel="predicted")
