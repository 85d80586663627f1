r"""Fourth moments of the error function: all of them elementary, but for one integral over an angle.

A factor $\varphi'=2e^{-x^2}/\sqrt\pi$ tilts the Gaussian: with $\Lambda$ the diagonal matrix that counts derivatives
of either input, expectations are $\det(1+2K\Lambda)^{-1/2}$ times those at $\tilde K=K(1+2\Lambda K)^{-1}$. So four
derivatives leave a determinant and two an arcsine; in the mixed derivatives $s_{ij}$ Hermite polynomials remain, whose
means at $\tilde K$ are sums of terms of one sign.

Four factors erf are an orthant probability in four dimensions, which is not elementary. But its derivative in the
covariance $k$ has two factors $\varphi'$: of $E[\varphi(u)^3\varphi(v)]$ it is
$3E[\varphi(u)^2\varphi'(u)\varphi'(v)]$, of two squares $4E[\varphi(u)\varphi'(u)\varphi(v)\varphi'(v)]$.
In the variable $x$ with $2k/\sqrt{(1+2q_1)(1+2q_2)}=\tanh x$ these are analytic in a strip whose width does not depend
on the variances, so a few nodes integrate them.
"""

import math

import jax.numpy as jnp

from widelimit._base.numerics import arctan2
from widelimit._base.quadrature import gauss_legendre

from ._cov import Cov, Matrix
from ._fourth_records import ORDERS, Alone, Fourth, Slopes
from ._shares import Shares

_NODES = 40  # right to 1e-14 for variances up to 1e6, to 1e-9 up to 1e12
_BOUNDS = 1e-60, 1e60  # variances; beyond, the function is linear or a sign


def _moment(q: Matrix) -> Matrix:
    return 2 / math.pi * arctan2(2 * q, jnp.sqrt(1 + 4 * q))


def erf_fourth(cov: Cov) -> Fourth:
    """The fourth moments of erf."""
    q1, q2 = (jnp.clip(q, *_BOUNDS) for q in (cov.q1, cov.q2))
    cov = Cov(q1, q2, cov.minus, cov.plus)
    t1, t2 = _moment(q1), _moment(q2)
    shares = Shares.of(cov, 2.0)
    first, second = _alone(q1, t1), _alone(q2, t2)
    outer = [[_two(cov, (t1, t2), i, j) for j in range(3)] for i in range(3)]
    outer[0][0], outer[2][2] = first.y, second.y
    z = tuple(_four(cov, (t1, t2), j) for j in (1, 2, 3))
    slopes = _slopes(shares, jnp.sqrt(t1) * jnp.sqrt(t2))
    return Fourth(first, second, slopes, _none(shares, t1, t2), tuple(map(tuple, outer)), z)


def _alone(q: Matrix, t: Matrix) -> Alone:
    a, b = 1 + 2 * q, 1 + 4 * q
    slope = 4 / math.pi * q / jnp.sqrt(b) / t
    lean = slope / a
    tilted = 2 * q / b
    both = arctan2(tilted, jnp.sqrt(1 + 2 * tilted))
    x = _three_one(Shares.of(Cov.diagonal(q), 2.0))
    return Alone(
        slope,
        lean,
        -2 * lean * (q / a + q / b),
        -2 * slope * (q / b),
        12 * slope * (q / b) ** 2,
        x / t**2,
        slope * both / t * 2 / math.pi,
        16 / math.pi**2 * (q / t) ** 2 / jnp.sqrt(1 + 8 * q),
    )


def _slopes(s: Shares, size: Matrix) -> Slopes:
    """All $s_{ij}$."""
    over = 1 / s.cosine2
    one, two, both = s.one.p * over / 2, s.two.p * over / 2, s.y**2 * s.rho * over
    start = s.y / s.cosine

    def tilted(n: int, m: int) -> Matrix:
        """E of two Hermite polynomials, in units of the standard deviations."""
        total = jnp.zeros_like(both)
        for j in range(n % 2, min(n, m) + 1, 2):
            a, b = (n - j) // 2, (m - j) // 2
            count = math.factorial(n) * math.factorial(m)
            count /= math.factorial(j) * math.factorial(a) * math.factorial(b)
            total = total + (-1) ** (a + b) * count * both**j * one**a * two**b
        return total

    def bare(p: Matrix, order: int) -> Matrix:
        """E of a derivative of one function and of the other itself."""
        if order == 2:
            return -start * s.rho * p
        return start * s.rho * p**2 * (2 + over)

    def value(i: int, j: int) -> Matrix:
        if 0 in (i, j):
            return bare(s.one.p if j == 0 else s.two.p, i + j)
        return (-1) ** (i + j) * start * tilted(i - 1, j - 1)

    return Slopes(*(2 / math.pi * value(i, j) / size for i, j in ORDERS))


def _four(cov: Cov, t: tuple[Matrix, Matrix], j: int) -> Matrix:
    """Four derivatives, j of them at the second input."""
    q = jnp.sqrt(cov.q1 / t[0]) ** (4 - j) * jnp.sqrt(cov.q2 / t[1]) ** j
    return 16 / math.pi**2 * q / jnp.sqrt(_determinant(cov, 4 - j, j))


def _determinant(cov: Cov, first: int, second: int) -> Matrix:
    a, b = 2 * first * cov.q1, 2 * second * cov.q2
    return 1 + a + b + a * b * (cov.minus * cov.plus)


def _two(cov: Cov, t: tuple[Matrix, Matrix], i: int, j: int) -> Matrix:
    """Two functions, i of them at the second input, and two derivatives, j of them there."""
    det = _determinant(cov, 2 - j, j)
    free = cov.q1 * cov.q2 * (cov.minus * cov.plus)
    one, two = (2 * cov.q1 + 4 * j * free) / det, (2 * cov.q2 + 4 * (2 - j) * free) / det
    if i == 1:
        arc = arctan2(2 * cov.k / det, jnp.sqrt(1 + one + two + 4 * free / det))
    else:
        own = one if i == 0 else two
        arc = arctan2(own, jnp.sqrt(1 + 2 * own))
    power = lambda q, t, n, m: jnp.sqrt(q / t) ** n / jnp.sqrt(t) ** m
    size = power(cov.q1, t[0], 2 - j, 2 - i) * power(cov.q2, t[1], j, i)
    return 8 / math.pi**2 * size * arc / jnp.sqrt(det)


def _nodes(s: Shares) -> tuple[Matrix, Matrix, Matrix]:
    """Where to evaluate: tanh and cosh squared of x between 0 and its end for |rho|, and the weights."""
    x, w = gauss_legendre(_NODES)
    sine = s.y * jnp.abs(s.rho)
    end = jnp.arcsinh(sine / s.cosine)
    column = lambda a: jnp.asarray(a, sine.dtype).reshape((-1,) + (1,) * sine.ndim)
    at = column(x) * end[None]
    return jnp.tanh(at), jnp.cosh(at) ** 2, column(w) * end[None] / jnp.cosh(at)


def _own(p: Matrix, s: Matrix, tanh: Matrix, cosh2: Matrix) -> Matrix:
    """The tilted variance, doubled."""
    small = (p[None] - tanh**2) * cosh2
    return jnp.maximum(jnp.where(p[None] < 0.5, small, 1 - s[None] * cosh2), 0)


def _three_one(s: Shares, second: bool = False) -> Matrix:
    """E[erf(u)^3 erf(v)], or with exchanged powers."""
    tanh, cosh2, weight = _nodes(s)
    side = s.two if second else s.one
    own = _own(side.p, side.s, tanh, cosh2)
    total = jnp.sum(weight * arctan2(own, jnp.sqrt(1 + 2 * own)), axis=0)
    return jnp.sign(s.rho) * 12 / math.pi**2 * total


def _none(s: Shares, t1: Matrix, t2: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """No derivatives."""
    tanh, cosh2, weight = _nodes(s)
    one, two = (_own(side.p, side.s, tanh, cosh2) for side in (s.one, s.two))
    mixed = tanh * cosh2 * (jnp.sqrt(s.one.s) * jnp.sqrt(s.two.s))[None]
    free = jnp.maximum((s.one.p * s.two.p)[None] - tanh**2, 0) * cosh2
    arc = arctan2(mixed, jnp.sqrt(1 + one + two + free))
    middle = 1 + 16 / math.pi**2 * jnp.sum(weight * arc, axis=0) / (t1 * t2)
    root1, root2 = jnp.sqrt(t1), jnp.sqrt(t2)
    outer = _three_one(s) / (t1 * root1 * root2), _three_one(s, True) / (root1 * root2 * t2)
    return outer[0], middle, outer[1]
