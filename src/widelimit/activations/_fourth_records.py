"""The fourth moments of an activation as records, and what both ways to compute them share."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp

from ._activation import Activation, derivative
from ._cov import Matrix
from ._moments import second_moment

Function = Callable[[Matrix], Matrix]


class Slopes(NamedTuple):
    r"""$s_{ij}$ of the module's docstring; `s11` is the slope of the output's correlation."""

    s20: Matrix
    s11: Matrix
    s02: Matrix
    s40: Matrix
    s31: Matrix
    s22: Matrix
    s13: Matrix
    s04: Matrix
    s51: Matrix
    s42: Matrix
    s33: Matrix
    s24: Matrix
    s15: Matrix


class Alone(NamedTuple):
    r"""One input with itself: logarithmic derivatives, and the three fourth moments.

    Attributes:
        dot: $qE[\varphi'^2]/T$.
        t1: $qT'/T$.
        t2: $q^2T''/T$.
        dot1: The same of $\dot T=E[\varphi'^2]$: $q^2\dot T'/T$.
        dot2: $q^3\dot T''/T$.
        x: $E[p^4]$.
        y: $E[p^2d^2]$.
        z: $E[d^4]$.
    """

    dot: Matrix
    t1: Matrix
    t2: Matrix
    dot1: Matrix
    dot2: Matrix
    x: Matrix
    y: Matrix
    z: Matrix


class Fourth(NamedTuple):
    """All that the first corrections in 1/width need to know of an activation at two inputs.

    Attributes:
        first: The first input alone.
        second: The second input alone.
        slopes: Derivatives of both second moments.
        x: E of p p p p with one, two and three factors of the second input.
        y: E of p p d d: `y[i][j]` has i of the p and j of the d at the second input; the corners
            are in `first` and `second`.
        z: E of d d d d, as x.
    """

    first: Alone
    second: Alone
    slopes: Slopes
    x: tuple[Matrix, ...]
    y: tuple[tuple[Matrix, ...], ...]
    z: tuple[Matrix, ...]


ORDERS = tuple((int(name[1]), int(name[2])) for name in Slopes._fields)
HIGHEST = 5  # order of the derivatives
# How many p and d of the second input the mixed moments of two p and two d have.
COUNTED = tuple((i, j) for i in range(3) for j in range(3) if i + j not in (0, 4))


def standardised(act: Activation) -> Callable[[Matrix], tuple[Function, Function]]:
    """P and d as functions of the standardised input z, for inputs of given variance."""
    prime = derivative(act)

    def at(q: Matrix) -> tuple[Function, Function]:
        t = second_moment(act, q)
        root, size = jnp.sqrt(q), jnp.sqrt(jnp.where(t > 0, t, 1))
        return lambda z: act.fn(root * z) / size, lambda z: root * prime(root * z) / size

    return at


def assembled(first: Alone, second: Alone, sums: list[Matrix]) -> Fourth:
    many = len(ORDERS)
    slopes, x, z, y = (
        sums[:many],
        sums[many : many + 3],
        sums[many + 3 : many + 6],
        sums[many + 6 :],
    )
    table = ((first.y, y[0], y[1]), (y[2], y[3], y[4]), (y[5], y[6], second.y))
    return Fourth(first, second, Slopes(*slopes), tuple(x), table, tuple(z))
