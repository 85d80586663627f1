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
from widelimit.layers import Layer

from ._widths import check_widths


class Kind(enum.Enum):
    """What is known of the distribution of a layer's output at infinite width."""

    DATA = "the data"
    GAUSSIAN = "Gaussian pre-activations"
    FEATURES = "activations, which are not Gaussian"


@dataclasses.dataclass(frozen=True)
class Signal(Located):
    """Whether the limit is known: Gaussian signals go on, all else is refused with the reason.

    Attributes:
        kind: The distribution.
        fresh: Whether, given the start of the branch, it has mean zero and weights of its own.
    """

    question: ClassVar[str] = "the limit"

    kind: Kind = Kind.DATA
    fresh: bool = False

    def weighted(self, width: int | None) -> Self:
        return dataclasses.replace(self, kind=Kind.GAUSSIAN, fresh=True)

    def scaled(self, factor: Scalar) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        return self

    def normalised(self) -> Self:
        return dataclasses.replace(self, fresh=False)

    def activated(self, activation: Activation) -> Self:
        if self.kind is Kind.DATA:
            raise ValueError(
                f"{self.inside} is applied to the data itself. An activation's limit is known for "
                "Gaussian pre-activations only: put a Dense() before it, or transform the data "
                "yourself."
            )
        if self.kind is Kind.FEATURES:
            raise ValueError(
                f"{self.inside} is applied to {self.kind.value}. Put a Dense() between two "
                "activations, or compose them into one function and pass that to Phi."
            )
        return dataclasses.replace(self, kind=Kind.FEATURES, fresh=False)

    def branched(self) -> Self:
        return dataclasses.replace(self, fresh=False)

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
        return dataclasses.replace(self, kind=kind, fresh=skip is None and not stale)

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
