r"""The kernels near equal inputs, as a state: to first order in the angle $\theta$.

Where $\varphi'$ jumps by J at c, the slope kernel loses $J^2e^{-c^2/2q}/(2\pi)$ per unit of its own angle, and
angles grow like $\sqrt m\,\theta$ with $1-\rho\approx m\theta^2/2$.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation, second_moment_now
from widelimit.interpret import State

from ._slope import mean_square_slope_now


def jumps(act: Activation) -> list[tuple[float, float]]:
    """The points where the activation's derivative jumps, and by how much."""
    found = []
    with jax.enable_x64(True):
        prime = jax.grad(lambda x: act.fn(x))
        for point in act.breaks:
            step = 1e-9 * max(1.0, abs(point))
            size = float(prime(jnp.float64(point + step)) - prime(jnp.float64(point - step)))
            if abs(size) > 1e-7:
                found.append((point, size))
    return found


@dataclasses.dataclass(frozen=True)
class Near(State):
    r"""A layer's kernels to first order at $\theta=0$.

    Attributes:
        q: The variance.
        m: $1-\rho\approx m\theta^2/2$.
        ntk: $\Theta(0)$.
        fall: $-\Theta'(0^+)$.
    """

    question: ClassVar[str] = "the expansion at equal inputs"

    q: float
    m: float = 1.0
    ntk: float = 0.0
    fall: float = 0.0

    def scaled(self, factor: Scalar) -> Self:
        square = float(factor) ** 2
        return type(self)(square * self.q, self.m, square * self.ntk, square * self.fall)

    def biased(self, b_std: Scalar) -> Self:
        q = self.q + float(b_std) ** 2
        return type(self)(q, self.m * self.q / q if q else 0.0, self.ntk, self.fall)

    def trained(self) -> Self:
        return type(self)(self.q, self.m, self.ntk + self.q, self.fall)

    def activated(self, activation: Activation) -> Self:
        with jax.enable_x64(True):
            q = jnp.full((1,), self.q, jnp.float64)
            after = float(second_moment_now(activation, q)[0])
            gain = float(mean_square_slope_now(activation, q)[0])
        density = [j**2 * math.exp(-(c**2) / (2 * self.q)) for c, j in jumps(activation)]
        sharp = sum(density) / (2 * math.pi) * math.sqrt(self.m)
        slope = gain * self.q / after if after else 0.0
        fall = gain * self.fall + sharp * self.ntk
        return type(self)(after, slope * self.m, gain * self.ntk, fall)

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self.scaled((self.q + eps) ** -0.5)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        parts = [*parts] if skip is None else [*parts, self.scaled(skip)]
        q = sum(p.q for p in parts)
        m = sum(p.q * p.m for p in parts) / q if q else 0.0
        return type(self)(q, m, sum(p.ntk for p in parts), sum(p.fall for p in parts))
