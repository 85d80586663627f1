r"""Fourth moments of $a\min(x,0)+b\max(x,0)$ in closed form, as functions of the angle alone.

Two inputs at the angle $\varphi$ to the nearer end cut the plane into four wedges, in which both functions are linear:
thin ones of angle $\varphi$ and wide ones. Over a thin wedge of unit variances $2\pi E[|u|^j|v|^k]$ is
$\varphi$ (0,0), $\sin\varphi-\varphi\cos\varphi$ (1,1), $\varphi-\sin\varphi\cos\varphi$ (2,0),
$(2+\cos^2\varphi)\sin\varphi-3\varphi\cos\varphi$ (3,1), $\varphi(1+2\cos^2\varphi)-3\sin\varphi\cos\varphi$ (2,2),
$3\varphi-3\sin\varphi\cos\varphi-2\sin^3\varphi\cos\varphi$ (4,0): positive, of order $\varphi^{j+k+1}$, and evaluated
as such. A wide wedge has half of the plane's moments less these. The second derivatives that shift means have poles
$1/\sin\varphi$ and $1/\sin^3\varphi$ at coinciding inputs; they meet statistics of the squared distance, which
vanish faster, and in the coordinates of `Local` both are there by themselves.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from widelimit._base.numerics import short_angle
from widelimit._base.polynomials import evaluate_polynomial

from ._charts import Local, basis_of, end_of, in_forms, inputs_in, sign_in
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

    def wide(self, n: int) -> list[Matrix]:
        """E[mu^n], E[mu^(n-2) delta^2], .. where u, v > 0; mu is their mean, delta their difference."""
        t, g, h = self.thin, self.far / 2, 2 * self.near
        if n == 2:
            return [(g - t[2, 0] + t[1, 1]) / 2, h / 2 - 2 * (t[2, 0] + t[1, 1])]
        both, odd = t[4, 0] + 3 * t[2, 2], 4 * t[3, 1]
        ends = 1.5 * g * g - (both - odd) / 8, 1.5 * h * h - 2 * (both + odd)
        return [ends[0], (g * h - t[4, 0] + t[2, 2]) / 2, ends[1]]


class _Tables(NamedTuple):
    """E of four p and of two p and two d, in a basis of the outputs, and of four d, as in `Local`."""

    x: tuple[Matrix, ...]
    y: tuple[tuple[Matrix, ...], ...]
    z: tuple[Matrix, ...]


def _alike(a: float, b: float, wedges: _Wedges, sign: int) -> _Tables:
    """Where both outputs, the second perhaps with the other sign, are one function of u and of v.

    In the basis of half their sum and their difference; `sign` is that of a product of their slopes.
    """
    t, all4 = wedges.thin, a**4 + b**4
    (mu4, mixed, delta4), (mu2, delta2) = wedges.wide(4), wedges.wide(2)
    # In a thin wedge one is b|u|, the other -a|v|; the opposite wedge mirrors it.
    even, odd = all4 * t[4, 0] + 6 * (a * b) ** 2 * t[2, 2], 4 * a * b * (a * a + b * b) * t[3, 1]
    none = jnp.zeros_like(mu4)
    middle = all4 * t[4, 0] - 2 * (a * b) ** 2 * t[2, 2]
    x0, x4 = all4 * mu4 + (even - odd) / 8, all4 * delta4 + 2 * (even + odd)
    square, product = a * a + b * b, 2 * a * b
    sides = (
        (all4 * mu2, (square * t[2, 0] - product * t[1, 1]) / 4),
        (all4 * delta2, square * t[2, 0] + product * t[1, 1]),
    )
    low, high = ((w + square * v, sign * (w + product * v)) for w, v in sides)
    turn = (b * b - a * a) ** 2 * t[2, 0] / 2
    y = (low[0], low[1], low[0]), (turn, none, -turn), (high[0], high[1], high[0])
    p = 0.5 - t[0, 0]
    even_z, odd_z = all4 * (p + t[0, 0]), sign * (all4 * p + a * b * square * t[0, 0])
    z = even_z, odd_z, all4 * p + product**2 / 2 * t[0, 0], odd_z, even_z
    return _Tables((x0, none, all4 * mixed + middle / 2, none, x4), y, z)


def _as_they_are(a: float, b: float, wedges: _Wedges) -> _Tables:
    """The outputs themselves, the second input turned: thin wedges are those where signs agree."""
    t, all4, square, product = wedges.thin, a**4 + b**4, a * a + b * b, a * b
    rho = 1 - wedges.near
    same = jnp.full_like(rho, 1.5 * all4)
    u2, uv = 0.5 - t[2, 0], 0.5 * rho + t[1, 1]
    u3v, u2v2 = 1.5 * rho + t[3, 1], 0.5 + rho * rho - t[2, 2]
    x1 = all4 * t[3, 1] - product * square * u3v
    x = same, x1, all4 * t[2, 2] + 2 * product**2 * u2v2, x1, same
    ends = all4 * u2, product * square * u2, 2 * product**2 * u2
    own, between = all4 * t[2, 0], all4 * t[1, 1]
    off = between - product * square * uv
    y = (
        (own + ends[0], own + ends[1], own + ends[2]),
        (off, between - 2 * product**2 * uv, off),
        (own + ends[2], own + ends[1], own + ends[0]),
    )
    p = 0.5 - t[0, 0]
    z = [all4 * t[0, 0] + (b ** (4 - j) * a**j + a ** (4 - j) * b**j) * p for j in range(5)]
    return _Tables(x, y, tuple(z))


def _alone(a: float, b: float, like: Matrix) -> Alone:
    fourth = 2 * (a**4 + b**4) / (a * a + b * b) ** 2
    one, none = jnp.ones_like(like), jnp.zeros_like(like)
    return Alone(one, one, none, none, none, 3 * fourth * one, fourth * one, fourth * one)


def _bend(a: float, b: float) -> float:
    return (a - b) ** 2 / ((a * a + b * b) * math.pi)


def _normed(a: float, b: float) -> tuple[float, float]:
    """The slopes of the function of second moment 1."""
    root = math.sqrt((a * a + b * b) / 2)
    return a / root, b / root


def _poles(a: float, b: float, wedges: _Wedges) -> tuple[Matrix, Matrix]:
    """What the kink makes of second derivatives: over the sine, and over its cube."""
    some = wedges.near * wedges.far > _COINCIDE
    over = jnp.where(some, 1 / jnp.where(some, wedges.sine, 1), 0)
    return _bend(a, b) * over, _bend(a, b) * over**3


def _share(a: float, b: float, wedges: _Wedges) -> Matrix:
    """The output's correlation at the nearer end."""
    return jnp.where(wedges.end > 0, 1, -2 * a * b / (a * a + b * b))


def two_slopes_fourth(a: float, b: float, cov: Cov) -> Fourth:
    """The fourth moments of a min(x, 0) + b max(x, 0)."""
    local = two_slopes_local(a, b, cov)
    wedges = _Wedges.of(cov)
    rho, (over, over3) = cov.rho, _poles(a, b, wedges)
    s20 = _bend(a, b) * wedges.sine
    s40, s31 = over * (2 * rho**2 - 1), -over * rho
    s51, s42 = over3 * rho * (2 * wedges.sine**2 + 1), -over3
    slopes = Slopes(s20, local.dot, s20, s40, s31, over, s31, s40, s51, s42, over3 * rho, s42, s51)
    rows = inputs_in(local.chart)
    x = in_forms(rows, local.x)
    y = [
        list(row)
        for row in zip(*(in_forms(rows, part) for part in zip(*local.y, strict=True)), strict=True)
    ]
    y[0][0], y[2][2] = local.first.y, local.second.y
    return Fourth(local.first, local.second, slopes, x[1:4], tuple(map(tuple, y)), local.z[1:4])


def two_slopes_local(a: float, b: float, cov: Cov) -> Local:
    """The same in charts, with the digits of nearly parallel inputs."""
    wedges = _Wedges.of(cov)
    end, m, sine, cosine = wedges.end, wedges.near, wedges.sine, 1 - wedges.near
    # A second input that was turned leaves an odd or even function what it was.
    turned = -1 if a == b else 1 if a == -b else 0
    chart = jnp.where(end > 0, 1, jnp.full_like(end, turned))
    sign, basis = sign_in(chart), basis_of(chart)
    unit = _normed(a, b)
    bend, (over, over3), share = _bend(a, b), _poles(a, b, wedges), _share(a, b, wedges)
    dot = share - bend * wedges.angle
    none = jnp.zeros_like(m)
    scale = share - bend * wedges.lag  # the derivative of the mixed moment in M
    rise = (jnp.abs(chart) + sign * share) - sign * bend * wedges.lag  # of the third coordinate
    moment = (m * m * over, none, -m * over, -bend * sine, none, over)
    turn = (-m * m * (cosine + 2) * over3, none, m * over3, cosine * over, none, cosine * over3)
    lean = (bend * sine - dot) / 2
    one = jnp.ones_like(m)
    raw = ((one, one / 2), (end * scale, -end * lean)), ((scale, lean), (end, -end / 2))
    mix = lambda row, i, e: row[0] * raw[0][i][e] + row[1] * raw[1][i][e]
    mixed = [[[mix(row, i, e) for e in (0, 1)] for i in (0, 1)] for row in basis]
    # The difference of two outputs that move alike.
    mixed[1][0][0] = jnp.where(chart == 0, mixed[1][0][0], rise)
    mixed[1][1][0] = jnp.where(chart == 0, mixed[1][1][0], -chart * end * rise)
    tables = _alike(*unit, wedges, 1)
    other = _alike(*unit, wedges, -turned) if turned else _as_they_are(*unit, wedges)
    tables = jax.tree.map(lambda one, two: jnp.where(end > 0, one, two), tables, other)
    low, high = unit
    moment_01 = (low**2 + high**2) * wedges.thin[1, 1]
    moment_01 = moment_01 - 2 * low * high * (0.5 * cosine + wedges.thin[1, 1])
    return Local(
        _alone(a, b, cov.q1),
        _alone(a, b, cov.q2),
        chart,
        moment_01,
        (rise, none, -sign * dot),
        tuple(sign * value for value in moment),
        end * dot,
        (end * m * over, none, -end * over),
        tuple(end * value for value in turn),
        tuple(tuple(map(tuple, part)) for part in mixed),
        *tables,
    )
