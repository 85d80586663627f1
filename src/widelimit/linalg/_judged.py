"""A residual of many rows, judged by some of them."""

import math

import numpy as np
from jaxtyping import Float

from ._operator import KernelOperator
from ._steps import Columns

_ALL_ROWS = 200_000  # points up to which all rows are asked
_SOME_ROWS = 256  # that are asked beyond


def judged_by_rows(
    exact: KernelOperator | None,
    ridge: Float[np.ndarray, " n"],
    b: Float[np.ndarray, "n k"],
    x: Columns,
    r: Columns,
    rng: np.random.Generator,
) -> Float[np.ndarray, " k"] | None:
    """A bound of |b - A x|, A = K + diag(ridge), where r was found for it with less care.

    What an iteration lost grows with the size of a row, so rows are compared in units of that. The bound is |r| and
    what was lost by the mean of the rows, with three standard errors.

    Args:
        exact: K with care, or None.
        ridge: One number for each row.
        b: Right-hand sides.
        x: Solutions.
        r: The residual as the iteration knows it.
        rng: Draws the rows.

    Returns:
        A number for each column; None where rows do not tell: there are few, or nearly parallel points.
    """
    some = getattr(exact, "some", None)
    if exact is None or some is None or len(b) <= _ALL_ROWS:
        return None
    rows = np.sort(rng.choice(len(b), _SOME_ROWS, replace=False))
    products = some(rows, x)
    if products is None:
        return None
    there, left = np.asarray(x)[rows], np.asarray(r)
    lost = b[rows] - products - ridge[rows, None] * there - left[rows]
    square = np.asarray(exact.diagonal())
    square = np.where(square > 0, square, 1)[:, None]
    size = np.sqrt((lost**2 / square[rows]).mean(0) * square.sum())
    return np.linalg.norm(left, axis=0) + (1 + 3 / math.sqrt(2 * _SOME_ROWS)) * size
