"""Settles dtype and array kind where weights and points meet: the weights' dtype is computed in."""

from typing import Any

import jax
import jax.numpy as jnp

from widelimit._base.arrays import Inputs, as_inputs, float_dtype, is_jax, is_transformed
from widelimit._base.keys import as_key
from widelimit._base.structured import Graphs, Masked, as_images
from widelimit.interpret import facts
from widelimit.layers import Layer

from ._values import Signals, Values, handed


def as_points(net: Layer, x1: Any, x2: Any = None) -> Inputs:
    """Checked points, with pixels where the network reads them."""
    return as_images(x1, x2) if facts(net).pixels else as_inputs(x1, x2)


def settle(net: Layer, params: Any, x1: Any, x2: Any = None, key: Any = None) -> Inputs:
    """Checked points in the dtype of the weights, with keys for what is dropped where one is given.

    NumPy points give NumPy answers, except for weights that are being traced (differentiated, say);
    64-bit weights are NumPy arrays where JAX runs in 32 bits, and are then computed with in 64 bits.
    """
    inputs = as_points(net, x1, x2)
    dtype = float_dtype(params)
    numpy = inputs.numpy and not is_transformed(params)
    if not numpy:
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    keys = (None, None) if key is None else jax.random.split(as_key(key), 2)
    both = zip((inputs.x1, inputs.x2), keys, strict=True)
    first, second = (None if x is None else _signal(x, dtype, own) for x, own in both)
    return Inputs(first, second, numpy, dtype)


def _signal(x: Any, dtype: Any, key: Any) -> Signals:
    """The points as they flow: an array, or with what stands beside it."""
    keys = None if key is None else jax.random.split(key, len(x))
    if isinstance(x, Masked):
        return Values(x.seen.astype(dtype), mask=x.mask, keys=keys)
    if isinstance(x, Graphs):
        turned = jnp.swapaxes if is_jax(x.adjacency) else lambda a, i, j: a.swapaxes(i, j)
        return Values(x.x.astype(dtype), graph=turned(x.adjacency, 1, 2).astype(dtype), keys=keys)
    return handed(Values(x.astype(dtype), keys=keys))
