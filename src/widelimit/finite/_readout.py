"""The last-layer kernel: the covariance of an output over the last weights, the features held fixed."""

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from widelimit._base.numerics import safe_sqrt
from widelimit._base.scalars import Scalar
from widelimit._base.types import Params, Self
from widelimit.activations import Activation
from widelimit.interpret import State, interpret
from widelimit.layers import Attention, Layer, LinearMap, Window

from ._convolve import patches
from ._forward import forward
from ._parameterise import How, cast
from ._tap import Tap
from ._values import Signals, Values

_SAME = LinearMap()


@dataclasses.dataclass(frozen=True)
class Readout(State):
    """Which groups of weights the output is a sum of, and what was done to each since.

    Attributes:
        terms: (number of the group in the order of the layers, a linear map of its pixels).
        drawn: How many groups there are so far; all signals of a network share it.
        through: What the signal went through since that is not linear, if anything.
        drawing: Whether a group's own scale is still to come; it is part of its tap.
        flat: Whether pixels have become channels since.
    """

    question: ClassVar[str] = "the last-layer kernel"

    terms: tuple[tuple[int, LinearMap], ...]
    drawn: list[None]
    through: str | None = None
    drawing: bool = False
    flat: bool = False

    def _new(self) -> int:
        self.drawn.append(None)
        return len(self.drawn) - 1

    def _stopped(self, by: str) -> Self:
        return type(self)((), self.drawn, by)

    def weighted(self, width: int | None) -> Self:
        return type(self)(((self._new(), _SAME),), self.drawn, drawing=True)

    def windowed(self, window: Window, width: int | None) -> Self:
        return self.weighted(width)

    def localised(self) -> Self:
        return self

    def trained(self) -> Self:
        return dataclasses.replace(self, drawing=False)

    def untrained(self) -> Self:
        return self.trained()

    def scaled(self, factor: Scalar) -> Self:
        if self.drawing:
            return self
        terms = tuple((i, own.times(factor)) for i, own in self.terms)
        return dataclasses.replace(self, terms=terms)

    def biased(self, b_std: Scalar) -> Self:
        return self

    def activated(self, activation: Activation) -> Self:
        return self._stopped(repr(activation.name))

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self._stopped("a normalisation")

    def dropped(self, keep: Scalar) -> Self:
        return self._stopped("Dropout")

    def mapped(self, pixels: LinearMap) -> Self:
        terms = tuple((i, pixels.after(own)) for i, own in self.terms)
        return dataclasses.replace(self, terms=terms)

    def flattened(self) -> Self:
        return dataclasses.replace(self, flat=True)

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        return dataclasses.replace(self, terms=(*self.terms, (self._new(), _SAME)))

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        for _ in range(1 if layer.scaling == "linear" else 2):
            self._new()
        return self

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self.scaled(skip), *parts]
        terms = tuple(term for state in met for term in state.terms)
        through = next((s.through for s in met if s.through), None)
        return type(self)(terms, self.drawn, through, flat=any(s.flat for s in met))

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self._stopped("Concat")

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self._stopped("Product")


def _readout(net: Layer) -> Readout:
    found = interpret(net, Readout((), []))
    if found.through is not None:
        raise ValueError(
            f"The network's output passes through {found.through} after its last Dense, so "
            "it is not Gaussian given the features and has no last-layer kernel. End the network "
            "with a Dense()."
        )
    return found


def _in_order(taps: PyTree) -> list[Tap]:
    """The taps of all groups of weights in the order of the layers, repetitions written out."""
    if isinstance(taps, Tap):
        return [taps]
    if isinstance(taps, dict) and "scan" in taps:
        leaves = jax.tree.leaves(taps["scan"])
        rounds = range(len(leaves[0]) if leaves else 0)
        taps = taps["each"] + [
            jax.tree.map(lambda leaf, i=i: leaf[i], taps["scan"]) for i in rounds
        ]
    return [tap for part in taps for tap in _in_order(part)]


def readout_kernel(
    net: Layer, params: Params, x1: Signals, x2: Signals | None, how: How
) -> Float[Array, "n1 n2 *pixels"]:
    """The covariance of one output over the weights of the last layer, the features held fixed.

    An output with pixels has one for each pair of them: (n1, n2, *pixels, *pixels).
    """
    found = _readout(net)
    with jax.default_matmul_precision("highest"):
        first = _in_order(forward(net, params, x1, None, how)[1])
        second = first if x2 is None else _in_order(forward(net, params, x2, None, how)[1])
        total = jnp.zeros((), first[0].x.dtype) if first else jnp.zeros(())
        for i, pixels in found.terms:
            total = total + _covariance(first[i], second[i], pixels, flat=found.flat)
        return total


def _covariance(
    tap1: Tap, tap2: Tap, pixels: LinearMap, *, flat: bool
) -> Float[Array, "n1 n2 *pixels"]:
    factor = pixels.factor
    if tap1.x.ndim == 2 and factor is not None:
        v_w, v_b = tap1.prior
        return cast(factor, tap1.x.dtype) ** 2 * jnp.asarray(v_w * (tap1.x @ tap2.x.T) + v_b)
    one, two = (_features(tap, pixels, flat=flat) for tap in (tap1, tap2))
    gram = jnp.tensordot(one, two, ((-1,), (-1,)))
    return jnp.moveaxis(gram, one.ndim - 1, 1)


def _features(
    tap: Tap, pixels: LinearMap, *, flat: bool
) -> Float[Array, "points *pixels features"]:
    """Vectors whose inner products are the covariance: patches and a constant, with their deviations."""
    read = patches(tap.x, tap.window)
    v_w, v_b = (jnp.asarray(v, read.dtype) for v in tap.prior)
    constant = jnp.broadcast_to(safe_sqrt(v_b), (*read.shape[:-1], 1))
    read = jnp.concatenate([safe_sqrt(v_w) * read, constant], axis=-1)
    sites = tuple(read.shape[1:-1])
    if tap.local:  # the weights of different pixels are different
        own = jnp.eye(math.prod(sites), dtype=read.dtype)
        spread = jnp.einsum("npf,pr->nprf", read.reshape(len(read), len(own), -1), own)
        read = spread.reshape(len(read), *sites, -1)
    signal = Values(read, tap.mask, tap.graph).now(read).mapped(pixels)
    if not flat:
        return jnp.asarray(signal.x)
    return jnp.asarray(signal.flattened().x) / math.prod(signal.sites) ** 0.5
