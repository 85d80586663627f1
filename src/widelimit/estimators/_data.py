"""What is fitted: distinct points, each with a weight and the mean of its targets."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Data:
    r"""Rows merged where they are equal.

    Rows $i$ of one group with weights $w_i$ act on a ridge regression as one row with weight
    $\sum w_i$ and target $\sum w_iy_i/\sum w_i$, so that a weight of 2 is the row twice.

    Attributes:
        points: Distinct rows, shape (n, d).
        targets: Weighted means, shape (n, k).
        weights: Sums of weights, shape (n,), all positive.
        spread: Weighted sum of squares of the targets around those means, shape (k,).
        group: For each original row its point, -1 where the row had weight 0.
    """

    points: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    spread: np.ndarray
    group: np.ndarray

    @property
    def total(self) -> float:
        """The sum of the weights: how many rows there would be without them."""
        return float(self.weights.sum())

    @property
    def plain(self) -> bool:
        """Whether all weights are 1."""
        return bool((self.weights == 1).all())

    @property
    def root(self) -> np.ndarray:
        """Square roots of the weights, shape (n, 1)."""
        return np.sqrt(self.weights)[:, None]


def merge(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> Data:
    """Drop rows of weight 0 and merge equal ones.

    Args:
        x: Shape (n, d).
        y: Shape (n, k).
        weights: Shape (n,), at least 0, not all 0.

    Returns:
        The data.

    Example:
        >>> d = merge(np.array([[1.0], [2.0], [1.0]]), np.array([[0.0], [5.0], [3.0]]), np.array([1.0, 1, 2]))
        >>> d.points.ravel(), d.targets.ravel(), d.weights, d.spread
        (array([1., 2.]), array([2., 5.]), array([3., 1.]), array([6.]))
    """
    kept = np.flatnonzero(weights > 0)
    group = np.full(len(x), -1)
    x, y, w = x[kept] + 0.0, y[kept], weights[kept]  # + 0.0: minus zero is zero
    points, inverse = np.unique(x, axis=0, return_inverse=True)
    if len(points) == len(x):  # the common case keeps the order
        group[kept] = np.arange(len(kept))
        return Data(x, y, w, np.zeros(y.shape[1]), group)
    inverse = inverse.ravel()
    group[kept] = inverse
    sums = np.bincount(inverse, w)
    mean = lambda column: np.bincount(inverse, w * column) / sums
    targets = np.stack([mean(column) for column in y.T], axis=1)
    spread = w @ (y - targets[inverse]) ** 2
    return Data(points, targets, sums, spread, group)


def as_weights(sample_weight: Any, n: int) -> np.ndarray:
    """Weights as checked float64, ones by default."""
    if sample_weight is None:
        return np.ones(n)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(
            f"sample_weight must have shape ({n},), one for each row; got {weights.shape}."
        )
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be finite and at least 0: it counts a row.")
    if not (weights > 0).any():
        raise ValueError("All sample weights are zero, so there is nothing to fit.")
    return weights
