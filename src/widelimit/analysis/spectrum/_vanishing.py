r"""Which eigenvalues are exactly zero, by the structure of the network.

The zonal kernel of a layer has degrees of two parities. What is tracked is the highest degree of
each that can occur: the data have $\rho$ alone (none even, odd up to 1); a bias adds degree 0; an
odd activation keeps odd kernels odd; $\max(0,x)^p$ is half a monomial plus half a function of the
other parity, so applied to the data it leaves parity p at degree p. The tangent kernel has the same
degrees as the NNGP kernel in every case.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from widelimit._base.scalars import Scalar, concrete
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, interpret
from widelimit.layers import Layer


@dataclasses.dataclass(frozen=True)
class Degrees(State):
    """The highest even and the highest odd degree of a zonal kernel; -1 for none."""

    question: ClassVar[str] = "the degrees of the kernel"

    even: float
    odd: float

    def scaled(self, factor: Scalar) -> Self:
        return self

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        return self if concrete(b_std) == 0 else type(self)(max(self.even, 0), self.odd)

    @property
    def both(self) -> tuple[float, float]:
        """The two degrees."""
        return self.even, self.odd

    def activated(self, activation: Activation) -> Self:
        act, make = activation, type(self)
        degree = polynomial_degree(act)
        if degree is not None:
            return self._polynomial(degree, act.parity)
        if self.odd < 0:
            return make(math.inf, -1)  # a function of an even function is even
        if self.even < 0 and act.parity is not None:
            return make(-1, math.inf) if act.parity == "odd" else make(math.inf, -1)
        if self.both == DATA.both and act.degree is not None and float(act.degree).is_integer():
            return make(act.degree, math.inf) if act.degree % 2 == 0 else make(math.inf, act.degree)
        return make(math.inf, math.inf)

    def _polynomial(self, degree: int, parity: str | None) -> Self:
        top = degree * max(self.both) if degree else 0.0
        lower = top if math.isinf(top) else top - 1
        even, odd = (top, lower) if top % 2 == 0 or math.isinf(top) else (lower, top)
        if self.odd < 0 or (self.even < 0 and parity == "even"):
            return type(self)(even, -1)
        if self.even < 0 and parity == "odd":
            return type(self)(-1, odd)
        return type(self)(even, odd)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [*parts, self]
        return type(self)(max(s.even for s in met), max(s.odd for s in met))

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        """Until nothing changes any more."""
        state = self
        for _ in range(times):
            before, state = state, step(state)
            if before.both == state.both:
                break
        return state


DATA = Degrees(-1, 1)


def polynomial_degree(act: Activation) -> int | None:
    """The degree of an activation that is a polynomial, or None."""
    if act.hermite is not None:
        return len(np.asarray(act.hermite(jnp.ones(())))) - 1
    return 1 if act.degree == 1 and act.parity == "odd" else None


def possible(net: Layer, largest: int) -> np.ndarray:
    """For k = 0..largest: whether the eigenvalue of degree k can differ from zero."""
    top = interpret(net, DATA)
    k = np.arange(largest + 1)
    return np.where(k % 2 == 0, k <= top.even, k <= top.odd)
