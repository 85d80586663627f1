"""Widths: one inference, which finite networks, parameter counts, bounds and the check all read.

A width that the description leaves open is an unknown. Signals that are added have one width, so
their unknowns become one; the last signal has the width of the output; what is still open in the end
takes the width that the caller gives.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import Located, Visit, interpret, is_zero, visits
from widelimit.layers import Layer


class Width:
    """A number of channels, perhaps not known yet.

    Attributes:
        layer: The layer that stated it, if one did.
    """

    def __init__(self, value: int | None = None, layer: Layer | None = None):
        self._value, self._same, self.layer = value, None, layer

    def _root(self) -> "Width":
        width = self
        while width._same is not None:
            width = width._same
        return width

    @property
    def known(self) -> int | None:
        """The number, or None."""
        return self._root()._value

    def __int__(self) -> int:
        value = self.known
        assert value is not None, "widths are read after they have been inferred"
        return value

    def default(self, value: int | None) -> None:
        """What the number is unless something else was said."""
        root = self._root()
        if root._value is None:
            root._value = value

    def meet(self, other: "Width") -> None:
        """From now on the two are one."""
        a, b = self._root(), other._root()
        if a is b:
            return
        if a._value is not None and b._value is not None and a._value != b._value:
            raise self._conflict(other)
        if b._value is None:
            a, b = b, a
        a._same = b

    def _conflict(self, other: "Width") -> ValueError:
        loud, quiet = (self, other) if self._root().layer is not None else (other, self)
        layer = loud._root().layer
        if layer is None:
            return ValueError(
                f"A signal of width {loud.known} stands where one of width {quiet.known} belongs; "
                "put a Dense() there."
            )
        return ValueError(
            f"{layer} states the width {loud.known}, but its place asks for {quiet.known}: paths "
            "that are added have one width, a residual branch that of its skip path, and the last "
            "layer that of the output. Leave the width out, or make the two agree."
        )


class Weights(NamedTuple):
    """Trainable numbers: a matrix, or a bias where there is no fan-in."""

    fan_in: Width | None
    fan_out: Width

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.fan_out) * (1 if self.fan_in is None else int(self.fan_in))


@dataclasses.dataclass(frozen=True)
class Sizes(Located):
    """The width of a signal, and the weights that it has met.

    Attributes:
        channels: The width.
        weights: A log that all signals of a network share.
        met: How many groups of weights led to this signal.
        rounds: How many repetitions of a `Repeat` are looked at; None: all.
    """

    question: ClassVar[str] = "the shape"

    channels: Width
    weights: list[Weights]
    met: int = 0
    rounds: int | None = None

    def weighted(self, width: int | None) -> Self:
        out = Width(width, None if width is None else self.inside)
        self.weights.append(Weights(self.channels, out))
        return dataclasses.replace(self, channels=out, met=self.met + 1)

    def scaled(self, factor: Scalar) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        self.weights.append(Weights(None, self.channels))
        return dataclasses.replace(self, met=self.met + 1)

    def activated(self, activation: Activation) -> Self:
        return self

    def normalised(self) -> Self:
        return self

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self, *parts]
        for state in met[1:]:
            state.channels.meet(met[0].channels)
        total = sum(state.met for state in met)
        return dataclasses.replace(self, channels=met[0].channels, met=total)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        return super().repeated(step, times if self.rounds is None else min(times, self.rounds))


def check_widths(net: Layer) -> None:
    """Refuse a description whose widths contradict each other, whatever is still open."""
    # After two rounds a repetition sees its own width: a third shows nothing new.
    interpret(net, Sizes(Width(), [], rounds=2))


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


def infer(net: Layer, input_dim: int, width: int, output_dim: int | None = None) -> Inferred:
    """Find every width, or refuse a description that contradicts itself.

    Args:
        net: The network.
        input_dim: The number of features.
        width: What every width that is still open in the end becomes.
        output_dim: The number of outputs; None: what the network states, or else 1.

    Returns:
        The network's visits and weights.
    """
    start = Sizes(Width(input_dim), [])
    root = visits(net, start)
    if output_dim is not None:
        root.after.channels.meet(Width(output_dim))
    root.after.channels.default(1)
    for group in start.weights:
        group.fan_out.default(width)
    return Inferred(root, start.weights)
