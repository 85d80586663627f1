r"""The kernels as a state: what layers do to a pair of inputs, without losing a digit.

For two inputs: the variances $q_1,q_2$ of their pre-activations, $1\mp\rho$ of their correlation, and
the tangent kernel, divided like the correlation by $\sqrt{q_1q_2}$. Nothing here cancels: near
$x=x'$ the digits are in $1-\rho$, near $x=-x'$ in $1+\rho$, which is not carried along once $\rho\ge0$
is known (behind a ReLU it always is). The variances belong to single inputs, so
they are vectors, kept in float64; the rest has one entry for each pair and the dtype of the data.
Since matrices are dimensionless, rounding in the scales (such as $\sigma_w^2$ in float32, to the
power of the depth) never enters them.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.numerics import safe_sqrt
from widelimit._base.scalars import Scalar
from widelimit._base.thresholds import VARIANCES
from widelimit._base.trees import as_tree
from widelimit._base.types import Self
from widelimit.activations import Activation, Cov, How, second_moment, transform
from widelimit.interpret import State, is_one, is_zero

# Axes of the first inputs, of the second, and of pairs; equal in number, broadcast against each other.
First = Second = Pairs = Float[Array, "..."]
_LARGEST = VARIANCES["float64"][1]


@as_tree("how")
@dataclasses.dataclass(frozen=True)
class Pair(State):
    r"""Second-order statistics of a layer's output for pairs of inputs.

    Attributes:
        q1: Variance for the first inputs, float64, broadcastable against the matrices.
        q2: Variance for the second inputs.
        minus: $1-\rho$.
        above: $1+\rho$; None where $\rho\ge0$ is known, so that $2-(1-\rho)$ has all the digits.
        ntk: $\Theta/\sqrt{q_1q_2}$.
        how: How moments without a closed form are evaluated.
    """

    question: ClassVar[str] = "kernels of vectors"

    q1: First
    q2: Second
    minus: Pairs
    above: Pairs | None
    ntk: Pairs
    how: How = How()

    @staticmethod
    def of_data(q1: First, q2: Second, minus: Pairs, plus: Pairs, how: How) -> "Pair":
        """The data: no weights yet, so the tangent kernel is 0."""
        return Pair(q1, q2, minus, plus, jnp.zeros_like(minus), how)

    @property
    def rho(self) -> Pairs:
        """The correlation."""
        return 1 - self.minus if self.above is None else (self.above - self.minus) / 2

    @property
    def plus(self) -> Pairs:
        r"""$1+\rho$."""
        return 2 - self.minus if self.above is None else self.above

    @property
    def size(self) -> Pairs:
        r"""$\sqrt{q_1q_2}$, by which correlations and tangent kernel are to be multiplied."""
        return sizes(safe_sqrt(self.q1), safe_sqrt(self.q2), self.minus)

    def scaled(self, factor: Scalar) -> Self:
        """Correlations stay, variances get the square of the number."""
        if is_one(factor):
            return self
        with jax.enable_x64(True):
            # Twice by the number: its square may not be representable where the product is.
            gain = doubled(factor)
            return dataclasses.replace(self, q1=gain * (gain * self.q1), q2=gain * (gain * self.q2))

    def biased(self, b_std: Scalar) -> Self:
        """A part that all inputs share (correlation 1), smooth at b_std = 0."""
        if is_zero(b_std):
            return self
        with jax.enable_x64(True):
            bias = doubled(b_std)
            q1, q2 = self.q1 + bias**2, self.q2 + bias**2
            a1, a2 = _share(self.q1, q1), _share(self.q2, q2)
            # b/sqrt(q) rather than sqrt(b^2/q): differentiable in b at 0
            limited = jnp.clip(bias, -jnp.sqrt(_LARGEST), jnp.sqrt(_LARGEST))
            b1, b2 = (limited / jnp.sqrt(_positive(q)) for q in (q1, q2))
            a, b = Shares.of(a1, a2, self.minus), Shares.of(b1, b2, self.minus)
            weight, gap = a.product(), a.gap() + b.gap()
            above = None
            if self.above is not None:
                above = weight * self.above + 2 * b.product() + gap
            minus, ntk = weight * self.minus + gap, weight * self.ntk
            return type(self)(q1, q2, minus, above, ntk, self.how)

    def trained(self) -> Self:
        r"""$\Theta'=\Theta+K$."""
        return dataclasses.replace(self, ntk=self.ntk + self.rho)

    def activated(self, activation: Activation) -> Self:
        r"""$K'=T(K)$ and $\Theta'=\dot T(K)\,\Theta$."""
        act = activation
        with jax.enable_x64(True):
            q1, q2 = second_moment(act, self.q1), second_moment(act, self.q2)
            if act.angular is not None:
                minus, above, slope = act.angular(self.minus, self.above)
            else:
                cov = Cov(self.q1, self.q2, self.minus, self.plus)
                minus, above, slope = transform(act, cov, q1, q2, self.how)
            return type(self)(q1, q2, minus, above, slope * self.ntk, self.how)

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        """Variance 1, and 0 where there is nothing to divide by; correlations stay."""
        if over != "channels" or not is_zero(eps):
            raise self.refusal(
                "a signal is normalised otherwise than over the channels, with eps = 0"
            )
        one = lambda q: jnp.where(q > 0, jnp.ones_like(q), 0)
        return dataclasses.replace(self, q1=one(self.q1), q2=one(self.q2))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        """Independent parts."""
        return type(self).mixed([*parts] if skip is None else [self.scaled(skip), *parts])

    @classmethod
    def mixed(cls, parts: Sequence[Self]) -> Self:
        r"""The sum of independent parts.

        With the shares $a^i=\sqrt{q^i/q}$ of either input, unit vectors over the parts, correlations mix
        with weights $a_1^ia_2^i$; what is missing to 1, half the squared distance
        $\frac12\sum_i(a_1^i-a_2^i)^2$ of the two vectors, adds to $1-\rho$ and $1+\rho$. All terms are positive.
        """
        first, *others = parts
        if not others:
            return first
        with jax.enable_x64(True):
            q1, q2 = sum((p.q1 for p in others), first.q1), sum((p.q2 for p in others), first.q2)
            like = first.minus
            shares = [Shares.of(_share(p.q1, q1), _share(p.q2, q2), like) for p in parts]
            weights, gap = [a.product() for a in shares], _total([a.gap() for a in shares])
            mix = lambda values: _total([w * v for w, v in zip(weights, values, strict=True)])
            known = all(p.above is None for p in parts)
            above = None if known else mix([p.plus for p in parts]) + gap
            minus = mix([p.minus for p in parts]) + gap
            return cls(q1, q2, minus, above, mix([p.ntk for p in parts]), first.how)

    def repeated(self, step: Callable[[Self], Self], times: int | Int[Array, ""]) -> Self:
        """A loop, so that compilation does not grow with depth, nor repeat itself for another one."""
        if isinstance(times, int) and times == 0:
            return self
        with jax.enable_x64(True):
            start, times = self._steady(step, times)
            if not isinstance(times, int):
                body = lambda _, pair: step(pair)
                return jax.lax.fori_loop(jnp.int32(0), jnp.asarray(times, jnp.int32), body, start)
            walk = lambda pair, _: (step(pair), None)
            return jax.lax.scan(walk, start, None, length=times)[0] if times else start

    def _steady(self, step: Callable[[Self], Self], times: int | Array) -> tuple[Self, int | Array]:
        """A state whose form a step preserves, and how many steps remain."""
        pair, before = self, self.above is None
        watch: Callable[[Any], Any] = step
        after = watch(_Sign(before)).known  # the step itself, on a state that costs nothing
        if after and not before:  # what the first time makes known
            pair, times = step(self), times - 1
        elif before and not after:
            pair = dataclasses.replace(self, above=self.plus)
        shape = jnp.broadcast_shapes(pair.q1.shape, pair.q2.shape, pair.minus.shape)
        wide = lambda a: jnp.broadcast_to(a, shape)
        above = None if pair.above is None else wide(pair.above)
        return type(self)(
            pair.q1, pair.q2, wide(pair.minus), above, wide(pair.ntk), self.how
        ), times


@dataclasses.dataclass(frozen=True)
class _Sign(State):
    r"""Whether $\rho\ge0$ is known of every pair."""

    question: ClassVar[str] = "the sign of correlations"

    known: bool

    def scaled(self, factor: Scalar) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        return self

    def activated(self, activation: Activation) -> Self:
        if activation.angular is None:
            return type(self)(False)
        one = jax.ShapeDtypeStruct((), jnp.float32)
        plus = jax.eval_shape(activation.angular, one, None if self.known else one)[1]
        return type(self)(plus is None)

    def normalised(self) -> Self:
        return self

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        return type(self)(all(p.known for p in parts) and (skip is None or self.known))

    def repeated(self, step: Callable[[Self], Self], times: int | Int[Array, ""]) -> Self:
        return self if isinstance(times, int) and times == 0 else step(self)


def _total(values: Sequence[Pairs]) -> Pairs:
    return sum(values[1:], values[0])


def _share(part: First, total: First) -> First:
    """sqrt(part / total), and 0 where there is nothing."""
    ratio = _positive(part) / _positive(total)
    return jnp.where(part > 0, jnp.sqrt(ratio), 0)


def _positive(q: First) -> First:
    """A variance by which one can divide: finite, and 1 where it is 0."""
    return jnp.where(q > 0, jnp.minimum(q, _LARGEST), 1)


class Shares(NamedTuple):
    """The shares of a part in the standard deviations of both inputs, at most 1.

    Attributes:
        first: Of the first inputs.
        second: Of the second.
        rest: What both lack in single precision, where no pair is to need a number in double precision.
        like: The matrices of the pairs.
    """

    first: First
    second: Second
    rest: tuple[First, Second] | None
    like: Pairs

    @classmethod
    def of(cls, first: First, second: Second, like: Pairs) -> "Shares":
        """Shares in float64; a GPU converts slowly, so single ones are split there beforehand."""
        if like.dtype != jnp.float32 or jax.default_backend() == "cpu":
            return cls(first, second, None, like)
        high = [a.astype(jnp.float32) for a in (first, second)]
        ends = zip((first, second), high, strict=True)
        low = [(a - h.astype(jnp.float64)).astype(jnp.float32) for a, h in ends]
        # Computed once for each input, and not anew for every pair.
        high, low = jax.lax.optimization_barrier((high, low))
        return cls(high[0], high[1], (low[0], low[1]), like)

    def product(self) -> Pairs:
        """The products of both."""
        return outer(self.first, self.second, self.like)

    def gap(self) -> Pairs:
        """Half the squared difference, which vanishes for equal shares.

        It does so exactly, although a compiler may round the two differently: what is left would be taken
        for a distance, which a chaotic network multiplies in every layer. (Of two split ones 1e-28 may be
        left, which no number of layers makes visible in single precision.)
        """
        if self.rest is not None:
            apart = (self.first - self.second) + (self.rest[0] - self.rest[1])
            return apart * apart / 2
        apart = math.sqrt(0.5) * (self.first - self.second)
        largest = jnp.maximum(jnp.abs(self.first), jnp.abs(self.second))
        rounding = 2 * jnp.finfo(apart.dtype).eps * largest
        return jnp.where(jnp.abs(apart) <= rounding, 0, apart).astype(self.like.dtype) ** 2


def doubled(x: Scalar | Float[Array, "..."]) -> Float[Array, "..."]:
    """X in float64, also where JAX's global flag says 32 bits."""
    with jax.enable_x64(True):
        return jnp.asarray(x).astype(jnp.float64)


def going(some: Float[Array, "..."]) -> Bool[Array, ""] | None:
    """True of numbers, in a way that a CPU's compiler cannot know (`_edges.written`).

    None on an accelerator, which would stop to ask.
    """
    return ~jnp.isnan(some.reshape(-1)[0]) if jax.default_backend() == "cpu" else None


def outer(a: First, b: Second, like: Pairs) -> Pairs:
    """The product of a quantity of the first inputs with one of the second, in the pairs' dtype."""
    return a.astype(like.dtype) * b.astype(like.dtype)


def sizes(a: First, b: Second, like: Pairs) -> Pairs:
    """The same of two sizes, of which one may be beyond the largest number and the other below the least."""
    return jnp.where((a == 0) | (b == 0), 0, outer(a, b, like))
