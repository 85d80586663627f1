"""Kernels and interpolants on the circle, where the kernel is a function of one angle."""

from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from widelimit.analysis import smoothness
from widelimit.infinite import ntk
from widelimit.layers import Layer
from widelimit.regression import gaussian_kernel

from ._setting import JITTER

POINTS = 4096  # N of the measures, as in the papers
SHOWN = 512  # points of a curve in a figure


def grid(points: int = POINTS) -> np.ndarray:
    r"""$b_q=-\pi+2\pi q/N$."""
    return -np.pi + 2 * np.pi * np.arange(points) / points


def kernel_at(net: Layer | None, angle: Any) -> np.ndarray:
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
    flat = angle.ravel()
    # Blocks of one size: a compiled program serves every number of samples.
    blocks = -(-flat.size // POINTS)
    padded = np.zeros(blocks * POINTS)
    padded[: flat.size] = flat
    origin = np.array([[1.0, 0.0]])
    rows = []
    for block in padded.reshape(blocks, POINTS):
        x = smoothness.circle_points(block)
        rows.append(gaussian_kernel(origin, x)[0] if net is None else ntk(net, origin, x)[0])
    return np.concatenate(rows)[: flat.size].reshape(angle.shape)


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


def interpolate(
    net: Layer | None, b: np.ndarray, y: np.ndarray, gauss: "Fit | None" = None, jitter: float = 0.0
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
    gram = kernel_at(net, b[:, None] - b[None, :])
    gram = (gram + gram.T) / 2 + jitter * np.eye(len(b))
    weights = linalg.solve(gram, y, assume_a="pos" if jitter else "sym")
    values = kernel_at(net, grid()[:, None] - b[None, :]) @ weights
    mu = float(smoothness.second_derivative(values))
    other = None if gauss is None else float(smoothness.gaussian_rkhs(values, gauss.values))
    return Fit(values, values[:: POINTS // SHOWN], mu, other, float(np.linalg.cond(gram)))


def jitter_for(samples: str) -> float:
    """The authors' jitter where their samples repeat a point; else none."""
    return JITTER if samples == "authors" else 0.0
