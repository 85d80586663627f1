"""States that hold another and hand every operation on to it."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.layers import Attention, Layer, LinearMap, Window

from ._state import Rule, State

S = TypeVar("S", bound=State)


@dataclasses.dataclass(frozen=True)
class Delegated(State, Generic[S]):
    """Another state, to which every operation is handed on.

    Attributes:
        state: The state itself.
    """

    state: S

    def _of(self, state: S) -> Self:
        return type(self)(state)

    def weighted(self, width: int | None) -> Self:
        return self._of(self.state.weighted(width))

    def scaled(self, factor: Scalar) -> Self:
        return self._of(self.state.scaled(factor))

    def biased(self, b_std: Scalar) -> Self:
        return self._of(self.state.biased(b_std))

    def trained(self) -> Self:
        return self._of(self.state.trained())

    def untrained(self) -> Self:
        return self._of(self.state.untrained())

    def activated(self, activation: Activation) -> Self:
        return self._of(self.state.activated(activation))

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self._of(self.state.normalised(over, eps))

    def centred(self, over: str = "channels") -> Self:
        return self._of(self.state.centred(over))

    def dropped(self, keep: Scalar) -> Self:
        return self._of(self.state.dropped(keep))

    def windowed(self, window: Window, width: int | None) -> Self:
        return self._of(self.state.windowed(window, width))

    def localised(self) -> Self:
        return self._of(self.state.localised())

    def mapped(self, pixels: LinearMap) -> Self:
        return self._of(self.state.mapped(pixels))

    def flattened(self) -> Self:
        return self._of(self.state.flattened())

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        return self._of(self.state.positioned(std, decay, trained=trained))

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        return self._of(self.state.attended(queries.state, layer, trained=trained))

    def branched(self) -> Self:
        return self._of(self.state.branched())

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        return self._of(self.state.joined(skip, [part.state for part in parts]))

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self._of(self.state.concatenated([part.state for part in parts], widths))

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self._of(self.state.multiplied([part.state for part in parts]))

    def repeated(self, step: Callable[[Self], Self], times: Any) -> Self:
        return self._of(self.state.repeated(lambda s: step(self._of(s)).state, times))

    def visited(self, layer: Layer, rule: Rule) -> Self:
        return self._of(self.state.visited(layer, lambda l, s: rule(l, self._of(s)).state))


class Untrained(Delegated[S]):
    """Any state, in a part of a network whose weights are drawn but not trained."""

    def trained(self) -> "Untrained[S]":
        return self._of(self.state.untrained())

    def positioned(
        self, std: Scalar, decay: float | None, *, trained: bool = True
    ) -> "Untrained[S]":
        return self._of(self.state.positioned(std, decay, trained=False))

    def attended(
        self, queries: "Untrained[S]", layer: Attention, *, trained: bool = True
    ) -> "Untrained[S]":
        return self._of(self.state.attended(queries.state, layer, trained=False))
