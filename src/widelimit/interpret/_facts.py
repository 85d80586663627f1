"""What is true of a network as a random function: one state collects it all."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jaxtyping import Array, Int

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.layers import Layer

from ._state import Rule, State, is_zero


@dataclasses.dataclass(frozen=True)
class Facts(State):
    r"""Truths about a layer, all of which begin with "a multiple of the input".

    A layer that does anything else loses them, so a fact holds only where every operation keeps it.

    Attributes:
        factor: The number by which the input is multiplied; None if anything else happens to it.
        fresh: Given the input, the output has mean zero and weights that no other path shares.
        degree: $f(cx)=c^{degree}f(x)$ in law for $c>0$; None if there is no such number.
        vanishes: A zero input gives a zero output.
        zonal: For inputs of one norm the kernel is a function of the angle between them.
        activations: Those inside, in order, repeated ones once.
        evaluated: How many activations a signal meets, repetitions counted.
        cites: Keys of the works that the layers and activations rest on.
    """

    factor: Scalar | None = 1.0
    fresh: bool = False
    degree: float | None = 1.0
    vanishes: bool = True
    zonal: bool = True
    activations: tuple[Activation, ...] = ()
    evaluated: int = 0
    cites: tuple[str, ...] = ()

    def _but(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def weighted(self, width: int | None) -> Self:
        return self._but(factor=None, fresh=True)

    def scaled(self, factor: Scalar) -> Self:
        return self if self.factor is None else self._but(factor=self.factor * factor)

    def biased(self, b_std: Scalar) -> Self:
        return self if is_zero(b_std) else self._but(factor=None, degree=None, vanishes=False)

    def activated(self, activation: Activation) -> Self:
        return self._but(
            factor=None,
            fresh=False,
            degree=_times(self.degree, activation.degree),
            vanishes=self.vanishes and activation.vanishes,
            activations=_union(self.activations, (activation,)),
            evaluated=self.evaluated + 1,
            cites=_union(self.cites, activation.cites),
        )

    def normalised(self) -> Self:
        return self._but(factor=None, fresh=False, degree=_times(self.degree, 0.0))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        factor = None if parts or self.factor is None or skip is None else self.factor * skip
        met = [*parts, self] if skip is not None else parts
        degrees = {state.degree for state in met}
        return self._but(
            factor=factor,
            fresh=skip is None and all(part.fresh for part in parts),
            degree=degrees.pop() if len(degrees) == 1 else None,
            vanishes=all(state.vanishes for state in met),
            zonal=all(state.zonal for state in met),
            activations=_union(*(state.activations for state in met)),
            evaluated=self.evaluated + sum(part.evaluated - self.evaluated for part in parts),
            cites=_union(*(state.cites for state in met)),
        )

    def repeated(self, step: Callable[[Self], Self], times: Any) -> Self:
        """One step tells all; `times` may be a number that is known at run time only."""
        if isinstance(times, int) and times == 0:
            return self
        once = step(type(self)())
        return self._but(
            factor=_times(self.factor, None if once.factor is None else once.factor**times),
            fresh=once.fresh,
            degree=_times(self.degree, _degree(once.degree, times)),
            vanishes=self.vanishes and once.vanishes,
            zonal=self.zonal and once.zonal,
            activations=_union(self.activations, once.activations),
            evaluated=self.evaluated + once.evaluated * (times if isinstance(times, int) else 1),
            cites=_union(self.cites, once.cites),
        )

    def visited(self, layer: Layer, rule: Rule) -> Self:
        return rule(layer, self._but(cites=_union(self.cites, layer.cites)))


def _times(a: Any, b: Any) -> Any:
    return None if a is None or b is None else a * b


def _degree(once: float | None, times: int | Int[Array, ""]) -> float | None:
    if once is None or once in (0.0, 1.0):
        return once
    try:
        return once**times if isinstance(times, int) else None
    except OverflowError:
        return None


def _union(*groups: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))
