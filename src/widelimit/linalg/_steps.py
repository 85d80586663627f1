"""The vectors of a step of conjugate gradients, on the host or in one compiled pass."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widelimit._base.ahead import Ahead
from widelimit._base.types import Tensor

Columns = Float[Tensor, "n k"]
Row = Float[Tensor, " k"]
Ridge = Float[Tensor, "n 1"]


class Steps(NamedTuple):
    """What a step does beside the product and the preconditioner.

    Attributes:
        advance: Along a direction, to where the residual is least.
        turn: To the next direction.
        dot: Inner products of columns.
        plus: K v + ridge v.
        residual: b - K x - ridge x.
        add: u + v.
    """

    advance: Any
    turn: Any
    dot: Any
    plus: Any
    residual: Any
    add: Any


@functools.cache
def steps_on(host: bool) -> Steps:
    """Those of NumPy, or compiled ones of JAX."""
    xp: Any = np if host else jnp

    def ratio(a: Row, b: Row) -> Float[Tensor, "1 k"]:
        """a/b for each column, 0 where a column has converged exactly."""
        return xp.where(b > 0, a / xp.where(b > 0, b, 1), 0)[None, :]

    def advance(
        d: Columns, r: Columns, p: Columns, q: Columns, rz: Row
    ) -> tuple[Columns, Columns, Row]:
        a = ratio(rz, (p * q).sum(0))
        r = r - a * q
        return d + a * p, r, (r * r).sum(0)

    def turn(r: Columns, z: Columns, p: Columns, before: Row) -> tuple[Columns, Row]:
        rz = (r * z).sum(0)
        return z + ratio(rz, before) * p, rz

    def dot(u: Columns, v: Columns) -> Row:
        return (u * v).sum(0)

    def plus(product: Columns, ridge: Ridge, v: Columns) -> Columns:
        return product + ridge * v

    def residual(b: Columns, product: Columns, ridge: Ridge, x: Columns) -> Columns:
        return b - plus(product, ridge, x)

    def add(u: Columns, v: Columns) -> Columns:
        return u + v

    all_ = advance, turn, dot, plus, residual, add
    return Steps(*all_) if host else Steps(*(Ahead(function, 0) for function in all_))


def expect_steps(n: int, k: int) -> None:
    """Begin to compile them for k columns of n numbers."""
    step, of = steps_on(False), jax.ShapeDtypeStruct
    u, row, ridge = (of(shape, np.float64) for shape in ((n, k), (k,), (n, 1)))
    with jax.enable_x64(True):
        for program, given in (
            (step.dot, (u, u)),
            (step.turn, (u, u, u, row)),
            (step.advance, (u, u, u, u, row)),
            (step.plus, (u, ridge, u)),
            (step.residual, (u, u, ridge, u)),
            (step.add, (u, u)),
        ):
            program.prepare(*given)
