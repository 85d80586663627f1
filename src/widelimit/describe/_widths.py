"""Widths: one inference, which finite networks, parameter counts, bounds and the check all read.

A width that the description leaves open is an unknown. Signals that are added have one width, so
their unknowns become one; the last signal has the width of the output; what is still open in the end
takes the width that the caller gives.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from widelimit._base.passes import once_for_each_network
from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import Located, Visit, interpret, is_zero, visits
from widelimit.layers import Attention, Layer, LinearMap, Sites, Window

from ._width import Multiple, Weights, Width


@dataclasses.dataclass(frozen=True)
class Sizes(Located):
    """The width and the pixels of a signal, and the weights that it has met.

    Attributes:
        channels: The width.
        weights: A log that all signals of a network share.
        met: How many groups of weights led to this signal.
        rounds: How many repetitions of a `Repeat` are looked at; None: all.
        sites: The sizes of the spatial axes, () for a vector; None where they are not known.
        new: Where the log begins that is not finished by `trained` or `untrained`.
    """

    question: ClassVar[str] = "the shape"

    channels: Width
    weights: list[Weights]
    met: int = 0
    rounds: int | None = None
    sites: Sites | None = ()
    new: int = 0

    def _drawn(self, *groups: Weights) -> Self:
        new = len(self.weights)
        self.weights.extend(groups)
        channels = groups[-1].fan_out
        return dataclasses.replace(self, channels=channels, met=self.met + len(groups), new=new)

    def _but_new(self, change: Callable[[Weights], Weights]) -> Self:
        self.weights[self.new :] = [change(group) for group in self.weights[self.new :]]
        return self

    def _stated(self, width: int | None) -> Width:
        return Width(width, None if width is None else self.inside)

    def weighted(self, width: int | None) -> Self:
        return self._drawn(Weights(self.channels, self._stated(width)))

    def scaled(self, factor: Scalar) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        self.weights.append(Weights(None, self.channels))
        return dataclasses.replace(self, met=self.met + 1)

    def untrained(self) -> Self:
        return self._but_new(lambda group: group._replace(trained=False))

    def activated(self, activation: Activation) -> Self:
        return self

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self

    def dropped(self, keep: Scalar) -> Self:
        return self

    def windowed(self, window: Window, width: int | None) -> Self:
        copies, sites = 1, self.sites
        if sites is not None:
            self._expect_pixels("slides a window over pixels")
            self._refuse(window.refuse(sites))
            copies, sites = window.taps(len(sites)), window.out(sites)
        out = self._drawn(Weights(self.channels, self._stated(width), copies))
        return dataclasses.replace(out, sites=sites)

    def localised(self) -> Self:
        pixels = 1 if self.sites is None else math.prod(self.sites)
        return self._but_new(lambda group: group._replace(copies=group.copies * pixels))

    def mapped(self, pixels: LinearMap) -> Self:
        if self.sites is None:
            return self
        self._expect_pixels("combines pixels")
        self._refuse(pixels.refuse(self.sites))
        return dataclasses.replace(self, sites=pixels.out(self.sites))

    def flattened(self) -> Self:
        if self.sites is None:
            return dataclasses.replace(self, channels=Width())
        channels = self.channels.times(math.prod(self.sites))
        return dataclasses.replace(self, channels=channels, sites=())

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        self._expect_pixels("adds embeddings to pixels")
        pixels = 1 if self.sites is None else math.prod(self.sites)
        return self._drawn(Weights(None, self.channels, pixels, trained))

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        self._expect_pixels("lets pixels attend to each other")
        keys = self._stated(layer.key_channels)
        share = (layer.key_width or 0) / (layer.value_width or 1)
        if layer.key_channels is None and share >= 1 and share.is_integer():
            keys = self.channels.times(int(share))  # as many heads as the values allow
        shared = layer.scaling == "linear"  # one matrix for queries and keys
        self.weights.append(Weights(queries.channels, keys, 1 if shared else 2, trained))
        return dataclasses.replace(self, met=self.met + 1)

    def _expect_pixels(self, what: str) -> None:
        if self.sites == ():
            raise ValueError(
                f"{self.inside} {what}, but what it is given has none: inputs of shape (n, d), and what comes "
                "out of Flatten or a global pool, are vectors. Give it inputs of shape (n, *spatial, channels), "
                "such as images.reshape(n, height, width, channels), and put it before Flatten."
            )

    def _refuse(self, reason: str | None) -> None:
        if reason is not None:
            raise ValueError(f"{self.inside} cannot be applied: {reason}")

    def _meet_sites(self, met: Sequence[Self]) -> Sites | None:
        sites = {state.sites for state in met}
        if len(sites) > 1:
            shown = " and ".join(str(found) for found in sorted(sites, key=str))
            raise ValueError(
                f"In {self.inside}, paths with {shown} pixels meet. A path that changes the number of pixels "
                "can meet only paths that change it in the same way."
            )
        return sites.pop()

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self, *parts]
        for state in met[1:]:
            state.channels.meet(met[0].channels)
        total = sum(state.met for state in met)
        sites = self._meet_sites(met)
        return dataclasses.replace(self, channels=met[0].channels, met=total, sites=sites)

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        total = sum(state.met for state in parts)
        channels = Multiple([(state.channels, 1) for state in parts])
        found = [state.channels.known for state in parts]
        if None not in found and len({n / w for n, w in zip(found, widths, strict=True) if n}) > 1:
            raise ValueError(
                f"In {self.inside}, the branches have {found} channels, which are not in the proportions "
                f"{tuple(widths)}. Say widths={tuple(found)}, by which their kernels are weighed."
            )
        for state, share in zip(parts, widths, strict=True):
            state.channels.shared(share)
        return dataclasses.replace(
            self, channels=channels, met=total, sites=self._meet_sites(parts)
        )

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self.joined(None, parts)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        return super().repeated(step, times if self.rounds is None else min(times, self.rounds))


@once_for_each_network
def check_pixels(net: Layer, sites: Sites, channels: int | None = None) -> Sites:
    """Refuse inputs with pixels that the network cannot read; the pixels of the output.

    Args:
        net: The network.
        sites: The sizes of the spatial axes of the inputs; () for vectors.
        channels: The number of channels of the inputs.

    Returns:
        The sizes of the spatial axes of the output; () for a vector.
    """
    return interpret(net, Sizes(Width(channels), [], sites=sites)).sites or ()


def check_widths(net: Layer) -> None:
    """Refuse a description whose widths contradict each other, whatever is still open."""
    # After two rounds a repetition sees its own width: a third shows nothing new.
    interpret(net, Sizes(Width(), [], rounds=2, sites=None))


class Inferred(NamedTuple):
    """A network with all its widths.

    Attributes:
        root: The visit of the network; `before.channels` and `after.channels` of each layer inside.
        weights: All trainable numbers, in order.
    """

    root: Visit
    weights: list[Weights]

    @property
    def widths(self) -> tuple[int, ...]:
        """The number of outputs of each weight matrix, in order, repetitions written out."""
        return tuple(int(w.fan_out) for w in self.weights if w.fan_in is not None)


def infer(
    net: Layer,
    input_dim: int,
    width: int,
    output_dim: int | None = None,
    sites: Sites = (),
) -> Inferred:
    """Find every width, or refuse a description that contradicts itself.

    Args:
        net: The network.
        input_dim: The number of features.
        width: What every width that is still open in the end becomes.
        output_dim: The number of outputs; None: what the network states, or else 1.
        sites: The sizes of the spatial axes of the inputs; () for vectors.

    Returns:
        The network's visits and weights.
    """
    start = Sizes(Width(input_dim), [], sites=sites)
    root = visits(net, start)
    if output_dim is not None:
        root.after.channels.meet(Width(output_dim))
    root.after.channels.default(1)
    for group in start.weights:
        group.fan_out.default(width)
    return Inferred(root, start.weights)
