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
    return softmax(sharpness * _columns(outputs), axis=1)


def fit_sharpness(fit: Ridge, mean: np.ndarray) -> float:
    """The sharpness that makes the classes most probable, given what leave-one-out predicts.

    The fit is to codes of ±1 minus their mean. By CG, which knows no leave-one-out outputs, those
    of the fitted rows take their place, and probabilities come out too sure.
    """
    data = fit.problem.data
    if fit.outcome is None:
        outputs = data.targets - fit.leave_one_out()
    else:
        outputs = data.targets - fit.ridge * fit.dual / data.weights[:, None]
    scores = _columns(outputs + mean)
    shares = (_columns(data.targets + mean) + 1) / 2
    # One more row, spread over all classes: separable data would ask for infinite sharpness.
    shares = (data.total * shares + 1 / shares.shape[1]) / (data.total + 1)

    def cost(log_sharpness: float) -> float:
        logs = log_softmax(math.exp(log_sharpness) * scores, axis=1)
        return -float(data.weights @ (shares * logs).sum(1)) / data.total

    out: Any = scipy.optimize.minimize_scalar(
        cost, bounds=(math.log(0.1), math.log(100)), method="bounded"
    )
    return math.exp(float(out.x))


def _columns(outputs: np.ndarray) -> np.ndarray:
    return np.concatenate([-outputs, outputs], axis=1) if outputs.shape[1] == 1 else outputs
