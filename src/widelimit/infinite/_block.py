r"""Pairs of pixels: the state of the kernels with pixel axes, and what sums of parts make of it.

A *block* is a `Pair` whose matrices have axes (pairs of inputs, pixels of the first, pixels of the second), pixels in
row-major order; its variances are 1 along the axis that does not belong to them. All elementwise rules (bias, training,
activation, sums of branches) are those of `Pair`. Here are the others: sums of independent parts (the taps of a
window, the pixels of a flattened image) and products, without cancellation.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit._base.thresholds import FEW_FEATURES
from widelimit._base.types import Tensor
from widelimit.layers import Sites, Window, flat_table

from ._correlation import correlation
from ._edges import frame, in_units, written
from ._pair import Pair, going, outer

Table = Int[np.ndarray, "_ _"]
Array_ = Float[Array, "..."]


def from_pixels(x1: Array_, x2: Array_) -> Pair:
    """The block of pairs of images, both of shape (pairs, *spatial, channels)."""
    with jax.enable_x64(True):
        (q1, u1), (q2, u2) = _split(x1), _split(x2)
        each = jax.vmap(correlation) if x1.shape[-1] <= FEW_FEATURES else _one_by_one
        minus, plus = each(u1, u2)
        nothing = jnp.zeros((1, 1, 1), minus.dtype)
        return Pair(q1[:, :, None], q2[:, None, :], minus, plus, nothing)


def _one_by_one(u1: Array_, u2: Array_) -> tuple[Array_, Array_]:
    """Where a matrix product serves unless vectors are nearly parallel: that is decided for each pair."""
    return jax.lax.map(lambda both: correlation(*both), (u1, u2))


def _split(x: Array_) -> tuple[Array_, Array_]:
    """Second moments over the channels in float64, and unit vectors; black pixels have neither."""
    wide = x.reshape(len(x), -1, x.shape[-1]).astype(jnp.float64)
    square = jnp.sum(wide**2, axis=-1)
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))
    unit = jnp.where(square[..., None] > 0, wide / norm[..., None], 0).astype(x.dtype)
    return jnp.where(square > 0, square, 0) / x.shape[-1], unit


# --- sums of independent parts ---------------------------------------------------------------------


def windowed(block: Pair, window: Window, sites: Sites) -> Pair:
    r"""$\bar K(p,r)=\frac1F\sum_oK(p(o),r(o))$: parts are the taps, those that read padding being empty."""
    count, dtype = len(block.minus), str(block.minus.dtype)
    both = jnp.concatenate([block.q1[:, :, 0], block.q2[:, 0, :]])
    sides = written(going(both), lambda q: _reads(q, window, sites, dtype), both)
    total1, s1, over1, shares1 = (a[..., :count, :, None] for a in sides)
    total2, s2, over2, shares2 = (a[..., count:, None, :] for a in sides)
    weight, over = s1 * s2, over1 * over2
    mean = lambda value: over * _diagonal_sums(weight * value, window, sites)
    # Half the squared distance of the two vectors of shares: differences first, so nothing cancels.
    gap = jnp.zeros((1, 1, 1), block.minus.dtype)
    for a, b in zip(shares1, shares2, strict=True):
        gap = gap + (a - b) ** 2
    above = None if block.above is None else mean(block.above) + gap
    untrained = block.ntk.size < block.minus.size  # then it is 0
    minus, ntk = mean(block.minus) + gap, block.ntk if untrained else mean(block.ntk)
    return Pair(total1, total2, minus, above, ntk, block.how)


def _reads(q: Array_, window: Window, sites: Sites, dtype: str) -> list[Array_]:
    """What belongs to single images: mean variances under the window, deviations, their inverse, halves of shares."""
    table = flat_table(window.tables(sites), sites)
    places = np.where(table < 0, math.prod(sites), table).T.reshape(-1)
    parts = _read(q, tuple(places.tolist())).reshape(len(q), table.shape[1], len(table))
    total = jnp.sum(parts, axis=1)
    root, over = in_units(safe_sqrt(q), _inverse(total), [1])
    shares = jnp.moveaxis(safe_sqrt(parts) * _inverse(total)[:, None], 1, 0)
    rounded = [a.astype(dtype) for a in (root, over, math.sqrt(0.5) * shares)]
    return [total / window.taps(len(sites)), *rounded]


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _read(q: Array_, places: tuple[int, ...]) -> Array_:
    """Columns, 0 beyond the last.

    Derivatives are a product: outside of a 64-bit context, where they may be taken, there is no gather of doubles.
    """
    return jnp.take(q, np.asarray(places), axis=1, mode="fill", fill_value=0)


@_read.defjvp
def _read_jvp(places, primals, tangents):
    (q,), (change,) = primals, tangents
    reads = np.arange(q.shape[1])[:, None] == np.asarray(places)
    return _read(q, places), jax.lax.dot_general(
        change, jnp.asarray(reads, q.dtype), (((1,), (0,)), ((), ()))
    )


def _inverse(total: Array_) -> Array_:
    root = safe_sqrt(total)
    return safe_divide(jnp.ones_like(root), root)


def _diagonal_sums(value: Array_, window: Window, sites: Sites) -> Array_:
    """Sums over the taps that read both pixels, the same tap on both sides."""
    table = flat_table(window.tables(sites), sites)
    table = table[:, (table >= 0).any(axis=0)]  # taps beyond a small image read nothing
    found = [_constant(places) for places in table.T]
    moves = [move for move in found if move is not None]
    if len(table) == math.prod(sites) and len(moves) == len(found):
        return _by_moves(value, table, moves)
    if not window.transposed and window.padding != "circular":
        return _by_steps(value, window, sites)
    places = np.where(table < 0, value.shape[1], table)
    take = lambda v, o, axis: jnp.take(v, places[:, o], axis=axis, mode="fill", fill_value=0)
    parts = [take(take(value, o, 1), o, 2) for o in range(table.shape[1])]
    return sum(parts[1:], parts[0])


def _constant(places: Int[np.ndarray, " pixels"]) -> int | None:
    """By how much a tap moves all pixels that it reads, in row-major order; None where not by one number."""
    moves = np.unique((places - np.arange(len(places)))[places >= 0])
    return int(moves[0]) if len(moves) == 1 else None


def _by_moves(value: Array_, table: Table, moves: Sequence[int]) -> Array_:
    """Each tap as a shift of both flat axes, without what it would read beyond an edge: long loops, no division."""
    pixels, room = len(table), max(map(abs, moves))
    sides = [(0, 0, 0), (room, room, 0), (room, room, 0)]
    wide = jax.lax.pad(value, jnp.zeros((), value.dtype), sides)
    total = None
    for move, places in zip(moves, table.T, strict=True):
        reads = slice(room + move, room + move + pixels)
        part, there = wide[:, reads, reads], (places >= 0).astype(value.dtype)
        if not there.all():
            part = part * there[None, :, None] * there[None, None, :]
        total = part if total is None else total + part
    assert total is not None
    return total


def _by_steps(value: Array_, window: Window, sites: Sites) -> Array_:
    """Each tap as a strided slice of both images' axes."""
    frames = frame(window, sites)
    sides = [(0, 0, 0), *([(front, behind, 0) for *_, front, behind in frames] * 2)]
    spread = value.reshape(len(value), *sites, *sites)
    wide = jax.lax.pad(spread, jnp.zeros((), value.dtype), sides)
    total = None
    for offset in itertools.product(*(range(taps) for taps, *_ in frames)):
        ends = zip(offset, frames, strict=True)
        reads = [slice(o, o + (count - 1) * step + 1, step) for o, (_, step, count, *_) in ends]
        part = wide[(slice(None), *reads, *reads)]
        total = part if total is None else total + part
    assert total is not None
    pixels = math.prod(window.out(sites))
    return total.reshape(len(value), pixels, pixels)


def flattened(block: Pair) -> Pair:
    r"""$K'=\frac1P\sum_pK(p,p)$: parts are the pixels."""
    pixels = block.minus.shape[1]
    q1, q2 = block.q1[:, :, 0], block.q2[:, 0, :]
    total1, total2 = jnp.sum(q1, axis=1), jnp.sum(q2, axis=1)
    share1 = safe_sqrt(q1) * _inverse(total1)[:, None]
    share2 = safe_sqrt(q2) * _inverse(total2)[:, None]
    weight = outer(share1, share2, block.minus)
    halved = lambda share: (math.sqrt(0.5) * share).astype(block.minus.dtype)
    gap = jnp.sum((halved(share1) - halved(share2)) ** 2, axis=1)
    equal = lambda value: jnp.diagonal(jnp.broadcast_to(value, block.minus.shape), axis1=1, axis2=2)
    mean = lambda value: jnp.sum(weight * equal(value), axis=1)
    alone = lambda value: value[:, None, None]
    return Pair(
        alone(total1 / pixels),
        alone(total2 / pixels),
        alone(mean(block.minus) + gap),
        None if block.above is None else alone(mean(block.above) + gap),
        alone(mean(block.ntk)),
        block.how,
    )


def multiplied(parts: Sequence[Pair]) -> Pair:
    r"""$K'=\prod_iK_i$ of independent parts: $1-\rho_1\rho_2=\frac12[m_1(1+\rho_2)+(1+\rho_1)m_2]$."""
    return functools.reduce(_product, parts)


def _product(a: Pair, b: Pair) -> Pair:
    if a.above is None and b.above is None:
        minus, above = a.minus + a.rho * b.minus, None
    else:
        minus = (a.minus * b.plus + a.plus * b.minus) / 2
        above = (a.minus * b.minus + a.plus * b.plus) / 2
    ntk = a.ntk * b.rho + a.rho * b.ntk
    return Pair(a.q1 * b.q1, a.q2 * b.q2, minus, above, ntk, a.how)


def concatenated(parts: Sequence[Pair], widths: Sequence[int]) -> Pair:
    r"""$K'=\sum_iw_iK_i/\sum_iw_i$: parts of these weights."""
    total = sum(widths)
    shares = [w / total for w in widths]
    scaled = [
        dataclasses.replace(p, q1=w * p.q1, q2=w * p.q2) for p, w in zip(parts, shares, strict=True)
    ]
    return Pair.mixed(scaled)


def localised(block: Pair) -> Pair:
    """Different pixels are independent."""
    same = same_pixel(block)
    one = lambda value: jnp.where(same, value, jnp.ones_like(value))
    above = None if block.above is None else one(block.above)
    ntk = jnp.where(same, block.ntk, jnp.zeros_like(block.ntk))
    return dataclasses.replace(block, minus=one(block.minus), above=above, ntk=ntk)


def same_pixel(block: Pair) -> Bool[Array, "1 pixels pixels"]:
    """Where the two pixels are one."""
    return jnp.eye(block.minus.shape[1], dtype=bool)[None]


def dropped(block: Pair, keep: Array_, same: Bool[Tensor, "..."]) -> Pair:
    """Entries dropped independently: correlations fall, but not of what is one entry (`same`)."""
    q1, q2 = block.q1 / keep, block.q2 / keep
    low = keep.astype(block.minus.dtype)
    fall = lambda value: jnp.where(same, value, (1 - low) + low * value)
    above = None if block.above is None else fall(block.above)
    ntk = jnp.where(same, block.ntk, low * block.ntk)
    return Pair(q1, q2, fall(block.minus), above, ntk, block.how)


def hidden(block: Pair, mask1: Array | None, mask2: Array | None) -> Pair:
    """Variance 0 where the masks, of shape (pairs, *sites), say that nothing is."""
    flat = lambda mask: mask.reshape(len(mask), -1)
    q1 = block.q1 if mask1 is None else jnp.where(flat(mask1)[:, :, None], 0, block.q1)
    q2 = block.q2 if mask2 is None else jnp.where(flat(mask2)[:, None, :], 0, block.q2)
    return dataclasses.replace(block, q1=q1, q2=q2)
