"""Columns and targets brought to one scale; everything is undone in predictions."""

import dataclasses

import numpy as np

_LARGEST = 1e100  # squares and products of what is larger overflow
_SMALLEST = 1e-150  # squares of what is smaller underflow
_PER_VALUE = 10  # rows for each value of a column that is taken as a category


def _none() -> np.ndarray:
    return np.zeros(0)


@dataclasses.dataclass(frozen=True)
class Scaling:
    r"""x -> (x - mean) / scale, and what a table may ask for beyond that.

    Attributes:
        mean: Shape (d,).
        scale: Shape (d,), nowhere 0.
        sphere: Whether rows are put on a sphere of radius sqrt(d); a zero row stays.
        inner_mean: Mean of asinh of the scaled columns, which then take their place; or nothing.
        inner_scale: Their standard deviation.
        columns: For each indicator the column that it looks at.
        values: The value that it looks for.
        shares: How often that occurs.
        sizes: What it is multiplied by: the indicators of a column have variance 1 together.
        features: What the points are multiplied by in the end, shape (D, D), or nothing.
        factor: What all is multiplied by, so that the mean squared entry is 1.
    """

    mean: np.ndarray
    scale: np.ndarray
    sphere: bool = False
    inner_mean: np.ndarray = dataclasses.field(default_factory=_none)
    inner_scale: np.ndarray = dataclasses.field(default_factory=_none)
    columns: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0, int))
    values: np.ndarray = dataclasses.field(default_factory=_none)
    shares: np.ndarray = dataclasses.field(default_factory=_none)
    sizes: np.ndarray = dataclasses.field(default_factory=_none)
    features: np.ndarray = dataclasses.field(default_factory=_none)
    factor: float = 1.0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Scale points of shape (n, d); indicators stand behind the columns."""
        check_size(x, "X")
        out = (x - self.mean) / self.scale
        if len(self.inner_mean):
            out = (np.arcsinh(out) - self.inner_mean) / self.inner_scale
        if len(self.columns):
            found = (x[:, self.columns] == self.values) - self.shares
            out = np.concatenate([out, found * self.sizes], axis=1) * self.factor
        if self.sphere:
            length = np.linalg.norm(out, axis=1, keepdims=True)
            out *= np.sqrt(out.shape[1]) / np.where(length > 0, length, 1)
        return out @ self.features if len(self.features) else out

    def by_column(self, shares: np.ndarray) -> np.ndarray:
        """Numbers for points' columns, shape (D,), added up for the columns of x, shape (d,)."""
        d = len(self.mean)
        out = shares[:d].copy()
        np.add.at(out, self.columns, shares[d:])
        return out


def fit_scaling(
    x: np.ndarray,
    weights: np.ndarray,
    *,
    standardise: bool,
    sphere: bool = False,
    channels: int | None = None,
    squash: bool = False,
    categories: int = 0,
) -> Scaling:
    """Mean and standard deviation of each column under the weights; constants have scale 1.

    Args:
        x: Shape (n, d).
        weights: Shape (n,), not all 0.
        standardise: False leaves the columns as they are.
        sphere: Whether rows are put on a sphere afterwards.
        channels: The number of channels where rows are images; all pixels of a channel are scaled alike.
        squash: Whether scaled columns pass through asinh, which brings in outliers.
        categories: Columns with 3 to this many values also enter as indicators of them.

    Returns:
        The scaling.

    Example:
        >>> s = fit_scaling(np.array([[0.0, 7.0], [2.0, 7.0]]), np.ones(2), standardise=True)
        >>> s(np.array([[3.0, 8.0]]))
        array([[2., 1.]])
    """
    check_size(x, "X", fitted=True)
    if not standardise:
        return Scaling(np.zeros(x.shape[1]), np.ones(x.shape[1]), sphere)
    if channels is not None:
        pixels = x.shape[1] // channels
        mean, scale = moments(x.reshape(-1, channels), np.repeat(weights, pixels))
        return Scaling(np.tile(mean, pixels), np.tile(scale, pixels), sphere)
    out = Scaling(*moments(x, weights))
    if squash:
        inner = moments(np.arcsinh(out(x)), weights)
        out = dataclasses.replace(out, inner_mean=inner[0], inner_scale=inner[1])
    if categories:
        out = _with_indicators(out, x, weights, categories)
    return dataclasses.replace(out, sphere=sphere)


def _with_indicators(scaling: Scaling, x: np.ndarray, weights: np.ndarray, most: int) -> Scaling:
    used, share = x[weights > 0], weights[weights > 0] / weights.sum()
    columns, values, shares, sizes = [], [], [], []
    for j, column in enumerate(used.T):
        found, index = np.unique(column, return_inverse=True)
        if 3 <= len(found) <= min(most, weights.sum() / _PER_VALUE):
            p = np.bincount(index, share)
            columns += [j] * len(found)
            values += found.tolist()
            shares += p.tolist()
            sizes += [1 / np.sqrt((p * (1 - p)).sum())] * len(found)
    if not columns:
        return scaling
    parts = (np.array(columns), np.array(values), np.array(shares), np.array(sizes))
    names = ("columns", "values", "shares", "sizes")
    out = dataclasses.replace(scaling, **dict(zip(names, parts, strict=True)))
    square = float(share @ (out(used) ** 2).mean(1))
    return dataclasses.replace(out, factor=1 / np.sqrt(square))


def moments(x: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and standard deviation of columns, 1 where a column is constant to rounding."""
    used = x[weights > 0]
    share = weights[weights > 0] / weights.sum()
    mean = share @ used
    std = np.sqrt(share @ (used - mean) ** 2)
    constant = (used.max(0) == used.min(0)) | (std <= 1e-14 * np.abs(used).max(0))
    return np.where(used.max(0) == used.min(0), used[0], mean), np.where(constant, 1.0, std)


def check_size(x: np.ndarray, name: str, *, fitted: bool = False) -> None:
    """Refuse numbers whose squares overflow and, where scales are taken from them, underflow."""
    largest = float(np.abs(x).max(initial=0))
    if fitted and 0 < largest < _SMALLEST:
        raise ValueError(
            f"{name} contains nothing larger than {largest:.1e}; below {_SMALLEST:.0e} squares underflow. "
            "Rescale it."
        )
    if largest > _LARGEST:
        raise ValueError(
            f"{name} contains {largest:.1e}; beyond {_LARGEST:.0e} squares overflow. Rescale it."
        )
