"""Numbers inside a network: Python floats outside jit, tracers inside."""

import math
import numbers
import reprlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .arrays import value_of

Scalar = float | Float[Array, ""]
_LARGEST = 2**31 - 1  # counters of compiled loops have 32 bits


def as_scalar(value: Any) -> Any:
    """Python and NumPy numbers become `float`; JAX numbers (tracers included) pass unchanged."""
    if isinstance(value, bool):
        raise TypeError(f"A number was expected, got the truth value {value}.")
    if isinstance(value, jax.Array):
        kinds = jnp.floating, jnp.integer
        if value.ndim or not any(jnp.issubdtype(value.dtype, kind) for kind in kinds):
            raise TypeError(
                f"A real number was expected, got a JAX array of shape {value.shape} and dtype "
                f"{value.dtype}. For many networks at once map over the number with jax.vmap."
            )
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return as_scalar(value.item())
    if isinstance(value, numbers.Real | np.bool_):
        return as_float(value, "A number")
    raise TypeError(
        f"A real number was expected, got {reprlib.repr(value)} ({type(value).__name__})."
    )


def as_float(value: Any, name: str) -> float:
    """The nearest float, or an error that names what was to become one."""
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{name} must be a float, at most 1.8e308 in size; an integer beyond that was given."
        ) from None
    except (TypeError, ValueError):
        raise TypeError(
            f"{name} must be a number, got {reprlib.repr(value)} ({type(value).__name__})."
        ) from None


def check_scalar(value: Any, name: str, *, minimum: float | None = 0.0) -> None:
    """Refuse a number that is known, and not finite or below `minimum`."""
    found = value_of(value) if isinstance(value, jax.Array) else value
    if found is None:
        return
    number = float(found)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}.")
    if minimum is not None and number < minimum:
        raise ValueError(
            f"{name} must be at least {minimum:g}, got {number:g}: it is a standard deviation "
            "or a size, and enters the kernels squared. Use its absolute value."
        )


def concrete(value: Any) -> float | None:
    """The number as a float, or None while it is being traced."""
    if isinstance(value, float):
        return value
    try:
        return float(jax.lax.stop_gradient(value))
    except (jax.errors.ConcretizationTypeError, TypeError):
        return None


def as_count(value: Any, name: str, *, minimum: int = 0) -> int:
    """An integer that decides structure; 5.0 and "5" are refused rather than guessed."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(
            f"{name} must be an integer, got {reprlib.repr(value)} ({type(value).__name__}): it decides the "
            "structure of the network. Write it without a decimal point."
        )
    count = int(value)
    if count < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {reprlib.repr(count)}.")
    if count > _LARGEST:
        raise ValueError(f"{name} must be less than 2^31, got {reprlib.repr(count)}.")
    return count
