"""A kernel of a GPU for what stands between two windows, written in Triton by Pallas (`_legs.py`).

A program takes some rows of pixels of a tile of pairs and goes along them: sums over columns stay in its registers,
and the layers up to the next window follow at once. An entry is read about twice and written once.
"""

import dataclasses
import functools
import importlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit.layers import Window

from ._edges import frame
from ._slices import Slice, Tapes, is_nothing

Array_ = Float[Array, "..."]
Sides = tuple[Any, Any]  # what belongs to the first images, and to the second

ROWS = 2  # of pixels, that a program goes along
TILE = 8, 64  # first and second images of a program
LEAST = 32  # second images
WARPS = 4
PROGRAMS = 512  # for which rows are cut into shorter ones


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


def fits(state: Slice) -> bool:
    """Whether a slice has the shape for which kernels are written."""
    *_, rows, columns = state.minus.shape
    whole = rows % TILE[0] == 0 and columns % min(TILE[1], columns) == 0
    powers = columns >= LEAST and min(TILE[1], columns) in (LEAST, TILE[1])
    return len(state.sites) == 2 and state.minus.dtype == jnp.float32 and whole and powers


def replayed(state: Slice, steps: Sequence[Step]) -> Slice:
    """What a slice becomes by these operations."""
    for step in steps:
        state = step.apply(state)
    return state


class Plan(NamedTuple):
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
    def of(cls, window: Window, sites: Any, images: tuple[int, int]) -> "Plan":
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


def run(state: Slice, opening: Opening, steps: Sequence[Step], *, interpreted: bool) -> Slice:
    """What a slice becomes.

    Args:
        state: Its arrays are what the window adds up.
        opening: The window.
        steps: The operations behind it.
        interpreted: Whether the kernel runs without a GPU, slowly.
    """
    pl, plt = triton()
    images = state.minus.shape[-2], state.minus.shape[-1]
    plan = Plan.of(opening.window, state.sites, images)
    given = {"minus": state.minus, "above": state.above, "ntk": state.ntk}
    arrays = {name: v for name, v in given.items() if not is_nothing(v)}
    met = [opening.records, *(sides for step in steps for sides in step.records)]
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
        here = replayed(here, steps)
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
        if not interpreted:
            how = {"compiler_params": plt.CompilerParams(num_warps=WARPS, num_stages=1)}
        grid = (plan.pieces, *(n // t for n, t in zip(images, plan.tile, strict=True)))
        out = [entry((*plan.out, *images))] * len(names)
        found = pl.pallas_call(body, grid=grid, out_shape=out, **how)(*arrays.values(), *numbers)
    rest = {"above": None} | dict(zip(names, found, strict=True))
    return dataclasses.replace(state, **rest, sites=plan.out)


def _kernel(
    plan: Plan,
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
