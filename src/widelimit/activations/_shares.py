r"""Pairs of Gaussians with a noise of their own: the form in which erf and its relatives are elementary.

$\operatorname{erf}(x/\sqrt2\tau)$ is the mean of $\operatorname{sign}(x+\tau\varepsilon)$ over Gaussian noise, so its
moments are those of a sign at variances $q+\tau^2$. Differences of large numbers are written through $1\mp\rho$,
and variances through shares such as $q/(q+\tau^2)$: nothing overflows or cancels from 1e-307 to 1e306.
"""

from typing import NamedTuple

import jax.numpy as jnp

from widelimit._base.numerics import arctan2

from ._cov import Cov, Matrix

# arcsin(x)/x - 1 in powers of x^2, the highest first, without the constant, which is 0.
_ARCSINE = 143 / 10240, 231 / 13312, 63 / 2816, 35 / 1152, 5 / 112, 3 / 40, 1 / 6


class Side(NamedTuple):
    r"""One of two variances beside the variance $\tau^2$ of its noise.

    Attributes:
        p: The share $q/(q+\tau^2)$.
        s: $1-p$.
        root: $\sqrt p$.
        short: $1/\sqrt{q+\tau^2}$.
    """

    p: Matrix
    s: Matrix
    root: Matrix
    short: Matrix

    @staticmethod
    def of(q: Matrix, by: Matrix | float) -> "Side":
        r"""With $\tau^2=1/by$."""
        s = 1 / (1 + by * q)
        p = by * q * s
        return Side(p, s, jnp.sqrt(p), jnp.sqrt(by) * jnp.sqrt(s))


class Shares(NamedTuple):
    r"""A covariance with noise on both sides.

    Attributes:
        one: The first side.
        two: The second.
        rho: The correlation without noise.
        minus: $1-\rho$.
        plus: $1+\rho$.
        y: $\sqrt{p_1p_2}$; with noise the correlation is $y\rho$, a sine in what follows.
        rest: $1-y^2$.
        cosine2: $1-y^2\rho^2$.
    """

    one: Side
    two: Side
    rho: Matrix
    minus: Matrix
    plus: Matrix
    y: Matrix
    rest: Matrix
    cosine2: Matrix

    @staticmethod
    def of(cov: Cov, by: float) -> "Shares":
        """The same noise on both sides."""
        return Shares.between(cov, Side.of(cov.q1, by), Side.of(cov.q2, by))

    @staticmethod
    def between(cov: Cov, one: Side, two: Side) -> "Shares":
        """With the noise of each side."""
        rest = one.s + two.s * one.p
        cosine2 = rest + one.p * two.p * (cov.minus * cov.plus)
        y = one.root * two.root
        return Shares(one, two, cov.rho, cov.minus, cov.plus, y, rest, cosine2)

    @property
    def cosine(self) -> Matrix:
        r"""$\sqrt{1-y^2\rho^2}$."""
        return jnp.sqrt(self.cosine2)

    @property
    def short(self) -> Matrix:
        """The inverse of the product of both standard deviations, noise included."""
        return self.one.short * self.two.short

    @property
    def arc(self) -> Matrix:
        r"""$\arcsin(y\rho)$."""
        return arctan2(self.y * self.rho, self.cosine)

    @property
    def turn(self) -> tuple[Matrix, Matrix]:
        r"""For $\rho\ge0$ and $\delta=\arcsin y-\arcsin(y\rho)$: $\sin\delta/(y(1-\rho))$ and $\delta/\sin\delta-1$."""
        a, b = self.cosine, jnp.sqrt(self.rest)
        slope = self.plus / (a + self.rho * b)
        sine, cosine = self.y * self.minus * slope, a * b + self.y**2 * self.rho
        small = sine < 0.1
        series = jnp.polyval(jnp.asarray(_ARCSINE, sine.dtype), sine**2) * sine**2
        direct = arctan2(sine, cosine) / jnp.where(small, 1, sine) - 1
        return slope, jnp.where(small, series, direct)

    @property
    def arc_slope(self) -> Matrix:
        r"""$(\arcsin y-\arcsin(y\rho))/(y(1-\rho))$ for $\rho\ge0$."""
        slope, excess = self.turn
        return slope * (1 + excess)


def sign_dual(s: Shares) -> Matrix:
    r"""$E[\operatorname{erf}(u/\sqrt2\tau_1)\operatorname{erf}(v/\sqrt2\tau_2)]$."""
    return 2 / jnp.pi * s.arc


def sign_dot(s: Shares) -> Matrix:
    """The same of the derivatives."""
    return 2 / jnp.pi * s.short / s.cosine


def sign_mean_dot(s: Shares) -> Matrix:
    r"""The mean of `sign_dot` between $\rho$ and 1."""
    return 2 / jnp.pi * s.short * s.arc_slope


def ramp_mean_dot(s: Shares) -> Matrix:
    r"""The mean between $\rho$ and 1 of $E[\Phi(u/\tau_1)\Phi(v/\tau_2)]=\frac14+\arcsin(y\rho)/2\pi$."""
    a, b = s.cosine, jnp.sqrt(s.rest)
    slope, excess = s.turn
    turn = s.y * slope * (s.rho * excess - s.minus * (a / (a + b)))
    return 0.25 + (arctan2(s.y, b) + turn) / (2 * jnp.pi)


def gate_bulk(s: Shares) -> Matrix:
    r"""Of $x\,\Phi(x/\tau)$ the dual is $\sqrt{q_1q_2}(\rho(\frac\pi2+\arcsin(y\rho))+\text{bulk})/2\pi$."""
    return s.y * (s.minus * s.plus + s.rho**2 * (s.one.s + s.two.s)) / s.cosine


def gate_tilt(s: Shares) -> Matrix:
    r"""Of its derivative the dual is $(\frac\pi2+\arcsin(y\rho)+\text{tilt})/2\pi$."""
    return s.y * s.rho / s.cosine * (s.one.s + s.two.s + s.one.s * s.two.s / s.cosine2)


def gate_mean_dot(s: Shares) -> Matrix:
    r"""The mean of `gate_dot` between $\rho$ and 1, as a sum whose terms are small where they differ in sign."""
    a, b, one, two = s.cosine, jnp.sqrt(s.rest), s.one.s, s.two.s
    slope, excess = s.turn
    fall = excess - s.minus * (1 + excess) + (one + two)
    noise = (b / a) * (s.y**2 * (a / (a + b)) * s.minus + s.rho * one * two)
    far = s.plus * s.y**2 * (one / b) * (two / (a * (a + b)))
    turn = s.y * (slope * (fall + noise) + far)
    return 0.25 + (arctan2(s.y, b) + turn) / (2 * jnp.pi)
