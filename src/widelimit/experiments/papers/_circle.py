"""Kernels and interpolants on the circle, where the kernel is a function of one angle."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import ArrayLike, Float

from widelimit.analysis import smoothness
from widelimit.infinite import ntk
from widelimit.layers import Layer
from widelimit.regression import gaussian_kernel

from .._setting import JITTER, target

POINTS = 4096  # N of the measures, as in the papers
SHOWN = 512  # points of a curve in a figure


def grid(points: int = POINTS) -> Float[np.ndarray, " n"]:
    r"""$b_q=-\pi+2\pi q/N$."""
    return -np.pi + 2 * np.pi * np.arange(points) / points


def kernel_at(net: Layer | None, angle: ArrayLike | Sequence[float]) -> np.ndarray:
    """The tangent kernel of two points of the unit circle, by the angle between them.

    Args:
        net: The network; None stands for the Gaussian kernel.
        angle: Angles, any shape.

    Returns:
        The kernel, in the same shape.

    Example:
        >>> import widelimit as wl
        >>> float(kernel_at(wl.mlp(depth=5), 0.0))  # (L + 1) / 2^(L + 1)
        0.09375
    """
    angle = np.asarray(angle, dtype=np.float64)
    origin, x = np.array([[1.0, 0.0]]), smoothness.circle_points(angle.ravel())
    row = gaussian_kernel(origin, x) if net is None else ntk(net, origin, x)
    return np.reshape(row, angle.shape)


def shapes(nets: dict[str, Layer]) -> dict[str, Float[np.ndarray, "513"]]:
    """Each kernel around the circle, per unit peak, on `grid(513)`."""
    values = {name: kernel_at(net, [*grid(513), 0.0]) for name, net in nets.items()}
    return {name: around[:-1] / around[-1] for name, around in values.items()}


def interpolant(
    net: Layer | None, b: np.ndarray, y: np.ndarray, jitter: float = 0.0
) -> smoothness.Interpolant:
    """The interpolant of samples at the angles b; None for the Gaussian kernel."""
    fit = lambda jitter: smoothness.interpolate(net or "gaussian", b, y, jitter=jitter)
    try:
        return fit(jitter)
    except ValueError:  # random samples may be so close that the matrix is singular to rounding
        return fit(JITTER)


def interpolants(
    nets: Mapping[str, Layer | None], b: np.ndarray, jitter: float = 0.0, *, gauss: bool = False
) -> dict[str, Any]:
    r"""Interpolants $f(b)=\sum_ic_i\Theta(b-b_i)$, $(\Theta+\epsilon I)c=y$, of the target, and their smoothness.

    Args:
        nets: Name to network; None stands for the Gaussian kernel.
        b: Angles of the samples.
        jitter: $\epsilon$.
        gauss: Whether to compare with the Gaussian interpolant of the same samples, too.

    Returns:
        "b" and "y", the samples; and by network "curves", the interpolant on 512 points, "mu", its
        second-derivative measure (smaller is smoother); where asked for, "mu_gauss", its floored
        Gaussian measure (larger is smoother), and "condition", that of the Gram matrix.
    """
    y, x = target(b), smoothness.circle_points(grid())
    fits = {name: interpolant(net, b, y, jitter) for name, net in nets.items()}
    values = {name: fit.predict(x) for name, fit in fits.items()}
    found = {
        "b": b,
        "y": y,
        "curves": {name: f[:: POINTS // SHOWN] for name, f in values.items()},
        "mu": {name: float(smoothness.second_derivative(f)) for name, f in values.items()},
    }
    if gauss:
        smooth = interpolant(None, b, y, jitter).predict(x)
        measure = lambda f: float(smoothness.gaussian_rkhs(f, smooth))
        found["mu_gauss"] = {name: measure(f) for name, f in values.items()}
        found["condition"] = {name: fit.condition for name, fit in fits.items()}
    return found
