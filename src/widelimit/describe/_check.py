"""Refuse, before any work, a network whose limit is not known."""

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import ClassVar

from widelimit._base.passes import once_for_each_network
from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import Located, facts, interpret
from widelimit.layers import Attention, Layer, LinearMap, Window

from ._widths import check_widths


class Kind(enum.Enum):
    """What is known of the distribution of a layer's output at infinite width."""

    DATA = "the data"
    GAUSSIAN = "Gaussian pre-activations"
    FEATURES = "activations, which are not Gaussian"
    MIXED = "channels of several laws (behind Flatten, Dropout, Concat or Product), which are not Gaussian"


@dataclasses.dataclass(frozen=True)
class Signal(Located):
    """Whether the limit is known: Gaussian signals go on, all else is refused with the reason.

    Attributes:
        kind: The distribution.
        fresh: Whether, given the start of the branch, it has mean zero and weights of its own.
        own: Whether it has met weights since the start of the branch.
    """

    question: ClassVar[str] = "the limit"

    kind: Kind = Kind.DATA
    fresh: bool = False
    own: bool = False

    def weighted(self, width: int | None) -> Self:
        return dataclasses.replace(self, kind=Kind.GAUSSIAN, fresh=True, own=True)

    def scaled(self, factor: Scalar) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        return self

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return dataclasses.replace(self, fresh=False)

    def centred(self, over: str = "channels") -> Self:
        if self.kind is not Kind.GAUSSIAN:
            raise ValueError(
                f"{self.inside} is applied to {self.kind.value}, whose mean over the channels is not zero, "
                "so that their covariance is not known behind it. Put it behind a Dense() or Conv()."
            )
        return self

    def dropped(self, keep: Scalar) -> Self:
        if self.kind is Kind.DATA:
            raise ValueError(
                f"{self.inside} is applied to the data itself, of which there are not infinitely many "
                "channels. Put it behind a layer, or drop entries of the data yourself."
            )
        return dataclasses.replace(self, kind=Kind.MIXED, fresh=False)

    def windowed(self, window: Window, width: int | None) -> Self:
        return self.weighted(width)

    def localised(self) -> Self:
        return self

    def mapped(self, pixels: LinearMap) -> Self:
        return self

    def flattened(self) -> Self:
        kind = self.kind if self.kind is Kind.DATA else Kind.MIXED
        return dataclasses.replace(self, kind=kind)

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        if self.kind is Kind.DATA:
            raise ValueError(
                f"{self.inside} adds embeddings to the data, whose number of channels is not the width. "
                "Put a Dense() before it."
            )
        return self if self.kind is Kind.GAUSSIAN else dataclasses.replace(self, kind=Kind.FEATURES)

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        return self

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        self._refuse_data(parts)
        return dataclasses.replace(
            self, kind=Kind.MIXED, fresh=False, own=any(p.own for p in parts)
        )

    def multiplied(self, parts: Sequence[Self]) -> Self:
        self._refuse_data(parts)
        stale = [part for part in parts if not part.own]
        if len(stale) > 1:
            raise ValueError(
                f"In {self.inside}, the branch {stale[1].source} shares all its randomness with another: "
                "neither has weights of its own, so that the kernel of the product is not the product "
                "of kernels. Put a Dense() or Conv() into all branches but one."
            )
        return dataclasses.replace(
            self, kind=Kind.MIXED, fresh=False, own=any(p.own for p in parts)
        )

    def _refuse_data(self, parts: Sequence[Self]) -> None:
        if any(part.kind is Kind.DATA for part in parts):
            raise ValueError(
                f"In {self.inside}, a branch carries the data, whose number of channels is not the width "
                "of the others. Put a Dense() before it."
            )

    def activated(self, activation: Activation) -> Self:
        if self.kind is Kind.DATA:
            raise ValueError(
                f"{self.inside} is applied to the data itself. An activation's limit is known for "
                "Gaussian pre-activations only: put a Dense() before it, or transform the data "
                "yourself."
            )
        if self.kind is Kind.MIXED:
            raise ValueError(
                f"{self.inside} is applied to {self.kind.value}. Put a Dense() or Conv() before it."
            )
        if self.kind is Kind.FEATURES:
            raise ValueError(
                f"{self.inside} is applied to {self.kind.value}. Put a Dense() between two "
                "activations, or compose them into one function and pass that to Phi."
            )
        return dataclasses.replace(self, kind=Kind.FEATURES, fresh=False)

    def branched(self) -> Self:
        return dataclasses.replace(self, fresh=False, own=False)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        stale = [part for part in parts if not part.fresh]
        if len(stale) + (skip is not None) > 1:
            raise ValueError(
                f"In {self.inside}, the branch {stale[0].source} is correlated with another path: "
                "given the input its mean is not zero (it does not end in a Dense of its own), so "
                "E[x · branch(x)] does not vanish and kernels do not add. End the branch with a "
                "Dense()."
            )
        if skip is not None and self.kind is Kind.DATA and parts:
            raise ValueError(
                f"In {self.inside}, the skip path carries the data, whose dimension is not the "
                "width of the branch. Put a Dense() before the skip."
            )
        met = [*parts] if skip is None else [*parts, self]
        kinds = {state.kind for state in met}
        kind = kinds.pop() if len(kinds) == 1 else Kind.FEATURES
        own = self.own or any(part.own for part in parts)
        return dataclasses.replace(self, kind=kind, fresh=skip is None and not stale, own=own)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        """Kinds are settled after two rounds."""
        return super().repeated(step, min(times, 3))


def check(net: Layer, *, ntk: bool = False) -> None:
    """Raise a `ValueError` that says why, if the network's infinite-width limit is not known.

    Args:
        net: The network.
        ntk: Whether the tangent kernel is wanted as well.

    Example:
        >>> from widelimit import Dense, Phi, Residual
        >>> check(Dense() >> Residual(Dense() >> Phi("relu")) >> Dense())
        Traceback (most recent call last):
        ...
        ValueError: In Residual(Dense() >> Phi('relu')), the branch Dense() >> Phi('relu') is ...
    """
    expect_network(net)
    _check(net, ntk)


@once_for_each_network
def _check(net: Layer, ntk: bool) -> None:
    interpret(net, Signal())
    check_widths(net)
    for activation in facts(net).activations:
        if ntk and not activation.has_ntk:
            raise ValueError(
                f"The tangent kernel of a network with {activation.name!r} does not exist: its "
                "derivative is not a function (gradients vanish almost everywhere). Its NNGP "
                "kernel does; for a tangent kernel use 'erf' or 'relu'."
            )


def expect_network(net: object) -> None:
    """Refuse what is not a network at all."""
    if not isinstance(net, Layer):
        raise TypeError(
            f"A network was expected, got {net!r} ({type(net).__name__}). Build one with "
            "widelimit.mlp(...), widelimit.resnet(...) or layers joined by >>."
        )
