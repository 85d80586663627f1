"""From outputs to probabilities."""

import math
from typing import Any

import numpy as np
import scipy.optimize
from scipy.special import log_softmax, softmax

from widelimit.regression import Ridge


def probabilities(outputs: np.ndarray, sharpness: float) -> np.ndarray:
    """Softmax of the outputs; one column stands for (-f, f).

    Args:
        outputs: Shape (m, classes), or (m, 1) for two classes.
        sharpness: What multiplies them.

    Returns:
        Shape (m, classes).

    Example:
        >>> probabilities(np.array([[0.0]]), 5.0)
        array([[0.5, 0.5]])
    """
    return softmax(sharpness * columns(outputs), axis=1)


def fit_sharpness(fit: Ridge, mean: np.ndarray) -> float:
    """The sharpness that makes the classes most probable, given what leave-one-out predicts.

    The fit is to codes of ±1 minus their mean.
    """
    rows, errors = fit.judged()
    data = fit.problem.data
    targets = data.targets[rows]
    shares = (columns(targets + mean) + 1) / 2
    return sharpness_of(targets - errors + mean, shares, data.weights[rows])


def sharpness_of(outputs: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> float:
    """The sharpness that makes labels most probable, given outputs of models that did not see them.

    Args:
        outputs: Shape (m, classes), or (m, 1).
        shares: Of each class in a row's labels, shape (m, classes).
        weights: Shape (m,).

    Returns:
        Between 0.1 and 100.
    """
    scores, total = columns(outputs), float(weights.sum())
    # One more row, spread over all classes: separable data would ask for infinite sharpness.
    shares = (total * shares + 1 / shares.shape[1]) / (total + 1)

    def cost(log_sharpness: float) -> float:
        logs = log_softmax(math.exp(log_sharpness) * scores, axis=1)
        return -float(weights @ (shares * logs).sum(1)) / total

    out: Any = scipy.optimize.minimize_scalar(
        cost, bounds=(math.log(0.1), math.log(100)), method="bounded"
    )
    return math.exp(float(out.x))


def columns(outputs: np.ndarray) -> np.ndarray:
    """One column f as (-f, f), several as they are."""
    return np.concatenate([-outputs, outputs], axis=1) if outputs.shape[1] == 1 else outputs
