"""Refuse, before any work, a network whose corrections of finite width are not derived."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.describe import check
from widelimit.interpret import Located, interpret
from widelimit.layers import Layer

_KNOWN = (
    "Corrections of finite width are known for compositions of Dense, Phi directly behind a Dense, Scale, "
    "Residual and Sum whose branches end in a Dense"
)


@dataclasses.dataclass(frozen=True)
class Covered(Located):
    """Whether the rules hold: fresh signals meet activations, and branches end fresh.

    Attributes:
        gaussian: Whether the signal comes directly from fresh weights.
        data: Whether it is the data, whose dimension is no width.
        width: The number of components in units of n; None for the data.
    """

    question: ClassVar[str] = "corrections of finite width"

    gaussian: bool = False
    data: bool = True
    width: float | None = None

    def weighted(self, width: int | None) -> Self:
        return dataclasses.replace(self, gaussian=True, data=False, width=1.0)

    def wide(self, width: Scalar) -> Self:
        """Of so many components, in units of n."""
        return dataclasses.replace(self, width=float(width))

    def scaled(self, factor: Scalar) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        return self

    def activated(self, activation: Activation) -> Self:
        if not self.gaussian:
            raise ValueError(
                f"{self.inside} is not applied to the output of a Dense but to {self.source}. Given what is "
                "below it, such a signal's neurons are not independent, and layers are correlated neuron by "
                f"neuron: no recursion for the corrections is known. {_KNOWN}: put a Dense() before it. The "
                "limit itself is known: widelimit.ntk."
            )
        return dataclasses.replace(self, gaussian=False)

    def normalised(self) -> Self:
        raise ValueError(
            f"{self.inside} normalises a signal, whose fluctuations it changes in a way that is not derived. "
            f"{_KNOWN}."
        )

    def branched(self) -> Self:
        return dataclasses.replace(self, gaussian=False)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        for part in parts:
            if not part.gaussian:
                raise ValueError(
                    f"In {self.inside}, the branch {part.source} does not end in a Dense of its own. "
                    f"{_KNOWN}."
                )
        if not parts:
            return self
        widths = {part.width for part in parts} | ({self.width} if skip is not None else set())
        if len(widths) > 1:
            raise ValueError(
                f"In {self.inside}, paths of the relative widths {sorted(map(str, widths))} are added; they "
                "have one width."
            )
        return dataclasses.replace(self, gaussian=skip is None, data=False, width=parts[0].width)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        """Kinds are settled after two rounds."""
        return super().repeated(step, min(times, 3))


def expect_derived(net: Layer) -> None:
    """Raise a `ValueError` that says why, if the network's corrections are not known."""
    check(net, ntk=True)
    end = interpret(net, Covered())
    if not end.gaussian:
        raise ValueError(
            f"The network ends in {end.source}; corrections of finite width are those of the outputs of a "
            "last Dense. Add `>> Dense()`."
        )
