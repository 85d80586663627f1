"""Kernels of inputs with pixels: tiles of pairs of images, each of one shape, so that programs are shared."""

import collections
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from widelimit._base.arrays import Inputs, is_transformed
from widelimit._base.structured import Graphs, Masked
from widelimit._base.thresholds import (
    BLOCK_ENTRIES,
    BRIEF_SLICES,
    DIAGONAL_IMAGES,
    DOUBTED,
    PATIENT_SECONDS,
    REFINED,
)
from widelimit._base.types import Tensor
from widelimit._base.watch import Watch
from widelimit.describe import check_pixels
from widelimit.interpret import interpret
from widelimit.layers import Layer, Sites

from ._cost import cost_of
from ._demand import Demand, demand, parted
from ._doubt import Doubt
from ._ends import images_of, kernels_of
from ._evaluate import Answer, Request
from ._fast import BRIEFLY, WELL
from ._meet import order
from ._plan import recalled, split, without_widths
from ._stage import staged
from ._stages import Coarse, coarse_side, coarsened, first_stage
from ._tiles import batches, started, tile_side

_LABEL = "tiles of pairs of images"
_SOME = 0.25  # of the pairs of a tile: if more are in doubt, all are computed again
_AHEAD = 4  # tiles that are started before the first is waited for


def image_kernels(request: Request, inputs: Inputs) -> tuple[Answer, ...]:
    """The wanted kernels, shape (n1, n2), or (n1, n2, *pixels, *pixels) where the output has pixels."""
    net, wanted = _network(request, inputs)
    if is_transformed((request.numbers, inputs.x1, inputs.x2)):
        with jax.enable_x64(True):
            out, _ = _run(net, inputs.x1, inputs.x2, wanted, request.wanted, str(inputs.dtype))
        return tuple(m.astype(inputs.dtype) for m in out)
    _warn_if_long(net, inputs)
    x1, x2, dtype = inputs.x1, inputs.x2, str(inputs.dtype)
    n1, n2 = len(x1), len(x1 if x2 is None else x2)
    sliced = _sliced(net, request.wanted, inputs)
    if sliced is not None:
        out = tuple(m.astype(inputs.dtype) for m in sliced)
        return out if inputs.numpy else tuple(map(jnp.asarray, out))
    stage = _first_stage(net, x1)
    side = _side(x1.shape[1:-1], max(n1, n2))
    if stage is not None:
        side = coarse_side(stage[0], max(n1, n2))
    tail = 2 * check_pixels(net, x1.shape[1:-1], x1.shape[-1])
    out = tuple(np.empty((n1, n2, *tail), inputs.dtype) for _ in request.wanted)
    corners = [*_corners(n1, n2, side, symmetric=x2 is None)]
    watch = Watch(_LABEL, len(corners), None)
    for done, (i, j) in enumerate(corners, 1):
        first = _taken(x1, i, side)
        second = None if x2 is None and i == j else _taken(x1 if x2 is None else x2, j, side)
        with jax.enable_x64(True):
            parts, dtype = _surely(net, first, second, wanted, request.wanted, dtype)
        for to, part in zip(out, parts, strict=True):
            _put(to, np.asarray(part), i, j, symmetric=x2 is None)
        watch(done)
    return out if inputs.numpy else tuple(jnp.asarray(m) for m in out)


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
    programs = BRIEFLY if cost_of(net, inputs).entries <= BRIEF_SLICES else WELL
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
    programs = BRIEFLY if entries <= BRIEF_SLICES else WELL
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
    net, wanted = _network(request, inputs)
    if not is_transformed((request.numbers, inputs.x1)):
        sliced = _sliced_diagonal(net, request.wanted, inputs)
        if sliced is not None:
            out = tuple(m.astype(inputs.dtype) for m in sliced)
            return out if inputs.numpy else tuple(map(jnp.asarray, out))
    dtype, parts = str(inputs.dtype), []
    for i in range(len(inputs.x1)):
        with jax.enable_x64(True):
            x = _taken(inputs.x1, i, 1)
            one, dtype = _surely(net, x, None, wanted, request.wanted, dtype)
        parts.append([m[0, 0] for m in one])
    stack = jnp.stack if not inputs.numpy else lambda ms: np.stack([np.asarray(m) for m in ms])
    return tuple(stack([*column]).astype(inputs.dtype) for column in zip(*parts, strict=True))


def _network(request: Request, inputs: Inputs) -> tuple[Layer, Demand]:
    net = recalled(without_widths(request.form), request.numbers)
    check_pixels(net, tuple(inputs.x1.shape[1:-1]), inputs.x1.shape[-1])
    wanted = demand(net)
    if wanted.graphs and not isinstance(inputs.x1, Graphs):
        raise ValueError(
            "Aggregate() sums over the neighbours in a graph, but the inputs have none. Give them as "
            "widelimit.Graphs(x, adjacency)."
        )
    return net, wanted


def _surely(
    net: Layer, x1: Any, x2: Any, wanted: Demand, kernels: tuple[str, ...], dtype: str
) -> tuple[tuple[Float[Tensor, "..."], ...], str]:
    """The kernels, and the precision that most of them needed: behind a pool some inputs need the digits of float64."""
    out, doubt = _run(net, x1, x2, wanted, kernels, dtype)
    if doubt is None or is_transformed((net, x1, x2)):
        return out, dtype
    n1, n2 = len(x1), None if x2 is None else len(x2)
    each = doubt.each
    listed = order(n1, n2, own=n2 is not None and len(each) > n1 * n2)
    doubted = ~(each <= DOUBTED)[listed.matrix]
    if not doubted.any():
        return out, dtype
    rows, columns = (np.nonzero(doubted.any(axis))[0] for axis in (1, 0))
    few1, few2 = _few(x1, rows), None if x2 is None else _few(x2, columns)
    if len(few1) * len(few1 if few2 is None else few2) > _SOME * doubted.size:
        return _run(net, x1, x2, wanted, kernels, "float64")[0], "float64"
    again, _ = _run(net, few1, few2, wanted, kernels, "float64")
    whole = tuple(np.array(m) for m in out)
    for to, part in zip(whole, again, strict=True):
        to[np.ix_(rows, columns)] = np.asarray(part)[: len(rows), : len(columns)]
    return whole, dtype


def _few(x: Any, rows: Int[np.ndarray, " few"]) -> Any:
    """Some of the inputs, filled up to a power of two, so that programs are shared."""
    number = min(len(x), 2 ** math.ceil(math.log2(len(rows))))
    return x[np.resize(rows, number)]


def _run(
    net: Layer, x1: Any, x2: Any, wanted: Demand, kernels: tuple[str, ...], dtype: str
) -> tuple[tuple[Float[Array, "..."], ...], Doubt | None]:
    """The kernels of two batches, and how much they are in doubt: by slices up to a first pool, then by layers."""
    stage = _first_stage(net, x1)
    if stage is None or is_transformed((net, x1, x2)):
        rest, state = net, images_of(x1, x2, dtype, own=wanted.own)
    else:
        coarse, body, rest = stage
        cast = lambda x: None if x is None else np.asarray(x, dtype)
        numbers = split(body)[1]
        state = first_stage(coarse, numbers, cast(x1), cast(x2), ntk="ntk" in kernels)
    watched, last = parted(rest)
    out = interpret(last, interpret(watched, state).unwatched())
    return kernels_of(out, kernels, len(x1), None if x2 is None else len(x2), dtype), out.doubt


def _first_stage(net: Layer, x: Any) -> tuple[Coarse, Layer, Layer] | None:
    """Small blocks are compared entry by entry instead, where inputs are similar (`_linear_map.py`)."""
    sites = tuple(x.shape[1:-1])
    if isinstance(x, Masked | Graphs) or math.prod(sites) ** 3 <= REFINED // 64:
        return None
    return coarsened(net, sites)


def _side(sites: Sites, points: int) -> int:
    """How many images a tile has along each side: a power of two, as many as fit, not more than needed."""
    side, most = 2, 2 ** math.ceil(math.log2(points))
    while side < most and 2 * side * (2 * side + 2) * math.prod(sites) ** 2 <= BLOCK_ENTRIES:
        side *= 2
    return min(side, most)


def _corners(n1: int, n2: int, side: int, *, symmetric: bool) -> Iterator[tuple[int, int]]:
    for i in range(0, n1, side):
        for j in range(0, n2, side):
            if not symmetric or i >= j:
                yield i, j


def _taken(x: Any, start: int, side: int) -> Any:
    """So many inputs from there on; beyond the last, it is repeated."""
    return x[np.minimum(np.arange(start, start + side), len(x) - 1)]


@np.errstate(over="ignore")  # as above
def _put(out: np.ndarray, part: np.ndarray, i: int, j: int, *, symmetric: bool) -> None:
    place = out[i : i + part.shape[0], j : j + part.shape[1]]
    place[...] = part[: place.shape[0], : place.shape[1]]
    if symmetric and i > j:
        pixels = (out.ndim - 2) // 2
        order = (1, 0, *range(2 + pixels, out.ndim), *range(2, 2 + pixels))
        out[j : j + place.shape[1], i : i + place.shape[0]] = place.transpose(order)
