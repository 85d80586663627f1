"""From a network and points to the corrections of all pairs, tile by tile with one program."""

import dataclasses
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.compile import on_host, quick_jit
from widelimit._base.types import Tensor
from widelimit.activations import Activation, How, fourth_terms
from widelimit.describe import infer
from widelimit.infinite import (
    Form,
    HostPoints,
    Numbers,
    Variances,
    choose_how,
    host_correlation,
    host_points,
    join,
    split,
    with_loops,
)
from widelimit.interpret import facts, interpret
from widelimit.layers import Layer

from ._state import Fluctuating
from ._steps import without_basis, without_chart
from ._stepwise import Stepwise
from ._tensors import outer, pairs_of, stacked

Progress = Callable[[int, int], None]
SIDE = 16  # points; the state of a tile, some 150 numbers for each entry, stays in the cache
PLANE_SIDE = 2  # points; the same where each entry costs a quadrature in the plane
FEW = 64  # tiles; up to here compiling costs more than running, so it is cheap
STEPS = 2000  # weight matrices times tiles; up to here operations run one by one
THREADS = 8  # a tile runs on one processor
_NAMES = (
    "nngp_var",
    "ntk_var",
    "cross",
    "ntk_common_var",
    "ntk_between_var",
    "nngp_shift",
    "ntk_shift",
)


class Prepared(NamedTuple):
    """A network ready to be evaluated for points of certain norms.

    Attributes:
        depth: The number of its weight matrices.
        form: Its form, loops in place of repetitions.
        numbers: Its numbers.
        limit: How the limit kernels' moments are evaluated.
        how: The length of the series of fourth moments, for each activation.
    """

    depth: int
    form: Form
    numbers: Numbers
    limit: How
    how: tuple[tuple[Activation, int], ...]

    @property
    def side(self) -> int:
        """Of the tiles."""
        planar = any(terms == 0 and act.fourth is None for act, terms in self.how)
        return PLANE_SIDE if planar else SIDE


def prepared(net: Layer, low: float, high: float) -> Prepared:
    """Decide how moments are evaluated for inputs of these smallest and largest |x|^2/d."""
    with jax.enable_x64(True):
        limit = choose_how(net, [low, high], np.dtype(np.float64), many=False)
        start = Variances(jnp.asarray([low, high]), [])
        interpret(net, start)
    met: dict[Activation, list[float]] = {}
    for act, q in start.seen:
        met.setdefault(act, []).extend(np.asarray(q).ravel().tolist())
    how = tuple((act, fourth_terms(act, values)) for act, values in met.items())
    depth = len(infer(net, 1, 1).widths)
    return Prepared(depth, *split(with_loops(net)), limit, how)


class Tensors(NamedTuple):
    """The corrections of all pairs of a tile, in the units of the kernels.

    Attributes:
        cov: n times the covariance of both kernels over the pairs 00, 01, 11.
        shift: n times the shifts of their means.
        b: As in `Fluctuating`.
        f: As in `Fluctuating`.
    """

    cov: Float[Tensor, "6 6 ..."]
    shift: Float[Tensor, "6 ..."]
    b: Float[Tensor, "2 2 2 2 ..."]
    f: Float[Tensor, "2 2 2 2 ..."]

    def entries(self) -> Float[Array, "7 r c"]:
        """What belongs to the entry 01, in the order of `_NAMES`."""
        cov, between = self.cov, self.b[0, 1, 0, 1]
        ntk_var = cov[4, 4] + between + self.b[0, 1, 1, 0]
        parts = cov[1, 1], ntk_var, cov[1, 4], cov[4, 4], between, self.shift[1], self.shift[4]
        return jnp.stack(parts)


def _start(ready: Prepared, *data: Float[Array, "..."]) -> Fluctuating:
    q1, q2, minus, plus = data
    return Fluctuating.of_data(q1[:, None], q2[None, :], minus, plus, ready.limit, ready.how)


def _tensors(ready: Prepared, numbers: Numbers, *data: Float[Array, "..."]) -> Tensors:
    return _read(interpret(join(ready.form, numbers), _start(ready, *data)))


def _read(out: Fluctuating) -> Tensors:
    minus = out.both.minus
    root = stacked([jnp.sqrt(out.both.q1), jnp.sqrt(out.both.q2)], minus.shape)
    two = root[:, None] * root[None]
    six, four = jnp.concatenate([pairs_of(two)] * 2), outer(two, two)
    times = lambda size, value: jnp.where((size == 0) | (value == 0), 0, size * value)
    cov, shift = without_chart(out.cov, out.shift, out.chart)
    f = without_basis(out.f, out.chart)
    return Tensors(
        times(six[:, None] * six[None], cov), times(six, shift), times(four, out.b), times(four, f)
    )


def _entries(
    ready: Prepared, numbers: Numbers, *data: Float[Array, "..."]
) -> Float[Array, "7 r c"]:
    return _tensors(ready, numbers, *data).entries()


# Few pairs run operation by operation; the first program compiles fast, the second runs fast.
_quick, _full = quick_jit(_tensors), jax.jit(_entries, static_argnums=0)
_end = quick_jit(_read, ())


def _of_few(ready: Prepared, data: tuple[np.ndarray, ...], tiles: int) -> Tensors:
    """The corrections of one of few tiles."""
    if tiles * ready.depth > STEPS:
        return _quick(ready._replace(numbers=(), depth=0), ready.numbers, *data)
    with on_host():
        start = _start(ready, *map(jnp.asarray, data)).opened()
        out = interpret(join(ready.form, ready.numbers), Stepwise(start)).state
        return _end(dataclasses.replace(out, how=()))


def corrections(
    net: Layer,
    x1: Float[np.ndarray, "n1 d"],
    x2: Float[np.ndarray, "n2 d"] | None,
    progress: Progress | None,
) -> dict[str, Float[np.ndarray, "n1 n2"]]:
    """All corrections of all pairs; without `x2` of half of them, the rest by symmetry."""
    first = host_points(x1)
    second = first if x2 is None else host_points(x2)
    ready = _for_points(net, first, second)
    side, symmetric = ready.side, x2 is None
    places = list(_places(len(first.q), len(second.q), side, symmetric=symmetric))
    static = ready._replace(numbers=(), depth=0)
    out = np.zeros((len(_NAMES), len(first.q), len(second.q)))

    def fill(place: tuple[int, int]) -> None:
        i, j = place
        rows, columns = slice(i, i + side), slice(j, j + side)
        data = _cut(first, second, rows, columns, side, diagonal=symmetric and i == j)
        with jax.enable_x64(True):  # in each thread
            if len(places) <= FEW:
                found = _of_few(ready, data, len(places)).entries()
            else:
                found = _full(static, ready.numbers, *data)
            tile = np.asarray(found)
        part = out[:, rows, columns]
        part[...] = tile[:, : part.shape[1], : part.shape[2]]

    for k, _ in enumerate(_in_threads(fill, places)):
        if progress is not None:
            progress(k + 1, len(places))
    if facts(net).vanishes:
        out[:, first.zero, :] = out[:, :, second.zero] = 0
    if symmetric:
        out = np.tril(out) + np.tril(out, -1).swapaxes(1, 2)
    return dict(zip(_NAMES, out, strict=True))


def _in_threads(
    work: Callable[[tuple[int, int]], None], places: list[tuple[int, int]]
) -> Iterator[None]:
    """One tile after the other where they are few; else several at once, after the first has compiled."""
    alone = len(places) if len(places) <= FEW else 1
    for place in places[:alone]:
        yield work(place)
    pool = ThreadPoolExecutor(max_workers=min(os.cpu_count() or 1, THREADS))
    try:
        yield from pool.map(work, places[alone:])
    finally:
        pool.shutdown(cancel_futures=True)


def pair_tensors(net: Layer, x: Float[np.ndarray, "1 d"], y: Float[np.ndarray, "1 d"]) -> Tensors:
    """The corrections of one pair."""
    first, second = host_points(x), host_points(y)
    ready = _for_points(net, first, second)
    whole = slice(0, 1)
    with jax.enable_x64(True):
        data = _cut(first, second, whole, whole, ready.side, diagonal=False)
        found = _of_few(ready, data, 1)
        return Tensors(*(np.asarray(part)[..., 0, 0] for part in found))


def _for_points(net: Layer, first: HostPoints, second: HostPoints) -> Prepared:
    q = np.concatenate([first.q, second.q])
    return prepared(net, float(q.min()), float(q.max()))


def _places(n1: int, n2: int, side: int, *, symmetric: bool) -> Iterator[tuple[int, int]]:
    for i in range(0, n1, side):
        for j in range(0, n2, side):
            if not symmetric or i >= j:
                yield i, j


def _cut(
    first: HostPoints, second: HostPoints, rows: slice, columns: slice, side: int, *, diagonal: bool
) -> tuple[np.ndarray, ...]:
    """The data of a tile; what is missing at the edges repeats the last point."""
    pick = lambda points, part: HostPoints(*(_filled(a[part], side) for a in points))
    one, other = pick(first, rows), pick(second, columns)
    minus, plus = host_correlation(one, other)
    if diagonal:
        np.fill_diagonal(minus, 0)
        np.fill_diagonal(plus, 2)
    return one.q, other.q, minus, plus


def _filled(a: np.ndarray, side: int) -> np.ndarray:
    return np.pad(a, [(0, side - len(a))] + [(0, 0)] * (a.ndim - 1), mode="edge")
