"""Polynomials: the shortest of a given accuracy, and how they are evaluated."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float


def economise(series: list[Fraction], degree: int) -> tuple[float, ...]:
    """A power series in h as a polynomial in y = 4h - 1 on [-1, 1], Chebyshev tail cut off.

    Both functions have their branch point at h = 1, so Chebyshev coefficients fall by 5.8 per degree and
    the result is well conditioned as a polynomial in y. All steps are exact, in integers over one denominator:
    fractions would be reduced after each. Rounding comes last.
    """
    common = math.lcm(*(c.denominator for c in series))
    in_y = [0]
    for n, c in enumerate(reversed(series)):  # Horner in h = (y + 1)/4, times 4^n
        in_y = [a + b for a, b in zip([*in_y, 0], [0, *in_y], strict=True)]
        in_y[0] += 4**n * c.numerator * (common // c.denominator)
    chebyshev = _in_chebyshev(in_y)[: degree + 1]
    power = [[1], [0, 1]]
    for _ in range(degree - 1):
        twice = [0, *(2 * c for c in power[-1])]
        before = power[-2] + [0] * (len(twice) - len(power[-2]))
        power.append([a - b for a, b in zip(twice, before, strict=True)])
    total = [0] * (degree + 1)
    for c, basis in zip(chebyshev, power, strict=False):
        for i, b in enumerate(basis):
            total[i] += c * b
    below = common * 4 ** (len(series) - 1) * 2 ** (len(in_y) - 1)
    return tuple(c / below for c in total)


def _in_chebyshev(coefficients: list[int]) -> list[int]:
    """The Chebyshev series of a polynomial, times 2 to the power of its degree."""
    total = [0]
    for n, c in enumerate(reversed(coefficients)):
        total = _times_2y_chebyshev(total)
        total[0] += 2**n * c
    return total


def _times_2y_chebyshev(p: list[int]) -> list[int]:
    """Multiply a Chebyshev series by 2y: 2y T_0 = 2 T_1, 2y T_n = T_(n+1) + T_(n-1)."""
    out = [0] * (len(p) + 1)
    for n, c in enumerate(p):
        out[n + 1] += c
        out[abs(n - 1)] += c
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
