r"""Pairs of pixels: the state of the kernels with pixel axes, and what sums of parts make of it.

A *block* is a `Pair` whose matrices have axes (first input, second input, pixels of the first, pixels of the
second), its variances 1 along the axes that do not belong to them. All elementwise rules (bias, training,
activation, sums of branches) are those of `Pair`. Here are the others: sums of independent parts (the taps of a
window, the pixels of a flattened image) and products, without cancellation.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit.layers import flat_table

from ._correlation import correlation
from ._pair import Pair, outer

Table = Int[np.ndarray, "_ _"]
Array_ = Float[Array, "..."]


def axes_of(block: Pair) -> int:
    """The number of spatial axes."""
    return (block.minus.ndim - 2) // 2


def from_pixels(x1: Array_, x2: Array_, *, own: bool = False) -> Pair:
    """The block of two batches of images (n, *spatial, channels); `own`: of each image with itself."""
    with jax.enable_x64(True):
        (q1, u1), (q2, u2) = _split(x1), _split(x2)
        k, channels = x1.ndim - 2, x1.shape[-1]
        n1, n2, sites = len(x1), len(x2), x1.shape[1:-1]
        pixels = math.prod(sites)
        if own:
            rows = u1.reshape(n1, pixels, channels)
            minus, plus = jax.vmap(correlation)(rows, rows)
            shape = (n1, 1, *sites, *sites)
            minus, plus = minus.reshape(shape), plus.reshape(shape)
        else:
            minus, plus = correlation(u1.reshape(-1, channels), u2.reshape(-1, channels))
            order = (0, 1 + k, *range(1, 1 + k), *range(2 + k, 2 + 2 * k))
            shape = (n1, *sites, n2, *sites)
            minus, plus = (m.reshape(shape).transpose(order) for m in (minus, plus))
        first = (n1, 1, *sites, *(1,) * k)
        second = (n1, 1, *(1,) * k, *sites) if own else (1, n2, *(1,) * k, *sites)
        return Pair(q1.reshape(first), q2.reshape(second), minus, plus, jnp.zeros_like(minus))


def _split(x: Array_) -> tuple[Array_, Array_]:
    """Second moments over the channels in float64, and unit vectors; black pixels have neither."""
    wide = x.astype(jnp.float64)
    square = jnp.sum(wide**2, axis=-1)
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))
    unit = jnp.where(square[..., None] > 0, wide / norm[..., None], 0).astype(x.dtype)
    return jnp.where(square > 0, square, 0) / x.shape[-1], unit


# --- sums of independent parts ---------------------------------------------------------------------


def windowed(block: Pair, tables: Sequence[Table]) -> Pair:
    r"""$\bar K(p,r)=\frac1F\sum_oK(p(o),r(o))$: parts are the taps, those that read padding being empty."""
    k = axes_of(block)
    taps = math.prod(table.shape[1] for table in tables)
    first, second = range(2, 2 + k), range(2 + k, 2 + 2 * k)
    (shares1, total1), (shares2, total2) = (
        _shares(block.q1, tables, first),
        _shares(block.q2, tables, second),
    )
    # In units of each image's largest deviation: products of two would leave the range of float32.
    (s1, over1), (s2, over2) = _in_units(block.q1, total1), _in_units(block.q2, total2)
    weight, over = outer(s1, s2, block.minus), outer(over1, over2, block.minus)

    def mean(value: Array_) -> Array_:
        summed = weight * value
        for a, table in enumerate(tables):
            summed = _diagonal_sum(summed, table, first[a], second[a])
        return over * summed

    # Half the squared distance of the two vectors of shares: differences first, so nothing cancels.
    cast = lambda share: (math.sqrt(0.5) * share).astype(block.minus.dtype)
    gap = jnp.zeros((1,) * block.minus.ndim, block.minus.dtype)
    for a, b in zip(shares1, shares2, strict=True):
        gap = gap + (cast(a) - cast(b)) ** 2
    above = None if block.above is None else mean(block.above) + gap
    minus, ntk = mean(block.minus) + gap, mean(block.ntk)
    return Pair(total1 / taps, total2 / taps, minus, above, ntk, block.how)


def _in_units(q: Array_, total: Array_) -> tuple[Array_, Array_]:
    """Deviations, and the inverse of those of sums, of one image's own size; finite in float32 products."""
    root = safe_sqrt(q)
    unit = jax.lax.stop_gradient(jnp.max(root, axis=tuple(range(2, q.ndim)), keepdims=True))
    unit = jnp.where(unit > 0, unit, 1)
    return root / unit, jnp.minimum(unit * _inverse(total), 1e18)


def _inverse(total: Array_) -> Array_:
    root = safe_sqrt(total)
    return safe_divide(jnp.ones_like(root), root)


def _shares(q: Array_, tables: Sequence[Table], axes: Sequence[int]) -> tuple[list[Array_], Array_]:
    """The share of each tap of a window, 0 where it reads padding, and the sum of what all taps read."""
    sites = tuple(q.shape[axis] for axis in axes)
    table = flat_table(tables, sites)
    places = np.where(table < 0, math.prod(sites), table).T.reshape(-1)
    flat = q.reshape(-1, math.prod(sites))  # the other input's axes are 1
    parts = jnp.take(flat, places, axis=1, mode="fill", fill_value=0)
    parts = parts.reshape(len(flat), table.shape[1], len(table))
    total = jnp.sum(parts, axis=1)
    shares = safe_sqrt(parts) * _inverse(total)[:, None]
    shape = [*q.shape]
    for axis, one in zip(axes, tables, strict=True):
        shape[axis] = len(one)
    return [shares[:, o].reshape(shape) for o in range(table.shape[1])], total.reshape(shape)


def _take(value: Array_, index: Int[np.ndarray, " _"], axis: int) -> Array_:
    n = value.shape[axis]
    places = np.where(index < 0, n, index)
    if len(places) and (np.diff(places) == 1).all() and places[-1] < n:
        return jax.lax.slice_in_dim(value, int(places[0]), int(places[-1]) + 1, axis=axis)
    return jnp.take(value, places, axis=axis, mode="fill", fill_value=0)


def _diagonal_sum(value: Array_, table: Table, first: int, second: int) -> Array_:
    total = None
    for o in range(table.shape[1]):
        part = _take(_take(value, table[:, o], first), table[:, o], second)
        total = part if total is None else total + part
    assert total is not None
    return total


def diagonal(block: Pair) -> Pair:
    """Equal pixels only: axes (first input, second input, pixels)."""
    k = axes_of(block)
    if k == 0:
        return jax.tree.map(lambda a: a[..., None], block)
    pixels = math.prod(block.minus.shape[2 : 2 + k])
    index = np.arange(pixels)

    def pick(a: Array_) -> Array_:
        n1, n2 = a.shape[:2]
        p, r = math.prod(a.shape[2 : 2 + k]), math.prod(a.shape[2 + k :])
        flat = a.reshape(n1, n2, p, r)
        return flat[:, :, index % p, index % r]

    return jax.tree.map(pick, block)


def flattened(block: Pair) -> Pair:
    r"""$K'=\frac1P\sum_pK(p,p)$: parts are the pixels."""
    parts = diagonal(block)
    pixels = parts.minus.shape[2]
    total1, total2 = (jnp.sum(q, axis=2) for q in (parts.q1, parts.q2))
    over1, over2 = _inverse(total1), _inverse(total2)
    share1 = safe_sqrt(parts.q1) * over1[..., None]
    share2 = safe_sqrt(parts.q2) * over2[..., None]
    weight = outer(share1, share2, parts.minus)
    half = math.sqrt(0.5)
    cast = lambda share: (half * share).astype(parts.minus.dtype)
    gap = jnp.sum((cast(share1) - cast(share2)) ** 2, axis=2)
    mean = lambda value: jnp.sum(weight * value, axis=2)
    above = None if parts.above is None else mean(parts.above) + gap
    return Pair(
        total1 / pixels,
        total2 / pixels,
        mean(parts.minus) + gap,
        above,
        mean(parts.ntk),
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


def same_pixel(block: Pair) -> Array:
    """Where the two pixels are one, broadcastable against the block."""
    k = axes_of(block)
    sites = block.minus.shape[2 : 2 + k]
    eye = np.eye(math.prod(sites), dtype=bool)
    return jnp.asarray(eye.reshape(1, 1, *sites, *sites))


def dropped(block: Pair, keep: Array_, same: Array) -> Pair:
    """Entries dropped independently: correlations fall, but not of what is one entry (`same`)."""
    q1, q2 = block.q1 / keep, block.q2 / keep
    low = keep.astype(block.minus.dtype)
    fall = lambda value: jnp.where(same, value, (1 - low) + low * value)
    above = None if block.above is None else fall(block.above)
    ntk = jnp.where(same, block.ntk, low * block.ntk)
    return Pair(q1, q2, fall(block.minus), above, ntk, block.how)


def hidden(block: Pair, mask1: Array | None, mask2: Array | None, *, own: bool = False) -> Pair:
    """Variance 0 where the masks, of shape (n, *sites), say that nothing is."""
    k = axes_of(block)

    def hide(q: Array_, mask: Array | None, first: int, place: int) -> Array_:
        if mask is None:
            return q
        shape = [1] * (2 + 2 * k)
        shape[first], shape[place : place + k] = mask.shape[0], mask.shape[1:]
        return jnp.where(mask.reshape(shape), 0, q)

    q1 = hide(block.q1, mask1, 0, 2)
    return dataclasses.replace(block, q1=q1, q2=hide(block.q2, mask2, 0 if own else 1, 2 + k))
