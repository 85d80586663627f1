"""The ridge by leave-one-out error or by evidence, from one eigendecomposition."""

import math
from typing import Any

import numpy as np
import scipy.optimize

from widelimit.linalg import Eigen, ridge_path

from ._data import Data

_RANGE = np.logspace(-6, 3, 20)  # ridges tried, relative to the mean diagonal


def shrink(values: np.ndarray, ridge: Any, time: float | None) -> np.ndarray:
    r"""$\phi=(1-e^{-(\lambda+r)t})/(\lambda+r)$: gradient flow with weight decay r for time t.

    Args:
        values: Eigenvalues.
        ridge: $r$.
        time: $t$; None for ever.

    Returns:
        The weights.

    Example:
        >>> shrink(np.array([0.0, 1.0]), 1.0, None)
        array([1. , 0.5])
        >>> shrink(np.array([0.0]), 0.0, 3.0)
        array([3.])
    """
    total = values + ridge
    if time is None:
        return 1 / total
    safe = np.where(total > 0, total, 1.0)
    return np.where(total * time > 0, -np.expm1(-total * time) / safe, time)


def choose(eigen: Eigen, targets: np.ndarray, data: Data, ridge: Any, time: float | None) -> float:
    """The ridge that was asked for: a number, "loo" or "evidence"."""
    if not isinstance(ridge, str):
        return float(ridge)
    size = float(eigen.values.mean())
    ridges = _RANGE * (size if size > 0 else 1.0)
    if ridge == "evidence":
        return _by_evidence(eigen, targets, data, ridges)
    if time is None:
        return ridge_path(eigen, targets, ridges).ridge
    squares = [(loo_errors(eigen, targets, float(r), time) ** 2).mean() for r in ridges]
    return float(ridges[int(np.argmin(squares))])


def loo_errors(eigen: Eigen, targets: np.ndarray, ridge: float, time: float | None) -> np.ndarray:
    r"""$(y_i-f(x_i))/(1-H_{ii})$, $H=B\phi(B)$: exact for ever, the usual estimate before."""
    if time is None:
        return ridge_path(eigen, targets, [ridge]).errors[0]
    learnt = eigen.values * shrink(eigen.values, ridge, time)
    left = targets - eigen.apply(lambda _: learnt, targets)
    own = np.einsum("ij,ij,j->i", eigen.vectors, eigen.vectors, 1 - learnt)
    return left / np.maximum(own, np.finfo(float).tiny)[:, None]


def _by_evidence(eigen: Eigen, targets: np.ndarray, data: Data, ridges: np.ndarray) -> float:
    r"""The largest marginal likelihood, amplitudes maximised over.

    $-2\log p=N\log Q+\sum_j\log(\lambda_j+r)+(N-n)\log r$ for each output, with
    $Q=\sum_j\tilde y_j^2/(\lambda_j+r)+\mathrm{spread}/r$; N counts rows, n distinct ones.
    """
    inner = (eigen.vectors.T @ targets) ** 2
    rows, count, outputs = data.total, len(eigen.values), targets.shape[1]
    if not inner.any() and not data.spread.any():
        return float(ridges[np.argmin(np.abs(_RANGE - 1))])

    def cost(log_ridge: float) -> float:
        r = math.exp(log_ridge)
        quadratic = (inner / (eigen.values + r)[:, None]).sum(0) + data.spread / r
        fit = rows * np.log(quadratic[quadratic > 0]).sum()
        volume = np.log(eigen.values + r).sum() + (rows - count) * log_ridge
        return float(fit + outputs * volume)

    logs = np.log(ridges)
    best = int(np.argmin([cost(v) for v in logs]))
    low, high = logs[max(best - 1, 0)], logs[min(best + 1, len(logs) - 1)]
    out = scipy.optimize.minimize_scalar(cost, bounds=(low, high), method="bounded")
    return math.exp(float(out.x))
