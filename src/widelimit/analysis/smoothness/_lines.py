"""Variation along straight lines, for inputs of any dimension; smaller is smoother."""

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import as_array
from widelimit._base.keys import as_generator
from widelimit._base.names import unknown
from widelimit._base.renamed import renamed_argument
from widelimit._base.scalars import as_count
from widelimit._base.types import Seed

from ._record import SMALLER, Measure
from ._sampling import Evaluable, values_of

_NORMS = ("variation", "rms")


@renamed_argument(seed="key")
def data_lines(
    x: ArrayLike, count: int = 32, *, key: Seed = 0
) -> tuple[Float[np.ndarray, "count d"], Float[np.ndarray, "count d"]]:
    """Lines through data: segments between random pairs of distinct points.

    Args:
        x: Points, shape (n, d).
        count: The number of segments.
        key: Chooses the pairs.

    Returns:
        The starts and the ends, each of shape (count, d).

    Example:
        >>> start, end = data_lines([[0.0, 0.0], [3.0, 4.0]], count=5)
        >>> np.linalg.norm(end - start, axis=1).tolist()
        [5.0, 5.0, 5.0, 5.0, 5.0]
    """
    x = np.asarray(as_array(x, "x", rank=2, layout="(points, features)"), dtype=np.float64)
    count = as_count(count, "count", minimum=1)
    distinct = np.unique(x, axis=0)
    if len(distinct) < 2:
        raise ValueError(
            f"A line needs two distinct points, got {len(distinct)} among the {len(x)} rows of x."
        )
    rng = as_generator(key)
    first = rng.integers(len(distinct), size=count)
    second = (first + rng.integers(1, len(distinct), size=count)) % len(distinct)
    return distinct[first], distinct[second]


def total_variation(
    f: Evaluable, start: ArrayLike, end: ArrayLike, *, points: int = 257
) -> Measure:
    r"""The total variation $\int|\partial_sf|\,ds\approx\sum_q|f_{q+1}-f_q|$ along segments; smaller is smoother.

    Args:
        f: A function of points (n, d), or a model with `predict`.
        start: Where the segments begin, shape (d,) or (m, d).
        end: Where they end, in the same shape.
        points: Equispaced points on each segment.

    Returns:
        The mean over the segments; `each` holds the single values.

    Example:
        >>> tv = total_variation(lambda x: np.abs(x[:, 0]), [-1.0, 0.0], [1.0, 0.0])
        >>> float(tv), tv.direction
        (2.0, 'smaller is smoother')
    """
    values, _ = _along(f, start, end, points, 2)
    each = np.abs(np.diff(values, axis=1)).sum(axis=1)
    return Measure(float(each.mean()), "total variation", SMALLER, (values.shape[1],), each=each)


def second_differences(
    f: Evaluable, start: ArrayLike, end: ArrayLike, *, points: int = 257, norm: str = "variation"
) -> Measure:
    r"""Second differences $\Delta_q=f_{q+1}-2f_q+f_{q-1}$ along segments; smaller is smoother.

    Args:
        f: A function of points (n, d), or a model with `predict`.
        start: Where the segments begin, shape (d,) or (m, d).
        end: Where they end, in the same shape.
        points: Equispaced points on each segment, a distance h apart.
        norm: "variation" for $\sum|\Delta_q|/h\approx\int|\partial_s^2f|\,ds$, which is finite for functions
            with kinks (each adds the jump of its slope); "rms" for the root mean square of
            $\Delta_q/h^2$, which for them grows like $h^{-1/2}$.

    Returns:
        The mean over the segments; `each` holds the single values.

    Example:
        >>> kink = second_differences(lambda x: np.abs(x[:, 0]), [-1.0, 0.0], [1.0, 0.0])
        >>> round(float(kink), 12)  # the slope jumps from -1 to 1
        2.0
    """
    if norm not in _NORMS:
        raise ValueError(unknown("norm", norm, _NORMS))
    values, step = _along(f, start, end, points, 3)
    second = np.abs(np.diff(values, n=2, axis=1))
    variation, rms = second.sum(axis=1) / step, np.sqrt(np.mean(second**2, axis=1)) / step**2
    each = variation if norm == "variation" else rms
    noise = 2 * np.finfo(np.float64).eps * float(np.max(np.abs(values) / step[:, None] ** 2))
    name = f"second differences ({norm})"
    size = (values.shape[1],)
    return Measure(float(each.mean()), name, SMALLER, size, noise=noise, each=each)


def _along(
    f: Evaluable, start: ArrayLike, end: ArrayLike, points: int, least: int
) -> tuple[Float[np.ndarray, "lines points"], Float[np.ndarray, " lines"]]:
    """Values on the segments, shape (m, points), and the step of each."""
    start, end = (
        np.asarray(as_array(np.atleast_2d(a), name, rank=2, layout="(lines, features)"), np.float64)
        for a, name in ((start, "start"), (end, "end"))
    )
    if start.shape != end.shape:
        raise ValueError(f"start has shape {start.shape} and end has shape {end.shape}.")
    points = as_count(points, "points")
    if points < least:
        raise ValueError(f"These differences need at least {least} points on a line, got {points}.")
    lengths = np.linalg.norm(end - start, axis=1)
    if lengths.min() == 0:
        raise ValueError(
            f"Line {int(lengths.argmin())} starts where it ends; a line needs two distinct points."
        )
    s = np.linspace(0, 1, points)[None, :, None]
    x = start[:, None, :] * (1 - s) + end[:, None, :] * s
    values = values_of(f, x.reshape(-1, x.shape[2]), len(start) * points).astype(np.float64)
    return values.reshape(len(start), points), lengths / (points - 1)
