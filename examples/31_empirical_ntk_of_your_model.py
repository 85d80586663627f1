"""The tangent kernel of your own model."""

# %% [markdown]
# # The tangent kernel of your own model
# `empirical_ntk` takes any function of (parameters, points): here an Equinox and a Flax model.

# %%
import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

import widelimit as wl

x = jax.random.normal(jax.random.key(0), (12, 8))

# %% [markdown]
# Equinox: the model is its own parameter tree.

# %%
model = eqx.nn.MLP(in_size=8, out_size=1, width_size=64, depth=2, key=jax.random.key(1))
kernel = wl.empirical_ntk(lambda m, x: jax.vmap(m)(x), model, x)
print("Equinox:", kernel.shape, "smallest eigenvalue", float(jnp.linalg.eigvalsh(kernel)[0]))


# %% [markdown]
# Flax: parameters apart from the model. Several outputs give a block for each pair of points;
# `outputs="trace"` sums them.


# %%
class Small(nn.Module):
    """A little network with layer normalisation, which has no entry in the table of limits."""

    @nn.compact
    def __call__(self, x):
        """Three outputs."""
        return nn.Dense(3)(nn.gelu(nn.LayerNorm()(nn.Dense(32)(x))))


flax_model = Small()
params = flax_model.init(jax.random.key(2), x)
full = wl.empirical_ntk(flax_model.apply, params, x)
trace = wl.empirical_ntk(flax_model.apply, params, x, outputs="trace")
print("Flax:", full.shape, "and its trace over outputs", trace.shape)
assert np.allclose(jnp.trace(full, axis1=2, axis2=3), trace, rtol=1e-4)

# %% [markdown]
# What the model would learn if it were trained for ever in its linear regime: kernel regression.

# %%
y = jnp.sin(x[:, 0])
f0 = jax.vmap(model)(x)[:, 0]
weights = jnp.linalg.solve(kernel, y - f0)
x_test = x[:4] + 0.01
prediction = (
    jax.vmap(model)(x_test)[:, 0]
    + wl.empirical_ntk(lambda m, x: jax.vmap(m)(x), model, x_test, x) @ weights
)
print("targets   ", np.round(np.sin(x_test[:, 0]), 2))
print("prediction", np.round(prediction, 2))

# %%
fig = wl.plot.kernel(np.asarray(kernel))
