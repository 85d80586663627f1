"""Tiles of pairs of images, by slices: which images they hold, and which core computes what."""

import functools
import math
from collections.abc import Callable
from itertools import chain
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.abreast import abreast, cores
from widelimit._base.thresholds import (
    DEVICE_FLAT_PAIRS,
    DEVICE_FLAT_SIDE,
    DEVICE_SLICE_PAIRS,
    DEVICE_SLICE_SIDE,
    FLAT_GROUP,
    FLAT_SIDE,
    SLICE_PAIRS,
    SLICE_ROWS_PAIRS,
    SLICE_SIDE,
)

from ._displacements import dealt
from ._fast import Side
from ._plan import Numbers
from ._programs import BRIEFLY, Programs, going
from ._stage import Stage

Array_ = Float[Array, "..."]


def tile_side(stage: Stage, points: int) -> int:
    """How many images a tile has along each side: its state stays in the cache."""
    on_cpu = jax.default_backend() == "cpu"
    least = 2 ** math.ceil(math.log2(points))
    if stage.readout == "flatten" and on_cpu:
        return min(FLAT_SIDE, least)
    pairs, most = (SLICE_PAIRS, SLICE_SIDE) if on_cpu else (DEVICE_SLICE_PAIRS, DEVICE_SLICE_SIDE)
    if stage.readout == "flatten":  # one slice alone
        pairs, most = DEVICE_FLAT_PAIRS, DEVICE_FLAT_SIDE
    room = 2 ** int(math.log2(max(pairs // math.prod(stage.sites), 1)) / 2)
    return min(max(room, 8), most, least)


class Batch(NamedTuple):
    """The images along a side of a tile.

    Attributes:
        groups: What belongs to single images; as many groups for every batch of a matrix, the last one repeated.
        used: How many of them there are.
    """

    groups: list[Side]
    used: int


def batches(
    stage: Stage,
    numbers: Numbers,
    x: np.ndarray,
    side: int,
    programs: Programs,
    *,
    paired: bool = False,
) -> list[Batch]:
    """All images as batches of so many; those behind `Flatten` in groups, which meet one after the other."""
    split = stage.readout == "flatten" and jax.default_backend() == "cpu" and not paired
    rows = min(FLAT_GROUP, side) if split else side
    parts = [x[np.minimum(np.arange(i, i + rows), len(x) - 1)] for i in range(0, len(x), rows)]
    go, many = going(programs), min(1 if programs is BRIEFLY else cores(), len(parts))
    ask = lambda some: [programs.side_of(stage, numbers, part, go) for part in some]
    calls = [functools.partial(ask, parts[k::many]) for k in range(many)]
    found = abreast((stage, parts[0].shape, str(x.dtype), programs is BRIEFLY), calls)
    sides = [found[k % many][k // many] for k in range(len(parts))]
    each = side // rows
    taken = [sides[i : i + each] for i in range(0, len(sides), each)]
    return [Batch([*some, *some[-1:] * (each - len(some))], len(some)) for some in taken]


def started(
    stage: Stage,
    wanted: tuple[str, ...],
    numbers: Numbers,
    one: Batch,
    two: Batch | None,
    *,
    paired: bool = False,
    programs: Programs,
) -> Callable[[], tuple[np.ndarray, ...]]:
    """Start to compute the kernels of a tile; the function returned waits for them.

    Args:
        stage: The network.
        wanted: Which kernels.
        numbers: Those of the tail.
        one: The first images.
        two: The second; None: they are the first.
        paired: Whether each first image meets its second one alone; then the answer has one column.
        programs: Compiled well or briefly.
    """
    if stage.readout == "flatten":
        return _flattened(stage, wanted, numbers, one, two, paired=paired, programs=programs)
    sides = one.groups[0], None if two is None else two.groups[0]
    return _pooled(stage, wanted, numbers, *sides, paired=paired, programs=programs)


def _flattened(
    stage: Stage,
    wanted: tuple[str, ...],
    numbers: Numbers,
    one: Batch,
    two: Batch | None,
    *,
    paired: bool,
    programs: Programs,
) -> Callable[[], tuple[np.ndarray, ...]]:
    """Squares where groups meet, dealt out to the cores."""
    other = one if two is None else two
    rows, columns = one.groups[0].end.shape[-1], 1 if paired else other.groups[0].end.shape[-1]
    places = [(a, b) for a, b in np.ndindex(one.used, other.used) if two is not None or a >= b]
    many = min(1 if programs is BRIEFLY else cores(), len(places))
    go, kind = going(programs), (stage, wanted, paired, rows, columns, programs is BRIEFLY)

    def call(share: list[tuple[int, int]]) -> list[tuple[Array_, ...]]:
        sides = [(one.groups[a], other.groups[b]) for a, b in share]
        return [programs.flat_tile(*kind[:3], numbers, *pair, go) for pair in sides]

    shares = [places[k::many] for k in range(many)]
    calls = [functools.partial(call, share) for share in shares]
    found = abreast((*kind, str(one.groups[0].end.dtype)), calls)

    def finish() -> tuple[np.ndarray, ...]:
        out = [np.empty((one.used * rows, other.used * columns), v.dtype) for v in found[0][0]]
        for (a, b), square in zip(chain(*shares), chain(*found), strict=True):
            for to, part in zip(out, map(np.asarray, square), strict=True):
                place = to[a * rows : (a + 1) * rows, b * columns : (b + 1) * columns]
                place[...] = part
                if two is None and a > b:
                    to[b * rows : (b + 1) * rows, a * rows : (a + 1) * rows] = part.T
                elif two is None and not paired:  # an image with itself: to the last bit
                    above = np.triu_indices(rows, 1)
                    place[above] = place.T[above]
        return tuple(out)

    return finish


def _pooled(
    stage: Stage,
    wanted: tuple[str, ...],
    numbers: Numbers,
    one: Side,
    two: Side | None,
    *,
    paired: bool,
    programs: Programs,
) -> Callable[[], tuple[np.ndarray, ...]]:
    """Displacements, dealt out to the cores; of images with themselves half of them are enough."""
    same, two = two is None, one if two is None else two
    go, n = going(programs), one.end.shape[-1]
    most = SLICE_ROWS_PAIRS // (math.prod(stage.sites) * two.end.shape[-1])
    rows = n if go is None or paired else min(2 ** int(math.log2(max(most, 1))), n)
    given = stage, wanted, paired, rows, one, programs.twice_around(stage, two)
    shares = dealt(stage.around, half=same, alone=programs is BRIEFLY)
    calls = [
        functools.partial(programs.pooled_tile, *given, moves, weights.astype(one.end.dtype), go)
        for moves, weights in shares
    ]
    kind = *given[:4], one.end.shape, two.end.shape, str(one.end.dtype), programs is BRIEFLY
    parts = abreast(kind, calls)
    found = programs.behind(stage, wanted, same, paired, numbers, (one.q, two.q), parts)
    return lambda: tuple(map(np.asarray, found))
