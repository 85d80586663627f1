"""Slices in front of a first pool, summed into the displacements behind it."""

import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.compile import lean_lone_jit
from widelimit.layers import Sites

from ._displacements import dealt
from ._fast import Parts, Side, across, along, moved_side, through
from ._stage import Stage

Array_ = Float[Array, "..."]


class Coarse(NamedTuple):
    """A first stage that ends with a pool.

    Attributes:
        stage: What stands before the pool, as slices see it.
        pool: The window, equal to the stride, along each axis.
        scale: By what a sum over a window is divided.
    """

    stage: Stage
    pool: Sites
    scale: float


class Rows(NamedTuple):
    """Which coarse displacements a share of the fine ones adds to, along the first axis.

    Attributes:
        first: The first of them, for each share.
        count: How many at most, whether half of the fine ones are dealt out or all.
    """

    first: tuple[int, ...]
    count: int

    @classmethod
    def of(cls, around: Sites, pool: int, *, half: bool) -> "Rows":
        """Those of fine displacements as they are dealt out."""
        ends = {
            some: [
                (int(m[:, 0].min()) // pool, -(-int(m[:, 0].max()) // pool))
                for m, _ in dealt(around, half=some)
            ]
            for some in (True, False)
        }
        count = max(high - low for low, high in ends[True] + ends[False]) + 1
        return cls(tuple(low for low, _ in ends[half]), count)


@functools.partial(lean_lone_jit, static_argnums=(0, 1, 2, 3))
def coarse_sums(
    coarse: Coarse,
    wanted: tuple[str, ...],
    paired: bool,
    rows: int,
    first_row: Int[Array, ""],
    one: Side,
    two: Side,
    moves: Int[Array, "count axes"],
    weights: Float[Array, " count"],
    go: Bool[Array, ""] | None,
) -> Parts:
    """Sums of these slices into coarse ones: axes (*displacements, *pixels, n1, n2); `paired`: n1 pairs, n2 = 1.

    Along the first axis of displacements so many rows, from the first on that the slices add to.

    The second images come twice around.
    """
    stage, k = coarse.stage, len(coarse.pool)
    second = along if paired else across
    sizes = [n // c for n, c in zip(stage.around, coarse.pool, strict=True)]

    moved = lambda move: moved_side(stage, two, move, go)

    def slice_(side: Side, scale: Array) -> Parts:
        weight = along(one.end) * second(side.end * scale)
        return jax.tree.map(lambda v: weight * v, through(stage, wanted, one, side, second, go))

    def put(total: Array_, value: Array_, move: Array) -> Array_:
        for offset in itertools.product(*map(range, coarse.pool)):
            part = value[tuple(slice(a, None, c) for a, c in zip(offset, coarse.pool, strict=True))]
            # Nothing is negative here: no rules for signs, which would be most of the program.
            away = jax.lax.div(
                move + np.asarray(offset, np.int32), np.asarray(coarse.pool, np.int32)
            )
            around = jax.lax.rem(away, np.asarray(sizes, np.int32))
            place = away[0] - first_row, *(around[i] for i in range(1, k))
            start = (*place, *(jnp.int32(0),) * (total.ndim - k))
            here = jax.lax.dynamic_slice(total, start, (*(1,) * k, *total.shape[k:]))
            total = jax.lax.dynamic_update_slice(total, here + part[(None,) * k], start)
        return total

    def add(i: Array, sums: Parts) -> Parts:
        move, scale = moves[i], weights[i]
        parts = slice_(moved(move), scale)
        return jax.tree.map(lambda t, v: put(t, v, move), sums, parts)

    first = jax.eval_shape(slice_, jax.eval_shape(moved, moves[0]), weights[0])
    fine = [n // c for n, c in zip(stage.sites, coarse.pool, strict=True)]
    shape = rows, *sizes[1:], *fine
    blank = jax.tree.map(lambda v: jnp.zeros((*shape, *v.shape[-2:]), v.dtype), first)
    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(len(moves)), add, blank)
