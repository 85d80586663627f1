"""Values on a periodic grid, from an array, a function or a trained model; and their checks."""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import as_array, is_traced
from widelimit._base.names import unknown
from widelimit._base.scalars import as_count
from widelimit._base.types import Tensor

FEWEST = 8  # points along an axis, below which a second derivative is guesswork
_DOMAINS = ("angle", "circle", "sphere")


@runtime_checkable
class Predictor(Protocol):
    """A trained model: anything with `predict(x)` for points x of shape (n, d)."""

    def predict(self, x: Tensor) -> Tensor:
        """The model's values at the rows of x."""
        ...


Evaluable = Callable[..., Tensor] | Predictor
Points = int | tuple[int, ...] | list[int] | None  # the number of points along each axis
Grid = ArrayLike | tuple[ArrayLike, ...] | None


class Samples(NamedTuple):
    """Values on a periodic grid.

    Attributes:
        values: Float64, one axis for each variable.
        epsilon: The relative rounding error of the values as they came.
    """

    values: Float[np.ndarray, "..."]
    epsilon: float


def circle_points(angles: ArrayLike) -> Float[np.ndarray, "n 2"]:
    """Angles as points (cos b, sin b) of the unit circle, shape (n, 2).

    Example:
        >>> circle_points([0.0]).tolist()
        [[1.0, 0.0]]
    """
    b = as_array(angles, "angles", rank=1, layout="(points,)").astype(np.float64)
    return np.stack([np.cos(b), np.sin(b)], axis=1)


def sphere_points(longitude: ArrayLike, polar: ArrayLike) -> Float[np.ndarray, "n 3"]:
    """The product grid of two angles as points of the unit sphere, longitude as the slow index.

    Args:
        longitude: Angles b, shape (n1,).
        polar: Angles xi from the north pole, shape (n2,).

    Returns:
        Points (cos b sin xi, sin b sin xi, cos xi), shape (n1 n2, 3).

    Example:
        >>> sphere_points([0.0, 1.0], [0.0]).tolist()
        [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    b = as_array(longitude, "longitude", rank=1, layout="(points,)")[:, None]
    xi = as_array(polar, "polar", rank=1, layout="(points,)")[None, :]
    parts = (np.cos(b) * np.sin(xi), np.sin(b) * np.sin(xi), np.cos(xi) + 0 * b)
    return np.stack(parts, axis=-1).reshape(-1, 3)


def values_of(f: Evaluable, argument: Tensor, count: int) -> Float[np.ndarray, " count"]:
    """Evaluate a model or function and insist on one number for each of `count` points."""
    out = f.predict(argument) if isinstance(f, Predictor) else f(argument)
    if is_traced(out):
        raise TypeError("The measures look at numbers; call them outside jit and grad.")
    out = np.asarray(out)
    if out.shape == (count, 1):
        out = out[:, 0]
    if out.shape != (count,):
        raise ValueError(
            f"The function returned an array of shape {out.shape} for {count} points; one value "
            f"for each was expected, shape ({count},). Measure several outputs one by one."
        )
    return as_array(out, "the function's values", rank=1, layout="(points,)")


def sample(
    f: ArrayLike | Evaluable, on: str | None, points: Points, grid: Grid, check: bool
) -> Samples:
    """Values of f on a periodic grid, with the grid and the values checked.

    Args:
        f: An array, a function or a model with `predict`.
        on: "angle", "circle" or "sphere"; None chooses "circle" for models, "angle" for functions.
        points: The number of points along each axis, for functions and models.
        grid: Angles, to be checked (arrays) or used (functions); one array for each axis.
        check: Whether values that jump where the period closes are refused.

    Returns:
        The samples.
    """
    if isinstance(f, Predictor | Callable):
        domain = on or ("circle" if isinstance(f, Predictor) else "angle")
        if domain not in _DOMAINS:
            raise ValueError(unknown("domain", domain, _DOMAINS))
        values = _evaluated(f, domain, points, grid)
    else:
        if on is not None:
            raise ValueError(
                f"on={on!r} says where a function is evaluated; an array of values has been already. "
                "Leave it out."
            )
        values = _array(f)
        if points is not None and np.shape(np.atleast_1d(points)) == (values.ndim,):
            points = tuple(int(p) for p in np.atleast_1d(points))
        if points not in (None, values.shape):
            raise ValueError(f"points={points}, but the array of values has shape {values.shape}.")
        if grid is not None:
            _check_grids(grid, values.shape)
    check_count(values.shape)
    if check:
        check_periodic(values, strict=on != "sphere")
    real = values.dtype if values.dtype == np.float32 else np.float64
    return Samples(values.astype(np.float64), float(np.finfo(real).eps))


def _array(f: ArrayLike) -> Float[np.ndarray, "..."]:
    if is_traced(f):
        raise TypeError("The measures look at numbers; call them outside jit and grad.")
    rank = np.ndim(np.asarray(f))
    if rank == 0:
        raise TypeError(
            f"An array of values, a function or a model with predict was expected, got {f!r}."
        )
    return np.asarray(as_array(np.asarray(f), "f", rank=rank, layout="(points, ...)"))


def _evaluated(f: Evaluable, domain: str, points: Points, grid: Grid) -> Float[np.ndarray, "..."]:
    if domain == "sphere":
        if grid is not None:
            raise ValueError("On the sphere the grid follows from points=(n1, n2); leave grid out.")
        first, second = (256, 128) if points is None else np.atleast_1d(points).tolist()
        first, second = as_count(first, "points"), as_count(second, "points")
        check_count((first, second))
        x = sphere_points(uniform(first), math.pi * np.arange(second) / second)
        return values_of(f, x, len(x)).reshape(first, second)
    if grid is None:
        count = as_count(4096 if points is None else points, "points")
        check_count((count,))
        b = uniform(count)
    else:
        b = as_array(grid, "grid", rank=1, layout="(points,)").astype(np.float64)
        _check_grids(b, b.shape)
    return values_of(f, b if domain == "angle" else circle_points(b), len(b))


def uniform(count: int) -> Float[np.ndarray, " count"]:
    r"""The grid $b_q=-\pi+2\pi q/N$."""
    return -math.pi + 2 * math.pi * np.arange(count) / count


def check_count(shape: tuple[int, ...]) -> None:
    """Refuse grids on which a second derivative means nothing."""
    if min(shape) < FEWEST:
        raise ValueError(
            f"A second derivative needs at least {FEWEST} points along each axis, got "
            f"{' x '.join(map(str, shape))}. Sample the function more densely (4096 is the default)."
        )


def _check_grids(grid: Grid, shape: tuple[int, ...]) -> None:
    grids = grid if isinstance(grid, tuple) else (grid,)
    if len(grids) != len(shape):
        raise ValueError(f"{len(shape)} axes need as many grids, as a tuple; got {len(grids)}.")
    for b, count in zip(grids, shape, strict=True):
        b = as_array(b, "grid", rank=1, layout="(points,)").astype(np.float64)
        if len(b) != count:
            raise ValueError(f"The grid has {len(b)} points and the values have {count}.")
        check_count(b.shape)
        _check_grid(b)


def _check_grid(b: Float[np.ndarray, " n"]) -> None:
    steps = np.diff(b)
    step = float(np.mean(steps))
    if np.max(np.abs(steps - step)) > 1e-6 * abs(step):
        raise ValueError(
            f"The grid is not equispaced (steps from {steps.min():.6g} to {steps.max():.6g}); "
            "Fourier coefficients need equal steps. Interpolate onto an equispaced grid first."
        )
    covered = len(b) * abs(step)
    if abs(covered - 2 * math.pi) <= 1e-6 * 2 * math.pi:
        return
    if abs(covered - abs(step) - 2 * math.pi) <= 1e-6 * 2 * math.pi:
        raise ValueError(
            "The grid contains both ends of the period, which are one point of the circle. Drop the "
            "last: values[:-1], grid[:-1] (np.linspace(..., endpoint=False))."
        )
    raise ValueError(
        f"The grid covers {covered:.6g}, not one period 2 pi = {2 * math.pi:.6g}. The measure is "
        "defined on a whole period; rescale the variable, or use second_differences for a part."
    )


def check_periodic(values: Float[np.ndarray, "..."], *, strict: bool) -> None:
    """Refuse values that jump where the period closes, and a last value that repeats the first."""
    for axis in range(values.ndim):
        moved = np.moveaxis(values, axis, 0)
        interior = float(np.abs(np.diff(moved, axis=0)).max())
        seam = float(np.abs(moved[0] - moved[-1]).max())
        rounding = 1e-9 * float(np.abs(values).max())
        if seam > 4 * interior + rounding:
            _complain(axis, seam, interior, strict or axis == 0)
        first, last = moved[1] - moved[0], moved[-1] - moved[-2]
        flat = np.abs(moved[0] - moved[-1]) <= rounding * 1e-3
        # Slopes of one sign on both sides of a step of zero: a closed grid, not a symmetric one.
        if np.all(flat) and np.all(first * last >= 0) and np.any(first * last > rounding**2):
            warnings.warn(
                "The last value repeats the first: it looks as if the grid contained both ends of "
                "the period. Then drop one: values[:-1].",
                stacklevel=4,
            )


def _complain(axis: int, seam: float, interior: float, strict: bool) -> None:
    message = (
        f"The values are not periodic along axis {axis}: they jump by {seam:.3g} where the period "
        f"closes and by at most {interior:.3g} elsewhere. The measure would see that jump alone. "
    )
    if strict:
        raise ValueError(
            message + "Sample one whole period without its end point; for a function that is not "
            "periodic use second_differences; to insist, pass check=False."
        )
    warnings.warn(message + "On the sphere: the two poles have different values.", stacklevel=5)
