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
from widelimit.layers import Sites, Window, flat_table

from ._correlation import correlation
from ._edges import frame, padded
from ._pair import Pair, outer

Table = Int[np.ndarray, "_ _"]
Array_ = Float[Array, "..."]


def from_pixels(x1: Array_, x2: Array_) -> Pair:
    """The block of pairs of images, both of shape (pairs, *spatial, channels)."""
    with jax.enable_x64(True):
        (q1, u1), (q2, u2) = _split(x1), _split(x2)
        each = jax.vmap(correlation) if x1.shape[-1] <= FEW_FEATURES else _one_by_one
        minus, plus = each(u1, u2)
        return Pair(q1[:, :, None], q2[:, None, :], minus, plus, jnp.zeros_like(minus))


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
    tables, taps = window.tables(sites), window.taps(len(sites))
    shares1, total1 = _shares(block.q1[:, :, 0], tables, sites)
    shares2, total2 = _shares(block.q2[:, 0, :], tables, sites)
    first, second = (lambda a: a[:, :, None]), (lambda a: a[:, None, :])
    # In units of each image's largest deviation: products of two would leave the range of float32.
    s1, over1 = map(first, _in_units(block.q1[:, :, 0], total1))
    s2, over2 = map(second, _in_units(block.q2[:, 0, :], total2))
    weight, over = outer(s1, s2, block.minus), outer(over1, over2, block.minus)
    mean = lambda value: over * _diagonal_sums(weight * value, window, sites)
    # Half the squared distance of the two vectors of shares: differences first, so nothing cancels.
    gap = jnp.zeros((1, 1, 1), block.minus.dtype)
    for a, b in zip(_halved(shares1, block), _halved(shares2, block), strict=True):
        gap = gap + (first(a) - second(b)) ** 2
    above = None if block.above is None else mean(block.above) + gap
    minus, ntk = mean(block.minus) + gap, mean(block.ntk)
    return Pair(first(total1 / taps), second(total2 / taps), minus, above, ntk, block.how)


def _halved(shares: Array_, block: Pair) -> Array_:
    """Times the root of 1/2, in the dtype of pairs; one tap after the other."""
    return (math.sqrt(0.5) * shares).astype(block.minus.dtype)


def _in_units(q: Array_, total: Array_) -> tuple[Array_, Array_]:
    """Deviations, and the inverse of those of sums, of one image's own size; finite in float32 products."""
    root = safe_sqrt(q)
    unit = jax.lax.stop_gradient(jnp.max(root, axis=1, keepdims=True))
    unit = jnp.where(unit > 0, unit, 1)
    return root / unit, jnp.minimum(unit * _inverse(total), 1e18)


def _inverse(total: Array_) -> Array_:
    root = safe_sqrt(total)
    return safe_divide(jnp.ones_like(root), root)


def _shares(q: Array_, tables: Sequence[Table], sites: Sites) -> tuple[Array_, Array_]:
    """The shares of the taps of a window, axes (taps, pairs, pixels), 0 where padding is read; and the sum of all."""
    table = flat_table(tables, sites)
    places = np.where(table < 0, math.prod(sites), table).T.reshape(-1)
    parts = jnp.take(q, places, axis=1, mode="fill", fill_value=0)
    parts = parts.reshape(len(q), table.shape[1], len(table))
    total = jnp.sum(parts, axis=1)
    return jnp.moveaxis(safe_sqrt(parts) * _inverse(total)[:, None], 1, 0), total


def _diagonal_sums(value: Array_, window: Window, sites: Sites) -> Array_:
    """Sums over the taps that read both pixels, the same tap on both sides."""
    pixels, k = math.prod(window.out(sites)), len(sites)
    spread = value.reshape(len(value), *sites, *sites)
    if window.transposed:
        for axis, table in enumerate(window.tables(sites)):
            spread = _by_table(spread, table, 1 + axis, 1 + k + axis)
        return spread.reshape(len(value), pixels, pixels)
    frames = frame(window, sites)
    for axis, (_, _, _, front, behind) in enumerate(frames):
        for place in (1 + axis, 1 + k + axis):
            spread = padded(spread, place, front, behind, around=window.padding == "circular")
    total = None
    for offset in itertools.product(*(range(taps) for taps, *_ in frames)):
        reads = [
            slice(o, o + (n - 1) * s + 1, s)
            for o, (_, s, n, *_) in zip(offset, frames, strict=True)
        ]
        part = spread[(slice(None), *reads, *reads)]
        total = part if total is None else total + part
    assert total is not None
    return total.reshape(len(value), pixels, pixels)


def _by_table(value: Array_, table: Table, first: int, second: int) -> Array_:
    """The same along one axis of either image, position by position."""
    places = np.where(table < 0, value.shape[first], table)
    take = lambda v, o, axis: jnp.take(v, places[:, o], axis=axis, mode="fill", fill_value=0)
    parts = [take(take(value, o, first), o, second) for o in range(table.shape[1])]
    return sum(parts[1:], parts[0])


def flattened(block: Pair) -> Pair:
    r"""$K'=\frac1P\sum_pK(p,p)$: parts are the pixels."""
    pixels = block.minus.shape[1]
    q1, q2 = block.q1[:, :, 0], block.q2[:, 0, :]
    total1, total2 = jnp.sum(q1, axis=1), jnp.sum(q2, axis=1)
    share1 = safe_sqrt(q1) * _inverse(total1)[:, None]
    share2 = safe_sqrt(q2) * _inverse(total2)[:, None]
    weight = outer(share1, share2, block.minus)
    gap = jnp.sum((_halved(share1, block) - _halved(share2, block)) ** 2, axis=1)
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


def dropped(block: Pair, keep: Array_, same: Array) -> Pair:
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
