"""What training is asked for, checked: losses, times, friction, initial values."""

import math
import warnings
from typing import Any

import numpy as np

from widelimit._base.scalars import as_count, as_float
from widelimit.regression import Problem

from ._losses import Loss


def shaped_loss(loss: Loss, problem: Problem) -> Loss:
    """The loss on outputs of shape (n, k), where they are solved for as one column."""
    shape = problem.loss_shape()
    if shape == problem.y.shape:
        return loss
    return lambda f, y: loss(f.reshape(shape), y.reshape(shape))


def as_friction(friction: object, times: np.ndarray) -> float:
    """A finite friction, above 0 where the motion has to end."""
    value = as_float(friction, "friction")
    if not 0 <= value < math.inf:
        raise ValueError(f"friction must be finite and at least 0, got {friction!r}.")
    if value == 0 and np.isinf(times).any():
        raise ValueError("Without friction a heavy ball never comes to rest. Give a finite t.")
    return value


def as_descent(steps: object, learning_rate: object, momentum: object) -> tuple[int, float, float]:
    """Steps, learning rate and momentum of gradient descent."""
    count, rate = as_count(steps, "steps"), as_float(learning_rate, "learning_rate")
    inertia = as_float(momentum, "momentum")
    if not (math.isfinite(rate) and rate > 0):
        raise ValueError(f"learning_rate must be positive and finite, got {rate}.")
    if not 0 <= inertia < 1:
        raise ValueError(f"momentum must lie in [0, 1), got {inertia}.")
    return count, rate, inertia


def check_descent(move: np.ndarray, rate: float, steps: int, limit: float) -> None:
    """Refuse what has overflowed."""
    if not np.isfinite(move).all():
        raise ValueError(
            f"Gradient descent with the learning rate {rate:g} has overflowed after {steps} steps. Under "
            f"the squared loss it converges for rates below {limit:g}."
        )


def warn_of_divergence(rate: float, limit: float) -> None:
    """Say where gradient descent converges."""
    warnings.warn(
        f"The learning rate {rate:g} is above {limit:g}, so gradient descent diverges; the answer "
        "is exact for this number of steps. Take a smaller one.",
        UserWarning,
        stacklevel=4,
    )


def as_outputs(values: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """Initial values as a checked array of shape (points, outputs)."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 2 and values.size == shape[0] and shape[1] == 1:
        values = values.reshape(shape)
    if values.ndim == 0:
        values = np.full(shape, float(values))
    if values.shape == shape[:1] and shape[1] == 1:
        values = values[:, None]
    if values.shape != shape:
        raise ValueError(f"{name} must have shape {shape} (points, outputs), got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinite values.")
    return values


def as_times(t: Any) -> np.ndarray:
    """A time or several, infinity included."""
    if t is None:
        return np.asarray(math.inf)
    try:
        times = np.asarray(t, dtype=np.float64)
    except OverflowError:
        raise ValueError("t holds an integer beyond the range of floats; give math.inf.") from None
    except (TypeError, ValueError):
        raise TypeError(f"t must be a number or a list of numbers, got {t!r}.") from None
    if times.ndim > 1 or times.size == 0:
        raise ValueError(f"t must be a number or a list of numbers, got shape {times.shape}.")
    if np.isnan(times).any() or (times < 0).any():
        raise ValueError(f"t is a time, at least 0; got {t}.")
    return times
