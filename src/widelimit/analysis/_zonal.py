r"""Quadrature and zonal polynomials in extended precision.

An eigenvalue $\mu_k$ is a small integral of an oscillating function. A node $\theta$ that is rounded to
float64 shifts the phase of $P_k(\cos\theta)$ by $10^{-16}k$, which for k = 1000 is more than the eigenvalue
can bear; so nodes, weights and polynomials are `numpy.longdouble` (64 bits of mantissa where the
machine has them), and only the kernel itself is float64.
"""

import functools
from collections.abc import Iterator

import numpy as np

Long = np.ndarray

PI = np.longdouble("3.14159265358979323846264338327950288")


def zonal(dim: int, gap: Long) -> Iterator[Long]:
    r"""The polynomials $P_k$ of the sphere in `dim` dimensions with $P_k(1)=1$, for k = 0, 1, 2, ...

    $P_k$ is the Gegenbauer polynomial of index $d/2-1$ (d = 2: $\cos k\theta$, d = 3: Legendre). The
    three-term recurrence is run on differences (Reinsch's form), so that no digits are lost near 1:
    $(k+d-2)(P_{k+1}-P_k)=k(P_k-P_{k-1})-(2k+d-2)(1-x)P_k$.

    Args:
        dim: The dimension d of the space, at least 2.
        gap: $1-x$ for x in [0, 1]; for negative x use $P_k(-x)=(-1)^kP_k(x)$.

    Yields:
        The values of $P_0$, $P_1$, ...
    """
    value, step = np.ones_like(gap), -gap
    yield value
    value = value + step
    yield value
    k = 1
    while True:
        step = (k * step - (2 * k + dim - 2) * gap * value) / (k + dim - 2)
        value = value + step
        yield value
        k += 1


@functools.lru_cache(maxsize=16)
def half_rule(nodes: int) -> tuple[Long, Long]:
    r"""Gauss-Legendre on $[0,\pi]$: the angles below $\pi/2$ and their weights; the rest by reflection.

    Args:
        nodes: The number of nodes on the whole interval, even.

    Returns:
        `nodes`/2 angles, ascending, and their weights, both longdouble.
    """
    i = np.arange(1, nodes // 2 + 1, dtype=np.longdouble)
    phi = PI * (4 * i - 1) / (4 * nodes + 2)
    for _ in range(4):  # the start is right to 1/nodes^2 of a spacing; Newton squares that
        value, slope = _legendre(nodes, phi)
        phi = phi - value / slope
    slope = _legendre(nodes, phi)[1]
    return PI * np.sin(phi / 2) ** 2, PI / slope**2


def _legendre(n: int, phi: Long) -> tuple[Long, Long]:
    """The Legendre polynomial of degree n at cos(phi), and its derivative in phi."""
    polynomials = zonal(3, 2 * np.sin(phi / 2) ** 2)
    before = value = next(polynomials)
    for _ in range(n):
        before, value = value, next(polynomials)
    return value, -n * (before - np.cos(phi) * value) / np.sin(phi)


def moments(
    dim: int, degrees: int, angles: Long, weights: Long, sides: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    r"""$\mu_k=\int k(\theta)P_k(\cos\theta)\sin^{d-2}\theta\,d\theta\,/\int\sin^{d-2}\theta\,d\theta$, k = 0..degrees.

    Args:
        dim: The dimension d of the space.
        degrees: The largest k.
        angles: Nodes in $(0,\pi/2)$.
        weights: Their weights.
        sides: The kernel at the angles and at $\pi$ minus the angles.

    Returns:
        The eigenvalues in float64.
    """
    measure = weights * np.sin(angles) ** (dim - 2)
    measure = measure / (2 * measure.sum())
    near, far = (side.astype(np.longdouble) for side in sides)
    parts = measure * (near + far), measure * (near - far)  # even and odd degrees
    gap = 2 * np.sin(angles / 2) ** 2
    out = np.empty(degrees + 1)
    for k, polynomial in zip(range(degrees + 1), zonal(dim, gap), strict=False):
        out[k] = polynomial @ parts[k % 2]
    return out
