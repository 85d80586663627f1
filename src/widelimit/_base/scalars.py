"""Numbers inside a network: Python floats outside jit, tracers inside."""

import math
import numbers
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

Scalar = float | Float[Array, ""]


def as_scalar(value: Any) -> Any:
    """Python and NumPy numbers become `float`; JAX values (tracers included) pass unchanged.

    Anything else passes too: Equinox fills modules with placeholders while it maps over them.
    """
    if isinstance(value, bool):
        raise TypeError(f"A number was expected, got the truth value {value}.")
    if isinstance(value, numbers.Real | np.number | np.bool_):
        return float(value)
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return float(value)
    if isinstance(value, str | bytes | list | tuple | np.ndarray | complex):
        raise TypeError(f"A real number was expected, got {value!r} ({type(value).__name__}).")
    return value


def check_scalar(value: Any, name: str, *, minimum: float | None = 0.0) -> None:
    """Refuse a concrete number that is not finite or lies below `minimum`."""
    if not isinstance(value, float):
        return
    if not math.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}.")
    if minimum is not None and value < minimum:
        raise ValueError(
            f"{name} must be at least {minimum:g}, got {value:g}: it is a standard deviation "
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
            f"{name} must be an integer, got {value!r} ({type(value).__name__}): it decides the "
            "structure of the network. Write it without a decimal point."
        )
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}.")
    return int(value)
