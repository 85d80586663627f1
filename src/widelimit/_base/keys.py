"""Randomness: an integer or a JAX key decides everything."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def as_key(key: Any) -> Any:
    """An integer becomes a JAX key; a key passes."""
    if isinstance(key, bool | float | str) or key is None:
        raise TypeError(
            f"key must be an integer or a JAX key such as jax.random.key(0), got {key!r}."
        )
    if isinstance(key, int | np.integer):
        if not -(2**63) <= key < 2**63:
            raise ValueError("key must fit into 64 bits: an integer from -2^63 to 2^63 - 1.")
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


def as_generator(key: Any) -> np.random.Generator:
    """NumPy's generator for what is drawn on the host.

    Args:
        key: An integer or a JAX key.

    Returns:
        A generator that depends on the key alone.

    Example:
        >>> draw = lambda key: as_generator(key).integers(1000)
        >>> bool(draw(3) == np.random.default_rng(3).integers(1000) != draw(jax.random.key(3)))
        True
    """
    if isinstance(key, int | np.integer) and not isinstance(key, bool):
        if key < 0:
            raise ValueError(f"key must be at least 0, got {key}.")
        return np.random.default_rng(int(key))
    key = as_key(key)
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    data = np.asarray(jax.random.key_data(key) if typed else key)
    return np.random.default_rng([int(v) for v in data.ravel()])
