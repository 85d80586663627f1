r"""What belongs to single images on the way through a network: the sides of the slices (`_slices.py`).

The rules of a pair of pixels need numbers of either image alone: roots of variances, shares of the taps of a window,
of branches, of a bias. They are computed once for each image, in float64, and written to a *tape* in the order of
the operations; slices read it.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit._base.scalars import Scalar
from widelimit._base.thresholds import DEVICE_SLICE_UNROLLED, SLICE_UNROLLED
from widelimit._base.types import Self
from widelimit.activations import Activation, second_moment
from widelimit.interpret import State, is_zero
from widelimit.layers import Sites, Window, flat_table

from ._pair import doubled

Array_ = Float[Array, "..."]
HALF = math.sqrt(0.5)
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Edge(State):
    """The variances of single images.

    Attributes:
        q: Axes (*pixels, images), float64.
        sites: The sizes of the spatial axes.
        tape: What the slices will read; all signals of a network write into it.
        dtype: The dtype of the pairs, in which shares are kept.
        still: Whether only equal positions are wanted; otherwise what changes displacements refuses.
        looped: Whether all repetitions are one loop, the first included; otherwise it comes by itself.
        seen: The windows that slid, and over how many pixels, for who wants to know.
        go: True, in a way that the compiler cannot know (`written`); None: do without.
    """

    question: ClassVar[str] = "the kernels by slices"

    q: Array_
    sites: Sites
    tape: list[Any]
    dtype: str
    still: bool
    looped: bool = False
    seen: list[tuple[Window, Sites]] = dataclasses.field(default_factory=list)
    go: Bool[Array, ""] | None = None

    def _of(self, q: Array_, sites: Sites | None = None) -> Self:
        return dataclasses.replace(self, q=q, sites=self.sites if sites is None else sites)

    def _write(self, record: Any) -> None:
        self.tape.append(jax.tree.map(lambda a: a.astype(self.dtype), record))

    def scaled(self, factor: Scalar) -> Self:
        gain = doubled(factor)
        return self._of(gain * (gain * self.q))

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        bias = doubled(b_std)
        q = self.q + bias**2
        over = HALF * inverse(q)
        self._write((safe_sqrt(self.q) * over, jnp.abs(bias) * over))
        return self._of(q)

    def activated(self, activation: Activation) -> Self:
        if activation.angular is None:
            self.tape.append(self.q)
        return self._of(second_moment(activation, self.q))

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        if over != "channels":
            raise self.refusal("a signal is normalised over pixels")
        total = self.q + doubled(eps)
        return self._of(jnp.where(self.q > 0, self.q / jnp.where(total > 0, total, 1), 0))

    def windowed(self, window: Window, width: int | None) -> Self:
        moves = not self.still and max(window.steps(len(self.sites)), default=1) > 1
        if window.transposed or moves:
            raise self.refusal("a window changes displacements")
        self.seen.append((window, self.sites))
        root = written(self.go, safe_sqrt, self.q)
        parts = taps(root, window, self.sites)
        total = sum(
            (parts[..., o, :] ** 2 for o in range(1, parts.shape[-2])), parts[..., 0, :] ** 2
        )
        over = written(self.go, inverse, total)
        shares = HALF * over[..., None, :] * parts
        if self.dtype == "float32":
            root, over = in_units(root, over, range(len(self.sites)))
        beside = shares.reshape(*shares.shape[:-2], -1)
        self._write((root, over, shares_of(over, beside) if self.go is None else beside))
        return self._of(total / window.taps(len(self.sites)), window.out(self.sites))

    def localised(self) -> Self:
        if not self.still:
            raise self.refusal("each pixel has weights of its own")
        return self

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self.scaled(skip), *parts]
        return met[0]._mixed([state.q for state in met])

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        total = sum(widths)
        return parts[0]._mixed([w / total * p.q for p, w in zip(parts, widths, strict=True)])

    def multiplied(self, parts: Sequence[Self]) -> Self:
        q = parts[0].q
        for part in parts[1:]:
            q = q * part.q
        return parts[0]._of(q)

    def _mixed(self, parts: Sequence[Array_]) -> Self:
        if len(parts) == 1:
            return self._of(parts[0])
        total = sum(parts[1:], parts[0])
        over = HALF * inverse(total)
        self._write(jnp.stack([safe_sqrt(part) * over for part in parts]))
        return self._of(total)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        """The first time as it comes; the others as one loop, where they leave the pixels as they are."""
        if times == 0:
            return self
        if self.looped and times > 1:
            return self._in_a_loop(step, times)
        first = step(self)
        if stacked(times, self.sites, first.sites):
            return first._in_a_loop(step, times - 1)
        for _ in range(times - 1):
            first = step(first)
        return first

    def _in_a_loop(self, step: Callable[[Self], Self], times: int) -> Self:
        def again(q: Array_, _: None) -> tuple[Array_, list[Any]]:
            state = dataclasses.replace(self, q=q, tape=[])
            return step(state).q, state.tape

        q, records = jax.lax.scan(again, self.q, None, length=times)
        self.tape.append(records)
        return self._of(q)


def written(go: Bool[Array, ""] | None, f: Callable[..., T], *given: Any) -> T:
    """The value of f, and what it is given, as arrays that are written once and read by all that follows.

    XLA would compute an expression again for each use of it, in loops too long to be vectorised; what enters and
    leaves a branch is an array.
    """
    if go is None:
        return f(*given)
    floating = lambda s: jnp.issubdtype(s.dtype, jnp.floating)
    nothing = lambda s: jnp.full(s.shape, jnp.nan if floating(s) else 0, s.dtype)
    once = jax.jit(f, inline=True)  # traced for its shapes, and not again
    never = lambda *_: jax.tree.map(nothing, once.eval_shape(*given))
    return jax.lax.cond(go, once, never, *given)


def stacked(times: int, before: Sites, after: Sites) -> bool:
    """Whether the records of all repetitions but the first are one, with a new first axis."""
    return times > 2 and before == after


def unrolled() -> int:
    """Up to how many repetitions slices are written out."""
    return SLICE_UNROLLED if jax.default_backend() == "cpu" else DEVICE_SLICE_UNROLLED


def inverse(total: Array_) -> Array_:
    """1 over the root, and 0 where there is nothing."""
    root = safe_sqrt(total)
    return safe_divide(jnp.ones_like(root), root)


def in_units(root: Array_, over: Array_, pixels: Sequence[int]) -> tuple[Array_, Array_]:
    """Deviations and their inverses, in units of each image's mean: products of two leave the range of float32."""
    mean = jax.lax.stop_gradient(jnp.mean(root, axis=tuple(pixels), keepdims=True))
    unit = jnp.where(mean > 0, mean, 1)
    return root / unit, jnp.minimum(unit * over, 1e18)


def frame(window: Window, sites: Sites) -> list[tuple[int, int, int, int, int]]:
    """For each axis: taps, stride, output positions, and how far the window reaches in front and behind."""
    found = []
    for table, n, s in zip(window.tables(sites), sites, window.steps(len(sites)), strict=True):
        count, k = table.shape
        front = max((count - 1) * s + k - n, 0) // 2 if window.padding != "valid" else 0
        found.append((k, s, count, front, max((count - 1) * s + k - front - n, 0)))
    return found


def padded(value: Array_, axis: int, front: int, behind: int, *, around: bool) -> Array_:
    """With zeros at both ends, or what is at the other end."""
    n = value.shape[axis]
    if around:
        return jnp.take(value, np.arange(-front, n + behind) % n, axis=axis)
    config = [(front, behind, 0) if a == axis else (0, 0, 0) for a in range(value.ndim)]
    return jax.lax.pad(value, jnp.zeros((), value.dtype), config)


def shares_of(over: Array_, shares: Array_ | list[Array_]) -> list[Array_]:
    """Those of each tap: side by side where a CPU copies them in long runs, already apart on an accelerator."""
    if isinstance(shares, list):
        return shares
    apart = shares.reshape(*over.shape[:-1], -1, over.shape[-1])
    return [apart[..., o, :] for o in range(apart.shape[-2])]


def taps(value: Array_, window: Window, sites: Sites) -> Array_:
    """What each tap reads, 0 where it reads padding: axes (*pixels, taps, images), a pixel's taps side by side."""
    table = flat_table(window.tables(sites), sites)
    places = np.where(table < 0, math.prod(sites), table).reshape(-1)
    flat = value.reshape(math.prod(sites), -1)
    found = jnp.take(flat, places, axis=0, mode="fill", fill_value=0)
    return found.reshape(*window.out(sites), table.shape[1], value.shape[-1])
