"""Activations without a closed form; their moments are computed (see `_moments`)."""

import jax

from ._activation import Activation, register

elu = register(
    Activation("elu", jax.nn.elu, breaks=(0.0,), lipschitz=1.0, latex=r"\max(0,x)+\min(0,e^{x}-1)")
)
mish = register(Activation("mish", jax.nn.mish, lipschitz=1.0885010, latex=r"x\tanh\log(1+e^{x})"))
