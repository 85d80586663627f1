r"""The kernels of inputs with pixels, as a state: a block for each pair, and for each image with itself."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool

from widelimit._base.arrays import is_transformed
from widelimit._base.compile import quick_jit
from widelimit._base.scalars import Scalar
from widelimit._base.thresholds import BRIEF_BLOCK
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
from ._linear_map import Matrices, mapped
from ._masks import Extras, Mask, never_negative
from ._pair import Pair, doubled
from ._plan import join, split

_COMPOSITE = Serial, Sum, Residual, Repeat, Concat, Product, Frozen


class Images(State, eqx.Module):
    """Second-order statistics of a layer's output for pairs of inputs with pixels.

    Attributes:
        cross: The block of all pairs (`_block.py`).
        own1: That of each first input with itself; None where no layer needs it.
        own2: The same of the second inputs; None also where they are the first.
        one: Masks and graphs of the first inputs.
        two: Those of the second.
        same: Which pairs are one input, shape (n1, n2); None: none.
        sites: The sizes of the spatial axes.
        brief: Whether this is all that is asked for, and little: layers are then compiled quickly rather than well.
    """

    question: ClassVar[str] = "the kernels"

    cross: Pair
    own1: Pair | None
    own2: Pair | None
    one: Extras
    two: Extras
    same: Bool[Array, "n1 n2"] | None
    sites: Sites = eqx.field(static=True)
    brief: bool = eqx.field(static=True, default=False)

    # --- helpers --------------------------------------------------------------------------------

    def _each(self, change: Callable[[Pair], Pair]) -> Self:
        """The same rule for all three blocks."""
        maybe = lambda b: None if b is None else change(b)
        return dataclasses.replace(
            self, cross=change(self.cross), own1=maybe(self.own1), own2=maybe(self.own2)
        )

    def _hidden(self) -> Self:
        """Nothing where the masks say so."""
        m1, m2 = self.one.mask, self.two.mask
        if m1 is None and m2 is None:
            return self
        return dataclasses.replace(
            self,
            cross=block.hidden(self.cross, m1, m2),
            own1=self.own1 and block.hidden(self.own1, m1, m1, own=True),
            own2=self.own2 and block.hidden(self.own2, m2, m2, own=True),
        )

    def visited(self, layer: Layer, rule: Rule) -> Self:
        """A program for each layer: none is compiled twice, and no fusion computes a layer again."""
        if rule is not propagate or isinstance(layer, _COMPOSITE):
            return rule(layer, self)
        form, numbers = split(layer)
        how = series_for(layer, self.cross)
        start = self if how is None else self._each(lambda b: dataclasses.replace(b, how=how))
        with jax.enable_x64(True):
            if is_transformed((numbers, start)):
                return propagate(layer, start)
            small = self.brief or start.cross.minus.size <= BRIEF_BLOCK
            return (_brief_step if small else _step)(form, numbers, start)

    # --- one pixel at a time --------------------------------------------------------------------

    def scaled(self, factor: Scalar) -> Self:
        return self if is_one(factor) else self._each(lambda b: b.scaled(factor))

    def biased(self, b_std: Scalar) -> Self:
        return self if is_zero(b_std) else self._each(lambda b: b.biased(b_std))._hidden()

    def trained(self) -> Self:
        return dataclasses.replace(self, cross=self.cross.trained())

    def activated(self, activation: Activation) -> Self:
        out = self._each(lambda b: b.activated(activation))
        return out if activation.vanishes else out._hidden()

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        k = len(self.sites)
        with jax.enable_x64(True):
            extra = doubled(eps)

            def divide(q: Array, mask: Mask | None) -> Array:
                total = q
                if over == "all":
                    total = jnp.sum(q, axis=tuple(range(2, 2 + 2 * k)), keepdims=True)
                    total = total / self._count(mask, q)
                return jnp.where(q > 0, q / jnp.where(total + extra > 0, total + extra, 1), 0)

            def out(b: Pair, m1: Mask | None, m2: Mask | None) -> Pair:
                return dataclasses.replace(b, q1=divide(b.q1, m1), q2=divide(b.q2, m2))

            m1, m2 = self.one.mask, self.two.mask
            return dataclasses.replace(
                self,
                cross=out(self.cross, m1, m2),
                own1=None if self.own1 is None else out(self.own1, m1, m1),
                own2=None if self.own2 is None else out(self.own2, m2, m2),
            )

    def _count(self, mask: Mask | None, q: Array) -> Array:
        """The number of pixels that are there, broadcastable against variances."""
        if mask is None:
            return jnp.asarray(float(math.prod(self.sites)), q.dtype)
        count = jnp.sum(~mask, axis=tuple(range(1, mask.ndim))).astype(q.dtype)
        return count.reshape(*q.shape[:2], *(1,) * (q.ndim - 2))

    def dropped(self, keep: Scalar) -> Self:
        with jax.enable_x64(True):
            number = doubled(keep)
            pixel = block.same_pixel(self.cross)
            never = jnp.zeros((1,) * pixel.ndim, bool)
            here = never
            if self.same is not None:
                here = self.same.reshape(*self.same.shape, *(1,) * (pixel.ndim - 2)) & pixel
            own = lambda b: None if b is None else block.dropped(b, number, pixel)
            return dataclasses.replace(
                self,
                cross=block.dropped(self.cross, number, here),
                own1=own(self.own1),
                own2=own(self.own2),
            )

    # --- pixels ---------------------------------------------------------------------------------

    def windowed(self, window: Window, width: int | None) -> Self:
        tables = window.tables(self.sites)
        with jax.enable_x64(True):
            out = self._each(lambda b: block.windowed(b, tables))
        return out._placed(window.out(self.sites), centre(tables))

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
        return self._each(block.localised)

    def mapped(self, pixels: LinearMap) -> Self:
        middle = None
        if self.one.mask is not None or self.two.mask is not None:
            middle = pixels.middle(self.sites)
        first = self._matrix(pixels, self.one)
        matrices = Matrices(
            first,
            first if self._alike(pixels) else self._matrix(pixels, self.two),
            never_negative(pixels),
            pixels.out(self.sites),
        )
        return self._by(matrices)._placed(pixels.out(self.sites), middle)

    def _alike(self, pixels: LinearMap) -> bool:
        """Whether the map's matrix is one for all inputs."""
        return not pixels.own and self.one.mask is None and self.two.mask is None

    def _by(self, matrices: Matrices) -> Self:
        blocks = mapped(self.cross, self.own1, self.own2, matrices, self.same)
        return dataclasses.replace(self, cross=blocks[0], own1=blocks[1], own2=blocks[2])

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
            return self._each(block.flattened)._placed((), None)

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        if is_zero(std):
            return self
        with jax.enable_x64(True):
            place = position_covariance(decay, self.sites)
            return self._each(lambda b: with_positions(b, place, std, trained=trained))._hidden()

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        gain = layer.q_std * layer.k_std
        if layer.scaling == "linear":
            return self._by(queries._attention(layer.weights, gain))._hidden()
        learnt = lambda state: state.trained() if trained else state
        seen, keys = learnt(queries.scaled(gain)), learnt(queries)
        summed = keys.multiplied([keys, self]).mapped(LinearMap.of(Whole(average=False)))
        wide = lambda a: a.reshape(*a.shape, *(1,) * (2 * len(self.sites)))
        return seen.multiplied([seen, summed._each(lambda b: jax.tree.map(wide, b))])

    def _attention(self, weights: str, gain: Scalar) -> Matrices:
        """The attention weights of each input, which its own block makes."""
        with jax.enable_x64(True):
            assert self.own1 is not None
            first = attention_weights(self.own1, self.one.mask, weights, gain)
            second = first
            if self.own2 is not None:
                second = attention_weights(self.own2, self.two.mask, weights, gain)
            positive = weights != "identity" or self.cross.above is None
            return Matrices(first, second, positive, self.sites)

    # --- how signals meet -----------------------------------------------------------------------

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self.scaled(skip), *parts]
        return self._together(met, _mixed)

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self._together(parts, lambda blocks: _concatenated(blocks, tuple(widths)))

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self._together(parts, block.multiplied)

    def _together(self, parts: Sequence[Self], how: Callable[[list[Pair]], Pair]) -> Self:
        first = parts[0]
        with jax.enable_x64(True):
            maybe = lambda name: (
                None if getattr(first, name) is None else how([getattr(p, name) for p in parts])
            )
            return dataclasses.replace(
                first, cross=how([p.cross for p in parts]), own1=maybe("own1"), own2=maybe("own2")
            )


def _stepped(form: Any, numbers: Any, state: Images) -> Images:
    return propagate(join(form, numbers), state)


_step = jax.jit(_stepped, static_argnums=0)
_brief_step = quick_jit(_stepped)


@jax.jit
def _mixed(parts: list[Pair]) -> Pair:
    return Pair.mixed(parts)


@functools.partial(jax.jit, static_argnums=1)
def _concatenated(parts: list[Pair], widths: tuple[int, ...]) -> Pair:
    return block.concatenated(parts, widths)
