"""Settles dtype and array kind where weights and points meet: the weights' dtype is computed in."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import Inputs, as_inputs


def as_key(key: Any) -> Any:
    """An integer becomes a JAX key; a key passes."""
    if isinstance(key, bool | float | str) or key is None:
        raise TypeError(
            f"key must be an integer or a JAX key such as jax.random.key(0), got {key!r}."
        )
    if isinstance(key, int | np.integer):
        return jax.random.key(int(key))
    typed = isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    shape = key.shape if typed else np.shape(key)[:-1]
    if not typed and (np.ndim(key) == 0 or np.shape(key)[-1] not in (2, 4)):
        raise TypeError(f"key must be an integer or a JAX key, got {key!r}.")
    if shape != ():
        raise ValueError(
            f"One key was expected, got {shape[0]}. For many networks at once map over the keys: "
            "jax.vmap(lambda key: finite.init(key, input_dim))(keys)."
        )
    return key


def is_traced(tree: Any) -> bool:
    """Whether any leaf is being traced; asks for its device, so nothing is computed or copied."""
    try:
        for leaf in jax.tree.leaves(tree):
            if isinstance(leaf, jax.Array):
                leaf.devices()
    except jax.errors.ConcretizationTypeError:
        return True
    return False


def float_dtype(params: Any) -> Any:
    """The floating dtype of a parameter tree."""
    leaves = [leaf for leaf in jax.tree.leaves(params) if hasattr(leaf, "dtype")]
    dtypes = [leaf.dtype for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    return jnp.result_type(*dtypes) if _in_jax(leaves) and dtypes else _widest(dtypes)


def _in_jax(leaves: Any) -> bool:
    return all(isinstance(leaf, jax.Array) for leaf in leaves)


def _widest(dtypes: Any) -> Any:
    return np.result_type(*dtypes) if dtypes else np.dtype(np.float32)


def settle(params: Any, x1: Any, x2: Any = None) -> Inputs:
    """Checked points in the dtype of the weights.

    NumPy points give NumPy answers, except for weights that are being traced (differentiated, say);
    64-bit weights are NumPy arrays where JAX runs in 32 bits, and are then computed with in 64 bits.
    """
    inputs = as_inputs(x1, x2)
    dtype = float_dtype(params)
    numpy = inputs.numpy and not is_traced(params)
    if not numpy:
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    second = None if inputs.x2 is None else inputs.x2.astype(dtype)
    return Inputs(inputs.x1.astype(dtype), second, numpy, dtype)
