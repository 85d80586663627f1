"""The variances at which activations are used, as a state: decides how their moments are evaluated."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.scalars import Scalar
from widelimit._base.thresholds import REACH
from widelimit._base.types import Self
from widelimit.activations import Activation, How, second_moment_now, terms_needed
from widelimit.interpret import State, interpret
from widelimit.layers import Layer


@dataclasses.dataclass(frozen=True)
class Variances(State):
    """Variances of some inputs, and where they met activations.

    Attributes:
        q: The variances.
        seen: A log of (activation, variances before it) that all signals of a network share.
    """

    question: ClassVar[str] = "variances"

    q: Float[Array, " inputs"]
    seen: list[tuple[Activation, Float[Array, " inputs"]]]

    def _of(self, q: Float[Array, " inputs"]) -> Self:
        return type(self)(q, self.seen)

    def scaled(self, factor: Scalar) -> Self:
        return self._of(factor**2 * self.q)

    def biased(self, b_std: Scalar) -> Self:
        return self._of(self.q + b_std**2)

    def activated(self, activation: Activation) -> Self:
        self.seen.append((activation, self.q))
        return self._of(second_moment_now(activation, self.q))

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        total = self.q + eps
        return self._of(jnp.where(self.q > 0, self.q / jnp.where(total > 0, total, 1), 0))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        start = jnp.zeros_like(self.q) if skip is None else skip**2 * self.q
        return self._of(sum((part.q for part in parts), start))

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        """Once settled, later rounds show nothing new, but small changes still add up."""
        state, settled = self, False
        for _ in range(times):
            before, state = (
                state,
                step(dataclasses.replace(state, seen=[] if settled else self.seen)),
            )
            settled = settled or np.allclose(before.q, state.q, rtol=1e-3)
            if np.array_equal(before.q, state.q):  # so are all later rounds
                break
        return self._of(state.q)


def choose_how(net: Layer, q: Sequence[float], dtype: np.dtype, *, many: bool) -> How:
    """Terms of the Hermite series that give rounding accuracy for inputs of these second moments.

    Args:
        net: The network, its numbers concrete.
        q: Smallest and largest second moment |x|^2/d of the inputs.
        dtype: The dtype of the computation.
        many: Whether there are so many pairs that a long series, right to 1e-9, is preferred to a
            quadrature for each.

    Returns:
        The choice; the two-dimensional quadrature where no series is long enough.
    """
    with jax.enable_x64(True):
        start = Variances(jnp.asarray(q, jnp.float64), [])
        interpret(net, start)
        found = []
        for act in dict.fromkeys(act for act, _ in start.seen):
            values = np.concatenate([np.ravel(v) for a, v in start.seen if a == act])
            values = values[values > 0].tolist() or [1.0]
            _expect_moment(act, max(values))
            terms = terms_needed(act, values, 1e-13 if dtype == jnp.float64 else 1e-8)
            if terms == 0 and many:
                terms = terms_needed(act, values, 1e-9)
            found.append(terms)
    return How(terms=0 if 0 in found else max(found, default=How().terms))


def _expect_moment(act: Activation, q: float) -> None:
    r"""Refuse a function without the second moment $E[\varphi(\sqrt qz)^2]$: it has no kernel.

    Where the rule ends, $\varphi^2$ times the density must have decayed; towards a pole at 0,
    $\varphi^2$ must grow more slowly than $1/z$.
    """
    if act.closed_form:
        return
    z = np.array([1e-12, 1e-6, REACH / 2, REACH])
    z = np.concatenate([z, -z])
    weight = np.where(np.abs(z) < 1, np.abs(z), np.exp(-(z**2) / 2))
    with np.errstate(all="ignore"):
        total = float(second_moment_now(act, jnp.asarray(q)))
        pole, near, half, end = (
            (weight * np.asarray(act.fn(jnp.asarray(np.sqrt(q) * z))) ** 2).reshape(2, 4).T
        )
    decays = (end <= np.maximum(1e-6 * total, 1e-3 * half)) & (
        (pole <= near) | (pole <= 1e-6 * total)
    )
    if not (np.isfinite(total) and decays.all()):
        raise ValueError(
            f"The function {act.name!r} has no kernel at the variance {q:.3g} of its inputs: "
            "E[phi(u)^2] is not finite, or phi is not defined everywhere. Choose one that is defined for "
            "all real numbers and grows more slowly than exp(u^2 / 4 q), or smaller weights."
        )
