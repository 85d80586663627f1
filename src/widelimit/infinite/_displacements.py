"""Which displacements there are, on which circles they wrap, and who computes them."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from widelimit._base.abreast import cores
from widelimit.layers import Sites, Window

from ._edges import frame

Array_ = Float[Array, "..."]


def room_for(sites: Sites, seen: Sequence[tuple[Window, Sites]]) -> Sites | None:
    """Room for what windows reach beyond the edge; None where paddings do not agree."""
    wide = [(w, s) for w, s in seen if w.taps(len(s)) > 1]
    circular = [w.padding == "circular" for w, _ in wide]
    if any(circular):
        return sites if all(circular) else None
    room = [*sites]
    for window, here in wide:
        for axis, (_, _, _, front, behind) in enumerate(frame(window, here)):
            room[axis] = max(room[axis], here[axis] + max(front, behind))
    return tuple(room)


@functools.cache
def displacements(
    around: Sites, *, half: bool
) -> tuple[Int[np.ndarray, "count axes"], Float[np.ndarray, " count"]]:
    """All displacements; or one of each d and -d, those that are their own negative with weight 1/2."""
    grid = np.stack(np.meshgrid(*map(np.arange, around), indexing="ij"), -1).reshape(
        -1, len(around)
    )
    if not half:
        return grid.astype(np.int32), np.ones(len(grid))
    number = lambda d: np.ravel_multi_index(tuple(d.T), around)
    here, back = number(grid), number(-grid % np.array(around))
    keep = here <= back
    return grid[keep].astype(np.int32), np.where(here == back, 0.5, 1.0)[keep]


def dealt(
    around: Sites, *, half: bool, alone: bool = False
) -> list[tuple[Int[np.ndarray, "count axes"], Float[np.ndarray, " count"]]]:
    """Displacements and their weights in equal parts, filled up with nothing.

    A part of half of them for each core, or for one; of all of them twice as many, which take the same programs.
    """
    many = 1 if alone else cores()
    each = -(-len(displacements(around, half=True)[0]) // many)
    moves, weights = displacements(around, half=half)
    fill = -len(moves) % each
    moves = np.concatenate([moves, np.repeat(moves[-1:], fill, axis=0)])
    weights = np.concatenate([weights, np.zeros(fill)])
    parts = range(0, len(moves), each)
    return [(moves[i : i + each], weights[i : i + each]) for i in parts]


def doubled_up(around: Sites, a: Array_) -> Array_:
    """What belongs to pixels once around the circle, its empty places being 0, and again."""
    for i, room in enumerate(around):
        axis = a.ndim - 1 - len(around) + i
        n = a.shape[axis]
        config = [(0, room - n if b == axis else 0, 0) for b in range(a.ndim)]
        once = jax.lax.pad(a, jnp.zeros((), a.dtype), config)
        again = jax.lax.slice_in_dim(once, 0, n - 1, axis=axis)
        a = jnp.concatenate([once, again], axis=axis)
    return a


def moved_by(around: Sites, a: Array_, move: Int[Array, " axes"]) -> Float[Array, "..."]:
    """The pixels that lie by a displacement away, each row of them as one run of numbers: the last axis."""
    k, before, each = len(around), a.ndim - 1 - len(around), a.shape[-1]
    flat = a.reshape(*a.shape[:-2], -1)
    starts, sizes = [jnp.uint32(0)] * flat.ndim, [*flat.shape]
    for i, room in enumerate(around):
        run = each if i == k - 1 else 1
        starts[before + i] = move[i].astype(jnp.uint32) * jnp.uint32(run)
        sizes[before + i] = (a.shape[before + i] - room + 1) * run
    return jax.lax.dynamic_slice(flat, starts, sizes)
