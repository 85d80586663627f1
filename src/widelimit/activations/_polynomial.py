r"""Polynomials: finitely many Hermite coefficients, so $E[\varphi(u)\varphi(v)]=\sum_n a_n(q_1)a_n(q_2)\rho^n$.

$E[z^j h_n(z)]=j!/(2^{(j-n)/2}((j-n)/2)!\sqrt{n!})$ for $j\ge n$ of equal parity, $h_n=He_n/\sqrt{n!}$.
"""

import math

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import hermite_e

from widelimit._base.numerics import safe_sqrt
from widelimit._base.polynomials import evaluate_polynomial

from ._activation import Activation, family_name, register_family


def _moments(degree: int) -> np.ndarray:
    table = np.zeros((degree + 1, degree + 1))
    for j in range(degree + 1):
        for n in range(j % 2, j + 1, 2):
            half = (j - n) // 2
            table[n, j] = (
                math.factorial(j) / (2**half * math.factorial(half)) / math.sqrt(math.factorial(n))
            )
    return table


def _from_coefficients(name: str, coefficients: tuple[float, ...], latex: str) -> Activation:
    if not coefficients or not any(coefficients):
        raise ValueError(f"{name} needs at least one non-zero coefficient.")
    while coefficients[-1] == 0:
        coefficients = coefficients[:-1]
    degree = len(coefficients) - 1
    used = [j for j, c in enumerate(coefficients) if c]
    table = _moments(degree) * np.array(coefficients)

    def hermite(q):
        # Divided by the largest power: it neither overflows nor underflows, at q = 0 neither.
        small = q < 1
        root = jnp.where(small, safe_sqrt(q), 1 / jnp.sqrt(jnp.where(small, 1, q)))
        total = jnp.zeros((degree + 1, *q.shape), q.dtype)
        for j in used:
            column = jnp.asarray(table[:, j], q.dtype).reshape((-1,) + (1,) * q.ndim)
            total = total + column * root[None] ** jnp.where(small, j - used[0], degree - j)[None]
        return total

    def moment(q):
        return jnp.sum(hermite(q) ** 2, axis=0) * jnp.where(q < 1, q ** used[0], q**degree)

    return Activation(
        name,
        lambda x: evaluate_polynomial(coefficients, jnp.asarray(x)),
        hermite=hermite,
        moment=moment,
        degree=used[0] if len(used) == 1 else None,
        parity="odd"
        if all(j % 2 for j in used)
        else "even"
        if not any(j % 2 for j in used)
        else None,
        lipschitz=abs(coefficients[1]) if degree == 1 else None,
        latex=latex,
        cites=("daniely2016toward",),
    )


@register_family("polynomial", (0.5, 1.0, -0.3, 0.2))
def polynomial(*coefficients: float) -> Activation:
    """c0 + c1 x + c2 x^2 + ..."""
    terms = "+".join(f"{c:g}x^{{{j}}}" for j, c in enumerate(coefficients) if c)
    return _from_coefficients(family_name("polynomial", *coefficients), coefficients, terms)


@register_family("monomial", (2,), (3,))
def monomial(power: float) -> Activation:
    """x^power."""
    if power != int(power) or not 1 <= power <= 20:
        raise ValueError(f"monomial(power) needs an integer from 1 to 20, got {power:g}.")
    n = int(power)
    return _from_coefficients(family_name("monomial", n), (0.0,) * n + (1.0,), f"x^{{{n}}}")


@register_family("hermite", (2,), (3,))
def hermite(order: float) -> Activation:
    r"""The normalised Hermite polynomial $He_n(x)/\sqrt{n!}$; at variance 1 its dual is $\rho^n$."""
    if order != int(order) or not 1 <= order <= 20:
        raise ValueError(f"hermite(order) needs an integer from 1 to 20, got {order:g}.")
    n = int(order)
    coefficients = hermite_e.herme2poly([0.0] * n + [1 / math.sqrt(math.factorial(n))])
    return _from_coefficients(
        family_name("hermite", n), tuple(map(float, coefficients)), f"h_{{{n}}}(x)"
    )
