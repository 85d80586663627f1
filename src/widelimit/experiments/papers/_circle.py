"""Kernels and interpolants on the circle, where the kernel is a function of one angle."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float

from widelimit.analysis import smoothness
from widelimit.dynamics import gaussian_kernel
from widelimit.infinite import ntk
from widelimit.layers import Layer

from .._setting import JITTER

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


class Fit(NamedTuple):
    """An interpolant on the circle.

    Attributes:
        values: On the grid of N points.
        shown: On every eighth of them.
        mu: The second-derivative measure; smaller is smoother.
        mu_gauss: The floored Gaussian measure; larger is smoother. None without a reference.
        condition: Of the Gram matrix.
    """

    values: np.ndarray
    shown: np.ndarray
    mu: float
    mu_gauss: float | None
    condition: float


def interpolant(
    net: Layer | None, b: np.ndarray, y: np.ndarray, jitter: float = 0.0
) -> smoothness.Interpolant:
    """The interpolant of samples at the angles b; None for the Gaussian kernel."""
    fit = lambda jitter: smoothness.interpolate(net or "gaussian", b, y, jitter=jitter)
    try:
        return fit(jitter)
    except ValueError:  # random samples may be so close that the matrix is singular to rounding
        return fit(JITTER)


def interpolate(
    net: Layer | None, b: np.ndarray, y: np.ndarray, gauss: Fit | None = None, jitter: float = 0.0
) -> Fit:
    r"""$f(b)=\sum_ic_i\Theta(b-b_i)$ with $(\Theta+\epsilon I)c=y$, and its smoothness.

    Args:
        net: The network; None for the Gaussian kernel.
        b: Angles of the samples.
        y: Labels.
        gauss: The Gaussian interpolant of the same samples, the reference of the other measure.
        jitter: $\epsilon$.

    Returns:
        The interpolant on the grid.
    """
    found = interpolant(net, b, y, jitter)
    values = found.predict(smoothness.circle_points(grid()))
    mu = float(smoothness.second_derivative(values))
    other = None if gauss is None else float(smoothness.gaussian_rkhs(values, gauss.values))
    return Fit(values, values[:: POINTS // SHOWN], mu, other, found.condition)
