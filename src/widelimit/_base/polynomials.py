"""Polynomials: the shortest of a given accuracy, and how they are evaluated."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float


def economise(series: list[Fraction], degree: int) -> tuple[float, ...]:
    """A power series in h as a polynomial in y = 4h - 1 on [-1, 1], Chebyshev tail cut off.

    Both functions have their branch point at h = 1, so Chebyshev coefficients fall by 5.8 per degree and
    the result is well conditioned as a polynomial in y. All steps are exact; rounding comes last.
    """
    none = Fraction(0)
    in_y = [none]
    for c in reversed(series):  # Horner in h = (y + 1)/4
        in_y = [(a + b) / 4 for a, b in zip([*in_y, none], [none, *in_y], strict=True)]
        in_y[0] += c
    chebyshev = _in_chebyshev(in_y)[: degree + 1]
    power = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    for _ in range(degree - 1):
        twice = [Fraction(0), *(2 * c for c in power[-1])]
        before = power[-2] + [Fraction(0)] * (len(twice) - len(power[-2]))
        power.append([a - b for a, b in zip(twice, before, strict=True)])
    total = [Fraction(0)] * (degree + 1)
    for c, basis in zip(chebyshev, power, strict=False):
        for i, b in enumerate(basis):
            total[i] += c * b
    return tuple(map(float, total))


def _in_chebyshev(coefficients: list[Fraction]) -> list[Fraction]:
    total = [Fraction(0)]
    for c in reversed(coefficients):
        total = _times_y_chebyshev(total)
        total[0] += c
    return total


def _times_y_chebyshev(p: list[Fraction]) -> list[Fraction]:
    """Multiply a Chebyshev series by y: y T_0 = T_1, y T_n = (T_(n+1) + T_(n-1))/2."""
    out = [Fraction(0)] * (len(p) + 1)
    for n, c in enumerate(p):
        if n == 0:
            out[1] += c
        else:
            out[n + 1] += c / 2
            out[n - 1] += c / 2
    return out


def evaluate_polynomial(coefficients: Sequence[Any], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """The polynomial with the given coefficients, lowest degree first.

    Even and odd powers are summed apart: two short chains of multiplications keep a processor
    busy where one long chain makes it wait.
    """
    if len(coefficients) < 6:
        return horner(coefficients, y)
    square = y * y
    return horner(coefficients[::2], square) + y * horner(coefficients[1::2], square)


def horner(coefficients: Sequence[Any], y: Float[Array, "..."]) -> Float[Array, "..."]:
    """The same in one chain."""
    total = jnp.full_like(y, coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * y + c
    return total
