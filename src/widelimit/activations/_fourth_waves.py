r"""Fourth moments of sine and cosine: Gaussians' characteristic functions, of any variance.

A product of waves is a sum of waves $\cos(\alpha u+\beta v+\psi)$ with integers $\alpha,\beta$, whose mean is
$e^{-(\alpha^2q_1+\beta^2q_2+2\alpha\beta k)/2}\cos\psi$. For small variances four sines are a small difference of such
terms, of which a short Hermite series is free.
"""

import functools
import itertools
import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from ._cov import Cov, Matrix
from ._fourth_records import COUNTED, ORDERS, Alone, Fourth, Slopes, assembled

SMALL = 0.1  # variance; if one is below, series
_BOUNDS = 1e-50, 1e50  # variances; beyond, sines are linear or white noise
_TERMS = 64  # right to 1e-15 there


@functools.cache
def _terms(first: tuple[int, ...], second: tuple[int, ...]) -> dict[tuple[int, int], float]:
    """The product of sin(x + n pi/2) over the given n, of u and of v, as coefficients of frequencies."""
    found: dict[tuple[int, int], float] = {}
    phases = np.array([*first, *second])
    for tail in itertools.product((1, -1), repeat=len(phases) - 1):
        signs = np.array([1, *tail])
        turn = (1, 0, -1, 0)[int(signs @ phases) % 4]
        alpha, beta = int(signs[: len(first)].sum()), int(signs[len(first) :].sum())
        if alpha < 0 or (alpha == 0 and beta < 0):
            alpha, beta = -alpha, -beta
        value = float(np.prod(signs)) * turn / 2 ** (len(phases) - 1)
        # sin is (e^ix - e^-ix)/2i: two factors have i^-2, four have i^-4.
        value *= (-1) ** (len(phases) // 2)
        found[alpha, beta] = found.get((alpha, beta), 0.0) + value
    return {key: value for key, value in found.items() if value}


def wave_coefficients(odd: bool, q: Matrix, terms: int, p: int, d: int) -> Matrix:
    """The Hermite coefficients of p^p d^d, as of any product of waves."""
    phases = (0 if odd else 1,) * p + (1 if odd else 2,) * d
    second = -jnp.expm1(-2 * q) / 2 if odd else (1 + jnp.exp(-2 * q)) / 2
    n = np.arange(terms)
    column = lambda a: jnp.asarray(a, q.dtype).reshape((-1,) + (1,) * q.ndim)
    half = column([math.lgamma(k + 1) / 2 for k in range(terms)])
    total = jnp.zeros((terms, *q.shape))
    for signs in itertools.product((1, -1), repeat=len(phases)):
        alpha, turn = sum(signs), int(np.dot(signs, phases))
        # Of i^(turn + n - factors) exp(i alpha u) the real part is left.
        phase = np.array([1, 0, -1, 0])[(turn + n - len(phases)) % 4]
        weight = float(np.prod(signs)) / 2 ** len(phases) * phase
        if alpha == 0:
            total = total + column(weight * (n == 0))
            continue
        size = column(n) * jnp.log(abs(alpha) * jnp.sqrt(q))[None] - half
        size = size - (alpha * alpha / 2) * q[None]
        total = total + column(weight * np.sign(alpha) ** n) * jnp.exp(size)
    scale = (jnp.sqrt(q / second) ** d) / jnp.sqrt(second) ** p
    return total * scale[None]


def _mean(cov: Cov, alpha: int, beta: int) -> Matrix:
    """E[cos(alpha u + beta v)], whatever cancels in the variance."""
    a, b = alpha * jnp.sqrt(cov.q1), abs(beta) * jnp.sqrt(cov.q2)
    beside = cov.plus if beta > 0 else cov.minus
    return jnp.exp(-((a - b) ** 2) / 2 - a * b * beside)


def _alone(q: Matrix, odd: bool, powers: list[Matrix]) -> Alone:
    sign, fall = (1 if odd else -1), jnp.exp(-2 * q)
    own, other = -jnp.expm1(-2 * q) / 2, (1 + fall) / 2
    t, dot = (own, other) if odd else (other, own)
    return Alone(
        q * dot / t,
        sign * q * fall / t,
        -2 * sign * q * q * fall / t,
        -sign * q * q * fall / t,
        2 * sign * q**3 * fall / t,
        *powers,
    )


def wave_fourth(
    odd: bool,
    series: Callable[[Cov, int], Fourth],
    waves: Callable[[Cov], tuple[Matrix, Matrix]],
    cov: Cov,
) -> Fourth:
    """The fourth moments of the sine (odd) or the cosine.

    Args:
        odd: Which.
        series: The same by so many terms of the Hermite series.
        waves: E[sin u sin v] and E[cos u cos v] as a function of the covariance.
        cov: The covariance.

    Returns:
        The moments.
    """
    q1, q2 = (jnp.clip(q, *_BOUNDS) for q in (cov.q1, cov.q2))
    cov = Cov(q1, q2, cov.minus, cov.plus)
    small = series(cov, _TERMS)
    second = lambda q: -jnp.expm1(-2 * q) / 2 if odd else (1 + jnp.exp(-2 * q)) / 2
    size = [jnp.sqrt(second(q)) for q in (cov.q1, cov.q2)]
    unit = [jnp.sqrt(q) / s for q, s in zip((cov.q1, cov.q2), size, strict=True)]
    start = 0 if odd else 1
    cache = functools.cache(lambda alpha, beta: _mean(cov, alpha, beta))

    def product(p1: int, d1: int, p2: int, d2: int) -> Matrix:
        """E of so many p and d of the first and of the second input."""
        phases = [(start,) * p + (start + 1,) * d for p, d in ((p1, d1), (p2, d2))]
        parts = [value * cache(*key) for key, value in _terms(*phases).items()]
        total = sum(parts[1:], parts[0])
        return total * (unit[0] ** d1 / size[0] ** p1) * (unit[1] ** d2 / size[1] ** p2)

    x = [product(4 - j, 0, j, 0) for j in (1, 2, 3)]
    z = [product(0, 4 - j, 0, j) for j in (1, 2, 3)]
    y = [product(2 - i, 2 - j, i, j) for i, j in COUNTED]
    sides = [[product(4, 0, 0, 0), product(2, 2, 0, 0), product(0, 4, 0, 0)]]
    sides.append([product(0, 0, 4, 0), product(0, 0, 2, 2), product(0, 0, 0, 4)])
    slopes = _slopes(odd, waves(cov), cov, size)
    alone = []
    for powers, near, q in zip(sides, small[:2], (cov.q1, cov.q2), strict=True):
        both = zip((near.x, near.y, near.z), powers, strict=True)
        alone.append(_alone(q, odd, [jnp.where(q < SMALL, a, _own(b, q)) for a, b in both]))
    found = assembled(alone[0], alone[1], [*slopes, *x, *z, *y])
    short = jnp.minimum(cov.q1, cov.q2) < SMALL
    pick = lambda a, b: tuple(jnp.where(short, u, v) for u, v in zip(a, b, strict=True))
    table = [list(pick(a, b)) for a, b in zip(small.y, found.y, strict=True)]
    table[0][0], table[2][2] = alone[0].y, alone[1].y
    return found._replace(
        x=pick(small.x, found.x), y=tuple(map(tuple, table)), z=pick(small.z, found.z)
    )


def _own(value: Matrix, q: Matrix) -> Matrix:
    """What belongs to one input alone, from an entry of each of its pairs."""
    return value[:, :1] if q.shape[1] == 1 else value[:1]


def _slopes(odd: bool, waves: tuple[Matrix, Matrix], cov: Cov, size: list[Matrix]) -> Slopes:
    r"""Derivatives of waves are waves, so $s_{ij}$ are the two second moments with signs."""

    def one(i: int, j: int) -> Matrix:
        sine = (i % 2 == 0) == odd
        sign = (-1) ** ((i + (not odd)) // 2 + (j + (not odd)) // 2)
        scale = jnp.sqrt(cov.q1) ** i / size[0] * (jnp.sqrt(cov.q2) ** j / size[1])
        return sign * scale * waves[0 if sine else 1]

    return Slopes(*(one(i, j) for i, j in ORDERS))
