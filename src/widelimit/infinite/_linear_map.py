r"""Linear maps of pixels: pools, attention, graphs.

Pixels of one image are dependent, so the variance of $y_p=\sum_aA_{pa}x_a$ needs the image's own block. With
$s=\sqrt q$, $a=\sum_pA_ps_p$ and $M=\sum A_pA'_rs_ps'_r(1-\rho)$ (of the pair; $M_{xx}$ of the own block)
$$Q=a^2-M_{xx},\qquad \sqrt{QQ'}(1-\rho)=M-\frac{a^2M_{x'x'}+a'^2M_{xx}-M_{xx}M_{x'x'}}{aa'+\sqrt{QQ'}}.$$
Where no own block is carried, nothing that follows looks at variances or at $1-\rho$, and $a^2$ serves as $Q$: then
nothing is subtracted at all.
"""

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit._base.thresholds import REFINED, SIMILAR
from widelimit.activations import How

from ._pair import Pair, outer

Array_ = Float[Array, "..."]


class Matrices(NamedTuple):
    """The matrices of a linear map for the first and the second inputs.

    Attributes:
        first: Shape (n1 or 1, P', P), float64.
        second: Shape (n2 or 1, P', P).
        positive: Whether no entry is negative.
        sites: The sizes of the output's axes.
    """

    first: Array_
    second: Array_
    positive: bool
    sites: tuple[int, ...]


class Mapped(NamedTuple):
    """A block behind a map, not yet normalised: flat pixels, axes (n1, n2, P', P')."""

    a1: Array_
    a2: Array_
    low: Array_
    high: Array_ | None
    ntk: Array_
    most1: Array_
    most2: Array_


def _flat(block: Pair, k: int) -> Pair:
    def flatten(v: Array_) -> Array_:
        p, r = math.prod(v.shape[2 : 2 + k]), math.prod(v.shape[2 + k :])
        return v.reshape(*v.shape[:2], p, r)

    return jax.tree.map(flatten, block)


def _sums(block: Pair, first: Array_, second: Array_, *, own: bool = False) -> Mapped:
    s1, s2 = safe_sqrt(block.q1), safe_sqrt(block.q2)
    weight = outer(s1, s2, block.minus)
    dtype = block.minus.dtype
    left, right = first.astype(dtype)[:, None], second.astype(dtype)[None]
    if own:  # one matrix for each image
        right = second.astype(dtype)[:, None]
    product = lambda a, b: jnp.matmul(a, b, precision="highest")
    both = lambda v: product(product(left, weight * v), jnp.swapaxes(right, -1, -2))
    high = None if block.above is None else both(block.above)
    one, two = first[:, None], second[:, None] if own else second[None]
    column = lambda m: jnp.swapaxes(product(m, jnp.swapaxes(s2, -1, -2)), -1, -2)
    ends = product(one, s1), column(two)
    most = product(jnp.abs(one), s1), column(jnp.abs(two))
    return Mapped(*ends, both(block.minus), high, both(block.ntk), *most)


def mapped(
    cross: Pair, own1: Pair | None, own2: Pair | None, matrices: Matrices, same: Array | None
) -> tuple[Pair, Pair | None, Pair | None]:
    """The blocks behind a linear map.

    Args:
        cross: The block of pairs.
        own1: The block of each first input with itself, or None where variances do not matter.
        own2: The same of the second inputs; None as well where they are the first.
        matrices: The maps.
        same: Shape (n1, n2), which pairs are one input; None: none.

    Returns:
        The three blocks.
    """
    k = (cross.minus.ndim - 2) // 2
    with jax.enable_x64(True):
        sums = _sums(_flat(cross, k), matrices.first, matrices.second)
        if own1 is None:
            return (
                shaped_block(_bounded(sums, cross, matrices.positive), matrices.sites),
                None,
                None,
            )
        one = _sums(_flat(own1, k), matrices.first, matrices.first, own=True)
        two = None
        if own2 is not None:
            two = _sums(_flat(own2, k), matrices.second, matrices.second, own=True)
        known = cross.above is None and matrices.positive
        out = settled(sums, one, two, matrices, same, known=known, how=cross.how)
        size = cross.minus.size * sums.low.shape[2]
        if matrices.first is matrices.second and matrices.positive and size <= REFINED:
            blocks = _Blocks(_flat(cross, k), _flat(own1, k), own2 and _flat(own2, k))
            out = _refined(out[0], blocks, matrices), *out[1:]
        shaped = lambda b: None if b is None else shaped_block(b, matrices.sites)
        return shaped_block(out[0], matrices.sites), shaped(out[1]), shaped(out[2])


def settled(
    sums: Mapped,
    one: Mapped,
    two: Mapped | None,
    matrices: Matrices,
    same: Array | None,
    *,
    known: bool,
    how: How,
) -> tuple[Pair, Pair, Pair | None]:
    """Blocks from sums of pairs and of images with themselves, normalised by the true variances."""
    size1 = _own_size(one)
    size2 = size1 if two is None else _own_size(two)
    pixels = jnp.eye(sums.low.shape[-1], dtype=bool)[None, None]
    exact = None if same is None else same[:, :, None, None] & pixels
    rule = functools.partial(_settled, positive=matrices.positive, known=known, how=how)
    out = rule(sums, _rows(size1), _columns(size2), exact=exact)
    first = rule(one, _rows(size1), _rows(size1, True), exact=pixels)
    second = None
    if two is not None:
        second = rule(two, _rows(size2), _rows(size2, True), exact=pixels)
    return out, first, second


class Size(NamedTuple):
    """What a single image's output pixels have: shape (n, P')."""

    a: Array_
    spread: Array_

    @property
    def q(self) -> Array_:
        """The variance."""
        return jnp.maximum(self.a**2 - self.spread, 0)


def _own_size(own: Mapped) -> Size:
    spread = jnp.diagonal(own.low, axis1=-2, axis2=-1)[:, 0].astype(jnp.float64)
    return Size(own.a1[:, 0, :, 0], spread)


def _rows(size: Size, second: bool = False) -> Size:
    """Along the pixels of the first input; or of the second, for own blocks."""
    if second:
        return Size(*(v[:, None, None, :] for v in size))
    return Size(*(v[:, None, :, None] for v in size))


def _columns(size: Size) -> Size:
    return Size(*(v[None, :, None, :] for v in size))


def _settled(
    sums: Mapped,
    one: Size,
    two: Size,
    *,
    exact: Array | None,
    positive: bool,
    known: bool,
    how: How,
) -> Pair:
    """Normalised by the true variances; exactly 0 where an output meets itself."""
    dtype = sums.low.dtype
    q1, q2 = one.q, two.q
    size = safe_sqrt(q1) * safe_sqrt(q2)
    over = safe_divide(jnp.ones_like(size), size)
    a1, a2 = one.a, two.a
    if positive:
        excess = a1**2 * two.spread + a2**2 * one.spread - one.spread * two.spread
        lost = safe_divide(excess, a1 * a2 + size)
        minus = (sums.low - lost.astype(dtype)) * over.astype(dtype)
    else:
        cov = a1 * a2 - sums.low.astype(jnp.float64)
        minus = ((size - cov) * over).astype(dtype)
    minus = jnp.clip(minus, 0, 2)
    if known:
        minus, above = jnp.minimum(minus, 1), None
    elif sums.high is not None and positive:
        lost = safe_divide(
            a1**2 * two.spread + a2**2 * one.spread - one.spread * two.spread, a1 * a2 + size
        )
        above = jnp.clip((sums.high - lost.astype(dtype)) * over.astype(dtype), 0, 2)
    else:
        above = 2 - minus
    if exact is not None:
        minus = jnp.where(exact, 0, minus)
        above = None if above is None else jnp.where(exact, 2, above)
    ntk = sums.ntk * over.astype(dtype)
    return Pair(q1, q2, minus, above, ntk, how)


class _Blocks(NamedTuple):
    """The three blocks before the map, flat."""

    cross: Pair
    own1: Pair
    own2: Pair | None


def _refined(out: Pair, blocks: _Blocks, matrices: Matrices) -> Pair:
    r"""Equal output pixels of similar inputs: $1-\rho=\frac12\mathrm{Var}(y/\sqrt Q-y'/\sqrt{Q'})$.

    Differences are taken entry by entry, before anything is summed, so that the rounding of the sums does not
    enter; what remains is the rounding of $1-\rho$ between pixels. Errors of $Q$ enter in second order only.
    """
    one, two = blocks.own1, blocks.own2 or blocks.own1
    inverse = lambda q: safe_divide(jnp.ones_like(q), safe_sqrt(q))
    a = matrices.first[0]
    near = jnp.einsum("pa,iap->iap", a, jnp.ones_like(a.T)[None])  # (1, pixels, outputs)
    t1 = safe_sqrt(blocks.cross.q1)[:, 0, :, 0, None] * inverse(out.q1)[:, 0, None, :, 0] * near
    t2 = safe_sqrt(blocks.cross.q2)[0, :, 0, :, None] * inverse(out.q2)[0, :, None, 0, :] * near
    first, second = t1[:, None], t2[None]
    gap = jnp.sum(first - second, axis=2)
    low, low1, low2 = (v.astype(jnp.float64) for v in (blocks.cross.minus, one.minus, two.minus))
    pairs = lambda v: v[..., None]
    mixed = first[:, :, :, None] * second[:, :, None] * pairs(low)
    own1 = first[:, :, :, None] * first[:, :, None] * pairs(low1)
    own2 = second[:, :, :, None] * second[:, :, None] * pairs(jnp.swapaxes(low2, 0, 1))
    away = jnp.sum(mixed + jnp.swapaxes(mixed, 2, 3) - own1 - own2, axis=(2, 3))
    fine = jnp.maximum((gap**2 + away) / 2, 0)
    pixels = np.arange(fine.shape[-1])
    close = fine < SIMILAR
    coarse = out.minus[:, :, pixels, pixels]
    minus = jnp.where(close & (coarse > 0), fine.astype(coarse.dtype), coarse)
    return dataclasses.replace(out, minus=out.minus.at[:, :, pixels, pixels].set(minus))


def _bounded(sums: Mapped, before: Pair, positive: bool) -> Pair:
    """Normalised by what variances are at most: enough where only covariances are wanted."""
    dtype = sums.low.dtype
    inverse = lambda a: safe_divide(jnp.ones_like(a), a)
    over = outer(inverse(sums.most1), inverse(sums.most2), sums.low)
    q1, q2, ntk = sums.most1**2, sums.most2**2, over * sums.ntk
    if not positive:
        rho = over * ((sums.a1 * sums.a2).astype(dtype) - sums.low)
        return Pair(q1, q2, 1 - rho, 1 + rho, ntk, before.how)
    above = None if sums.high is None else over * sums.high
    return Pair(q1, q2, over * sums.low, above, ntk, before.how)


def shaped_block(block: Pair, sites: tuple[int, ...]) -> Pair:
    """Flat pixels with their axes again."""

    def shape(v: Array_) -> Array_:
        n1, n2, p, r = v.shape
        first = sites if p > 1 else (1,) * len(sites)
        second = sites if r > 1 else (1,) * len(sites)
        return v.reshape(n1, n2, *first, *second)

    return dataclasses.replace(jax.tree.map(shape, block))
