"""What stands between two windows as one kernel of a GPU, written in Triton by Pallas.

XLA gives the sums over windows a pass of their own, in which every entry reads its nine neighbours from the second
cache. Here a program takes some rows of pixels of a tile of pairs and goes along them: sums over columns stay in its
registers, and the layers up to the next window follow at once. An entry is read about twice and written once.

`Leg` is a slice that waits: operations are remembered until a window or the end asks for arrays. The kernel replays
them on a `Slice` whose arrays are one pixel of a tile of pairs, so that each layer is written once for both.
"""

import dataclasses
import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, is_zero
from widelimit.layers import Window

from ._edges import frame, unrolled
from ._slices import Slice, Tapes, is_nothing

Array_ = Float[Array, "..."]
Sides = tuple[Any, Any]  # what belongs to the first images, and to the second

ROWS = 2  # of pixels, that a program goes along
TILE = 8, 64  # first and second images of a program
LEAST = 32  # second images
WARPS = 4
PROGRAMS = 512  # for which rows are cut into shorter ones
MOST_TAPS = 25  # of a window; they are written out


@functools.cache
def triton() -> tuple[Any, Any]:
    """Pallas and its backend, imported where they are used; JAX says of it that it may change weekly."""
    name = "jax.experimental.pallas"
    return importlib.import_module(name), importlib.import_module(f"{name}.triton")


class Opening(NamedTuple):
    """A window whose sums have not been taken yet, and what it needs of single images."""

    window: Window
    records: Sides


class Step(NamedTuple):
    """An operation on a slice, and what it needs of single images."""

    apply: Callable[[Slice], Slice]
    records: tuple[Sides, ...] = ()


@dataclasses.dataclass(frozen=True)
class Leg(State):
    """A slice that waits until a window asks for arrays.

    Attributes:
        slice: What is in memory; behind an opening, what its window adds up.
        opening: The window that comes first, if any.
        steps: The operations behind it.
        interpreted: Whether kernels run without a GPU, slowly.
    """

    question: ClassVar[str] = "the kernels by slices"

    slice: Slice
    opening: Opening | None = None
    steps: tuple[Step, ...] = ()
    interpreted: bool = False

    def _then(self, apply: Callable[[Slice], Slice], *records: Sides) -> Self:
        return dataclasses.replace(self, steps=(*self.steps, Step(apply, records)))

    def _of(self, found: Slice, opening: Opening | None = None) -> Self:
        return dataclasses.replace(self, slice=found, opening=opening, steps=())

    @functools.cached_property
    def done(self) -> Slice:
        """The slice, with all that waits."""
        if self.opening is not None:
            return _run(self, self.opening)
        tapes = self.slice.tapes
        state = dataclasses.replace(self.slice, tapes=_again(self.steps, tapes.first, tapes.second))
        return dataclasses.replace(_replayed(state, self.steps), tapes=tapes)

    def scaled(self, factor: Scalar) -> Self:
        return self

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self

    def localised(self) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        return self._then(lambda state: state.biased(b_std), self.slice.tapes.raw())

    def trained(self) -> Self:
        return self._then(lambda state: state.trained())

    def activated(self, activation: Activation) -> Self:
        if activation.angular is None:  # needs variances in double precision
            return self._of(self.done.activated(activation))
        return self._then(lambda state: state.activated(activation))

    def windowed(self, window: Window, width: int | None) -> Self:
        if window.taps(2) > MOST_TAPS:
            return self._of(self.done.windowed(window, width))
        (root1, *one), (root2, *two) = self.slice.tapes.raw()
        weighed = self._then(lambda state: state.weighed(*state.tapes.raw()), (root1, root2))
        return self._of(weighed.done, Opening(window, (one, two)))

    def branched(self) -> Self:
        return self._of(self.done)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        return self._of(self.done.joined(skip, [part.done for part in parts]))

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self._of(self.done.concatenated([part.done for part in parts], widths))

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self._of(self.done.multiplied([part.done for part in parts]))

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        if times <= unrolled():
            return super().repeated(step, times)
        again = lambda state: step(self._of(state)).done
        return self._of(self.done.repeated(again, times))


def fits(state: Slice) -> bool:
    """Whether a slice has the shape for which kernels are written."""
    *_, rows, columns = state.minus.shape
    whole = rows % TILE[0] == 0 and columns % min(TILE[1], columns) == 0
    powers = columns >= LEAST and min(TILE[1], columns) in (LEAST, TILE[1])
    return len(state.sites) == 2 and state.minus.dtype == jnp.float32 and whole and powers


def _again(
    steps: Sequence[Step], first: Callable[[Any], Any], second: Callable[[Any], Any]
) -> Tapes:
    """A tape of what these operations read."""
    records = [sides for step in steps for sides in step.records]
    return Tapes([one for one, _ in records], [two for _, two in records], first, second)


def _replayed(state: Slice, steps: Sequence[Step]) -> Slice:
    for step in steps:
        state = step.apply(state)
    return state


class _Plan(NamedTuple):
    """The shape of a kernel.

    Attributes:
        sites: The pixels that are read.
        out: Those that are written.
        window: Taps along each axis.
        front: How far the window reaches in front.
        around: Whether it goes around the edge.
        tile: First and second images of a program.
        chunk: Columns that a program goes along.
    """

    sites: tuple[int, int]
    out: tuple[int, int]
    window: tuple[int, int]
    front: tuple[int, int]
    around: bool
    tile: tuple[int, int]
    chunk: int

    @classmethod
    def of(cls, window: Window, sites: Any, images: tuple[int, int]) -> "_Plan":
        """For so many first and second images."""
        high, wide = frame(window, sites)
        tile, chunk = (TILE[0], min(TILE[1], images[1])), wide[2]
        rows = -(-high[2] // ROWS) * math.prod(n // t for n, t in zip(images, tile, strict=True))
        while chunk > 8 and rows * -(-wide[2] // chunk) < PROGRAMS:
            chunk = -(-chunk // 2)
        taps, out, front = ((high[i], wide[i]) for i in (0, 2, 3))
        return cls(sites, out, taps, front, window.padding == "circular", tile, chunk)

    @property
    def pieces(self) -> int:
        """Pieces of rows."""
        return -(-self.out[0] // ROWS) * -(-self.out[1] // self.chunk)


def _run(leg: Leg, opening: Opening) -> Slice:
    """The kernel for what waits behind a window."""
    pl, plt = triton()
    state = leg.slice
    images = state.minus.shape[-2], state.minus.shape[-1]
    plan = _Plan.of(opening.window, state.sites, images)
    given = {"minus": state.minus, "above": state.above, "ntk": state.ntk}
    arrays = {name: v for name, v in given.items() if not is_nothing(v)}
    met = [opening.records, *(sides for step in leg.steps for sides in step.records)]
    ones, first = jax.tree.flatten([one for one, _ in met])
    twos, second = jax.tree.flatten([two for _, two in met])
    sides = [0] * len(ones) + [1] * len(twos)
    numbers = [
        v.reshape(*plan.out, -1, images[side])
        for v, side in zip([*ones, *twos], sides, strict=True)
    ]

    def replay(sums: dict[str, Array_], read: Callable[[int, int], Array_]) -> dict[str, Array_]:
        """All layers for one pixel of a tile; `read` gives a number of single images, of a window's taps that one."""

        def record(structure: Any, start: int, count: int) -> tuple[Any, list[Any]]:
            over, *rest = (read(k, 0) for k in range(start, start + count) if k != start + 1)
            shares = [read(start + 1, o) for o in range(numbers[start + 1].shape[2])]
            opened, *others = jax.tree.unflatten(structure, [over, shares, *rest])
            return opened, others

        (one, ones_), (two, twos_) = (
            record(first, 0, len(ones)),
            record(second, len(ones), len(twos)),
        )
        tapes = Tapes(ones_, twos_, lambda a: a[:, None], lambda a: a[None, :])
        here = dataclasses.replace(state, **sums, tapes=tapes, go=None).averaged(one, two)
        here = _replayed(here, leg.steps)
        found = {"minus": here.minus, "above": here.above, "ntk": here.ntk}
        kept = {name: v for name, v in found.items() if not is_nothing(v)}
        return {name: jnp.broadcast_to(v, plan.tile) for name, v in kept.items()}

    entry = lambda n: jax.ShapeDtypeStruct(n, jnp.float32)
    with jax.enable_x64(False):  # Python numbers in the kernel are 32 bits wide
        once = lambda sums, some: replay(sums, lambda k, _: some[k])
        alone = [entry(plan.tile[side : side + 1]) for side in sides]
        names = [*jax.eval_shape(once, {name: entry(plan.tile) for name in arrays}, alone)]
        body = functools.partial(_kernel, plan, [*arrays], names, sides, replay)
        how: dict[str, Any] = {"interpret": True}
        if not leg.interpreted:
            how = {"compiler_params": plt.CompilerParams(num_warps=WARPS, num_stages=1)}
        grid = (plan.pieces, *(n // t for n, t in zip(images, plan.tile, strict=True)))
        out = [entry((*plan.out, *images))] * len(names)
        found = pl.pallas_call(body, grid=grid, out_shape=out, **how)(*arrays.values(), *numbers)
    rest = {"above": None} | dict(zip(names, found, strict=True))
    return dataclasses.replace(state, **rest, sites=plan.out)


def _kernel(
    plan: _Plan,
    given: Sequence[str],
    names: Sequence[str],
    sides: Sequence[int],
    replay: Callable[..., dict[str, Array_]],
    *refs: Any,
) -> None:
    """Two rows of pixels, or a piece of them, for a tile of pairs.

    Args:
        plan: The shape.
        given: The arrays that are added up.
        names: Those that are written.
        sides: Whether a number belongs to the first or to the second images.
        replay: The layers for one pixel.
        refs: The places of these arrays, of numbers of single images, and of the results.
    """
    pl, plt = triton()
    arrays, numbers, to = (
        refs[: len(given)],
        refs[len(given) : -len(names)],
        refs[-len(names) :],
    )
    (high, wide), (taps_y, taps_x), (front_y, front_x) = plan.sites, plan.window, plan.front
    across = -(-plan.out[1] // plan.chunk)
    piece = pl.program_id(0)
    top, left = piece // across * ROWS, piece % across * plan.chunk
    images = tuple(
        pl.ds(pl.program_id(1 + side) * plan.tile[side], plan.tile[side]) for side in (0, 1)
    )
    wholly = lambda here: jnp.broadcast_to(here, plan.tile)

    def value(ref: Any, y: Any, x: Any) -> Array_:
        """The entry of a pixel, 0 beyond the edge."""
        if plan.around:
            return ref[(y + high) % high, (x + wide) % wide, *images]
        here = (y >= 0) & (y < high) & (x >= 0) & (x < wide)
        place = jnp.clip(y, 0, high - 1), jnp.clip(x, 0, wide - 1)
        return plt.load(ref.at[*place, *images], mask=wholly(here), other=0.0)

    def column(x: Any) -> list[list[Array_]]:
        """For each array the sums of a column, for each row that is written."""
        found = []
        for ref in arrays:
            read = [value(ref, top - front_y + k, x) for k in range(ROWS + taps_y - 1)]
            found.append([sum(read[r + 1 : r + taps_y], read[r]) for r in range(ROWS)])
        return found

    def along(i: Any, before: list[list[list[Array_]]]) -> list[list[list[Array_]]]:
        x = left + i
        columns = [*before, column(x - front_x + taps_x - 1)]
        for r in range(ROWS):
            y = top + r
            here = jnp.minimum(y, plan.out[0] - 1), jnp.minimum(x, plan.out[1] - 1)
            total = lambda a, r=r: sum((c[a][r] for c in columns[1:]), columns[0][a][r])
            read = lambda k, o, here=here: numbers[k][*here, o, images[sides[k]]]
            found = replay({name: total(a) for a, name in enumerate(given)}, read)
            mask = wholly((y < plan.out[0]) & (x < plan.out[1]))
            for name, ref in zip(names, to, strict=True):
                plt.store(ref.at[y, x, *images], found[name], mask=mask)
        return columns[1:]

    first = [column(left - front_x + c) for c in range(taps_x - 1)]
    jax.lax.fori_loop(jnp.int32(0), jnp.int32(plan.chunk), along, first)
