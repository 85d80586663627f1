"""Settles dtype and array kind where weights and points meet: the weights' dtype is computed in."""

from typing import Any

import jax
import numpy as np

from widelimit._base.arrays import (
    Inputs,
    as_array,
    common_dtype,
    float_dtype,
    is_jax,
    is_transformed,
)
from widelimit._base.keys import as_key

from ._values import Values

LAYOUT = "(points, features) or (points, *spatial, channels)"


def as_points(x: Any, name: str = "x") -> Any:
    """Checked points, vectors or with pixels."""
    rank = np.ndim(x) if np.ndim(x) > 2 else 2
    return as_array(x, name, rank=rank, layout=LAYOUT)


def as_two(x1: Any, x2: Any = None) -> Inputs:
    """Check the two arguments of a kernel and settle dtype and array kind."""
    first = as_points(x1, "x1")
    second = None if x2 is None else as_points(x2, "x2")
    both = [x for x in (first, second) if x is not None]
    if second is not None and first.shape[1:] != second.shape[1:]:
        one, two = (
            f"{x.shape[1]} features" if x.ndim == 2 else f"shape {x.shape[1:]}" for x in both
        )
        raise ValueError(
            f"Points of x1 have {one}, points of x2 {two}; a kernel compares points of one space, so they "
            "must agree."
        )
    dtype = common_dtype(*both)
    settled = [x.astype(dtype) for x in both]
    return Inputs(
        settled[0], settled[1] if x2 is not None else None, not any(map(is_jax, both)), dtype
    )


def settle(params: Any, x1: Any, x2: Any = None, key: Any = None) -> Inputs:
    """Checked points in the dtype of the weights, with keys for what is dropped where one is given.

    NumPy points give NumPy answers, except for weights that are being traced (differentiated, say);
    64-bit weights are NumPy arrays where JAX runs in 32 bits, and are then computed with in 64 bits.
    """
    inputs = as_two(x1, x2)
    dtype = float_dtype(params)
    numpy = inputs.numpy and not is_transformed(params)
    if not numpy:
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    settled = [None if x is None else x.astype(dtype) for x in (inputs.x1, inputs.x2)]
    if key is not None:
        keys = jax.random.split(as_key(key), 2)
        settled = [
            None if x is None else Values(x, keys=jax.random.split(keys[i], len(x)))
            for i, x in enumerate(settled)
        ]
    return Inputs(*settled, numpy, dtype)
