"""Convolutional networks whose read-out is `Flatten` or a global pool, by slices of constant displacement."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.compile import quick_jit, wide_jit
from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit._base.thresholds import (
    DEVICE_FLAT_PAIRS,
    DEVICE_FLAT_SIDE,
    DEVICE_SLICE_PAIRS,
    DEVICE_SLICE_SIDE,
    SLICE_PAIRS,
    SLICE_SIDE,
)
from widelimit.activations import How
from widelimit.interpret import interpret

from ._displacements import dealt, displacements, doubled_up, moved_by
from ._edges import HALF, Edge, inverse, written
from ._layered import kernel_values
from ._pair import Pair
from ._plan import Numbers, example, join
from ._slices import Slice, Tapes
from ._stage import Stage

Array_ = Float[Array, "..."]


class Side(NamedTuple):
    """A batch of images on its way through the body.

    Attributes:
        unit: The pixels' directions, axes (*pixels, images, channels).
        tape: What the slices read.
        end: Shares of the read-out, axes (*pixels, images).
        q: The variance behind the read-out, shape (images,).
    """

    unit: Array_
    tape: list[Any]
    end: Array_
    q: Array_


def _side_of(stage: Stage, numbers: Numbers, x: Array_, go: Bool[Array, ""] | None) -> Side:
    """What belongs to single images, once for each; x of shape (n, *sites, channels)."""
    k, channels = len(stage.sites), x.shape[-1]
    wide = jnp.moveaxis(x.astype(jnp.float64), 0, k)
    square = jnp.sum(wide**2, axis=-1)
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))
    unit = (wide / norm[..., None]).astype(x.dtype)
    tape: list[Any] = []
    still = stage.readout == "flatten"
    start = Edge(square / channels, stage.sites, tape, str(x.dtype), still, go=go)
    out = interpret(join(stage.body, numbers), start)
    pixels = tuple(range(len(out.sites)))
    if stage.readout == "flatten":
        total = jnp.sum(out.q, axis=pixels, keepdims=True)
        end = HALF * safe_sqrt(out.q) * inverse(total)
        return Side(unit, tape, end.astype(x.dtype), total.reshape(-1) / math.prod(out.sites))
    if stage.readout == "parts":
        return Side(unit, tape, safe_sqrt(out.q).astype(x.dtype), jnp.zeros((1,), jnp.float64))
    size = math.prod(out.sites) if stage.readout == "mean" else 1
    root = safe_sqrt(out.q) / size
    total = jnp.sum(root, axis=pixels)
    end = safe_divide(root, jnp.broadcast_to(total, root.shape))
    return Side(unit, tape, end.astype(x.dtype), total**2)


Parts = tuple[Array_, Array_ | None, Array_ | None]


def along(a: Array_) -> Array_:
    """What belongs to the first images, against pairs."""
    return a[..., :, None]


def across(a: Array_) -> Array_:
    """What belongs to the second images, against pairs."""
    return a[..., None, :]


def through(
    stage: Stage,
    wanted: tuple[str, ...],
    one: Side,
    two: Side,
    second: Callable[[Array_], Array_],
    go: Bool[Array, ""] | None,
) -> Parts:
    """One slice through the body: 1 - rho, 1 + rho (or None), and the tangent kernel (or None)."""
    u1, u2 = one.unit, two.unit
    minus = plus = jnp.zeros((), u1.dtype)
    for c in range(u1.shape[-1]):
        a, b = along(u1[..., c]), second(u2[..., c])
        minus, plus = minus + (a - b) ** 2, plus + (a + b) ** 2
    tapes = Tapes(one.tape, two.tape, along, second)
    ntk = 0.0 if "ntk" in wanted else None
    start = Slice(minus / 2, plus / 2, ntk, stage.sites, tapes, How(), go)
    out = interpret(example(stage.body), start)
    found = jnp.zeros_like(out.minus) if isinstance(out.ntk, float | int) else out.ntk
    return out.minus, out.above, found


def _flat_tile(
    stage: Stage,
    wanted: tuple[str, ...],
    paired: bool,
    one: Side,
    two: Side,
    go: Bool[Array, ""] | None,
) -> Parts:
    """The slice of displacement 0 with the weights of `Flatten`, not yet summed over pixels."""
    second = along if paired else across
    minus, above, ntk = through(stage, wanted, one, two, second, go)
    a, b = along(one.end), second(two.end)
    weight, gap = 2 * a * b, (a - b) ** 2
    above = None if above is None else weight * above + gap
    return weight * minus + gap, above, None if ntk is None else weight * ntk


def _twice_around(stage: Stage, side: Side) -> Side:
    """Images whose displacements are slices: what belongs to pixels once around the circle, and again."""
    twice = lambda a: doubled_up(stage.around, a, 1)
    tape = jax.tree.map(twice, side.tape)
    return Side(doubled_up(stage.around, side.unit, 2), tape, twice(side.end), side.q)


def moved_side(stage: Stage, twice: Side, move: Array) -> Side:
    """Images by a displacement away."""
    at = lambda a: moved_by(stage.around, a, move, 1)
    unit = moved_by(stage.around, twice.unit, move, 2)
    return Side(unit, jax.tree.map(at, twice.tape), at(twice.end), twice.q)


def _pooled_tile(
    stage: Stage,
    wanted: tuple[str, ...],
    paired: bool,
    one: Side,
    two: Side,
    moves: Int[Array, "count axes"],
    weights: Float[Array, " count"],
    go: Bool[Array, ""] | None,
) -> Parts:
    """Sums over slices of these displacements, with these weights, not yet summed over pixels; `two` twice around."""
    second = along if paired else across
    moved = functools.partial(moved_side, stage, two)

    def slice_(side: Side, scale: Array) -> Parts:
        parts = through(stage, wanted, one, side, second, go)
        weight = along(one.end) * second(side.end * scale)
        return jax.tree.map(lambda v: weight * v, parts)

    def add(i: Array, sums: Parts) -> Parts:
        move, scale = written(go, lambda i: (moves[i], weights[i]), i)
        return jax.tree.map(jnp.add, sums, slice_(written(go, moved, move), scale))

    first = jax.eval_shape(slice_, jax.eval_shape(moved, moves[0]), weights[0])
    blank = jax.tree.map(lambda v: jnp.zeros(v.shape, v.dtype), first)
    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(len(moves)), add, blank)


def _behind(
    stage: Stage,
    wanted: tuple[str, ...],
    folded: bool,
    paired: bool,
    numbers: Numbers,
    sizes: tuple[Array_, Array_],
    parts: Parts,
) -> tuple[Array_, ...]:
    """The kernels from the slices: a program of its own, so that XLA sums arrays, not expressions.

    `folded`: half the displacements were summed; the others are the same with the images exchanged.
    """
    minus, above, ntk = jax.tree.map(summed, parts)
    if folded:
        whole = (lambda v: 2 * v) if paired else lambda v: v + v.T
        minus, above, ntk = jax.tree.map(whole, (minus, above, ntk))
    theta = jnp.zeros_like(minus) if ntk is None else ntk
    second = along(sizes[1]) if paired else across(sizes[1])
    pair = Pair(along(sizes[0]), second, minus, above, theta)
    out = interpret(join(stage.tail, numbers), pair)
    return kernel_values(out, wanted, out.size)


def summed(parts: Array_) -> Array_:
    """Over all pixels, as a product with ones: XLA's sums along outer axes are slow on a CPU."""
    n1, n2 = parts.shape[-2:]
    flat = parts.reshape(-1, n1 * n2)
    ones = jnp.ones((1, len(flat)), parts.dtype)
    return jnp.matmul(ones, flat, precision="highest").reshape(n1, n2)


class Programs(NamedTuple):
    """What is compiled for a network: for single images, for tiles of either read-out, and for what stands behind."""

    side_of: Any
    twice_around: Any
    flat_tile: Any
    pooled_tile: Any
    behind: Any

    @classmethod
    def by(cls, compiled: Callable[..., Any]) -> "Programs":
        """All five, compiled in this way."""
        return cls(
            compiled(_side_of, static_argnums=0),
            compiled(_twice_around, static_argnums=0),
            compiled(_flat_tile, static_argnums=(0, 1, 2)),
            compiled(_pooled_tile, static_argnums=(0, 1, 2)),
            compiled(_behind, static_argnums=(0, 1, 2, 3)),
        )


WELL, BRIEFLY = Programs.by(wide_jit), Programs.by(quick_jit)


def going(programs: Programs | None = None) -> np.ndarray | None:
    """What makes a CPU write arrays where they are read twice (`written`); an accelerator would stop to ask."""
    here = programs is BRIEFLY or jax.default_backend() == "cpu"
    return np.asarray(True) if here else None


def tile_side(stage: Stage, points: int) -> int:
    """How many images a tile has along each side: its state stays in the cache."""
    on_cpu = jax.default_backend() == "cpu"
    pairs, most = (SLICE_PAIRS, SLICE_SIDE) if on_cpu else (DEVICE_SLICE_PAIRS, DEVICE_SLICE_SIDE)
    if stage.readout == "flatten" and not on_cpu:  # one slice alone
        pairs, most = DEVICE_FLAT_PAIRS, DEVICE_FLAT_SIDE
    room = 2 ** int(math.log2(max(pairs // math.prod(stage.sites), 1)) / 2)
    return min(max(room, 8), most, 2 ** math.ceil(math.log2(points)))


def slice_kernels(
    stage: Stage,
    wanted: tuple[str, ...],
    numbers: tuple[Numbers, Numbers],
    one: Side,
    two: Side,
    *,
    same: bool,
    paired: bool = False,
    programs: Programs,
) -> tuple[Array_, ...]:
    """The kernels of a tile.

    Args:
        stage: The network.
        wanted: Which kernels.
        numbers: Those of the body and of the tail.
        one: The first images.
        two: The second.
        same: Whether they are the first, so that half the displacements are enough.
        paired: Whether each first image meets its second one alone; then the answer has one column.
        programs: Compiled well or briefly.
    """
    folded = same and stage.readout != "flatten"
    go = going(programs)
    if stage.readout == "flatten":
        parts = programs.flat_tile(stage, wanted, paired, one, two, go)
    else:
        shares = dealt(*displacements(stage.around, half=folded), alone=programs is BRIEFLY)
        weighed = [(moves, weights.astype(one.end.dtype)) for moves, weights in shares]
        twice = programs.twice_around(stage, two)
        chunks = [programs.pooled_tile(stage, wanted, paired, one, twice, *m, go) for m in weighed]
        parts = jax.tree.map(lambda *sums: sum(sums[1:], sums[0]), *chunks)
    return programs.behind(stage, wanted, folded, paired, numbers[1], (one.q, two.q), parts)
