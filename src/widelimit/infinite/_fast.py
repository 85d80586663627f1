"""Convolutional networks whose read-out is `Flatten` or a global pool, by slices of constant displacement."""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit._base.thresholds import SUMMED_ABREAST, SUMMED_TOGETHER
from widelimit.activations import How
from widelimit.interpret import interpret

from ._displacements import doubled_up, moved_by
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
        unit: The pixels' directions, a pixel's channels side by side: axes (*pixels, channels x images).
        tape: What the slices read.
        end: Shares of the read-out, axes (*pixels, images).
        q: The variance behind the read-out, shape (images,); where pixels remain, the largest of theirs.
    """

    unit: Array_
    tape: list[Any]
    end: Array_
    q: Array_


def side_of(stage: Stage, numbers: Numbers, x: Array_, go: Bool[Array, ""] | None) -> Side:
    """What belongs to single images, once for each; x of shape (n, *sites, channels)."""
    k, channels = len(stage.sites), x.shape[-1]
    wide = jnp.moveaxis(x.astype(jnp.float64), 0, k)
    square = jnp.sum(wide**2, axis=-1)
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))
    unit = jnp.moveaxis((wide / norm[..., None]).astype(x.dtype), -1, -2)
    unit = unit.reshape(*unit.shape[:-2], -1)
    tape: list[Any] = []
    still = stage.readout == "flatten"
    start = Edge(square / channels, stage.sites, tape, str(x.dtype), still, stage.looped, go=go)
    out = interpret(join(stage.body, numbers), start)
    pixels = tuple(range(len(out.sites)))
    if stage.readout == "flatten":
        total = jnp.sum(out.q, axis=pixels, keepdims=True)
        end = HALF * safe_sqrt(out.q) * inverse(total)
        return Side(unit, tape, end.astype(x.dtype), total.reshape(-1) / math.prod(out.sites))
    root = safe_sqrt(out.q) / (math.prod(out.sites) if stage.readout == "mean" else 1)
    largest = jnp.max(root, axis=pixels) if stage.readout == "parts" else jnp.sum(root, axis=pixels)
    end = safe_divide(root, jnp.broadcast_to(largest, root.shape))
    return Side(unit, tape, end.astype(x.dtype), largest**2)


# 1 - rho, 1 + rho (None: rho >= 0 is known), and the tangent kernel.
Parts = tuple[Array_, Array_ | None, Array_ | None]
# The same, summed over slices; a pool of correlations of either sign sums them instead: None, rho, tangent kernel.
Sums = Parts | tuple[None, Array_, Array_ | None]


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
    minus = plus = jnp.zeros((), one.unit.dtype)
    u1, u2 = (s.unit.reshape(*s.unit.shape[:-1], -1, s.end.shape[-1]) for s in (one, two))
    for c in range(u1.shape[-2]):
        a, b = along(u1[..., c, :]), second(u2[..., c, :])
        minus, plus = minus + (a - b) ** 2, plus + (a + b) ** 2
    tapes = Tapes(one.tape, two.tape, along, second)
    ntk = 0.0 if "ntk" in wanted else None
    start = Slice(minus / 2, plus / 2, ntk, stage.sites, tapes, How(), stage.looped, go)
    out = interpret(example(stage.body), start)
    found = jnp.zeros_like(out.minus) if isinstance(out.ntk, float | int) else out.ntk
    return out.minus, out.above, found


def _in_groups(side: Side, rows: int) -> Side:
    """So many of the images in a group; groups along a new first axis."""
    n = side.end.shape[-1]

    def cut(a: Array_) -> Array_:  # the last axis may hold channels or taps as well
        apart = a.reshape(*a.shape[:-1], -1, n // rows, rows)
        return jnp.moveaxis(apart, -2, 0).reshape(n // rows, *a.shape[:-1], -1)

    return jax.tree.map(cut, side)


def flat_tile(
    stage: Stage,
    wanted: tuple[str, ...],
    paired: bool,
    numbers: Numbers,
    one: Side,
    two: Side,
    go: Bool[Array, ""] | None,
) -> tuple[Array_, ...]:
    """The kernels behind `Flatten`, of the slice of displacement 0."""
    second = along if paired else across
    minus, above, ntk = through(stage, wanted, one, two, second, go)
    a, b = along(one.end), second(two.end)
    weight, gap = 2 * a * b, (a - b) ** 2
    minus, above = weight * minus + gap, None if above is None else weight * above + gap
    parts = minus, above, None if ntk is None else weight * ntk
    parts = written(go, functools.partial(jax.tree.map, _summed), parts)
    return behind(stage, wanted, False, paired, numbers, (one.q, two.q), [parts])


def twice_around(stage: Stage, side: Side) -> Side:
    """Images whose displacements are slices: what belongs to pixels once around the circle, and again."""
    twice = functools.partial(doubled_up, stage.around)
    return jax.tree.map(twice, side._replace(q=None))._replace(q=side.q)


def moved_side(
    stage: Stage, twice: Side, move: Int[Array, " axes"], go: Bool[Array, ""] | None
) -> Side:
    """Images by a displacement away, copied in long runs."""
    pixels = twice._replace(q=None)
    runs = lambda move: jax.tree.map(lambda a: moved_by(stage.around, a, move), pixels)
    apart = lambda run, a: run.reshape(*run.shape[:-1], -1, a.shape[-1])
    return jax.tree.map(apart, written(go, runs, move), pixels)._replace(q=twice.q)


def pooled_tile(
    stage: Stage,
    wanted: tuple[str, ...],
    paired: bool,
    rows: int,
    one: Side,
    two: Side,
    moves: Int[Array, "count axes"],
    weights: Float[Array, " count"],
    go: Bool[Array, ""] | None,
) -> Sums:
    """Sums over slices of these displacements, with these weights; the second images come twice around.

    Nothing behind a pool looks at 1 - rho. So where correlations have either sign, they are summed themselves: their
    mean is far smaller than they are, and would be lost in 1 - rho.
    """
    second = along if paired else across
    groups = one.end.shape[-1] // rows
    apart = _in_groups(one, rows)
    pick = functools.partial(jax.lax.dynamic_index_in_dim, keepdims=False)
    group_of = lambda k: jax.tree.map(lambda a: pick(a, k), apart) if groups > 1 else one

    def slice_(k: Array, side: Side, scale: Array) -> Sums:
        some = group_of(k)
        minus, above, ntk = through(stage, wanted, some, side, second, go)
        parts = (minus, None, ntk) if above is None else (None, (above - minus) / 2, ntk)

        def summed(parts: Sums, end1: Array_, end2: Array_) -> Sums:
            weight = along(end1) * second(end2)
            return jax.tree.map(lambda v: _some_summed(weight * v, at_once=go is None), parts)

        return written(go, summed, parts, some.end, side.end * scale)

    def add(i: Array, sums: Sums) -> Sums:
        move, scale = written(go, lambda i: (moves[i], weights[i]), i)
        side = moved_side(stage, two, move, go)

        def add_group(k: Array, sums: Sums) -> Sums:
            put = lambda a, v: jax.lax.dynamic_update_index_in_dim(a, pick(a, k) + v, k, 0)
            return jax.tree.map(put, sums, slice_(k, side, scale))

        if groups > 1:
            return jax.lax.fori_loop(jnp.int32(0), jnp.int32(groups), add_group, sums)
        return jax.tree.map(jnp.add, sums, slice_(jnp.int32(0), side, scale))

    first = lambda: slice_(jnp.int32(0), moved_side(stage, two, moves[0], go), weights[0])
    lead = () if groups == 1 else (groups,)
    blank = jax.tree.map(lambda v: jnp.zeros((*lead, *v.shape), v.dtype), jax.eval_shape(first))
    done = jax.lax.fori_loop(jnp.int32(0), jnp.int32(len(moves)), add, blank)
    if groups > 1:
        side_by_side = lambda v: jnp.moveaxis(v, 0, 1).reshape(v.shape[1], -1, v.shape[-1])
        done = jax.tree.map(side_by_side, done)
    return written(go, functools.partial(jax.tree.map, _summed), done)


def _some_summed(parts: Array_, *, at_once: bool) -> Array_:
    """Over some pixels: their sum is carried from slice to slice, which is less to read and write."""
    flat = parts.reshape(-1, *parts.shape[-2:])
    together = math.gcd(len(flat), SUMMED_TOGETHER)
    if at_once:
        apart = jax.lax.optimization_barrier(flat).reshape(-1, together, *flat.shape[1:])
        return jnp.sum(apart, axis=1)
    each = len(flat) // together
    return sum((flat[i * each : (i + 1) * each] for i in range(1, together)), flat[:each])


def _summed(parts: Array_) -> Array_:
    """Over all pixels: some of them side by side, whose sums a product with ones adds.

    XLA's sums along outer axes are slow on a CPU, and one long sum in single precision loses a digit.
    """
    n1, n2 = parts.shape[-2:]
    flat = parts.reshape(-1, n1 * n2)
    rows = -(-len(flat) // SUMMED_ABREAST)
    blocks = [flat[i : i + rows] for i in range(0, len(flat), rows)]
    blocks[-1] = jnp.pad(blocks[-1], ((0, rows - len(blocks[-1])), (0, 0)))
    ones = jnp.ones((1, rows), parts.dtype)
    return jnp.matmul(ones, sum(blocks[1:], blocks[0]), precision="highest").reshape(n1, n2)


def behind(
    stage: Stage,
    wanted: tuple[str, ...],
    folded: bool,
    paired: bool,
    numbers: Numbers,
    sizes: tuple[Array_, Array_],
    shares: list[Sums],
) -> tuple[Array_, ...]:
    """The kernels from the sums over slices, of which each core had a share.

    `folded`: half the displacements were summed; the others are the same with the images exchanged.
    """
    total: Sums = jax.tree.map(lambda *v: sum(v[1:], v[0]), *shares)
    if folded:
        whole = (lambda v: 2 * v) if paired else lambda v: v + v.T
        total = jax.tree.map(whole, total)
    minus, above, ntk = total
    if minus is None:
        assert above is not None
        rho = above.astype(jnp.float64)
        minus, above = 1 - rho, 1 + rho
    theta = jnp.zeros_like(minus) if ntk is None else ntk.astype(minus.dtype)
    second = along(sizes[1]) if paired else across(sizes[1])
    pair = Pair(along(sizes[0]), second, minus, above, theta)
    out = interpret(join(stage.tail, numbers), pair)
    return kernel_values(out, wanted, out.size)
