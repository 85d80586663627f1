"""Kernels of inputs with pixels: tiles of pairs of images, each of one shape, so that programs are shared."""

import collections
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.arrays import Inputs, is_transformed
from widelimit._base.machine import memory
from widelimit._base.structured import Graphs, Masked
from widelimit._base.thresholds import (
    BLOCK_ENTRIES,
    BRIEF_SLICES,
    DIAGONAL_IMAGES,
    PATIENT_SECONDS,
)
from widelimit._base.watch import Watch
from widelimit.describe import check_pixels
from widelimit.interpret import interpret
from widelimit.layers import Layer

from ._cost import cost_of
from ._demand import demand, parted
from ._ends import kernels_of, of_all_pairs
from ._evaluate import Answer, Request
from ._plan import recalled, split, without_widths
from ._precise import Tiles
from ._programs import BRIEFLY, programs_for
from ._stage import staged
from ._tiles import batches, started, tile_side

_LABEL = "tiles of pairs of images"
_AHEAD = 4  # tiles that are started before the first is waited for


def image_kernels(request: Request, inputs: Inputs) -> tuple[Answer, ...]:
    """The wanted kernels, shape (n1, n2), or (n1, n2, *pixels, *pixels) where the output has pixels."""
    net = _network(request, inputs)
    if is_transformed((request.numbers, inputs.x1, inputs.x2)):
        with jax.enable_x64(True):
            out = _traced(net, inputs.x1, inputs.x2, request.wanted, str(inputs.dtype))
        return tuple(m.astype(inputs.dtype) for m in out)
    _refuse_beyond_memory(net, request.wanted, inputs)
    _warn_if_long(net, inputs)
    out = _sliced(net, request.wanted, inputs)
    if out is None:
        out = _in_blocks(net, request.wanted, inputs)
    return out if inputs.numpy else tuple(map(jnp.asarray, out))


def _in_blocks(
    net: Layer, wanted: tuple[str, ...], inputs: Inputs
) -> tuple[Float[np.ndarray, "n1 n2 ..."], ...]:
    """By blocks, tile by tile."""
    x1, symmetric = inputs.x1, inputs.x2 is None
    n1, n2 = len(x1), len(x1 if symmetric else inputs.x2)
    tiles = Tiles(net, wanted, str(inputs.dtype), x1, inputs.x2)
    side = tiles.side
    tail = 2 * check_pixels(net, x1.shape[1:-1], x1.shape[-1])
    out = tuple(np.empty((n1, n2, *tail), inputs.dtype) for _ in wanted)
    # Of a symmetric matrix the diagonal comes first in each row: what is found there of single inputs is kept.
    corners = [*_corners(n1, n2, side, symmetric=symmetric)]
    watch = Watch(_LABEL, len(corners), None)
    for done, (i, j) in enumerate(corners, 1):
        with jax.enable_x64(True):
            parts = tiles.at(i, j)
        for to, part in zip(out, parts, strict=True):
            _put(to, part, i, j, symmetric=symmetric)
        watch(done)
    return out


def _refuse_beyond_memory(net: Layer, wanted: tuple[str, ...], inputs: Inputs) -> None:
    """Before any work: an answer that this machine cannot hold."""
    n1, left = len(inputs.x1), check_pixels(net, inputs.x1.shape[1:-1], inputs.x1.shape[-1])
    shape = n1, n1 if inputs.x2 is None else len(inputs.x2), *(2 * left)
    size, room = math.prod(shape) * len(wanted) * inputs.dtype.itemsize, memory()
    if size <= room:
        return
    fix = "keep the matrix on disk: widelimit.gram(net, x, store=folder)."
    if left:
        fix = "put Flatten() or GlobalAvgPool() before the last Dense(), for one number for each pair of inputs."
    raise MemoryError(
        f"{len(wanted)} x {shape} numbers of {inputs.dtype} take {size / 2**30:.0f} GiB; this machine has "
        f"{room / 2**30:.0f} GiB. Ask for fewer inputs at a time, or {fix}"
    )


def _warn_if_long(net: Layer, inputs: Inputs) -> None:
    pairs = len(inputs.x1) * len(inputs.x1 if inputs.x2 is None else inputs.x2)
    if pairs * math.prod(inputs.x1.shape[1:-1]) ** 2 < BLOCK_ENTRIES:
        return
    expected = cost_of(net, inputs)
    if expected.seconds > PATIENT_SECONDS:
        warnings.warn(
            f"The kernels of {pairs} pairs of images take about {expected.seconds / 3600:.2g} hours "
            f"({expected.entries:.2g} pairs of pixels and layers); widelimit.cost says so beforehand.",
            stacklevel=6,
        )


def _sliced(
    net: Layer, wanted: tuple[str, ...], inputs: Inputs
) -> tuple[Float[np.ndarray, "n1 n2"], ...] | None:
    """By slices, where the network allows it."""
    if isinstance(inputs.x1, Masked | Graphs) or isinstance(inputs.x2, Masked | Graphs):
        return None
    found = staged(net, tuple(inputs.x1.shape[1:-1]))
    if found is None:
        return None
    stage, body, tail = found
    numbers = split(body)[1], split(tail)[1]
    symmetric = inputs.x2 is None
    n1, n2 = len(inputs.x1), len(inputs.x1 if symmetric else inputs.x2)
    side = tile_side(stage, max(n1, n2))
    programs = (
        BRIEFLY if cost_of(net, inputs).entries <= BRIEF_SLICES else programs_for(stage, side)
    )
    with jax.enable_x64(True):
        of = lambda x: batches(stage, numbers[0], np.asarray(x), side, programs)
        first = of(inputs.x1)
        second = first if symmetric else of(inputs.x2)
    out = tuple(np.empty((n1, n2), inputs.dtype) for _ in wanted)
    corners = [*_corners(n1, n2, side, symmetric=symmetric)]
    watch = Watch(_LABEL, len(corners), None)
    under_way: collections.deque[tuple[int, int, Callable[[], Any]]] = collections.deque()
    for done, corner in enumerate([*corners, *[None] * _AHEAD], 1 - _AHEAD):
        if corner is not None:  # some tiles are computed while others are waited for
            i, j = corner
            with jax.enable_x64(True):
                pair = first[i // side], None if symmetric and i == j else second[j // side]
                finish = started(stage, wanted, numbers[1], *pair, programs=programs)
                under_way.append((i, j, finish))
        if done > 0 and under_way:
            i, j, finish = under_way.popleft()
            for to, part in zip(out, finish(), strict=True):
                _put(to, part, i, j, symmetric=symmetric)
            watch(done)
    return out


def _sliced_diagonal(
    net: Layer, wanted: tuple[str, ...], inputs: Inputs
) -> tuple[Float[np.ndarray, " n"], ...] | None:
    """Each image with itself by slices, many at once."""
    found = None if isinstance(inputs.x1, Masked | Graphs) else staged(net, inputs.x1.shape[1:-1])
    if found is None:
        return None
    stage, body, tail = found
    numbers = split(body)[1], split(tail)[1]
    n = len(inputs.x1)
    side = min(tile_side(stage, n) ** 2, DIAGONAL_IMAGES, 2 ** math.ceil(math.log2(n)))
    entries = cost_of(net, inputs).entries * 2 // (n + 1)
    programs = BRIEFLY if entries <= BRIEF_SLICES else programs_for(stage, side)
    with jax.enable_x64(True):
        x = np.asarray(inputs.x1)
        parts = [
            started(stage, wanted, numbers[1], one, None, paired=True, programs=programs)()
            for one in batches(stage, numbers[0], x, side, programs, paired=True)
        ]
    return tuple(
        np.concatenate([p[:, 0] for p in column])[:n] for column in zip(*parts, strict=True)
    )


@np.errstate(over="ignore")  # of numbers rounded to single precision: infinity
def image_diagonal(request: Request, inputs: Inputs) -> tuple[Answer, ...]:
    """The kernels of each input with itself, shape (n, ...)."""
    net = _network(request, inputs)
    if is_transformed((request.numbers, inputs.x1)):
        with jax.enable_x64(True):
            alone = lambda x: _traced(net, x, None, request.wanted, str(inputs.dtype))
            parts = [alone(inputs.x1[i : i + 1]) for i in range(len(inputs.x1))]
        return tuple(
            jnp.concatenate([m[0] for m in column]).astype(inputs.dtype)
            for column in zip(*parts, strict=True)
        )
    out = _sliced_diagonal(net, request.wanted, inputs)
    if out is None:
        tiles = Tiles(net, request.wanted, str(inputs.dtype), inputs.x1, None)
        with jax.enable_x64(True):
            parts = [tiles.alone(i) for i in range(0, len(inputs.x1), tiles.side)]
        out = tuple(map(np.concatenate, zip(*parts, strict=True)))
    out = tuple(m.astype(inputs.dtype, copy=False) for m in out)
    return out if inputs.numpy else tuple(map(jnp.asarray, out))


def _network(request: Request, inputs: Inputs) -> Layer:
    net = recalled(without_widths(request.form), request.numbers)
    check_pixels(net, tuple(inputs.x1.shape[1:-1]), inputs.x1.shape[-1])
    if demand(net).graphs and not isinstance(inputs.x1, Graphs):
        raise ValueError(
            "Aggregate() sums over the neighbours in a graph, but the inputs have none. Give them as "
            "widelimit.Graphs(x, adjacency)."
        )
    return net


def _traced(
    net: Layer, x1: Any, x2: Any, kernels: tuple[str, ...], dtype: str
) -> tuple[Float[Array, "..."], ...]:
    """The kernels where they are differentiated or compiled by the caller: all pairs at once."""
    watched, last = parted(net)
    found = lambda state: kernels_of(interpret(watched, state), kernels, dtype, last)
    return of_all_pairs(x1, x2, dtype, found, own=demand(net).own)


def _corners(n1: int, n2: int, side: int, *, symmetric: bool) -> Iterator[tuple[int, int]]:
    """Of a symmetric matrix those on and below the diagonal, which comes first in each row."""
    for i in range(0, n1, side):
        if symmetric:
            yield i, i
        yield from ((i, j) for j in range(0, i if symmetric else n2, side))


@np.errstate(over="ignore")  # as above
def _put(out: np.ndarray, part: np.ndarray, i: int, j: int, *, symmetric: bool) -> None:
    place = out[i : i + part.shape[0], j : j + part.shape[1]]
    place[...] = part[: place.shape[0], : place.shape[1]]
    if symmetric and i > j:
        pixels = (out.ndim - 2) // 2
        order = (1, 0, *range(2 + pixels, out.ndim), *range(2, 2 + pixels))
        out[j : j + place.shape[1], i : i + place.shape[0]] = place.transpose(order)
