"""Analytic activations whose Gaussian moments are elementary: erf, gelu, gaussian."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from widelimit._base.numerics import arctan2
from widelimit._base.thresholds import VARIANCES

from ._activation import Activation, register
from ._cov import Cov, Matrix
from ._fourth_erf import erf_fourth
from ._gap import line_gap
from ._shares import (
    Shares,
    gate_bulk,
    gate_mean_dot,
    gate_tilt,
    sign_dot,
    sign_dual,
    sign_mean_dot,
)


def erf_fn(x: ArrayLike) -> jax.Array:
    """The error function, as `jax.scipy.special` has it, whose import takes a tenth of a second."""
    x = jnp.asarray(x)
    return jax.lax.erf(x if jnp.issubdtype(x.dtype, jnp.inexact) else x.astype(float))


def _erf_shares(cov: Cov) -> Shares:
    return Shares.of(cov, 2.0)


def _erf_moment(q: Matrix) -> Matrix:
    q = jnp.minimum(q, VARIANCES["float64"][1])
    return 2 / jnp.pi * arctan2(2 * q, jnp.sqrt(1 + 4 * q))


def _erf_gap(q1: Matrix, q2: Matrix) -> Matrix:
    r"""$1-a/\sqrt{a_1a_2}$ with $a_i=\arcsin p_i$, $a=\arcsin\sqrt{p_1p_2}$, as $(a_1a_2-a^2)/\dots$.

    With $a_1=a+d_1$ and $a_2=a-d_2$ the numerator is $a(d_1-d_2)-d_1d_2$; $d_1$, $d_2$ and
    $d_1-d_2=a_1+a_2-2a$ follow from addition theorems, each proportional to $p_1-p_2$ or its square.
    """
    s = _erf_shares(Cov.parallel(q1, q2))
    p1, p2, b = s.one.p, s.two.p, jnp.sqrt(s.rest)
    c1, c2 = jnp.sqrt(s.one.s * (1 + p1)), jnp.sqrt(s.two.s * (1 + p2))
    apart = jnp.abs(2 * (q1 - q2) * s.one.s * s.two.s)
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
    small = jnp.maximum(a * twist - d1 * d2, 0) / (size * (size + a))
    direct = 1 - a / size  # of very unequal variances
    return jnp.where(direct > 1e-2, direct, small)


erf = register(
    Activation(
        "erf",
        erf_fn,
        dual=lambda c: sign_dual(_erf_shares(c)),
        dual_dot=lambda c: sign_dot(_erf_shares(c)),
        moment=_erf_moment,
        mean_dot=lambda c: sign_mean_dot(_erf_shares(c)),
        gap=_erf_gap,
        fourth=erf_fourth,
        parity="odd",
        lipschitz=2 / math.sqrt(math.pi),
        latex=r"\operatorname{erf}(x)",
        cites=("williams1997computing",),
    )
)


def _gelu_dual(cov: Cov) -> Matrix:
    s = Shares.of(cov, 1.0)
    return cov.scale * (s.rho * (jnp.pi / 2 + s.arc) + gate_bulk(s)) / (2 * jnp.pi)


def _gelu_dot(cov: Cov) -> Matrix:
    s = Shares.of(cov, 1.0)
    return (jnp.pi / 2 + s.arc + gate_tilt(s)) / (2 * jnp.pi)


def _gelu(x: Matrix) -> Matrix:
    return x * (1 + erf_fn(x / math.sqrt(2))) / 2


gelu = register(
    Activation(
        "gelu",
        _gelu,
        dual=_gelu_dual,
        dual_dot=_gelu_dot,
        mean_dot=lambda c: gate_mean_dot(Shares.of(c, 1.0)),
        gap=line_gap(_gelu, sides=2),
        lipschitz=1.1289041451,  # at x = sqrt(2)
        latex=r"x\,\Phi(x)",
        cites=("tsuchida2021avoiding",),
    )
)


def _root(s: Shares) -> Matrix:
    return jnp.sqrt(s.one.s) * jnp.sqrt(s.two.s)


def _bell(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    return _root(s) / s.cosine


def _bell_dot(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    return 2 * s.y * s.rho * (_root(s) / s.cosine) ** 2 / s.cosine


def _bell_mean_dot(cov: Cov) -> Matrix:
    s = _erf_shares(cov)
    a, b = s.cosine, jnp.sqrt(s.rest)
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
