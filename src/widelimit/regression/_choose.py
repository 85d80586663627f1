"""The ridge by leave-one-out error or by evidence, from one eigendecomposition.

Of many points that would be the dearest step by far, and it is not needed: the best ridge is the ratio of
noise to signal, which does not change with their number. Beyond `EXACT` points it is found on `SUBSET` of
them. On six UCI sets of 1600 to 3750 points, two subsets each, it was within a factor of 2.1 of the best of
all points, whose leave-one-out error it raised by at most 0.3 per cent.
"""

import math
from collections.abc import Sequence

import numpy as np
import scipy.optimize
from jaxtyping import Float

from widelimit._base.scalars import as_float
from widelimit.linalg import Eigen, RidgePath, ridge_path

from ._data import Data, Targets
from ._phi import flow

EXACT = 2000  # points up to which all are used for the choice
SUBSET = 1500  # points that are used where there are more
_RANGE = np.logspace(-6, 3, 20)  # ridges tried, relative to the mean diagonal

Choice = float | str | Sequence[float] | np.ndarray  # a ridge, how to choose it, or candidates


def choose(eigen: Eigen, data: Data, ridge: Choice, t: float) -> tuple[float, RidgePath | None]:
    """The ridge that was asked for, and the path on which it was found, where there is one."""
    targets = data.root * data.targets
    if not isinstance(ridge, str):
        if np.ndim(ridge) == 0:
            return as_float(ridge, "ridge"), None
        ridges = np.array([as_float(r, "A ridge") for r in np.ravel(ridge)])
    else:
        size = float(eigen.values.mean())
        ridges = _RANGE * (size if size > 0 else 1.0)
    if isinstance(ridge, str) and ridge == "evidence":
        return _by_evidence(eigen, data, ridges), None
    if t == math.inf:
        path = ridge_path(eigen, targets, ridges)
        return path.ridge, path
    squares = [(loo_errors(eigen, targets, float(r), t) ** 2).mean() for r in ridges]
    return float(ridges[int(np.argmin(squares))]), None


def loo_errors(eigen: Eigen, targets: Targets, ridge: float, t: float) -> Targets:
    r"""$(y_i-f(x_i))/(1-H_{ii})$, $H=B\phi(B)$: exact for ever, the usual estimate before."""
    if t == math.inf:
        return ridge_path(eigen, targets, [ridge]).errors[0]
    learnt = eigen.values * flow(eigen.values, t, ridge)
    left = targets - eigen.apply(lambda _: learnt, targets)
    own = np.einsum("ij,ij,j->i", eigen.vectors, eigen.vectors, 1 - learnt)
    return left / np.maximum(own, np.finfo(float).tiny)[:, None]


def _by_evidence(eigen: Eigen, data: Data, ridges: Float[np.ndarray, " r"]) -> float:
    r"""The largest marginal likelihood, amplitudes maximised over.

    $-2\log p=N\log Q+\sum_j\log(\lambda_j+r)+(N-n)\log r$ for each output, with
    $Q=\sum_j\tilde y_j^2/(\lambda_j+r)+\mathrm{spread}/r$; N counts rows, n distinct ones.
    """
    inner = (eigen.vectors.T @ (data.root * data.targets)) ** 2
    (count, outputs), rows = inner.shape, data.total
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
    log_ridge, *_ = scipy.optimize.fminbound(cost, low, high, full_output=True)
    return math.exp(float(log_ridge))
