"""What is true of a network as a random function: one state collects it all."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from jaxtyping import Array, Int

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.layers import Attention, Layer, LinearMap, Window

from ._state import Rule, State, is_zero


@dataclasses.dataclass(frozen=True)
class Facts(State):
    r"""Truths about a layer, all of which begin with "a multiple of the input".

    A layer that does anything else loses them, so a fact holds only where every operation keeps it.

    Attributes:
        linear: The linear map of pixels that the layer is; None if anything else happens to the input.
        fresh: Given the input, the output has mean zero and weights that no other path shares.
        degree: $f(cx)=c^{degree}f(x)$ in law for $c>0$; None if there is no such number.
        vanishes: A zero input gives a zero output.
        pixels: Something happens that inputs without pixels, compared pair by pair, do not tell.
        zonal: For inputs of one norm the kernel is a function of the angle between them.
        activations: Those inside, in order, repeated ones once.
        evaluated: How many activations a signal meets, repetitions counted.
        cites: Keys of the works that the layers and activations rest on.
    """

    linear: LinearMap | None = LinearMap()
    fresh: bool = False
    degree: float | None = 1.0
    vanishes: bool = True
    pixels: bool = False
    zonal: bool = True
    activations: tuple[Activation, ...] = ()
    evaluated: int = 0
    cites: tuple[str, ...] = ()

    @property
    def factor(self) -> Scalar | None:
        """The number by which the input is multiplied, if that is all."""
        return None if self.linear is None else self.linear.factor

    def _but(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)

    def weighted(self, width: int | None) -> Self:
        return self._but(linear=None, fresh=True)

    def scaled(self, factor: Scalar) -> Self:
        return self if self.linear is None else self._but(linear=self.linear.times(factor))

    def biased(self, b_std: Scalar) -> Self:
        return self if is_zero(b_std) else self._but(linear=None, degree=None, vanishes=False)

    def activated(self, activation: Activation) -> Self:
        return self._but(
            linear=None,
            fresh=False,
            degree=_times(self.degree, activation.degree),
            vanishes=self.vanishes and activation.vanishes,
            activations=_union(self.activations, (activation,)),
            evaluated=self.evaluated + 1,
            cites=_union(self.cites, activation.cites),
        )

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        plain = over == "channels" and is_zero(eps)
        return self._but(
            linear=None,
            fresh=False,
            degree=_times(self.degree, 0.0) if is_zero(eps) else None,
            pixels=self.pixels or not plain,
        )

    def dropped(self, keep: Scalar) -> Self:
        return self._but(linear=None, fresh=False, pixels=True, zonal=False)

    def windowed(self, window: Window, width: int | None) -> Self:
        return self.weighted(width)._but(pixels=True, zonal=False)

    def localised(self) -> Self:
        return self

    def mapped(self, pixels: LinearMap) -> Self:
        linear = None if self.linear is None else pixels.after(self.linear)
        return self._but(linear=linear, pixels=True, zonal=False)

    def flattened(self) -> Self:
        return self._but(linear=None, pixels=True, zonal=False)

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        return self.biased(std)._but(pixels=True, zonal=False)

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        degree = self.degree if queries.degree == 0 else None
        if layer.weights != "softmax":  # of second order in the queries
            degree = None
            if self.degree is not None and queries.degree is not None:
                degree = self.degree + 2 * queries.degree
        return self._but(degree=degree, pixels=True, zonal=False, evaluated=self.evaluated + 1)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts, self] if skip is not None else parts
        degrees = {state.degree for state in met}
        linear = None if parts or self.linear is None or skip is None else self.linear.times(skip)
        return self._met(met, linear, degrees.pop() if len(degrees) == 1 else None)

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        degrees = {state.degree for state in parts}
        degree = degrees.pop() if len(degrees) == 1 else None
        return self._met(parts, None, degree)._but(pixels=True, zonal=False)

    def multiplied(self, parts: Sequence[Self]) -> Self:
        degrees = [state.degree for state in parts]
        degree = None if None in degrees else sum(d for d in degrees if d is not None)
        vanishes = any(state.vanishes for state in parts)
        return self._met(parts, None, degree)._but(pixels=True, zonal=False, vanishes=vanishes)

    def _met(self, met: Sequence[Self], linear: LinearMap | None, degree: float | None) -> Self:
        """What is true where branches meet; this signal may be one of them."""
        parts = [state for state in met if state is not self]
        return self._but(
            linear=linear,
            fresh=all(state.fresh for state in met) and len(parts) == len(met),
            degree=degree,
            vanishes=all(state.vanishes for state in met),
            pixels=any(state.pixels for state in met),
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
            linear=_repeated(self.linear, once.linear, times),
            fresh=once.fresh,
            degree=_times(self.degree, _degree(once.degree, times)),
            vanishes=self.vanishes and once.vanishes,
            zonal=self.zonal and once.zonal,
            pixels=self.pixels or once.pixels,
            activations=_union(self.activations, once.activations),
            evaluated=self.evaluated + once.evaluated * (times if isinstance(times, int) else 1),
            cites=_union(self.cites, once.cites),
        )

    def visited(self, layer: Layer, rule: Rule) -> Self:
        return rule(layer, self._but(cites=_union(self.cites, layer.cites)))


def _repeated(start: LinearMap | None, once: LinearMap | None, times: Any) -> LinearMap | None:
    if start is None or once is None:
        return None
    if once.factor is not None:
        return start.times(once.factor**times)
    for _ in range(times):
        start = once.after(start)
    return start


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
