r"""Analytic activations whose Gaussian moments are elementary: erf, gelu, gaussian.

Differences of large numbers are written through $1\mp\rho$, and variances through shares such as
$2q/(1+2q)$, so each formula holds for variances from 1e-307 to 1e306, without overflow or cancellation.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax.scipy.special import erf as erf_fn

from widelimit._base.numerics import arctan2
from widelimit._base.thresholds import VARIANCES

from ._activation import Activation, register
from ._cov import TINY, Cov, Matrix


class Shares(NamedTuple):
    r"""A covariance seen through $p_i=x_i/(1+x_i)$, $x_i$ a multiple of $q_i$.

    Attributes:
        p1: $p_1$.
        p2: $p_2$.
        s1: $1-p_1$.
        s2: $1-p_2$.
        y: $\sqrt{p_1p_2}$; $y\rho$ is the sine of the angle in which arcsine formulas are written.
        rho: The correlation.
        minus: $1-\rho$.
        plus: $1+\rho$.
        rest: $1-y^2$.
        cosine2: $1-y^2\rho^2$.
    """

    p1: Matrix
    p2: Matrix
    s1: Matrix
    s2: Matrix
    y: Matrix
    rho: Matrix
    minus: Matrix
    plus: Matrix
    rest: Matrix
    cosine2: Matrix

    @staticmethod
    def of(cov: Cov, by1: Matrix | float, by2: Matrix | float) -> "Shares":
        """With x1 = by1 q1 and x2 = by2 q2."""
        s1, s2 = 1 / (1 + by1 * cov.q1), 1 / (1 + by2 * cov.q2)
        p1, p2 = by1 * cov.q1 * s1, by2 * cov.q2 * s2
        rest = s1 + s2 * p1
        y = jnp.sqrt(p1) * jnp.sqrt(p2)
        cosine2 = rest + p1 * p2 * (cov.minus * cov.plus)
        return Shares(p1, p2, s1, s2, y, cov.rho, cov.minus, cov.plus, rest, cosine2)

    @property
    def arc(self) -> Matrix:
        r"""$\arcsin(y\rho)$."""
        return arctan2(self.y * self.rho, jnp.sqrt(self.cosine2))

    @property
    def arc_slope(self) -> Matrix:
        r"""$(\arcsin y-\arcsin(y\rho))/(y(1-\rho))$ for $\rho\ge0$, from sine and cosine of the difference."""
        a, b = jnp.sqrt(self.cosine2), jnp.sqrt(self.rest)
        slope = self.plus / (a + self.rho * b)
        sine, cosine = self.y * self.minus * slope, a * b + self.y**2 * self.rho
        some = sine > TINY
        # Rarely needed: the built-in function is slower than ours, and quicker to compile.
        ratio = jnp.arctan2(sine, cosine) / jnp.where(some, sine, 1)
        return slope * jnp.where(some, ratio, 1 / cosine)


def _erf_shares(cov: Cov) -> Shares:
    return Shares.of(cov, 2.0, 2.0)


def _root(s: Shares) -> Matrix:
    return jnp.sqrt(s.s1) * jnp.sqrt(s.s2)


def _erf_moment(q: Matrix) -> Matrix:
    q = jnp.minimum(q, VARIANCES["float64"][1])
    return 2 / jnp.pi * arctan2(2 * q, jnp.sqrt(1 + 4 * q))


def _erf_dot(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    return 4 / jnp.pi * _root(s) / jnp.sqrt(s.cosine2)


def _erf_mean_dot(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    return 4 / jnp.pi * _root(s) * s.arc_slope


def _erf_gap(q1: Matrix, q2: Matrix) -> Matrix:
    r"""$1-a/\sqrt{a_1a_2}$ with $a_i=\arcsin p_i$, $a=\arcsin\sqrt{p_1p_2}$, as $(a_1a_2-a^2)/\dots$.

    With $a_1=a+d_1$ and $a_2=a-d_2$ the numerator is $a(d_1-d_2)-d_1d_2$; $d_1$, $d_2$ and
    $d_1-d_2=a_1+a_2-2a$ follow from addition theorems, each proportional to $p_1-p_2$ or its square.
    """
    s = _erf_shares(Cov.parallel(q1, q2))
    p1, p2, b = s.p1, s.p2, jnp.sqrt(s.rest)
    c1, c2 = jnp.sqrt(s.s1 * (1 + p1)), jnp.sqrt(s.s2 * (1 + p2))
    apart = jnp.abs(2 * (q1 - q2) * s.s1 * s.s2)
    # The larger share is the first in what follows.
    high, low = jnp.maximum(p1, p2), jnp.minimum(p1, p2)
    c_high, c_low = jnp.minimum(c1, c2), jnp.maximum(c1, c2)
    # For large variances the angles' complements have the digits.
    large = s.y > 0.7
    angle = lambda sine, cosine: jnp.arctan2(
        jnp.where(large, cosine, sine), jnp.where(large, sine, cosine)
    )
    e1, e2, e = angle(high, c_high), angle(low, c_low), angle(s.y, b)
    d1 = jnp.arctan2(high * apart / (high * b + s.y * c_high), c_high * b + high * s.y)
    d2 = jnp.arctan2(low * apart / (s.y * c_low + low * b), c_low * b + low * s.y)
    half = apart / (c1 * c2 + s.rest) * (apart / (2 * jnp.sin((e1 + e2) / 2 + e)))
    twist = 2 * jnp.arctan2(half, jnp.sqrt((1 - half) * (1 + half)))
    a1, a2, a = (jnp.where(large, jnp.pi / 2 - x, x) for x in (e1, e2, e))
    size = jnp.sqrt(a1) * jnp.sqrt(a2)
    return jnp.maximum(a * twist - d1 * d2, 0) / (size * (size + a))


erf = register(
    Activation(
        "erf",
        erf_fn,
        dual=lambda c: 2 / jnp.pi * _erf_shares(c).arc,
        dual_dot=_erf_dot,
        moment=_erf_moment,
        mean_dot=_erf_mean_dot,
        gap=_erf_gap,
        parity="odd",
        lipschitz=2 / math.sqrt(math.pi),
        latex=r"\operatorname{erf}(x)",
        cites=("williams1997computing",),
    )
)


def _gelu_dual(cov: Cov) -> Matrix:
    s = Shares.of(cov, 1.0, 1.0)
    bulk = s.y**2 * (s.minus * s.plus + s.rho**2 * (s.s1 + s.s2)) / jnp.sqrt(s.cosine2)
    return cov.k * (0.25 + s.arc / (2 * jnp.pi)) + bulk / _root(s) / (2 * jnp.pi)


def _gelu_dual_dot(cov: Cov) -> Matrix:
    s = Shares.of(cov, 1.0, 1.0)
    tilt = s.y * s.rho / jnp.sqrt(s.cosine2) * (s.s1 + s.s2 + s.s1 * s.s2 / s.cosine2)
    return 0.25 + (s.arc + tilt) / (2 * jnp.pi)


def _gelu_mean_dot(cov: Cov) -> Matrix:
    s = Shares.of(cov, 1.0, 1.0)
    a, b, both = jnp.sqrt(s.cosine2), jnp.sqrt(s.rest), s.s1 + s.s2
    bulk = s.y * s.plus / a * (s.y**2 * both / (b * (a + b)) - (1 - both))
    turn = s.rho * s.y * s.arc_slope + bulk
    return 0.25 + (arctan2(s.y, b) + turn) / (2 * jnp.pi)


gelu = register(
    Activation(
        "gelu",
        lambda x: x * (1 + erf_fn(x / math.sqrt(2))) / 2,
        dual=_gelu_dual,
        dual_dot=_gelu_dual_dot,
        mean_dot=_gelu_mean_dot,
        lipschitz=1.1289041451,  # at x = sqrt(2)
        latex=r"x\,\Phi(x)",
        cites=("tsuchida2021avoiding",),
    )
)


def _bell(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    return _root(s) / jnp.sqrt(s.cosine2)


def _bell_dot(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    a = jnp.sqrt(s.cosine2)
    return 2 * s.y * s.rho * (_root(s) / a) ** 2 / a


def _bell_mean_dot(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    a, b = jnp.sqrt(s.cosine2), jnp.sqrt(s.rest)
    return 2 * (_root(s) / a) * (s.y * s.plus * (_root(s) / b) / (a + b))


def _bell_gap(q1: Matrix, q2: Matrix) -> Matrix:
    # The fourth power of the correlation is (1 + 4 q1)(1 + 4 q2)/(1 + 2 q1 + 2 q2)^2.
    missing = (2 * (q1 - q2) / (1 + 2 * q1 + 2 * q2)) ** 2
    square = jnp.sqrt(jnp.maximum(1 - missing, 0))
    return missing / ((1 + jnp.sqrt(square)) * (1 + square))


gaussian = register(
    Activation(
        "gaussian",
        lambda x: jnp.exp(-(x**2)),
        dual=_bell,
        dual_dot=_bell_dot,
        mean_dot=_bell_mean_dot,
        gap=_bell_gap,
        parity="even",
        lipschitz=math.sqrt(2 / math.e),
        latex=r"e^{-x^2}",
        cites=("williams1997computing",),
    )
)
