"""What is needed before anything is computed: own blocks, graphs, and which displacements of pixels."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

from widelimit._base.passes import once_for_each_network
from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, interpret
from widelimit.layers import Attention, Layer, LinearMap, Serial, Window


@dataclasses.dataclass
class Demand:
    """What a network asks of the blocks.

    Attributes:
        own: Whether the blocks of images with themselves are needed: something looks at variances
            behind a linear map of pixels.
        graphs: Whether inputs must have graphs.
    """

    own: bool = False
    graphs: bool = False


@dataclasses.dataclass(frozen=True)
class _Watched(State):
    """Whether pixels have been combined on the way to this signal.

    Attributes:
        asked: What was found to be needed; all signals share it.
        combined: Whether they have.
    """

    question: ClassVar[str] = "what is needed"

    asked: Demand
    combined: bool = False

    def _looks(self) -> Self:
        self.asked.own = self.asked.own or self.combined
        return self

    def scaled(self, factor: Scalar) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        return self

    def activated(self, activation: Activation) -> Self:
        return self._looks()

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self._looks()

    def dropped(self, keep: Scalar) -> Self:
        return self

    def windowed(self, window: Window, width: int | None) -> Self:
        return self

    def localised(self) -> Self:
        return self

    def mapped(self, pixels: LinearMap) -> Self:
        self.asked.graphs = self.asked.graphs or pixels.own
        return dataclasses.replace(self, combined=True)

    def flattened(self) -> Self:
        return self

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        return self

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        if layer.scaling == "linear":
            self.asked.own = True
        return dataclasses.replace(self, combined=True)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self, *parts]
        return dataclasses.replace(self, combined=any(state.combined for state in met))

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self.joined(None, parts)

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self.joined(None, parts)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        return super().repeated(step, min(times, 2))


@once_for_each_network
def demand(net: Layer) -> Demand:
    """What a network asks of the blocks of its inputs."""
    asked = Demand()
    interpret(net, _Watched(asked))
    return asked


@once_for_each_network
def parted(net: Layer) -> tuple[Layer, Layer]:
    """The network as what needs own blocks, and what follows: there nothing looks at combined pixels any more."""
    layers = net.layers if isinstance(net, Serial) else (net,)
    last = len(layers)
    while last:
        asked = Demand()
        interpret(layers[last - 1], _Watched(asked, combined=True))
        if asked.own:
            break
        last -= 1
    return Serial(*layers[:last]), Serial(*layers[last:])
