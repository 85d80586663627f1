r"""Predicted test error of kernel regression, from eigenvalues and a target's coefficients.

The eigenlearning equations: with eigenvalues $\lambda_i$, ridge $\delta$ and n random samples, $\kappa>0$ solves
$n=\sum_i\frac{\lambda_i}{\lambda_i+\kappa}+\frac\delta\kappa$; mode i is learnt to the part
$L_i=\lambda_i/(\lambda_i+\kappa)$, and with $E_0=n/(n-\sum_iL_i^2)$ the test error is
$\mathrm{mse}=E_0\,(\sum_i(1-L_i)^2v_i^2+\sigma^2)$.

The equations hold for eigenfunctions that behave like independent Gaussian variables. On spheres of
low dimension they are good while a part of the target's power lies in degrees that n samples do not
resolve, or there is noise; a target that is far smoother than that is predicted too well.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from widelimit._base.shown import shown
from widelimit.analysis.spectrum import Spectrum

from ._target import Target


@shown("predicted test errors")
class Prediction(NamedTuple):
    r"""A predicted learning curve.

    Attributes:
        sizes: Numbers of samples n.
        mse: The expected squared error on a fresh, equally noisy sample.
        kappa: The effective regularisation $\kappa$ at each size.
        learnability: $L_k$, the part of degree k that is learnt, shape (sizes, degrees).
        overfitting: $E_0\ge1$, by how much noise and unlearnt modes are amplified.
    """

    sizes: np.ndarray
    mse: np.ndarray
    kappa: np.ndarray
    learnability: np.ndarray
    overfitting: np.ndarray


def predict(
    spectrum: Spectrum,
    power: Target | ArrayLike,
    sizes: ArrayLike,
    *,
    ridge: float = 0.0,
    noise: float = 0.0,
) -> Prediction:
    r"""The learning curve of kernel regression $f(x)=k(x,X)(k(X,X)+\delta I)^{-1}y$ by theory.

    Degrees that the spectrum does not list have tiny eigenvalues; together they act as an
    additional ridge, the spectrum's `tail`.

    Args:
        spectrum: The kernel's eigenvalues.
        power: $P_k$, the target's mean square in the harmonics of degree k = 0, 1, ...; at most as
            many as the spectrum has degrees (or a `Target`).
        sizes: Numbers of samples.
        ridge: $\delta\ge0$.
        noise: $\sigma^2$, the variance of the labels' noise.

    Returns:
        The prediction.

    Example:
        >>> import widelimit as wl
        >>> s = wl.spectrum.sphere(wl.mlp(depth=3), dim=3, degrees=200)
        >>> curve = wl.learning_curve.predict(s, [0, 1, 1], [10, 100, 1000])
        >>> bool(curve.mse[0] > curve.mse[1] > curve.mse[2])
        True

    Reference:
        Simon, Dickens, Karkada and DeWeese (2023), The eigenlearning framework.
    """
    n = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
    if n.ndim != 1 or n.size == 0 or not np.all(np.isfinite(n)) or np.any(n < 1):
        raise ValueError(f"sizes are numbers of samples, at least 1, got {sizes!r}.")
    for name, value in (("ridge", ridge), ("noise", noise)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and not negative, got {value!r}.")
    share = _power(power, len(spectrum.values))
    values, number = np.maximum(spectrum.values, 0), spectrum.multiplicities
    kappa = _kappa(values, number, n, ridge + spectrum.tail)
    total = values[None, :] + kappa[:, None]
    learnt = np.where(values[None, :] > 0, values[None, :] / np.where(total > 0, total, 1), 0.0)
    used = np.sum(number * learnt**2, axis=1)
    with np.errstate(divide="ignore"):
        factor = np.where(used < n, n / np.maximum(n - used, 0), math.inf)
    missed = np.sum((1 - learnt) ** 2 * share, axis=1) + noise
    mse = np.where(missed > 0, np.where(missed > 0, factor, 1) * missed, 0.0)
    return Prediction(n, mse, kappa, learnt, factor)


def _power(power: Target | ArrayLike, degrees: int) -> np.ndarray:
    given = np.asarray(power.power if isinstance(power, Target) else power, dtype=np.float64)
    if given.ndim != 1 or np.any(given < 0) or not np.all(np.isfinite(given)):
        raise ValueError("power lists mean squares: one non-negative number for each degree.")
    if np.any(given[degrees:]):
        raise ValueError(
            f"The target has harmonics up to degree {np.flatnonzero(given)[-1]}, the spectrum ends "
            f"at {degrees - 1}. Compute more degrees."
        )
    return np.pad(given[:degrees], (0, max(0, degrees - len(given))))


def _kappa(values: np.ndarray, number: np.ndarray, n: np.ndarray, ridge: float) -> np.ndarray:
    """Bisection on log kappa: the left-hand side falls from the number of modes to 0."""
    high = np.log((np.sum(values * number) + ridge) / n)
    low = high - 100.0
    if ridge == 0:
        modes = np.sum(number[values > 0])
        low = np.where(n >= modes, -math.inf, low)  # all modes are learnt exactly
    for _ in range(60):
        middle = np.maximum((low + high) / 2, -700)
        kappa = np.exp(middle)[:, None]
        count = np.sum(number * values / (values + kappa), axis=1) + ridge / kappa[:, 0]
        more = count > n
        low, high = np.where(more, middle, low), np.where(more | np.isinf(low), high, middle)
    return np.where(np.isinf(low), 0.0, np.exp((low + high) / 2))
