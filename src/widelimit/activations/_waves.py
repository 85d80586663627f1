r"""Exponentials and waves: sin, cos, exp, whose moments are exponentials of the covariance.

With $a_i=\sqrt{q_i}$ all exponents are written through $(a_1-a_2)^2$ and $1\mp\rho$, so nothing overflows.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from ._activation import Activation, register
from ._cov import TINY, Cov, Matrix


def _roots_apart(q1: Matrix, q2: Matrix) -> Matrix:
    r"""$(\sqrt{q_1}-\sqrt{q_2})^2/2$."""
    return ((q1 - q2) / (jnp.sqrt(q1) + jnp.sqrt(q2))) ** 2 / 2


def _two_exponentials(cov: Cov) -> tuple[Matrix, Matrix, Bool[Array, "..."]]:
    r"""$e^{-(q_1+q_2)/2+|k|}$ and $|k|$: the larger of the two waves, and their gap."""
    positive = cov.plus >= cov.minus
    distance = jnp.where(positive, cov.k, -cov.k)
    nearer = jnp.where(positive, cov.minus, cov.plus)
    exponent = _roots_apart(cov.q1, cov.q2) + cov.scale * nearer
    return jnp.exp(-exponent), distance, positive


def _wave_odd(cov: Cov) -> Matrix:
    # exp(-(q1 + q2)/2) sinh k
    larger, distance, positive = _two_exponentials(cov)
    value = -larger * jnp.expm1(-2 * distance) / 2
    return jnp.where(positive, value, -value)


def _wave_even(cov: Cov) -> Matrix:
    # exp(-(q1 + q2)/2) cosh k
    larger, distance, _ = _two_exponentials(cov)
    return larger * (1 + jnp.exp(-2 * distance)) / 2


def _wave_mean_dot(cov: Cov, sign: int) -> Matrix:
    fall = cov.scale * cov.minus
    some = fall > TINY
    near = jnp.where(some, -jnp.expm1(-fall) / jnp.where(some, fall, 1), 1)
    both = 1 + sign * jnp.exp(-cov.scale * cov.plus)
    return jnp.exp(-_roots_apart(cov.q1, cov.q2)) * near * both / 2


def _wave_gap(q1: Matrix, q2: Matrix, sign: int) -> Matrix:
    # T1 T2 - E^2 by addition theorems; then 1 - rho = (1 - rho^2)/(1 + rho).
    near, far = _roots_apart(q1, q2), (jnp.sqrt(q1) + jnp.sqrt(q2)) ** 2 / 2
    shift = jnp.exp(-jnp.minimum(q1, q2)) * jnp.expm1(-jnp.abs(q1 - q2))
    second = lambda q: -jnp.expm1(-2 * q) if sign < 0 else 1 + jnp.exp(-2 * q)
    square = jnp.expm1(-2 * near) * jnp.expm1(-2 * far) + sign * shift**2
    missing = jnp.maximum(square, 0) / (second(q1) * second(q2))
    return missing / (1 + jnp.sqrt(jnp.maximum(1 - missing, 0)))


sin = register(
    Activation(
        "sin",
        jnp.sin,
        dual=_wave_odd,
        dual_dot=_wave_even,
        mean_dot=lambda c: _wave_mean_dot(c, 1),
        gap=lambda q1, q2: _wave_gap(q1, q2, -1),
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
        mean_dot=lambda c: _wave_mean_dot(c, -1),
        gap=lambda q1, q2: _wave_gap(q1, q2, 1),
        parity="even",
        lipschitz=1.0,
        latex=r"\cos x",
        cites=("rahimi2007random",),
    )
)


def _exp_correlation(cov: Cov) -> tuple[Matrix, Matrix]:
    rho = jnp.exp(-_roots_apart(cov.q1, cov.q2) - cov.scale * cov.minus)
    return rho, cov.scale * rho


exp = register(
    Activation(
        "exp",
        jnp.exp,
        dual=lambda c: jnp.exp((c.q1 + c.q2) / 2 + c.k),
        dual_dot=lambda c: jnp.exp((c.q1 + c.q2) / 2 + c.k),
        correlation=_exp_correlation,
        gap=lambda q1, q2: -jnp.expm1(-_roots_apart(q1, q2)),
        latex=r"e^{x}",
        cites=("daniely2016toward",),
    )
)
