"""Gram matrices beside the spectrum: effective dimension, condition number, sampled eigenvalues."""

import math
from typing import NamedTuple

import numpy as np
import scipy.linalg
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit.infinite import prepare
from widelimit.layers import Layer

from ._eigenvalues import Spectrum, multiplicity, sphere

_EPS = 2.0**-52


@shown("how well a kernel matrix can be inverted")
class Condition(NamedTuple):
    """What the eigenvalues of a Gram matrix say.

    Attributes:
        eigenvalues: Descending.
        rank: How many exceed rounding.
        number: The largest over the smallest eigenvalue; infinite where the rank is not full.
    """

    eigenvalues: np.ndarray
    rank: int
    number: float


def _as_gram(gram: ArrayLike) -> Float[np.ndarray, "n n"]:
    a = np.asarray(gram, dtype=np.float64)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or a.size == 0:
        raise ValueError(f"A Gram matrix is square, got an array of shape {a.shape}.")
    if not np.all(np.isfinite(a)):
        raise ValueError("The Gram matrix contains NaN or infinity.")
    if np.max(np.abs(a - a.T)) > 1e-6 * np.max(np.abs(a)):
        raise ValueError("A Gram matrix is symmetric; this one is not. Pass k(x, x), not k(x, y).")
    return (a + a.T) / 2


def condition(gram: ArrayLike) -> Condition:
    r"""Rank and condition number $\lambda_{max}/\lambda_{min}$ of a Gram matrix.

    Args:
        gram: A symmetric matrix of shape (n, n).

    Returns:
        Eigenvalues, rank, and the condition number (infinite for a singular matrix).

    Example:
        >>> import numpy as np, widelimit as wl
        >>> a = np.arange(6) * np.pi / 3  # one hidden ReLU layer cannot see all of six points
        >>> c = wl.spectrum.condition(wl.ntk(wl.mlp(depth=1), np.stack([np.cos(a), np.sin(a)], 1)))
        >>> c.rank, c.number
        (5, inf)
    """
    values = scipy.linalg.eigvalsh(_as_gram(gram))[::-1]
    floor = 8 * len(values) * _EPS * max(abs(values[0]), abs(values[-1]))
    rank = int(np.sum(values > floor))
    full = rank == len(values)
    return Condition(values, rank, float(values[0] / values[-1]) if full else math.inf)


def effective_dimension(spectrum: Spectrum | ArrayLike, ridge: float) -> float:
    r"""The number of directions that a ridge leaves free: $\sum_i\lambda_i/(\lambda_i+\delta)$.

    Args:
        spectrum: A `Spectrum` (its unresolved tail counts as infinitely many tiny eigenvalues), or
            a Gram matrix, shape (n, n).
        ridge: $\delta>0$.

    Returns:
        The effective dimension.

    Example:
        >>> import numpy as np
        >>> round(effective_dimension(np.diag([1.0, 1.0, 1e-9]), 1e-3), 3)
        1.998
    """
    if not 0 < ridge < math.inf:
        raise ValueError(f"ridge must be positive, got {ridge!r}.")
    if isinstance(spectrum, Spectrum):
        values = np.maximum(spectrum.values, 0)
        return float(np.sum(spectrum.multiplicities * values / (values + ridge))) + (
            spectrum.tail / ridge
        )
    values = np.maximum(condition(spectrum).eigenvalues, 0)
    return float(np.sum(values / (values + ridge)))


def repeated(spectrum: Spectrum, count: int) -> np.ndarray:
    """The `count` largest eigenvalues, descending, each as often as its multiplicity.

    Args:
        spectrum: The spectrum.
        count: How many.

    Returns:
        The eigenvalues of the integral operator, as a list with repetitions.
    """
    order = np.argsort(-spectrum.values, kind="stable")
    times = np.minimum(spectrum.multiplicities[order], count).astype(int)
    values = np.repeat(spectrum.values[order], times)
    if len(values) < count:
        raise ValueError(
            f"The spectrum lists {len(values)} eigenvalues, {count} were asked for. Compute more "
            "degrees."
        )
    return values[:count]


@shown("eigenvalues of kernel matrices of drawn points")
class Empirical(NamedTuple):
    """Eigenvalues of a sampled Gram matrix beside those of the integral operator.

    Attributes:
        sampled: Eigenvalues of k(x, x)/n, descending.
        exact: The n largest eigenvalues of the integral operator.
        condition: The condition number of the Gram matrix.
    """

    sampled: np.ndarray
    exact: np.ndarray
    condition: float


def empirical(net: Layer, x: ArrayLike, *, kernel: str = "ntk") -> Empirical:
    r"""Eigenvalues of $k(x,x)/n$ for points on a sphere against the exact ones.

    As n grows the k-th sampled eigenvalue tends to the k-th exact one; the small ones of a sample
    are too small (the last modes are not resolved).

    Args:
        net: The network.
        x: Points of one norm, shape (n, d), d >= 2.
        kernel: "ntk" or "nngp".

    Returns:
        Both lists.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> a = np.arange(64) * 2 * np.pi / 64
        >>> e = wl.spectrum.empirical(wl.mlp(depth=3), np.stack([np.cos(a), np.sin(a)], 1))
        >>> bool(abs(e.sampled[0] / e.exact[0] - 1) < 0.01)
        True
    """
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] < 2 or len(points) == 0:
        raise ValueError(f"x must have shape (n, d) with d >= 2, got {points.shape}.")
    norms = np.linalg.norm(points, axis=1)
    if not np.all(np.isfinite(norms)) or np.ptp(norms) > 1e-6 * norms.max():
        raise ValueError(
            f"The points must lie on a sphere; their norms range from {norms.min():.3g} to "
            f"{norms.max():.3g}. Normalise them: x / np.linalg.norm(x, axis=1, keepdims=True)."
        )
    found = condition(prepare(net, kernel)(points))
    n, dim = points.shape
    degrees = _degrees_for(n, dim)
    spectrum = sphere(net, dim, degrees, kernel=kernel, radius=float(norms.mean()))
    return Empirical(found.eigenvalues / n, repeated(spectrum, n), found.number)


def _degrees_for(count: int, dim: int) -> int:
    """Degrees such that `count` eigenvalues are listed even if one parity vanishes."""
    total, k = 0, -1
    while total < 2 * as_count(count, "count") + 2:
        k += 1
        total += multiplicity(dim, k)
    return 2 * k + 2
