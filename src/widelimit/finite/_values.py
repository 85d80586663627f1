"""The signal of a finite network as a state: what layers without weights do to numbers."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from widelimit._base.numerics import safe_sqrt
from widelimit._base.scalars import Scalar
from widelimit._base.types import Self, Tensor
from widelimit.activations import Activation
from widelimit.interpret import State, is_zero
from widelimit.layers import LinearMap, Neighbours, Sites, Whole, Window, centre

from ._parameterise import cast

Numbers = Float[Tensor, "_ ... _"]  # (points, *pixels, channels)
Mask = Bool[Tensor, "_ ..."]


class Values(State, eqx.Module):
    """The signal itself, and what each point carries beside it.

    Attributes:
        x: The numbers.
        mask: True where a pixel is not there; the signal is 0 there.
        graph: The transposed adjacencies.
        keys: What entries are dropped by; None: none are.
    """

    question: ClassVar[str] = "the output of a finite network"

    x: Numbers
    mask: Mask | None = None
    graph: Float[Tensor, "points nodes nodes"] | None = None
    keys: Key[Array, " points"] | None = None

    @property
    def sites(self) -> Sites:
        """The sizes of the spatial axes."""
        return tuple(self.x.shape[1:-1])

    def but(self, x: Numbers, mask: Mask | None) -> Self:
        """Other numbers, 0 where the mask says that nothing is."""
        if mask is not None:
            x = jnp.where(mask[..., None], jnp.zeros((), x.dtype), x)
        return dataclasses.replace(self, x=x, mask=mask)

    def now(self, x: Numbers) -> Self:
        """Other numbers in the same pixels."""
        return self.but(x, self.mask)

    def weighted(self, width: int | None) -> Self:
        raise NotImplementedError("a layer with weights has a rule of its own")

    def windowed(self, window: Window, width: int | None) -> Self:
        return self.weighted(width)

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        return self.weighted(None)

    def biased(self, b_std: Scalar) -> Self:
        return self if is_zero(b_std) else self.weighted(None)

    def scaled(self, factor: Scalar) -> Self:
        return dataclasses.replace(self, x=cast(factor, self.x.dtype) * self.x)

    def activated(self, activation: Activation) -> Self:
        return self.now(activation.fn(self.x))

    def _mean(self, x: Numbers, over: str) -> Array:
        """Over the channels, or over channels and pixels that are there; axes are kept."""
        if over == "channels":
            return jnp.mean(x, axis=-1, keepdims=True)
        axes = tuple(range(1, x.ndim))
        if self.mask is None:
            return jnp.mean(x, axis=axes, keepdims=True)
        there = jnp.sum(~self.mask, axis=axes[:-1]).astype(x.dtype) * x.shape[-1]
        return jnp.sum(x, axis=axes, keepdims=True) / there.reshape(-1, *(1,) * len(axes))

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        square = self._mean(self.x**2, over) + cast(eps, self.x.dtype)
        return self.now(self.x / safe_sqrt(jnp.where(square > 0, square, 1)))

    def centred(self, over: str = "channels") -> Self:
        return self.now(self.x - self._mean(self.x, over))

    def dropped(self, keep: Scalar) -> Self:
        if self.keys is None:
            return self
        number = cast(keep, self.x.dtype)
        both = jax.vmap(lambda key: jax.random.split(key))(self.keys)
        kept = jax.vmap(lambda key: jax.random.uniform(key, self.x.shape[1:], self.x.dtype))
        x = jnp.where(kept(both[:, 0]) < number, self.x / number, jnp.zeros((), self.x.dtype))
        return dataclasses.replace(self, x=x, keys=both[:, 1])

    def branch(self, number: int) -> Self:
        """The signal at the start of a branch, which drops entries of its own."""
        if self.keys is None:
            return self
        return dataclasses.replace(
            self, keys=jax.vmap(jax.random.fold_in, (0, None))(self.keys, number)
        )

    def mapped(self, pixels: LinearMap) -> Self:
        mask = None if self.mask is None else masked_behind(self.mask, pixels.middle(self.sites))
        parts = []
        for factor, chain in pixels.terms:
            x = self.x
            for step in chain:
                if isinstance(step, Neighbours):
                    x = self._aggregated(x)
                else:
                    x = along_axes(x, step.factors(tuple(x.shape[1:-1])))
                if isinstance(step, Whole):
                    x = self._averaged(x, step)
            parts.append(cast(factor, x.dtype) * x)
        return self.but(functools.reduce(jnp.add, parts), mask)

    def _averaged(self, x: Numbers, step: Whole) -> Numbers:
        """One vector; an average is over the pixels that are there."""
        x = x.reshape(x.shape[0], x.shape[-1])
        if self.mask is None or not step.average:
            return x
        there = jnp.sum(~self.mask, axis=tuple(range(1, self.mask.ndim))).astype(x.dtype)
        return x * (math.prod(self.sites) / there)[:, None]

    def _aggregated(self, x: Numbers) -> Numbers:
        if self.graph is None:
            raise ValueError(
                "Aggregate() sums over the neighbours in each input's graph, but the inputs have none. "
                "Give them as widelimit.Graphs(x, adjacency)."
            )
        return jnp.einsum("npa,nac->npc", self.graph.astype(x.dtype), x, precision="highest")

    def flattened(self) -> Self:
        return dataclasses.replace(self, x=self.x.reshape(self.x.shape[0], -1), mask=None)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self.scaled(skip), *parts]
        return self.met(met, lambda numbers: functools.reduce(jnp.add, numbers))

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self.met(parts, lambda numbers: jnp.concatenate(numbers, axis=-1))

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self.met(parts, lambda numbers: functools.reduce(jnp.multiply, numbers))

    def met(self, parts: Sequence[Self], how: Callable[[list[Numbers]], Numbers]) -> Self:
        """Branches become one signal; what is dropped later depends on no branch."""
        x = how([part.x for part in parts])
        return dataclasses.replace(self.branch(len(parts)), x=x, mask=parts[0].mask)


# What flows through a finite network: plain numbers, or with something beside them.
Signals = Numbers | Values


def as_values(signal: Signals) -> Values:
    """The signal as a state."""
    return signal if isinstance(signal, Values) else Values(signal)


def handed(values: Values) -> Signals:
    """The signal as layers hand it on: an array where there is nothing beside it."""
    plain = values.mask is None and values.graph is None and values.keys is None
    return values.x if plain else values


def along_axes(x: Numbers, factors: Sequence[Float[np.ndarray, "_ _"]]) -> Numbers:
    """A matrix for each spatial axis, applied to it."""
    for axis, matrix in enumerate(factors):
        moved = jnp.tensordot(
            x, jnp.asarray(matrix.T, x.dtype), ((1 + axis,), (0,)), precision="highest"
        )
        x = jnp.moveaxis(moved, -1, 1 + axis)
    return x


def masked_behind(mask: Mask, middle: Sequence[np.ndarray] | None) -> Mask | None:
    """Behind windows: the mask of the pixel under the middle of each; None where no pixels remain."""
    if middle is None:
        return None
    found = jnp.asarray(mask)
    for axis, index in enumerate(middle):
        shape = (1, *(len(index) if a == axis else 1 for a in range(len(middle))))
        found = jnp.take(found, index, axis=1 + axis) | jnp.asarray(index < 0).reshape(shape)
    return found


def slid(signal: Values, x: Numbers, window: Window) -> Values:
    """What a window made of a signal, with the mask that it hands on."""
    if signal.mask is None:
        return signal.now(x)
    return signal.but(x, masked_behind(signal.mask, centre(window.tables(signal.sites))))
