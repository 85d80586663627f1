r"""The kernels of inputs with pixels, as a state: a block of pixels for each pair of inputs."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from widelimit._base.arrays import is_transformed
from widelimit._base.scalars import Scalar
from widelimit._base.thresholds import BRIEF_BLOCK
from widelimit._base.trees import as_tree
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import Rule, State, is_one, is_zero, propagate
from widelimit.layers import (
    Attention,
    Concat,
    Frozen,
    Layer,
    LinearMap,
    Product,
    Repeat,
    Residual,
    Serial,
    Sites,
    Sum,
    Whole,
    Window,
    centre,
    position_covariance,
)

from . import _block as block
from ._attend import attention_weights, with_positions
from ._choose import series_for
from ._doubt import Doubt
from ._linear_map import Matrices, mapped
from ._masks import Extras, Mask, never_negative
from ._meet import Meeting, Tape
from ._pair import Pair, doubled
from ._plan import split
from ._steps import propagated, stepped

S = TypeVar("S", bound="Images")
_COMPOSITE = Serial, Sum, Residual, Repeat, Concat, Product, Frozen


@as_tree("sites", "tape", "many")
@dataclasses.dataclass(frozen=True)
class Images(State):
    """Second-order statistics of a layer's output for pairs of inputs with pixels.

    Attributes:
        pairs: The block of all pairs (`_block.py`), axes (pairs, pixels of the first, pixels of the second).
        meeting: Which inputs they are of.
        one: Masks and graphs of the first inputs.
        two: Those of the second.
        doubt: How far single precision is to be trusted; None where nothing is in doubt.
        sites: The sizes of the spatial axes.
        tape: What maps of pixels need of single inputs; None where nothing looks at variances behind them.
        many: How many pairs of inputs there are, in groups such as this: where it is little, layers are compiled
            quickly rather than well.
    """

    question: ClassVar[str] = "the kernels"

    pairs: Pair
    meeting: Meeting
    one: Extras
    two: Extras
    doubt: Doubt | None
    sites: Sites
    tape: Tape | None = None
    many: int = 0

    # --- helpers --------------------------------------------------------------------------------

    @property
    def small(self) -> bool:
        """Whether compiling a layer well costs more than running it."""
        return self.entries <= BRIEF_BLOCK

    @property
    def entries(self) -> int:
        """How many pairs of pixels there are, in groups such as this."""
        minus = self.pairs.minus
        return max(self.many, len(minus)) * (minus.size // len(minus))

    def _of(self, pairs: Pair) -> Self:
        return dataclasses.replace(self, pairs=pairs)

    def unwatched(self) -> Self:
        """From here on nothing looks at variances behind a map of pixels."""
        return dataclasses.replace(self, tape=None)

    def _rounded(self, dtype: Any) -> Self:
        """Matrices of this precision."""
        pairs = self.pairs
        above = None if pairs.above is None else pairs.above.astype(dtype)
        minus, ntk = pairs.minus.astype(dtype), pairs.ntk.astype(dtype)
        return self._of(dataclasses.replace(pairs, minus=minus, above=above, ntk=ntk))

    def _hidden(self) -> Self:
        """Nothing where the masks say so."""
        return self._of(block.hidden(self.pairs, self.one.mask, self.two.mask))

    def visited(self, layer: Layer, rule: Rule) -> Self:
        """By a program for each layer (`_steps.py`)."""
        if rule is not propagate or isinstance(layer, _COMPOSITE):
            return rule(layer, self)
        form, numbers = split(layer)
        how = series_for(layer, self.pairs, self.entries)
        start = self if how is None else self._of(dataclasses.replace(self.pairs, how=how))
        pages = None if self.tape is None else self.tape.turned(self.meeting)
        with jax.enable_x64(True):
            if is_transformed((numbers, start, pages)):
                if self.tape is None or not self.tape.inner:  # nobody asks for doubt then
                    start = dataclasses.replace(start, doubt=None)
                out, page = propagated(layer, start, pages)
            else:
                out, page = stepped(layer, form, numbers, start, pages)
        if self.tape is not None:
            self.tape.filed(page)
        return dataclasses.replace(out, tape=self.tape, many=self.many)

    # --- one pixel at a time --------------------------------------------------------------------

    def scaled(self, factor: Scalar) -> Self:
        return self if is_one(factor) else self._of(self.pairs.scaled(factor))

    def biased(self, b_std: Scalar) -> Self:
        return self if is_zero(b_std) else self._of(self.pairs.biased(b_std))._hidden()

    def trained(self) -> Self:
        return self._of(self.pairs.trained())

    def activated(self, activation: Activation) -> Self:
        out = self._of(self.pairs.activated(activation))
        if self.doubt is not None:
            out = dataclasses.replace(out, doubt=self.doubt.activated(self.pairs, activation))
        return out if activation.vanishes else out._hidden()

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        with jax.enable_x64(True):
            extra = doubled(eps)

            def divide(q: Array, mask: Mask | None) -> Array:
                total = q
                if over == "all":
                    total = jnp.sum(q, axis=(1, 2), keepdims=True) / self._count(mask)
                return jnp.where(q > 0, q / jnp.where(total + extra > 0, total + extra, 1), 0)

            q1, q2 = divide(self.pairs.q1, self.one.mask), divide(self.pairs.q2, self.two.mask)
            return self._of(dataclasses.replace(self.pairs, q1=q1, q2=q2))

    def _count(self, mask: Mask | None) -> Array | float:
        """The number of pixels that are there, broadcastable against variances."""
        if mask is None:
            return float(math.prod(self.sites))
        there = jnp.sum(~mask.reshape(len(mask), -1), axis=1).astype(jnp.float64)
        return there[:, None, None]

    def dropped(self, keep: Scalar) -> Self:
        with jax.enable_x64(True):
            here = self.meeting.same[:, None, None] & block.same_pixel(self.pairs)
            out = self._of(block.dropped(self.pairs, doubled(keep), here))
        apart = dataclasses.replace(self.meeting, equal=self.meeting.same)
        return dataclasses.replace(out, meeting=apart)

    # --- pixels ---------------------------------------------------------------------------------

    def windowed(self, window: Window, width: int | None) -> Self:
        with jax.enable_x64(True):
            out = self._of(block.windowed(self.pairs, window, self.sites))
        return out._placed(window.out(self.sites), centre(window.tables(self.sites)))

    def _placed(self, sites: Sites, middle: Sequence[np.ndarray] | None) -> Self:
        """Behind a window: the masks of the pixels under its middle."""

        def mask(extras: Extras) -> Extras:
            if extras.mask is None or middle is None:
                return dataclasses.replace(extras, mask=None)
            found = extras.mask
            for axis, index in enumerate(middle):
                found = jnp.take(found, index, axis=1 + axis) | jnp.asarray(index < 0).reshape(
                    1, *(len(index) if a == axis else 1 for a in range(len(middle)))
                )
            return dataclasses.replace(extras, mask=found)

        return dataclasses.replace(
            self, sites=sites, one=mask(self.one), two=mask(self.two)
        )._hidden()

    def localised(self) -> Self:
        return self._of(block.localised(self.pairs))

    def mapped(self, pixels: LinearMap) -> Self:
        middle, positive = None, never_negative(pixels)
        masked = self.one.mask is not None or self.two.mask is not None
        if masked:
            middle = pixels.middle(self.sites)
        first, second = (functools.partial(self._matrix, pixels, of) for of in (self.one, self.two))
        own = masked or pixels.own or not positive
        shared = None if own else pixels.matrix(self.sites)
        return self._by(Matrices(first, second, positive, shared))._placed(
            pixels.out(self.sites), middle
        )

    def _by(self, matrices: Matrices) -> Self:
        with jax.enable_x64(True):
            pairs, doubt = mapped(self.pairs, matrices, self.meeting, self.tape)
            doubt = self.doubt if doubt is None else doubt.joined(self.doubt)
            return dataclasses.replace(self, pairs=pairs, doubt=doubt)

    def _matrix(self, pixels: LinearMap, extras: Extras) -> Array:
        """The map's matrix, for each input where it is its own; an average is over what is there."""
        with jax.enable_x64(True):
            matrix = jnp.asarray(pixels.matrix(self.sites, extras.graph), jnp.float64)
            whole = isinstance(pixels.single, Whole) and pixels.single.average
            if extras.mask is not None and whole:
                there = (~extras.mask.reshape(len(extras.mask), 1, -1)).astype(matrix.dtype)
                return there / jnp.sum(there, axis=-1, keepdims=True)
            return matrix if matrix.ndim == 3 else matrix[None]

    def flattened(self) -> Self:
        with jax.enable_x64(True):
            return self._of(block.flattened(self.pairs))._placed((), None)

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        if is_zero(std):
            return self
        with jax.enable_x64(True):
            place = position_covariance(decay, self.sites)
            return self._of(with_positions(self.pairs, place, std, trained=trained))._hidden()

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        gain = layer.q_std * layer.k_std
        if layer.scaling == "linear":
            weights = functools.partial(queries._attention, layer.weights, gain)
            positive = layer.weights != "identity" or queries.pairs.above is None
            return self._by(Matrices(weights, weights, positive))._hidden()
        learnt = lambda state: state.trained() if trained else state
        seen, keys = learnt(queries.scaled(gain)), learnt(queries)
        summed = keys.multiplied([keys, self]).mapped(LinearMap.of(Whole(average=False)))
        return seen.multiplied([seen, summed._rounded(seen.pairs.minus.dtype)])

    def _attention(self, weights: str, gain: Scalar) -> Array:
        """The attention weights of each input, which its own block makes: here inputs meet themselves."""
        with jax.enable_x64(True):
            return attention_weights(self.pairs, self.one.mask, weights, gain)

    # --- how signals meet -----------------------------------------------------------------------

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        return _met(_mixed, [*parts] if skip is None else [self.scaled(skip), *parts])

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return _met(lambda blocks: _concatenated(blocks, tuple(widths)), parts)

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return _met(_multiplied, parts)


def _met(how: Callable[[list[Pair]], Pair], parts: Sequence[S]) -> S:
    """Signals that became one."""
    with jax.enable_x64(True):
        doubts = [part.doubt for part in parts if part.doubt is not None]
        doubt = functools.reduce(Doubt.joined, doubts) if doubts else None
        finest = max((part.pairs.minus.dtype for part in parts), key=lambda dtype: dtype.itemsize)
        pairs = how([part._rounded(finest).pairs for part in parts])
        return dataclasses.replace(parts[0], pairs=pairs, doubt=doubt)


@jax.jit
def _mixed(parts: list[Pair]) -> Pair:
    return Pair.mixed(parts)


@functools.partial(jax.jit, static_argnums=1)
def _concatenated(parts: list[Pair], widths: tuple[int, ...]) -> Pair:
    return block.concatenated(parts, widths)


@jax.jit
def _multiplied(parts: list[Pair]) -> Pair:
    return block.multiplied(parts)
