"""Nodes and weights on the host, in float64."""

import functools
import math

import numpy as np


@functools.cache
def tanh_sinh(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Double-exponential rule on [0, 1]: resolves layers of any width at both ends.

    Args:
        nodes: The number of nodes; 64 give 1e-13 for integrands analytic inside the interval.

    Returns:
        The distances of the nodes from 0 and from 1 (each with full relative accuracy), and the
        weights.
    """
    t = np.linspace(-3.35, 3.35, nodes)
    step = t[1] - t[0]
    g = math.pi / 2 * np.sinh(t)
    left = 1 / (1 + np.exp(-2 * g))
    right = 1 / (1 + np.exp(2 * g))
    weights = step * math.pi / 4 * np.cosh(t) / np.cosh(g) ** 2
    return left, right, weights


@functools.cache
def gauss_legendre(nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1) / 2, w / 2


@functools.cache
def graded(nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gauss-Legendre on [0, 1] through t = x^2 (3 - 2x), which crowds the nodes at both ends.

    Args:
        nodes: The number of nodes.

    Returns:
        The distances of the nodes from 0 and from 1, and the weights.
    """
    x, w = gauss_legendre(nodes)
    y = x[::-1]  # 1 - x, by symmetry
    return x**2 * (1 + 2 * y), y**2 * (1 + 2 * x), 6 * x * y * w


@functools.cache
def half_line(panels: int, nodes: int, reach: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """A rule for E[f(z)] over z > 0, z ~ N(0, 1), for a front of any width at 0.

    Each panel is half as long as the next, so a function of z times anything is resolved equally well.

    Args:
        panels: How often the line is halved; fronts of width reach/2^panels are resolved.
        nodes: Gauss-Legendre nodes of each panel.
        reach: Where the line is cut off.

    Returns:
        The nodes, and the weights with the Gaussian density in them.
    """
    x, w = gauss_legendre(nodes)
    edges = reach * np.concatenate([[0.0], 0.5 ** np.arange(panels - 1, -1, -1)])
    lengths = np.diff(edges)[:, None]
    z = (edges[:-1, None] + lengths * x).ravel()
    return z, (lengths * w).ravel() * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


@functools.cache
def log_line(
    step: float, finest: float = 1e-15, reach: float = 10.0
) -> tuple[np.ndarray, np.ndarray]:
    """The same for functions that are analytic for z > 0: equal steps in log z.

    Its error, exp(-5 / step), is that of any width: the rule looks the same on all scales.

    Args:
        step: In log z.
        finest: The width of the narrowest front that is resolved.
        reach: Where the line is cut off.

    Returns:
        The nodes, and the weights with the Gaussian density in them.
    """
    z = np.exp(np.arange(math.log(finest), math.log(reach), step))
    return z, step * z * np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


@functools.cache
def hermite_basis(terms: int, nodes: int, reach: float = 13.5) -> tuple[np.ndarray, np.ndarray]:
    r"""A rule for $E[f(z)\,h_n(z)]$, $z\sim N(0,1)$, with normalised Hermite polynomials.

    The line is cut at 0 and at ±`reach`, with a double-exponential rule on each side, so that a
    function with a steep front at 0 (tanh of a large argument) is resolved.

    Args:
        terms: How many polynomials, n = 0, 1, ...
        nodes: Nodes on each half-line.
        reach: Where the line is cut off.

    Returns:
        The nodes z, shape (2 nodes,), and the matrix of w_j h_n(z_j), shape (terms, 2 nodes).
    """
    left, _, weights = tanh_sinh(nodes)
    z = np.concatenate([-reach * left[::-1], reach * left])
    w = reach * np.concatenate([weights[::-1], weights])
    # psi_n = h_n sqrt(gaussian density) stays bounded where h_n itself would overflow.
    root = np.exp(-(z**2) / 4) / (2 * math.pi) ** 0.25
    psi = np.empty((terms, z.size))
    psi[0] = root
    if terms > 1:
        psi[1] = z * root
    for n in range(1, terms - 1):
        psi[n + 1] = (z * psi[n] - math.sqrt(n) * psi[n - 1]) / math.sqrt(n + 1)
    return z, psi * (w * root)


def cosine_transform(nodes: int) -> np.ndarray:
    """The matrix from values at Chebyshev nodes to the coefficients of a series."""
    n = np.arange(nodes)
    turns = n[:, None] * (2 * n + 1) % (4 * nodes)  # exact: cosines of large angles are not
    transform = 2 / nodes * np.cos(np.pi * turns / (2 * nodes))
    transform[0] /= 2
    return transform
