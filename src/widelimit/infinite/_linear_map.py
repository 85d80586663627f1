r"""Linear maps of pixels: pools, attention, graphs.

Pixels of one image are dependent, so the variance of $y_p=\sum_aA_{pa}x_a$ needs the image's own block. With
$s=\sqrt q$, $a=\sum_pA_ps_p$ and $M=\sum A_pA'_rs_ps'_r(1-\rho)$ (of the pair; $M_{xx}$ of the own block)
$$Q=a^2-M_{xx},\qquad a-\sqrt Q=\frac{M_{xx}}{a+\sqrt Q},\qquad
\sqrt{QQ'}(1-\rho)=M-(a-\sqrt Q)\,a'-\sqrt Q\,(a'-\sqrt{Q'}).$$
Where no own block is carried, nothing that follows looks at variances or at $1-\rho$, and $a^2$ serves as $Q$: then
nothing is subtracted at all.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit._base.thresholds import REFINED, SIMILAR
from widelimit.activations import How

from ._doubt import Doubt
from ._edges import written
from ._meet import Meeting, Tape
from ._pair import Pair, going, outer

Array_ = Float[Array, "..."]


class Matrices(NamedTuple):
    """The matrices of a linear map, for pairs.

    Attributes:
        first: Makes those of the first inputs, shape (pairs or 1, P', P), float64.
        second: The same for the second inputs.
        positive: Whether no entry is negative.
        shared: The matrix where it is one for all inputs and known beforehand.
    """

    first: Callable[[], Array_]
    second: Callable[[], Array_]
    positive: bool
    shared: Float[np.ndarray, "outputs pixels"] | None = None


class Mapped(NamedTuple):
    """A block behind a map, not yet normalised: axes (pairs, P', P')."""

    low: Array_
    high: Array_ | None
    ntk: Array_


def _product(a: Array_, b: Array_) -> Array_:
    return jnp.matmul(a, b, precision="highest")


class _Side(NamedTuple):
    """The matrices times the deviations of what they read, in units of what the outcome's is at most.

    Attributes:
        matrix: In the dtype of pairs, axes (pairs, P', P); products of two would leave the range of float32.
        total: Sums over the pixels that are read, float64.
        most: The unit: the sum of absolute values.
    """

    matrix: Array_
    total: Array_
    most: Array_


def _side(matrix: Array_, root: Array_, dtype: str) -> _Side:
    product = matrix * root
    most = jnp.sum(jnp.abs(product), axis=2)
    shares = safe_divide(product, jnp.broadcast_to(most[:, :, None], product.shape))
    return _Side(shares.astype(dtype), jnp.sum(shares, axis=2), most)


def _both(one: _Side, two: _Side, v: Array_) -> Array_:
    return _product(_product(one.matrix, v), jnp.swapaxes(two.matrix, 1, 2))


def _tangent(block: Pair, one: _Side, two: _Side, like: Array_) -> Array_:
    untrained = block.ntk.size < block.minus.size  # then it is 0
    return jnp.zeros_like(like) if untrained else _both(one, two, block.ntk)


def _sums(block: Pair, one: _Side, two: _Side) -> Mapped:
    low = _both(one, two, block.minus)
    high = None if block.above is None else _both(one, two, block.above)
    return Mapped(low, high, _tangent(block, one, two, low))


class Alone(NamedTuple):
    """What a map needs of each input by itself.

    Attributes:
        side: Its matrix, times deviations.
        size: Deviations behind the map.
        window: Where entries are compared one by one (`_refined`): 1 - rho of the pixels that each output reads.
    """

    side: _Side
    size: "Size"
    window: Array_ | None


def mapped(
    block: Pair, matrices: Matrices, meeting: Meeting, tape: Tape | None
) -> tuple[Pair, Doubt | None]:
    """The block behind a linear map, and how far single precision is to be trusted, where it is used."""
    with jax.enable_x64(True):
        dtype = str(block.minus.dtype)
        s1, s2 = jnp.swapaxes(safe_sqrt(block.q1), 1, 2), safe_sqrt(block.q2)
        make = lambda matrix, root: _side(matrix, root, dtype)
        if tape is None:
            sides = make(matrices.first(), s1), make(matrices.second(), s2)
            return _bounded(block, *sides, positive=matrices.positive), None
        places = _compared(block, matrices)

        def alone() -> Alone:
            side = written(going(s1), make, matrices.first(), s1)
            spread = jnp.diagonal(_both(side, side, block.minus), axis1=1, axis2=2)
            size = written(going(side.total), Size.of, side.total, spread.astype(jnp.float64))
            return Alone(side, size, None if places is None else _window(block, places))

        one, two = tape.of(alone, meeting)
        sums = _sums(block, one.side, two.side)
        known = block.above is None and matrices.positive
        sizes = one.size, two.size
        out, doubt = settled(
            sums, sizes, meeting, positive=matrices.positive, known=known, how=block.how
        )
        out = enlarged(out, one.side.most, two.side.most)
        if places is None:
            return out, doubt
        weights = np.take_along_axis(matrices.shared, places, axis=1)
        return _refined(out, block, weights[None], places, (one.window, two.window)), doubt


class Size(NamedTuple):
    r"""What each input's output pixels have, axes (inputs, P'), float64; `away` is $a-\sqrt Q=M_{xx}/(a+\sqrt Q)$."""

    a: Array_
    away: Array_
    q: Array_
    root: Array_
    over: Array_

    @staticmethod
    def of(a: Array_, spread: Array_) -> "Size":
        """From the sums: the variance, its root, and 1 over that."""
        q = jnp.maximum(a**2 - spread, 0)
        root = safe_sqrt(q)
        return Size(a, safe_divide(spread, a + root), q, root, _inverse(root))


def settled(
    sums: Mapped,
    sizes: tuple[Size, Size],
    meeting: Meeting,
    *,
    positive: bool,
    known: bool,
    how: How,
) -> tuple[Pair, Doubt | None]:
    """Normalised by the true variances, which the images' own blocks have; exactly 0 where equal outputs meet.

    Returns:
        The block, and how far single precision is to be trusted, where it is used.
    """
    dtype = sums.low.dtype
    one = Size(*(a[:, :, None] for a in sizes[0]))
    two = Size(*(a[:, None, :] for a in sizes[1]))
    over = outer(one.over, two.over, sums.low)
    above = None
    if positive:
        lost = (one.away * two.a + one.root * two.away).astype(dtype)
        minus = (sums.low - lost) * over
        if not known and sums.high is not None:
            above = jnp.clip((sums.high - lost) * over, 0, 2)
    else:
        cov = one.a * two.a - sums.low.astype(jnp.float64)
        minus = (one.root * two.root - cov).astype(dtype) * over
    minus = jnp.clip(minus, 0, 1 if known else 2)
    if not known and above is None:
        above = 2 - minus
    exact = meeting.equal[:, None, None] & jnp.eye(minus.shape[1], dtype=bool)[None]
    minus = jnp.where(exact, 0, minus)
    above = None if above is None else jnp.where(exact, 2, above)
    out = Pair(one.q, two.q, minus, above, sums.ntk * over, how)
    return out, Doubt.of(minus, sums.low * over, meeting.equal) if dtype == jnp.float32 else None


def _inverse(a: Array_) -> Array_:
    return safe_divide(jnp.ones_like(a), a)


def _compared(block: Pair, matrices: Matrices) -> Int[np.ndarray, "outputs reads"] | None:
    """Which pixels each output reads, where similar inputs are to be compared entry by entry."""
    single = block.minus.dtype == jnp.float32  # where it matters, float64 is used instead
    if matrices.shared is None or not matrices.positive or single:
        return None
    matrix = matrices.shared
    reads = max(int((matrix != 0).sum(axis=1).max()), 1)
    if len(matrix) * reads**2 > REFINED:
        return None
    return np.argsort(matrix == 0, axis=1, kind="stable")[:, :reads]


def _window(block: Pair, places: Int[np.ndarray, "outputs reads"]) -> Array_:
    """Between all pixels that an output reads, axes (pairs, P', reads, reads)."""
    return block.minus[:, places[:, :, None], places[:, None, :]]


def _refined(
    out: Pair,
    block: Pair,
    weights: Float[np.ndarray, "1 outputs reads"],
    places: Int[np.ndarray, "outputs reads"],
    own: tuple[Array_ | None, Array_ | None],
) -> Pair:
    r"""Equal output pixels of similar inputs: $1-\rho=\frac12\mathrm{Var}(y/\sqrt Q-y'/\sqrt{Q'})$.

    Differences are taken entry by entry, before anything is summed, so that the rounding of the sums does not
    enter; what remains is the rounding of $1-\rho$ between pixels. Errors of $Q$ enter in second order only. Only
    pixels under the window of an output are read.
    """
    t1 = safe_sqrt(block.q1)[:, places, 0] * _inverse(safe_sqrt(out.q1)) * weights
    t2 = safe_sqrt(block.q2)[:, 0, places] * _inverse(safe_sqrt(out.q2))[:, 0, :, None] * weights
    gap = jnp.sum(t1 - t2, axis=2)
    rows, columns = (lambda t: t[..., :, None]), (lambda t: t[..., None, :])
    mixed = rows(t1) * columns(t2) * _window(block, places)
    own1, own2 = (rows(t) * columns(t) * window for t, window in zip((t1, t2), own, strict=True))
    away = jnp.sum(mixed + jnp.swapaxes(mixed, 2, 3) - own1 - own2, axis=(2, 3))
    fine = jnp.maximum((gap**2 + away) / 2, 0)
    pixels = np.arange(fine.shape[-1])
    coarse = out.minus[:, pixels, pixels]
    close = (fine < SIMILAR) & (coarse > 0)
    minus = jnp.where(close, fine.astype(coarse.dtype), coarse)
    same = np.eye(len(pixels), dtype=bool)[None]
    return dataclasses.replace(out, minus=jnp.where(same, minus[:, :, None], out.minus))


def _bounded(block: Pair, one: _Side, two: _Side, *, positive: bool) -> Pair:
    """Normalised by what variances are at most: enough where only covariances are wanted.

    Those of either sign may nearly cancel: they are summed themselves, and a single output has them in float64.
    """
    alike = positive and block.above is None
    met = _both(one, two, block.minus if alike else block.rho)
    ntk, unit = _tangent(block, one, two, met), jnp.ones((1, 1, 1), jnp.float64)
    if not alike and met.shape[1:] == (1, 1):
        met, ntk = met.astype(jnp.float64), ntk.astype(jnp.float64)
    minus, above = (met, None) if alike else (1 - met, 1 + met)
    return enlarged(Pair(unit, unit, minus, above, ntk, block.how), one.most, two.most)


def enlarged(block: Pair, unit1: Array_, unit2: Array_) -> Pair:
    """With variances that were in squares of these units, axes (pairs, P')."""
    gain1, gain2 = unit1[:, :, None], unit2[:, None, :]
    return dataclasses.replace(block, q1=gain1 * (gain1 * block.q1), q2=gain2 * (gain2 * block.q2))
