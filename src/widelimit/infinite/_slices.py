r"""Slices of constant displacement: the fast path of convolutional networks.

For a fixed displacement $d=r-p$ convolutions of stride 1, activations, biases and residual branches act on the
*image* $p\mapsto(1-\rho,\vartheta)(p,p+d)$ alone, a convolution as a box filter. So all layers run on one slice while
it is in the cache, and its contribution is added to the read-out; the block of all pairs of pixels is never stored.
`Flatten` needs the slice $d=0$ alone, a global pool the sum over all.

Arrays have axes (*pixels, first input, second input), pairs innermost. What belongs to single images comes from the
tapes of `_edges.py`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from widelimit._base.numerics import short_angle
from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation, Cov, How, second_moment, transform
from widelimit.interpret import State, is_zero
from widelimit.layers import Sites, Window

from ._box import at_once, but_last, last
from ._edges import shares_of, stacked, unrolled, written

Array_ = Float[Array, "..."]
Read = Callable[[Any], Any]


class Tapes:
    """The tapes of both sides, read in step.

    Attributes:
        first: Makes of a record of the first images what broadcasts against pairs.
        second: The same for the second images.
    """

    def __init__(self, records1: Sequence[Any], records2: Sequence[Any], first: Read, second: Read):
        self._pairs = iter([*zip(records1, records2, strict=True)])
        self.first, self.second = first, second

    def raw(self) -> tuple[Any, Any]:
        """The next records as they are."""
        return next(self._pairs)

    def next(self) -> tuple[Any, Any]:
        """The next records, ready to meet."""
        one, two = self.raw()
        return jax.tree.map(self.first, one), jax.tree.map(self.second, two)

    def inner(self, records1: Sequence[Any], records2: Sequence[Any]) -> "Tapes":
        """Those of one round of a loop."""
        return Tapes(records1, records2, self.first, self.second)


@dataclasses.dataclass(frozen=True)
class Slice(State):
    r"""The statistics of pairs of pixels of one displacement.

    Attributes:
        minus: $1-\rho$, axes (*pixels, n1, n2).
        above: $1+\rho$, or None where $\rho\ge0$ is known.
        ntk: $\Theta/\sqrt{qq'}$; 0.0 before all trained weights, None if not asked for.
        sites: The sizes of the spatial axes.
        tapes: What belongs to single images.
        how: How moments without closed form are evaluated.
        looped: Whether all repetitions are one loop, the first included; otherwise it comes by itself.
        go: True, in a way that the compiler cannot know (`written`); None: do without.
        near: Both in one array, where they are written behind a window: the smaller, negative if it is $1+\rho$.
    """

    question: ClassVar[str] = "the kernels by slices"

    minus: Array_
    above: Array_ | None
    ntk: Array_ | float | None
    sites: Sites
    tapes: Tapes
    how: How = How()
    looped: bool = False
    go: Bool[Array, ""] | None = None
    near: Array_ | None = None

    def _but(self, **changes: Any) -> Self:
        near = None if "minus" in changes else self.near
        return dataclasses.replace(self, **{"near": near, **changes})

    @property
    def rho(self) -> Array_:
        """The correlation."""
        return 1 - self.minus if self.above is None else (self.above - self.minus) / 2

    @property
    def plus(self) -> Array_:
        r"""$1+\rho$."""
        return 2 - self.minus if self.above is None else self.above

    def scaled(self, factor: Scalar) -> Self:
        return self

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self

    def localised(self) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        (a1, b1), (a2, b2) = self.tapes.next()
        weight, gap = 2 * a1 * a2, (a1 - a2) ** 2 + (b1 - b2) ** 2
        above = None if self.above is None else weight * self.above + 4 * b1 * b2 + gap
        ntk = None if self.ntk is None else weight * self.ntk
        return self._but(minus=weight * self.minus + gap, above=above, ntk=ntk)

    def trained(self) -> Self:
        return self if self.ntk is None else self._but(ntk=self.ntk + self.rho)

    def activated(self, activation: Activation) -> Self:
        """The angle once, as an array, for the correlation and the slope."""
        if activation.by_angle is not None:
            acute = self.above is None
            near = self.minus if self.above is None else nearer(self.minus, self.above)
            near = near if self.near is None else self.near
            angle = lambda near: short_angle(near if acute else jnp.abs(near), None)[1]
            phi = written(self.go, angle, near)
            minus, above, slope = activation.by_angle(near, phi, acute)
        elif activation.angular is not None:
            minus, above, slope = activation.angular(self.minus, self.above)
        else:
            q1, q2 = self.tapes.next()
            minus = jnp.maximum(self.minus, 0)  # rounding may take it below: no real root
            cov = Cov(q1, q2, minus, self.plus)
            t1, t2 = second_moment(activation, q1), second_moment(activation, q2)
            minus, above, slope = transform(activation, cov, t1, t2, self.how)
        ntk = None if self.ntk is None else slope * self.ntk
        return self._but(minus=minus, above=above, ntk=ntk)

    def windowed(self, window: Window, width: int | None) -> Self:
        (root1, *one), (root2, *two) = self.tapes.raw()
        first, second = self.tapes.first, self.tapes.second
        write, read = (at_once, lambda v, *_: v) if self.go is None else (but_last, last)
        total = lambda v: write(v * first(root1) * second(root2), window, self.sites)

        def mean(total: Array_, one: Sequence[Any], two: Sequence[Any]) -> Array_:
            return read(total, window, self.sites) * first(one[0]) * second(two[0])

        def gap(one: Sequence[Any], two: Sequence[Any]) -> Array_:
            value = jnp.zeros((), self.minus.dtype)
            for a, b in zip(shares_of(*one), shares_of(*two), strict=True):
                value = value + (first(a) - second(b)) ** 2
            return value

        def ends(low: Array_, high: Array_, one: Any, two: Any) -> Array_:
            apart = gap(one, two)
            return nearer(mean(low, one, two) + apart, mean(high, one, two) + apart)

        ntk = self.ntk if is_nothing(self.ntk) else mean(total(self.ntk), one, two)
        out = self._but(ntk=ntk, sites=window.out(self.sites))
        low, high = total(self.minus), None if self.above is None else total(self.above)
        if self.go is not None and high is not None:
            near = written(self.go, ends, low, high, one, two)
            minus = jnp.where(near < 0, 2 + near, near)
            return out._but(minus=minus, above=jnp.where(near < 0, -near, 2 - near), near=near)
        apart = gap(one, two)
        minus, above = (v if v is None else mean(v, one, two) + apart for v in (low, high))
        return out._but(minus=minus, above=above)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        return self._mixed([*parts] if skip is None else [self, *parts])

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self._mixed(parts)

    def _mixed(self, met: Sequence[Self]) -> Self:
        first = met[0]
        if len(met) == 1:
            return first
        one, two = self.tapes.next()
        weights = [2 * one[i] * two[i] for i in range(len(met))]
        gap = sum(((one[i] - two[i]) ** 2 for i in range(1, len(met))), (one[0] - two[0]) ** 2)
        mix = lambda vs: sum(
            (w * v for w, v in zip(weights[1:], vs[1:], strict=True)), weights[0] * vs[0]
        )
        known = all(state.above is None for state in met)
        above = None if known else mix([state.plus for state in met]) + gap
        ntk = None if first.ntk is None else mix([state.ntk for state in met])
        return first._but(minus=mix([state.minus for state in met]) + gap, above=above, ntk=ntk)

    def multiplied(self, parts: Sequence[Self]) -> Self:
        out = parts[0]
        for part in parts[1:]:
            out = out._times(part)
        return out

    def _times(self, other: Self) -> Self:
        minus = (self.minus * other.plus + self.plus * other.minus) / 2
        above = (self.minus * other.minus + self.plus * other.plus) / 2
        ntk = None
        if self.ntk is not None and other.ntk is not None:
            ntk = self.ntk * other.rho + self.rho * other.ntk
        known = self.above is None and other.above is None
        return self._but(minus=minus, above=None if known else above, ntk=ntk)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        if times == 0:
            return self
        if self.looped and times > 1:
            return self._in_a_loop(step, self.tapes.raw())
        first = step(self)
        if not stacked(times, self.sites, first.sites):
            for _ in range(times - 1):
                first = step(first)
            return first
        records = self.tapes.raw()
        if times > unrolled():
            return first._in_a_loop(step, records)
        for i in range(times - 1):
            one, two = jax.tree.map(lambda a, i=i: a[i], records)
            first = step(first._but(tapes=self.tapes.inner(one, two)))
        return dataclasses.replace(first, tapes=self.tapes)

    def _in_a_loop(self, step: Callable[[Self], Self], records: tuple[Any, Any]) -> Self:
        def again(carry: Any, records: Any) -> tuple[Any, None]:
            one, two = written(self.go, lambda *sides: sides, *records)
            out = step(self._but(**carry, tapes=self.tapes.inner(one, two)))
            return {"minus": out.minus, "above": out.above, "ntk": out.ntk}, None

        ntk = jnp.zeros_like(self.minus) if isinstance(self.ntk, float) else self.ntk
        carry = {"minus": self.minus, "above": self.above, "ntk": ntk}
        done, _ = jax.lax.scan(again, carry, records)
        return self._but(**done)


def nearer(minus: Array_, above: Array_) -> Array_:
    r"""The smaller of $1-\rho$ and $1+\rho$, the latter as a negative number: one array for both.

    Rounding may have taken either below 0.
    """
    least = jnp.finfo(above.dtype).tiny
    return jnp.where(minus <= above, jnp.maximum(minus, 0), -jnp.maximum(above, least))


def is_nothing(ntk: Array_ | float | None) -> bool:
    """Whether there is no tangent kernel, or none yet."""
    return ntk is None or isinstance(ntk, float)
