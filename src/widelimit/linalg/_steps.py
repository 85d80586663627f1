"""The vectors of a step of conjugate gradients, on the host or in one compiled pass."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

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
    """

    advance: Callable[..., Any]
    turn: Callable[..., Any]
    dot: Callable[..., Any]
    plus: Callable[..., Any]
    residual: Callable[..., Any]


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

    all_ = advance, turn, dot, plus, residual
    return Steps(*all_) if host else Steps(*map(jax.jit, all_))
