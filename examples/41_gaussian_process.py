# %% [markdown]
# # A network as a prior: posterior, ensembles, evidence

# %%
import numpy as np

import widelimit as wl

rng = np.random.default_rng(0)
x = rng.uniform(-1, 1, (25, 1))
y = np.sin(4 * x[:, 0]) + 0.1 * rng.standard_normal(25)
grid = np.linspace(-1.5, 1.5, 61)[:, None]

# %% [markdown]
# ## Let the data choose the network's numbers
# The marginal likelihood is differentiated in the standard deviations of weights and biases.

# %%
build = lambda w_std, b_std: wl.mlp(depth=2, activation="erf", w_std=w_std, b_std=b_std)
fit = wl.fit_evidence(build, x, y, start={"w_std": 1.0, "b_std": 1.0})
before = wl.log_marginal_likelihood(build(1.0, 1.0), x, y, noise=0.1)
print(f"log evidence {before:.1f} -> {fit.log_likelihood:.1f} in {fit.steps} steps")
print({k: round(v, 3) for k, v in fit.parameters.items()}, f"noise std {fit.noise**0.5:.3f}")
assert fit.log_likelihood > before

# %% [markdown]
# ## The posterior
# It is narrow where there is data and widens outside.

# %%
posterior = wl.posterior(fit.net, x, y, grid, noise=fit.noise)
inside, outside = np.abs(grid[:, 0]) < 0.8, np.abs(grid[:, 0]) > 1.3
print(f"std inside {posterior.std[inside].mean():.3f}, outside {posterior.std[outside].mean():.3f}")
assert posterior.std[inside].mean() < posterior.std[outside].mean()

# %% [markdown]
# ## Trained networks are not posterior samples
# Networks trained by gradient descent from random weights form another Gaussian. Only when nothing but
# the last layer is trained do the two agree.

# %%
few = slice(0, 6)
trained = wl.ensemble(fit.net, x[few], y[few], grid)
last_layer = wl.ensemble(fit.net, x[few], y[few], grid, kernel="nngp")
bayes = wl.posterior(fit.net, x[few], y[few], grid)
print(f"last layer against posterior: {np.abs(last_layer.std - bayes.std).max():.1e}")
print(f"all layers against posterior: {np.abs(trained.std - bayes.std).max():.1e}")

# %% [markdown]
# ## Ridge regression, its ridge chosen by leave-one-out
# Twenty ridges cost one eigendecomposition.

# %%
model = wl.ridge(fit.net, x, y, np.logspace(-6, 2, 20))
print(f"ridge {model.ridge:.2g}, leave-one-out rms {np.sqrt((model.errors**2).mean()):.3f}")
assert np.sqrt((model.errors**2).mean()) < 0.3

# %%
from widelimit import plot  # noqa: E402

fig = plot.band(grid[:, 0], posterior, x[:, 0], y, samples=5)
