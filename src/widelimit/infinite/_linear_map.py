r"""Linear maps of pixels: pools, attention, graphs.

Pixels of one image are dependent, so the variance of $y_p=\sum_aA_{pa}x_a$ needs the image's own block. With
$s=\sqrt q$, $a=\sum_pA_ps_p$ and $M=\sum A_pA'_rs_ps'_r(1-\rho)$ (of the pair; $M_{xx}$ of the own block)
$$Q=a^2-M_{xx},\qquad \sqrt{QQ'}(1-\rho)=M-\frac{a^2M_{x'x'}+a'^2M_{xx}-M_{xx}M_{x'x'}}{aa'+\sqrt{QQ'}}.$$
Where no own block is carried, nothing that follows looks at variances or at $1-\rho$, and $a^2$ serves as $Q$: then
nothing is subtracted at all.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit._base.thresholds import REFINED, SIMILAR
from widelimit.activations import How

from ._edges import written
from ._meet import Meeting
from ._pair import Pair, going, outer

Array_ = Float[Array, "..."]


class Matrices(NamedTuple):
    """The matrices of a linear map for the inputs of pairs.

    Attributes:
        first: Shape (pairs or 1, P', P), float64.
        second: The same for the second inputs.
        positive: Whether no entry is negative.
        shared: The matrix where it is one for all inputs and known beforehand.
    """

    first: Array_
    second: Array_
    positive: bool
    shared: Float[np.ndarray, "outputs pixels"] | None = None


class Mapped(NamedTuple):
    """A block behind a map, not yet normalised: axes (pairs, P', P'), or those of one input, (pairs, P')."""

    a1: Array_
    a2: Array_
    low: Array_
    high: Array_ | None
    ntk: Array_


def _product(a: Array_, b: Array_) -> Array_:
    return jnp.matmul(a, b, precision="highest")


def _sums(block: Pair, matrices: Matrices) -> Mapped:
    go, dtype = going(block.q1), str(block.minus.dtype)
    s1, s2 = written(go, lambda *qs: [*map(safe_sqrt, qs)], block.q1, block.q2)
    weight = outer(s1, s2, block.minus)
    left = matrices.first.astype(dtype)
    right = jnp.swapaxes(matrices.second.astype(dtype), -1, -2)

    def both(v: Array_) -> Array_:
        return _product(_product(left, weight * v), right)

    high = None if block.above is None else both(block.above)
    a1 = _product(matrices.first, s1)[:, :, 0]
    a2 = _product(matrices.second, jnp.swapaxes(s2, -1, -2))[:, :, 0]
    return Mapped(a1, a2, both(block.minus), high, both(block.ntk))


def mapped(
    block: Pair, matrices: Matrices, meeting: Meeting
) -> tuple[Pair, Float[Array, " pairs"] | float]:
    """The block behind a linear map, and how far rounding may have moved the angles of each pair, on average."""
    with jax.enable_x64(True):
        sums = _sums(block, matrices)
        if not meeting.images:
            return _bounded(sums, block, matrices), 0.0
        known = block.above is None and matrices.positive
        out, doubt = settled(sums, meeting, positive=matrices.positive, known=known, how=block.how)
        if matrices.shared is None or not matrices.positive:
            return out, doubt
        return _refined(out, block, matrices.shared, meeting), doubt


class Size(NamedTuple):
    """What a single image's output pixels have, broadcastable against pairs."""

    a: Array_
    spread: Array_
    q: Array_
    root: Array_
    over: Array_

    @staticmethod
    def of(a: Array_, spread: Array_) -> "Size":
        """From the sums: the variance, its root, and 1 over that."""
        q = jnp.maximum(a**2 - spread, 0)
        root = safe_sqrt(q)
        return Size(a, spread, q, root, _inverse(root))


def settled(
    sums: Mapped, meeting: Meeting, *, positive: bool, known: bool, how: How
) -> tuple[Pair, Float[Array, " pairs"]]:
    """Normalised by the true variances, which the images' own blocks have; exactly 0 where an output meets itself.

    Returns:
        The block, and how far rounding may have moved the angles of each pair, on average.
    """
    dtype, go = sums.low.dtype, going(sums.a1)
    own = sums.low[: meeting.images]
    spread = jnp.diagonal(own, axis1=1, axis2=2).astype(jnp.float64)
    one = written(go, Size.of, sums.a1[:, :, None], spread[meeting.first][:, :, None])
    two = written(go, Size.of, sums.a2[:, None, :], spread[meeting.second][:, None, :])
    over = outer(one.over, two.over, sums.low)
    above, size = None, one.root * two.root
    if positive:
        excess = one.a**2 * two.spread + (two.a**2 - two.spread) * one.spread
        lost = safe_divide(excess, one.a * two.a + size).astype(dtype)
        minus = (sums.low - lost) * over
        if not known and sums.high is not None:
            above = jnp.clip((sums.high - lost) * over, 0, 2)
    else:
        cov = one.a * two.a - sums.low.astype(jnp.float64)
        minus = (size - cov).astype(dtype) * over
    minus = jnp.clip(minus, 0, 1 if known else 2)
    if not known and above is None:
        above = 2 - minus
    exact = meeting.same[:, None, None] & jnp.eye(minus.shape[1], dtype=bool)[None]
    minus = jnp.where(exact, 0, minus)
    above = None if above is None else jnp.where(exact, 2, above)
    out = Pair(one.q, two.q, minus, above, sums.ntk * over, how)
    return out, _doubt(minus, sums.low * over)


def _doubt(minus: Array_, before: Array_) -> Float[Array, " pairs"]:
    r"""How far $\theta$ is moved by rounding numbers of size `before`, of which $1-\rho$ is the small difference.

    By the mean square over pixels. What comes of it is a mean over pixels: those of either image round independently.
    """
    lost = jnp.finfo(minus.dtype).eps * before
    moved = lost / jnp.sqrt(2 * minus + lost + jnp.finfo(minus.dtype).tiny)
    square = jnp.mean(jnp.where(minus > 0, moved, 0) ** 2, axis=(1, 2))
    return jnp.sqrt(square / minus.shape[1])


def _inverse(a: Array_) -> Array_:
    return safe_divide(jnp.ones_like(a), a)


def _refined(
    out: Pair, block: Pair, matrix: Float[np.ndarray, "outputs pixels"], meeting: Meeting
) -> Pair:
    r"""Equal output pixels of similar inputs: $1-\rho=\frac12\mathrm{Var}(y/\sqrt Q-y'/\sqrt{Q'})$.

    Differences are taken entry by entry, before anything is summed, so that the rounding of the sums does not
    enter; what remains is the rounding of $1-\rho$ between pixels. Errors of $Q$ enter in second order only. Only
    pixels under the window of an output are read.
    """
    reads = max(int((matrix != 0).sum(axis=1).max()), 1)
    if len(block.minus) * len(matrix) * reads**2 > REFINED:
        return out
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :reads]  # (outputs, reads)
    weights = np.take_along_axis(matrix, places, axis=1)[None]
    t1 = safe_sqrt(block.q1)[:, places, 0] * _inverse(safe_sqrt(out.q1)) * weights
    t2 = safe_sqrt(block.q2)[:, 0, places] * _inverse(safe_sqrt(out.q2))[:, 0, :, None] * weights
    gap = jnp.sum(t1 - t2, axis=2)
    window = block.minus[:, places[:, :, None], places[:, None, :]].astype(jnp.float64)
    rows, columns = (lambda t: t[..., :, None]), (lambda t: t[..., None, :])
    mixed = rows(t1) * columns(t2) * window
    own1 = rows(t1) * columns(t1) * window[: meeting.images][meeting.first]
    own2 = rows(t2) * columns(t2) * window[: meeting.images][meeting.second]
    away = jnp.sum(mixed + jnp.swapaxes(mixed, 2, 3) - own1 - own2, axis=(2, 3))
    fine = jnp.maximum((gap**2 + away) / 2, 0)
    pixels = np.arange(fine.shape[-1])
    coarse = out.minus[:, pixels, pixels]
    close = (fine < SIMILAR) & (coarse > 0)
    minus = jnp.where(close, fine.astype(coarse.dtype), coarse)
    return dataclasses.replace(out, minus=out.minus.at[:, pixels, pixels].set(minus))


def _bounded(sums: Mapped, before: Pair, matrices: Matrices) -> Pair:
    """Normalised by what variances are at most: enough where only covariances are wanted."""
    s1, s2 = safe_sqrt(before.q1), jnp.swapaxes(safe_sqrt(before.q2), -1, -2)
    most1 = _product(jnp.abs(matrices.first), s1)
    most2 = jnp.swapaxes(_product(jnp.abs(matrices.second), s2), -1, -2)
    over = outer(_inverse(most1), _inverse(most2), sums.low)
    q1, q2, ntk = most1**2, most2**2, over * sums.ntk
    if not matrices.positive:
        covariance = (sums.a1[:, :, None] * sums.a2[:, None, :]).astype(sums.low.dtype)
        rho = over * (covariance - sums.low)
        return Pair(q1, q2, 1 - rho, 1 + rho, ntk, before.how)
    above = None if sums.high is None else over * sums.high
    return Pair(q1, q2, over * sums.low, above, ntk, before.how)
