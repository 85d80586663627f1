"""Settles dtype and array kind where weights and points meet: the weights' dtype is computed in."""

from typing import Any

import jax

from widelimit._base.arrays import Inputs, as_inputs, float_dtype, is_transformed


def settle(params: Any, x1: Any, x2: Any = None) -> Inputs:
    """Checked points in the dtype of the weights.

    NumPy points give NumPy answers, except for weights that are being traced (differentiated, say);
    64-bit weights are NumPy arrays where JAX runs in 32 bits, and are then computed with in 64 bits.
    """
    inputs = as_inputs(x1, x2)
    dtype = float_dtype(params)
    numpy = inputs.numpy and not is_transformed(params)
    if not numpy:
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    second = None if inputs.x2 is None else inputs.x2.astype(dtype)
    return Inputs(inputs.x1.astype(dtype), second, numpy, dtype)
