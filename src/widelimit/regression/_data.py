"""What is fitted: distinct points, each with a weight and the mean of its targets."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int

from widelimit._base.shown import shown

Points = Float[np.ndarray, "n d"]
NewPoints = Float[np.ndarray, "m d"]
Targets = Float[np.ndarray, "n k"]
Weights = Float[np.ndarray, " n"]


@shown("points, targets and weights")
@dataclasses.dataclass(frozen=True)
class Data:
    r"""Rows, usually merged where they are equal.

    Rows $i$ of one group with weights $w_i$ act on a ridge regression as one row with weight
    $\sum w_i$ and target $\sum w_iy_i/\sum w_i$, so that a weight of 2 is the row twice.

    Attributes:
        points: Distinct rows, shape (n, d).
        targets: Weighted means, shape (n, k).
        weights: Sums of weights, shape (n,), all positive.
        spread: Weighted sum of squares of the targets around those means, shape (k,).
        group: For each original row its point, -1 where the row had weight 0.
    """

    points: Points
    targets: Targets
    weights: Weights
    spread: Float[np.ndarray, " k"]
    group: Int[np.ndarray, " rows"]

    @classmethod
    def of(cls, x: Points, y: Targets) -> "Data":
        """Rows as they are, each with weight 1, equal ones kept apart."""
        return cls(x, y, np.ones(len(x)), np.zeros(y.shape[1]), np.arange(len(x)))

    @property
    def contradiction(self) -> tuple[int, int] | None:
        """Two equal rows with different targets, or None."""
        order = np.lexsort(self.points.T)
        same = (self.points[order[1:]] == self.points[order[:-1]]).all(1)
        differ = (self.targets[order[1:]] != self.targets[order[:-1]]).any(1)
        found = np.flatnonzero(same & differ)
        if not found.size:
            return None
        i, j = sorted((int(order[found[0]]), int(order[found[0] + 1])))
        return i, j

    def some(self, count: int) -> Int[np.ndarray, " _"]:
        """Some of the points, drawn once and for all, in their order; all where there are no more."""
        return np.sort(np.random.default_rng(0).permutation(len(self.points))[:count])

    def subset(self, rows: Int[np.ndarray, " _"]) -> "Data":
        """Some of the points alone."""
        share = self.spread * (len(rows) / len(self.points))
        return Data(self.points[rows], self.targets[rows], self.weights[rows], share, self.group)

    @property
    def total(self) -> float:
        """The sum of the weights: how many rows there would be without them."""
        return float(self.weights.sum())

    @property
    def plain(self) -> bool:
        """Whether all weights are 1."""
        return bool((self.weights == 1).all())

    @property
    def root(self) -> Float[np.ndarray, "n 1"]:
        """Square roots of the weights, shape (n, 1)."""
        return np.sqrt(self.weights)[:, None]


def merge(x: Points, y: Targets, weights: Weights) -> Data:
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


def as_weights(sample_weight: object, n: int) -> Weights:
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
