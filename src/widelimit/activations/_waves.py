r"""Exponentials and waves: sin, cos, exp, whose moments are exponentials of the covariance.

With $a_i=\sqrt{q_i}$ all exponents are written through $(a_1-a_2)^2$ and $1\mp\rho$, so nothing overflows.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from ._activation import Activation, register
from ._cov import TINY, Cov, Matrix
from ._fourth import fourth_by_series
from ._fourth_records import Fourth
from ._fourth_waves import SMALL, wave_coefficients, wave_fourth


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


def wave_odd(cov: Cov) -> Matrix:
    r"""$e^{-(q_1+q_2)/2}\sinh k$."""
    larger, distance, positive = _two_exponentials(cov)
    value = -larger * jnp.expm1(-2 * distance) / 2
    return jnp.where(positive, value, -value)


def wave_even(cov: Cov) -> Matrix:
    r"""$e^{-(q_1+q_2)/2}\cosh k$."""
    larger, distance, _ = _two_exponentials(cov)
    return larger * (1 + jnp.exp(-2 * distance)) / 2


def wave_mean_dot(cov: Cov, sign: int) -> Matrix:
    """The mean of the even wave (sign 1) or the odd one (-1) between rho and 1."""
    fall = cov.scale * cov.minus
    some = fall > TINY
    near = jnp.where(some, -jnp.expm1(-fall) / jnp.where(some, fall, 1), 1)
    both = 1 + sign * jnp.exp(-cov.scale * cov.plus)
    return jnp.exp(-_roots_apart(cov.q1, cov.q2)) * near * both / 2


def wave_gap(q1: Matrix, q2: Matrix, sign: float) -> Matrix:
    r"""What Cauchy-Schwarz leaves for $\cos(x+c)$, sign $\cos2c$: 1 for the cosine, -1 for the sine.

    $T_1T_2-E^2$ by addition theorems; then $1-\rho=(1-\rho^2)/(1+\rho)$.
    """
    near, far = _roots_apart(q1, q2), (jnp.sqrt(q1) + jnp.sqrt(q2)) ** 2 / 2
    shift = jnp.exp(-jnp.minimum(q1, q2)) * jnp.expm1(-jnp.abs(q1 - q2))
    second = lambda q: (1 + sign) + sign * jnp.expm1(-2 * q)
    rest = (1 - sign * sign) - sign * sign * jnp.expm1(-2 * far)
    square = -jnp.expm1(-2 * near) * rest + sign * shift**2
    missing = jnp.maximum(square, 0) / (second(q1) * second(q2))
    small = missing / (1 + jnp.sqrt(jnp.maximum(1 - missing, 0)))
    # Very unequal variances: the correlation itself.
    apart = -2 * jnp.sqrt(q1) * jnp.sqrt(q2)
    mixed = jnp.exp(-near) * ((1 + sign) + sign * jnp.expm1(apart))
    direct = 1 - mixed / jnp.sqrt(second(q1)) / jnp.sqrt(second(q2))
    return jnp.where(direct > 1e-2, direct, small)


def _fourth(act: Activation, cov: Cov) -> Fourth:
    odd = act.parity == "odd"
    exact = SMALL, lambda q, terms, p, d: wave_coefficients(odd, q, terms, p, d)
    series = lambda cov, terms: fourth_by_series(act, cov, terms, exact)
    return wave_fourth(odd, series, lambda cov: (wave_odd(cov), wave_even(cov)), cov)


sin = register(
    Activation(
        "sin",
        jnp.sin,
        dual=wave_odd,
        dual_dot=wave_even,
        mean_dot=lambda c: wave_mean_dot(c, 1),
        gap=lambda q1, q2: wave_gap(q1, q2, -1),
        fourth=lambda c: _fourth(sin, c),
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
        dual=wave_even,
        dual_dot=wave_odd,
        mean_dot=lambda c: wave_mean_dot(c, -1),
        gap=lambda q1, q2: wave_gap(q1, q2, 1),
        fourth=lambda c: _fourth(cos, c),
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
