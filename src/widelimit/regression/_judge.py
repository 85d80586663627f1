"""How good a fit is by the points that it was made of: statistics of leave-one-out errors."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float, Int

from widelimit.linalg import InverseDiagonal

Rows = Int[np.ndarray, " m"]
Errors = Float[np.ndarray, "m k"]
Statistic = Callable[[Rows, Errors], float]
_GROUPS = 20  # of rows that are left out together, to see how far a statistic depends on them


@dataclasses.dataclass(frozen=True)
class Score:
    """A statistic of leave-one-out errors.

    Attributes:
        value: As it was found.
        std: Its standard error as an estimate of what the exact errors of all points give; 0 if it is that.
    """

    value: float
    std: float


def exact_score(statistic: Statistic, rows: Rows, errors: Errors, n: int) -> Score:
    """Of exact errors at some of n points: leaving groups of them out tells how far the others matter."""
    value = statistic(rows, errors)
    if len(rows) == n:
        return Score(value, 0.0)
    group = np.arange(len(rows)) % _GROUPS
    left = [statistic(rows[group != g], errors[group != g]) for g in range(_GROUPS)]
    return Score(value, _jackknife(np.array(left)) * float(np.sqrt(1 - len(rows) / n)))


def sampled_score(
    statistic: Statistic, found: InverseDiagonal, dual: Float[np.ndarray, "m k"]
) -> Score:
    """Of estimated errors at all points: leaving samples out tells how far each of them matters."""
    rows = np.arange(len(dual))
    each = range(found.samples.shape[1])
    left = [statistic(rows, found.leave_one_out(dual, skip)) for skip in each]
    return Score(statistic(rows, found.leave_one_out(dual)), _jackknife(np.array(left)))


def _jackknife(values: Float[np.ndarray, " g"]) -> float:
    """The standard error of a statistic from its values without each of g parts."""
    around = values - values.mean()
    return float(np.sqrt((len(values) - 1) / len(values) * (around @ around)))
