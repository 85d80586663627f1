"""The Gaussian-RKHS measure: larger is smoother."""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft, special

from widelimit._base.names import unknown
from widelimit._base.scalars import as_count

from ._interpolant import Interpolant
from ._record import LARGER, Measure
from ._sampling import Evaluable, Points, sample

_RECIPES = ("floored", "band", "published")
_HIGHEST = 140  # beyond, the eigenvalues leave the range of float64


def gaussian_eigenvalues(k: ArrayLike) -> Any:
    r"""Fourier coefficients $e^{-1}I_k(1)$ of the Gaussian kernel $\exp(-|x-y|^2/2)$ on the circle.

    Example:
        >>> gaussian_eigenvalues([0, 1, 16]).tolist()
        [0.465759607593640..., 0.2079104153497...,  2.7226390613...e-19]
    """
    return special.ive(np.abs(np.asarray(k, dtype=np.float64)), 1.0)


def gaussian_rkhs(
    f: ArrayLike | Evaluable,
    f_gauss: ArrayLike | Evaluable,
    *,
    tau: float = 1e-8,
    k_max: int | None = None,
    recipe: str | None = None,
    squared: bool = False,
    on: str | None = None,
    points: Points = None,
    check: bool = True,
) -> Measure:
    r"""The norm of the Gaussian interpolant over that of f, in the Gaussian RKHS; larger is smoother.

    $\mu=|f_{Gauss}|/|f|$ with $|f|^2=\sum_k|f_k|^2/\lambda_k$, $\lambda_k=e^{-1}I_k(1)$. The eigenvalues fall
    faster than any exponential, so for the interpolant of a neural kernel this norm is infinite, and
    a computed value is decided by what replaces the small $\lambda_k$. Three ways:

    - "floored" (default): $\lambda_k+\tau\lambda_0$. Finite for every f, converges in N; report tau.
    - "band" (give `k_max`): only $|k|\le k_{max}$. For two `Interpolant`s the coefficients are exact;
      otherwise they come from a transform, good to about 1e-4. Depends on the parity of `k_max`.
    - "published": eigenvalues from a float32 transform of the sampled kernel. Its value is the
      round-off of that transform, so it warns.

    Args:
        f: Values on an equispaced grid of one period, a function of the angle, or a model.
        f_gauss: The interpolant of the same samples with the Gaussian kernel, in the same form
            (`interpolate("gaussian", x, y)` makes one).
        tau: The floor, relative to the largest eigenvalue.
        k_max: The band limit.
        recipe: "floored", "band" or "published"; by default the one whose argument is given.
        squared: The ratio of the squared norms, as equation 23 of the preprint reads literally.
        on: Where functions are evaluated: "angle" or "circle".
        points: N, by default 4096.
        check: Refuse values that jump where the period closes.

    Returns:
        The measure with its N and floor or band.

    Example:
        >>> import numpy as np
        >>> f, g = (lambda b: np.cos(3 * b)), (lambda b: np.cos(b))
        >>> mu = gaussian_rkhs(f, g, k_max=8)  # sqrt(lambda_3 / lambda_1)
        >>> bool(abs(float(mu) ** 2 - np.divide(*gaussian_eigenvalues([3, 1]))) < 1e-12)
        True
        >>> print(mu)
        mu_G band = 0.198053 (larger is smoother, N = 4096, |k| <= 8)

    Reference:
        Tirer, Bruna and Giryes, Kernel-based smoothness analysis of residual networks, first
        version, equations 22 and 23.
    """
    recipe = recipe or ("floored" if k_max is None else "band")
    if recipe not in _RECIPES:
        raise ValueError(unknown("recipe", recipe, _RECIPES))
    _check_settings(recipe, tau, k_max, on)
    if recipe == "band" and isinstance(f, Interpolant) and isinstance(f_gauss, Interpolant):
        band = int(k_max or 0)
        k = np.arange(-band, band + 1)
        pair = np.abs(f.fourier(band)), np.abs(f_gauss.fourier(band))
        n, source = (), "exact coefficients"
    else:
        first = sample(f, on, points, None, check).values
        second = sample(f_gauss, on, points, None, check).values
        _check_pair(first, second)
        n, source = first.shape, "grid values"
        if recipe == "published":
            return _published(first, second, squared)
        k = np.fft.fftfreq(len(first), 1 / len(first))
        pair = np.abs(np.fft.fft(first)) / len(first), np.abs(np.fft.fft(second)) / len(first)
    eigenvalues = gaussian_eigenvalues(k)
    if recipe == "floored":
        eigenvalues = eigenvalues + tau * gaussian_eigenvalues(0)
    else:
        inside = np.abs(k) <= int(k_max or 0)
        eigenvalues = np.where(inside, eigenvalues, np.inf)
    norm, norm_gauss = (float(np.sqrt(np.sum(c**2 / eigenvalues))) for c in pair)
    value = _ratio(norm_gauss, norm, squared)
    floor, band = (tau, None) if recipe == "floored" else (None, k_max)
    return Measure(value, f"mu_G {recipe}{_power(squared)}", LARGER, n, floor, band, source)


def _power(squared: bool) -> str:
    return " squared" if squared else ""


def _ratio(norm_gauss: float, norm: float, squared: bool) -> float:
    if norm == 0:
        raise ValueError(
            "f has no harmonics in the band (its norm is zero), so the ratio is not defined. "
            "Raise k_max, or measure another function."
        )
    return (norm_gauss / norm) ** (2 if squared else 1)


def _check_settings(recipe: str, tau: float, k_max: int | None, on: str | None) -> None:
    if on == "sphere":
        raise ValueError("This measure is defined on the circle; on the sphere use the other one.")
    if recipe == "floored" and not (math.isfinite(tau) and tau > 0):
        raise ValueError(
            f"tau must be positive, got {tau!r}: without a floor the norm of a neural interpolant "
            "is infinite. Use tau=1e-8, or a band limit k_max."
        )
    if recipe != "band":
        if k_max is not None:
            raise ValueError(f"k_max belongs to recipe='band', not to {recipe!r}.")
        return
    if k_max is None:
        raise ValueError("recipe='band' needs k_max, the highest harmonic.")
    if as_count(k_max, "k_max") > _HIGHEST:
        raise ValueError(
            f"k_max must be at most {_HIGHEST}, got {k_max}: beyond, the eigenvalues e^-1 I_k(1) "
            "are smaller than float64 can hold."
        )


def _check_pair(first: np.ndarray, second: np.ndarray) -> None:
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(
            f"f and f_gauss must be values on the same grid of the circle, got shapes "
            f"{first.shape} and {second.shape}."
        )


def _single(values: np.ndarray) -> np.ndarray:
    """A transform in single precision."""
    out: Any = fft.fft(values.astype(np.float32))
    return np.asarray(out).astype(np.complex128)


def _published(f: np.ndarray, f_gauss: np.ndarray, squared: bool) -> Measure:
    """Dense sampling and FFT in single precision, as a plain script would do it."""
    warnings.warn(
        "recipe='published' divides by float32 transform values of the Gaussian kernel, which "
        "beyond k = 8 or so are round-off: the value depends on dtype, N and grid, not on f alone "
        "(in float64 it is not even a number). Use the floored measure for results.",
        stacklevel=3,
    )
    n = len(f)
    angles = (2 * math.pi * np.arange(n) / n).astype(np.float32)
    kernel = np.exp(np.cos(angles) - np.float32(1))
    eigenvalues = np.abs(_single(kernel)) / n
    eigenvalues = np.maximum(eigenvalues, np.finfo(np.float32).tiny)
    norms = [
        float(np.sqrt(np.sum(np.abs(_single(v) / n) ** 2 / eigenvalues))) for v in (f_gauss, f)
    ]
    value = _ratio(norms[0], norms[1], squared)
    name = f"mu_G published{_power(squared)}"
    return Measure(value, name, LARGER, (n,), source="round-off of a float32 transform")
