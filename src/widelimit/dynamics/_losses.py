"""Losses, summed over the points but for the mean of squares; a new one is one line."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.names import unknown

Loss = Callable[[Any, Any], Any]


def _squared(f: Any, y: Any) -> Any:
    return ((f - y) ** 2).sum() / 2


def _mean(f: Any, y: Any) -> Any:
    return ((f - y) ** 2).mean() / 2


def _huber(f: Any, y: Any) -> Any:
    error = jnp.abs(f - y)
    return jnp.where(error < 1, error**2 / 2, error - 0.5).sum()


def _logistic(f: Any, y: Any) -> Any:
    return jax.nn.softplus(-y * f).sum()


def _cross_entropy(f: Any, y: Any) -> Any:
    return -(y * jax.nn.log_softmax(f, axis=1)).sum()


LOSSES: dict[str, Loss] = {
    "squared": _squared,
    "mean": _mean,
    "huber": _huber,
    "logistic": _logistic,
    "cross-entropy": _cross_entropy,
}


def as_loss(loss: Any) -> Loss:
    """A loss by name, or the function itself."""
    if callable(loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(unknown("loss", loss, LOSSES))
    return LOSSES[loss]


def check_targets(loss: Any, y: np.ndarray) -> None:
    """Refuse targets that a named loss does not understand."""
    if loss == "logistic" and not np.isin(y, (-1.0, 1.0)).all():
        raise ValueError("loss='logistic' expects targets -1 and 1. Write y = 2 * labels - 1.")
    if loss == "cross-entropy":
        sums = y.sum(1)
        if y.shape[1] < 2 or (y < 0).any() or np.abs(sums - 1).max() > 1e-6:
            raise ValueError(
                "loss='cross-entropy' expects one row of class probabilities for each point, at "
                f"least two classes; got targets of shape {y.shape}. From labels 0..c-1: "
                "np.eye(c)[labels]."
            )
