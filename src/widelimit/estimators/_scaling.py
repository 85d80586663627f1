"""Columns and targets brought to one scale; everything is undone in predictions."""

import dataclasses

import numpy as np

_LARGEST = 1e100  # squares and products of what is larger overflow
_SMALLEST = 1e-150  # squares of what is smaller underflow


@dataclasses.dataclass(frozen=True)
class Scaling:
    """x -> (x - mean) / scale, then each row to length sqrt(d) if asked.

    Attributes:
        mean: Shape (d,).
        scale: Shape (d,), nowhere 0.
        sphere: Whether rows are put on a sphere; a zero row stays.
    """

    mean: np.ndarray
    scale: np.ndarray
    sphere: bool = False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Scale points of shape (n, d)."""
        check_size(x, "X")
        out = (x - self.mean) / self.scale
        if self.sphere:
            length = np.linalg.norm(out, axis=1, keepdims=True)
            out *= np.sqrt(out.shape[1]) / np.where(length > 0, length, 1)
        return out


def fit_scaling(
    x: np.ndarray,
    weights: np.ndarray,
    *,
    standardise: bool,
    sphere: bool = False,
    channels: int | None = None,
) -> Scaling:
    """Mean and standard deviation of each column under the weights; constants have scale 1.

    Args:
        x: Shape (n, d).
        weights: Shape (n,), not all 0.
        standardise: False leaves the columns as they are.
        sphere: Whether rows are put on a sphere afterwards.
        channels: The number of channels where rows are images; all pixels of a channel are scaled alike.

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
    if channels is None:
        return Scaling(*moments(x, weights), sphere)
    pixels = x.shape[1] // channels
    mean, scale = moments(x.reshape(-1, channels), np.repeat(weights, pixels))
    return Scaling(np.tile(mean, pixels), np.tile(scale, pixels), sphere)


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
