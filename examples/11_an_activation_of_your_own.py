# %% [markdown]
# # An activation of your own
# Any elementwise function works. If you know its Gaussian moments, say so and it becomes exact.

# %%
import jax.numpy as jnp
import numpy as np

import widelimit as wl
from widelimit import testing

x = np.random.default_rng(0).standard_normal((5, 3))

# %% A plain function: integrated to rounding if it is smooth.
print(wl.ntk(wl.mlp(depth=2, activation=lambda u: jnp.sin(2 * u)), x)[0])

# %% With a closed form: E[sin(2u) sin(2v)] = exp(-2 (q1 + q2)) sinh(4 k). `dual_dot` follows by itself.
# Written so that nothing overflows for large inputs and no digit is lost for small ones: the laws look.
wave = wl.activations.register(
    wl.Activation(
        "wave",
        lambda u: jnp.sin(2 * u),
        dual=lambda c: (
            (jnp.expm1(4 * c.k - 2 * (c.q1 + c.q2)) - jnp.expm1(-4 * c.k - 2 * (c.q1 + c.q2))) / 2
        ),
        parity="odd",
        latex=r"\sin 2x",
    )
)
testing.check_activation(wave)  # the laws that every activation must obey
print(wl.ntk(wl.mlp(depth=2, activation="wave"), x)[0])

# %% With a kink: declare where, and the integration is cut there.
hard = wl.Activation("hard_tanh", lambda u: jnp.clip(u, -1, 1), breaks=(-1.0, 1.0), parity="odd")
print(wl.ntk(wl.mlp(depth=1, activation=hard), x[:3])[0])

# %% What such a network is before training, on the circle: draws, and two standard deviations.
fig = wl.plot.prior(wl.mlp(depth=2, activation=wave, w_std=1.5))
