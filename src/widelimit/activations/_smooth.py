"""Analytic activations whose Gaussian moments are elementary: erf, gelu, sin, cos, exp, gaussian.

Differences of large numbers are written through `Cov.det`, `Cov.minus` and `Cov.plus`, which are
free of cancellation, so each formula holds for variances from 1e-200 to 1e200.
"""

import math

import jax.numpy as jnp
from jax.scipy.special import erf as erf_fn

from widelimit._base.numerics import arctan2

from ._activation import Activation, Cov, register


def _erf_d(cov: Cov):
    # (1 + 2 q1)(1 + 2 q2) - 4 k^2
    return 1 + 2 * cov.q1 + 2 * cov.q2 + 4 * cov.det


erf = register(
    Activation(
        "erf",
        erf_fn,
        dual=lambda c: 2 / jnp.pi * arctan2(2 * c.k, jnp.sqrt(_erf_d(c))),
        dual_dot=lambda c: 4 / jnp.pi / jnp.sqrt(_erf_d(c)),
        parity="odd",
        lipschitz=2 / math.sqrt(math.pi),
        latex=r"\operatorname{erf}(x)",
        cites=("williams1997computing",),
    )
)


def _gelu_parts(cov: Cov):
    a, b = 1 + cov.q1, 1 + cov.q2
    d = 1 + cov.q1 + cov.q2 + cov.det  # ab - k^2
    root = jnp.sqrt(d)
    return a, b, d, 1 / (2 * jnp.pi * root), 0.25 + arctan2(cov.k, root) / (2 * jnp.pi)


def _gelu_dual(cov: Cov):
    a, b, _, j, q = _gelu_parts(cov)
    k = cov.k
    return cov.q1 * (cov.q2 * j - k**2 * j / a) + k * (q + k * j / b)


def _gelu_dual_dot(cov: Cov):
    a, b, d, j, q = _gelu_parts(cov)
    return q + cov.k * j * (1 / a + 1 / b + 1 / d)


gelu = register(
    Activation(
        "gelu",
        lambda x: x * (1 + erf_fn(x / math.sqrt(2))) / 2,
        dual=_gelu_dual,
        dual_dot=_gelu_dual_dot,
        lipschitz=1.1289041451,  # at x = sqrt(2)
        latex=r"x\,\Phi(x)",
        cites=("tsuchida2021avoiding",),
    )
)


def _two_exponentials(cov: Cov):
    r"""$e^{-(q_1+q_2)/2+|k|}$ and $|k|$: the larger of the two waves, and their gap."""
    positive = cov.plus >= cov.minus
    gap = jnp.where(positive, cov.k, -cov.k)
    nearer = jnp.where(positive, cov.minus, cov.plus)
    exponent = (jnp.sqrt(cov.q1) - jnp.sqrt(cov.q2)) ** 2 / 2 + cov.scale * nearer
    return jnp.exp(-exponent), gap, positive


def _wave_odd(cov: Cov):
    # exp(-(q1 + q2)/2) sinh k
    larger, gap, positive = _two_exponentials(cov)
    value = -larger * jnp.expm1(-2 * gap) / 2
    return jnp.where(positive, value, -value)


def _wave_even(cov: Cov):
    # exp(-(q1 + q2)/2) cosh k
    larger, gap, _ = _two_exponentials(cov)
    return larger * (1 + jnp.exp(-2 * gap)) / 2


sin = register(
    Activation(
        "sin",
        jnp.sin,
        dual=_wave_odd,
        dual_dot=_wave_even,
        parity="odd",
        lipschitz=1.0,
        latex=r"\sin x",
        cites=("rahimi2007random",),
    )
)

cos = register(
    Activation(
        "cos",
        jnp.cos,
        dual=_wave_even,
        dual_dot=_wave_odd,
        parity="even",
        lipschitz=1.0,
        latex=r"\cos x",
        cites=("rahimi2007random",),
    )
)

exp = register(
    Activation(
        "exp",
        jnp.exp,
        dual=lambda c: jnp.exp((c.q1 + c.q2) / 2 + c.k),
        dual_dot=lambda c: jnp.exp((c.q1 + c.q2) / 2 + c.k),
        latex=r"e^{x}",
        cites=("daniely2016toward",),
    )
)

gaussian = register(
    Activation(
        "gaussian",
        lambda x: jnp.exp(-(x**2)),
        dual=lambda c: 1 / jnp.sqrt(_erf_d(c)),
        dual_dot=lambda c: 4 * c.k / _erf_d(c) ** 1.5,
        parity="even",
        lipschitz=math.sqrt(2 / math.e),
        latex=r"e^{-x^2}",
        cites=("williams1997computing",),
    )
)
