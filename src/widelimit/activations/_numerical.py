"""Activations without a closed form; their moments are computed (see `_moments`)."""

import jax
import jax.numpy as jnp

from ._activation import Activation, register

tanh = register(Activation("tanh", jnp.tanh, parity="odd", lipschitz=1.0, latex=r"\tanh x"))
sigmoid = register(Activation("sigmoid", jax.nn.sigmoid, lipschitz=0.25, latex=r"1/(1+e^{-x})"))
silu = register(Activation("silu", jax.nn.silu, lipschitz=1.0998393194, latex=r"x/(1+e^{-x})"))
softplus = register(Activation("softplus", jax.nn.softplus, lipschitz=1.0, latex=r"\log(1+e^{x})"))
elu = register(
    Activation("elu", jax.nn.elu, breaks=(0.0,), lipschitz=1.0, latex=r"\max(0,x)+\min(0,e^{x}-1)")
)
mish = register(Activation("mish", jax.nn.mish, lipschitz=1.0885010, latex=r"x\tanh\log(1+e^{x})"))
