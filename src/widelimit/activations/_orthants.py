r"""Fourth moments of $a\min(x,0)+b\max(x,0)$ in closed form, as functions of the angle alone.

Two inputs at the angle $\varphi$ to the nearer end cut the plane into four wedges, in which both functions are linear:
thin ones of angle $\varphi$, where signs differ, and wide ones. Over a thin wedge of unit variances $2\pi E[|u|^j|v|^k]$ is
$\varphi$ (0,0), $\sin\varphi-\varphi\cos\varphi$ (1,1), $\varphi-\sin\varphi\cos\varphi$ (2,0),
$(2+\cos^2\varphi)\sin\varphi-3\varphi\cos\varphi$ (3,1), $\varphi(1+2\cos^2\varphi)-3\sin\varphi\cos\varphi$ (2,2),
$3\varphi-3\sin\varphi\cos\varphi-2\sin^3\varphi\cos\varphi$ (4,0): all positive, of order $\varphi^{j+k+1}$, and evaluated as such. A
wide wedge has half of the plane's moments less these. The second derivatives that shift means have poles
$1/\sin\varphi$ and $1/\sin^3\varphi$ at coinciding inputs; they meet statistics of the squared distance, which
vanish faster, and in the coordinates of `Local` both are there by themselves.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp

from widelimit._base.numerics import evaluate_polynomial, short_angle

from ._charts import Local, basis_of, end_of, products, sign_in
from ._cov import Cov, Matrix
from ._fourth_records import Alone, Fourth, Slopes

_COINCIDE = 1e-120  # sine^2, below which a pole meets what is 0
_FIFTH = 0.5  # angle, below which a difference of third order is a series
_TERMS = [
    (-1) ** k * ((3 ** (2 * k + 1) - 3) / 4 - 6 * k) / math.factorial(2 * k + 1)
    for k in range(2, 12)
]


class _Wedges(NamedTuple):
    """The plane at two inputs, the second turned to the first's side.

    Attributes:
        end: 1 or -1: whether it was turned.
        near: 1 - rho.
        far: 1 + rho.
        angle: To the nearer end.
        sine: Of the angle.
        lag: The angle less its sine.
        thin: Moments of |u| and |v| over a thin wedge, by exponents.
    """

    end: Matrix
    near: Matrix
    far: Matrix
    angle: Matrix
    sine: Matrix
    lag: Matrix
    thin: dict[tuple[int, int], Matrix]

    @staticmethod
    def of(cov: Cov) -> "_Wedges":
        end = end_of(cov.minus, cov.plus)
        near, far = jnp.where(end > 0, cov.minus, cov.plus), jnp.where(end > 0, cov.plus, cov.minus)
        h, angle, w = short_angle(near, None)
        square = near * far
        sine, cosine = jnp.sqrt(square), 1 - near
        small = angle * angle
        fifth = jnp.where(
            angle < _FIFTH,
            small * small * angle * evaluate_polynomial(_TERMS, jnp.minimum(small, _FIFTH**2)),
            3 * w - square * sine,
        )
        third = angle * square - cosine * w
        thin = {
            (0, 0): angle,
            (1, 1): w,
            (2, 0): third,
            (3, 1): fifth,
            (2, 2): square * third - cosine * fifth,
            (4, 0): 3 * square * third - cosine * fifth,
        }
        scale = 1 / (2 * math.pi)
        return _Wedges(
            end,
            near,
            far,
            angle,
            sine,
            2 * h * angle - w,
            {key: scale * value for key, value in thin.items()},
        )

    def over_thin(self, n: int) -> list[Matrix]:
        """E[u^(n-j) v^j] where u > 0 > v."""
        return [(-1) ** j * self.thin[max(n - j, j), min(n - j, j)] for j in range(n + 1)]

    def over_wide(self, n: int) -> list[Matrix | None]:
        """E[mu^(n-j) delta^j] where u, v > 0; mu is their mean, delta their difference."""
        t, g, h = self.thin, self.far / 2, 2 * self.near
        if n == 0:
            return [0.5 - t[0, 0]]
        if n == 2:
            return [(g - t[2, 0] + t[1, 1]) / 2, None, h / 2 - 2 * (t[2, 0] + t[1, 1])]
        both, odd = t[4, 0] + 3 * t[2, 2], 4 * t[3, 1]
        ends = (1.5 * g * g - (both - odd) / 8, 1.5 * h * h - 2 * (both + odd))
        return [ends[0], None, (g * h - t[4, 0] + t[2, 2]) / 2, None, ends[1]]


Basis = tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix]]
Tables = tuple[
    tuple[Matrix, ...], tuple[tuple[Matrix, ...], tuple[Matrix, ...], tuple[Matrix, ...]]
]


def _tables(a: float, b: float, wedges: _Wedges, basis: Basis) -> tuple[Tables, tuple[Matrix, ...]]:
    """E of four p, and of two p and two d, in a basis of the outputs; of four d in none."""
    root = math.sqrt((a * a + b * b) / 2)
    a, b = a / root, b / root
    turned = wedges.end < 0
    below, above = jnp.where(turned, -b, a), jnp.where(turned, -a, b)
    zero = jnp.zeros_like(below)
    moments = [(wedges.over_wide(n), wedges.over_thin(n)) for n in (4, 2, 0)]
    x, y, z = [], ([], [], []), []
    for wide, first, second in (
        (True, zero + b, above),
        (True, zero + a, below),
        (False, zero + b, below),
        (False, zero + a, above),
    ):
        forms = [(row[0] * first, row[1] * second) for row in basis]
        if wide:
            forms = [(u + v, (u - v) / 2) for u, v in forms]
        four, two, none = (of[0 if wide else 1] for of in moments)
        # Slopes of the second input itself, not turned.
        slopes = [first**2, first * second * wedges.end, second**2]
        x.append(products(forms, four))
        pair = products(forms, two)
        for j in range(3):
            y[j].append([slopes[j] * value for value in pair])
        z.append([none[0] * s for s in (slopes[0] ** 2, slopes[0] * slopes[1], slopes[1] ** 2)])
        z[-1] += [none[0] * s for s in (slopes[1] * slopes[2], slopes[2] ** 2)]
    total = lambda parts: tuple(sum(column[1:], column[0]) for column in zip(*parts, strict=True))
    return (total(x), (total(y[0]), total(y[1]), total(y[2]))), total(z)


def _alone(a: float, b: float, like: Matrix) -> Alone:
    fourth = 2 * (a**4 + b**4) / (a * a + b * b) ** 2
    one, none = jnp.ones_like(like), jnp.zeros_like(like)
    return Alone(one, one, none, none, none, 3 * fourth * one, fourth * one, fourth * one)


def _bend(a: float, b: float) -> float:
    return (a - b) ** 2 / ((a * a + b * b) * math.pi)


def two_slopes_fourth(a: float, b: float, cov: Cov) -> Fourth:
    """The fourth moments of a min(x, 0) + b max(x, 0)."""
    wedges = _Wedges.of(cov)
    one = jnp.ones_like(cov.minus)
    (x, y), z = _tables(a, b, wedges, ((one, 0 * one), (0 * one, one)))
    first, second = _alone(a, b, cov.q1), _alone(a, b, cov.q2)
    # As functions of the covariance the bends are those of the ReLU.
    rho, (over, over3) = cov.rho, _poles(a, b, wedges)
    s20, s11 = _bend(a, b) * wedges.sine, wedges.end * _slope(a, b, wedges)
    s40, s31 = over * (2 * rho**2 - 1), -over * rho
    s51, s42 = over3 * rho * (2 * wedges.sine**2 + 1), -over3
    slopes = Slopes(s20, s11, s20, s40, s31, over, s31, s40, s51, s42, over3 * rho, s42, s51)
    table = list(map(list, zip(*y, strict=True)))
    table[0][0], table[2][2] = first.y, second.y
    return Fourth(first, second, slopes, x[1:4], tuple(map(tuple, table)), z[1:4])


def _poles(a: float, b: float, wedges: _Wedges) -> tuple[Matrix, Matrix]:
    """The second derivative of the slope's kink over the sine, and over its cube."""
    some = wedges.near * wedges.far > _COINCIDE
    over = jnp.where(some, 1 / jnp.where(some, wedges.sine, 1), 0)
    return _bend(a, b) * over, _bend(a, b) * over**3


def _share(a: float, b: float, wedges: _Wedges) -> Matrix:
    """The output's correlation at the nearer end."""
    return jnp.where(wedges.end > 0, 1, -2 * a * b / (a * a + b * b))


def _slope(a: float, b: float, wedges: _Wedges) -> Matrix:
    return _share(a, b, wedges) - _bend(a, b) * wedges.angle


def two_slopes_local(a: float, b: float, cov: Cov, chart: Matrix) -> Local:
    """The same in charts, with the digits of nearly parallel inputs."""
    wedges, basis, sign = _Wedges.of(cov), basis_of(chart), sign_in(chart)
    bend, (over, over3) = _bend(a, b), _poles(a, b, wedges)
    end, m, sine, cosine = wedges.end, wedges.near, wedges.sine, 1 - wedges.near
    share, dot = _share(a, b, wedges), _slope(a, b, wedges)
    none = jnp.zeros_like(m)
    scale = share - bend * wedges.lag  # the derivative of the mixed moment in M
    rise = (jnp.abs(chart) + sign * share) - sign * bend * wedges.lag  # of the third coordinate
    moment = (m * m * over, none, -m * over, -bend * sine, none, over)
    turn = (
        -m * m * (cosine + 2) * over3,
        none,
        m * over3,
        cosine * over,
        none,
        cosine * over3,
    )
    half = jnp.full_like(m, 0.5)
    lean = (bend * sine - dot) / 2
    raw = (
        ((2 * half, half), (end * scale, -end * lean)),
        ((scale, lean), (end, -end / 2)),
    )
    mix = lambda row, i, e: row[0] * raw[0][i][e] + row[1] * raw[1][i][e]
    mixed = [[[mix(row, i, e) for e in (0, 1)] for i in (0, 1)] for row in basis]
    # The difference of two outputs that move alike.
    mixed[1][0][0] = jnp.where(chart == 0, mixed[1][0][0], rise)
    mixed[1][1][0] = jnp.where(chart == 0, mixed[1][1][0], -chart * end * rise)
    (x, y), z = _tables(a, b, wedges, basis)
    return Local(
        _alone(a, b, cov.q1),
        _alone(a, b, cov.q2),
        (rise, none, -sign * dot),
        tuple(sign * value for value in moment),
        end * dot,
        (end * m * over, none, -end * over),
        tuple(end * value for value in turn),
        tuple(tuple(map(tuple, part)) for part in mixed),
        x,
        tuple(zip(*y, strict=True)),
        z,
    )
