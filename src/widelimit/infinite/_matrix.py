"""Gram matrices: tiles, each by the profile or layer by layer; derivatives layer by layer."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.numerics import steer
from widelimit._base.thresholds import DEVICE_SIDE, TILE_SIDE, TILE_SIDES

from ._correlation import Points, as_points, correlation, map_correlation
from ._layered import ByLayers, Matrices, kernel_values, run_layers
from ._plan import Numbers, Plan, cut_off, error_limit, join, norm_tolerance
from ._profile import build
from ._tile import ByProfile, Counts, Evaluator, Extra, evaluator


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _gram(
    plan: Plan,
    numbers: Numbers,
    x1: Float[Array, "n1 d"],
    x2: Float[Array, "n2 d"] | None,
    extra: Extra,
) -> tuple[Float[Array, "n1 n2"], ...]:
    """The wanted kernel matrices; `x2=None` means `x1` with itself, its diagonal exact."""
    first = as_points(x1)
    second = first if x2 is None else as_points(x2)
    chosen = evaluator(plan, numbers, extra)

    def fill(evaluate: Evaluator) -> Matrices:
        edge1 = evaluate.sizes(first)
        edge2 = edge1 if x2 is None else evaluate.sizes(second)
        side1, side2 = _Side(first, edge1), _Side(second, edge2)
        return _tiles(evaluate, side1, side2, extra.counts, symmetric=x2 is None)

    if isinstance(chosen, ByLayers) and plan.path == "either":
        out = _either(plan, first, second, fill, chosen)
    else:
        out = fill(chosen)
    # In double precision layers set the diagonal as well as a separate pass would.
    if x2 is None and not (plan.path == "layers" and x1.dtype == jnp.float64):
        out = _with_diagonal(plan, out, chosen.diagonal(first))
    return out


@_gram.defjvp
def _gram_jvp(plan, primals, tangents):
    numbers, x1, x2, extra = primals
    smooth = lambda numbers, x1, x2: differentiable_gram(plan, numbers, x1, x2, extra.vanishes)
    return jax.jvp(smooth, (numbers, x1, x2), tangents[:3])


gram = jax.jit(_gram, static_argnums=0)


def differentiable_gram(
    plan: Plan,
    numbers: Numbers,
    x1: Float[Array, "n1 d"],
    x2: Float[Array, "n2 d"] | None,
    vanishes: bool | Bool[Array, ""],
) -> tuple[Float[Array, "n1 n2"], ...]:
    """The same matrices in one piece, layer by layer: the form that is differentiated."""
    first = as_points(x1)
    second = first if x2 is None else as_points(x2)
    with jax.enable_x64(True):
        minus, plus = correlation(first.unit, second.unit)
        if x2 is None:
            same = jnp.eye(x1.shape[0], dtype=bool)
            minus = steer(jnp.where(same, 0, minus), minus)
            plus = steer(jnp.where(same, 2, plus), plus)
        net = join(plan.form, numbers)
        out = run_layers(net, first.q[:, None], second.q[None, :], minus, plus, plan.how)
        dead = (first.zero[:, None] | second.zero[None, :]) & vanishes
        values = kernel_values(out, plan.wanted, out.size)
        return tuple(steer(jnp.where(dead, 0, value), value) for value in values)


class _Side(NamedTuple):
    """The inputs of one side, and what the tiles need to know of each."""

    points: Points
    edge: Float[Array, " n"] | tuple[Float[Array, " n"], Bool[Array, " n"]]


def _with_diagonal(plan: Plan, out: Matrices, exact: dict[str, Float[Array, " n"]]) -> Matrices:
    """The matrices with a diagonal that is rounded once."""
    with jax.enable_x64(True):
        i = jnp.arange(out[0].shape[0])
        put = lambda name, m: m.at[i, i].set(exact[name].astype(m.dtype))
        return tuple(put(name, matrix) for name, matrix in zip(plan.wanted, out, strict=True))


def _tiles(
    evaluate: Evaluator,
    first: _Side,
    second: _Side,
    counts: Counts | None,
    *,
    symmetric: bool,
) -> Matrices:
    """All entries, tile by tile; of a symmetric matrix the lower half is computed.

    How many tiles there are is a number at run time wherever `counts` is given, so that matrices of
    many sizes share a program and none pays for rows that only fill up.
    """
    n1, n2 = first.points.unit.shape[0], second.points.unit.shape[0]
    rows, columns = _tile_shape(n1, n2, exact=counts is None, symmetric=symmetric)
    used1, used2 = counts or (n1, n2)
    # On a symmetric matrix row i of tiles has i + 1 of them.
    many1, many2 = -(-used1 // rows), -(-used2 // columns)
    total = many1 * (many1 + 1) // 2 if symmetric else many1 * many2

    def corner(i: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
        row, column = triangle(i) if symmetric else (i // many2, i % many2)
        # The last tile overlaps the one before where sizes do not divide.
        last1, last2 = (jnp.maximum(u - t, 0) for u, t in ((used1, rows), (used2, columns)))
        return jnp.minimum(row * rows, last1), jnp.minimum(column * columns, last2)

    def tile(start1: Int[Array, ""], start2: Int[Array, ""]) -> Matrices:
        cut1 = lambda a: jax.lax.dynamic_slice_in_dim(a, start1, rows)
        cut2 = lambda a: jax.lax.dynamic_slice_in_dim(a, start2, columns)
        part1, part2 = jax.tree.map(cut1, first.edge), jax.tree.map(cut2, second.edge)
        diagonal = start1 - start2 if symmetric else None

        def then(minus: Float[Array, "r c"], plus: Float[Array, "r c"]) -> Matrices:
            if diagonal is not None:
                row, column = (jax.lax.broadcasted_iota(jnp.int32, minus.shape, i) for i in (0, 1))
                same = column == row + diagonal
                minus, plus = jnp.where(same, 0, minus), jnp.where(same, 2, plus)
            return evaluate.tile(minus, plus, part1, part2)

        units = cut1(first.points.unit), cut2(second.points.unit)
        return map_correlation(then, *units, diagonal, pairs=n1 * n2)

    if isinstance(total, int) and total == 1:
        zero = jnp.int32(0)
        out = tile(zero, zero)
    else:
        out = _fill(tile, corner, total, (n1, n2), symmetric)
    return tuple(_mirrored(o, rows, used1, first.points.q) for o in out) if symmetric else out


def triangle(i: Int[Array, ""]) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Row and column of the i-th tile on and below the diagonal, row after row."""
    row = ((jnp.sqrt(8 * i.astype(jnp.float32) + 1) - 1) / 2).astype(jnp.int32)
    row = jnp.where(row * (row + 1) // 2 > i, row - 1, row)  # the root may be rounded
    row = jnp.where((row + 1) * (row + 2) // 2 <= i, row + 1, row)
    return row, i - row * (row + 1) // 2


def _fill(
    tile: Callable[..., Matrices],
    corner: Callable[[Int[Array, ""]], tuple[Int[Array, ""], Int[Array, ""]]],
    total: int | Int[Array, ""],
    shape: tuple[int, int],
    symmetric: bool,
) -> Matrices:
    shapes = jax.eval_shape(tile, *(jax.ShapeDtypeStruct((), jnp.int32),) * 2)
    put = jax.lax.dynamic_update_slice

    def fill(i: Int[Array, ""], out: Matrices) -> Matrices:
        start1, start2 = corner(i)
        parts = tile(start1, start2)
        if symmetric:
            out = tuple(
                put(o, part.T, (start2, start1)) for o, part in zip(out, parts, strict=True)
            )
        return tuple(put(o, part, (start1, start2)) for o, part in zip(out, parts, strict=True))

    blank = tuple(jnp.zeros(shape, s.dtype) for s in shapes)
    return jax.lax.fori_loop(jnp.int32(0), jnp.asarray(total, jnp.int32), fill, blank)


def _mirrored(
    matrix: Float[Array, "n n"], side: int, used: int | Int[Array, ""], q: Float[Array, " n"]
) -> Float[Array, "n n"]:
    """Tiles on the diagonal get an upper half that is, to the last bit, their lower half mirrored."""
    row, column = (jax.lax.broadcasted_iota(jnp.int32, (side, side), i) for i in (0, 1))

    def mirror(i: Int[Array, ""], matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
        start = jnp.minimum(i * side, jnp.maximum(used - side, 0))
        tile = jax.lax.dynamic_slice(matrix, (start, start), (side, side))
        tile = jnp.where(row < column, tile.T, tile)
        return jax.lax.dynamic_update_slice(matrix, tile, (start, start))

    # A length that the compiler cannot know: unrolled, it would compute the tiles a second time.
    count = jnp.where(q[0] == q[0], -(-used // side), 0).astype(jnp.int32)
    return jax.lax.fori_loop(jnp.int32(0), count, mirror, matrix)


def _tile_shape(n1: int, n2: int, *, exact: bool, symmetric: bool) -> tuple[int, int]:
    """Rows and columns of a tile, both divisors of the sizes up to a small overlap."""
    side = TILE_SIDE if jax.default_backend() == "cpu" else DEVICE_SIDE
    if not exact:
        side = next((s for most, s in TILE_SIDES.items() if max(n1, n2) <= most), side)
    if symmetric:
        rows = columns = _even(n1, side) if exact else min(n1, side)
    else:
        rows = min(n1, side)
        columns = min(n2, max(side * side // rows, 1))
        if exact:
            rows, columns = _even(n1, rows), _even(n2, columns)
    return rows, columns


def _even(size: int, most: int) -> int:
    """The side of tiles, at most about `most`, that cover `size` with the least overlap."""
    return -(-size // -(-size // min(most, size)))


def _either(
    plan: Plan,
    first: Points,
    second: Points,
    fill: Callable[[Evaluator], Matrices],
    layers: ByLayers,
) -> Matrices:
    """Decide at run time, when norms and numbers are known, whether the profile holds."""
    dtype = str(first.unit.dtype)
    with jax.enable_x64(True):
        q0 = first.q[0]
        gap = jnp.maximum(jnp.max(jnp.abs(first.q - q0)), jnp.max(jnp.abs(second.q - q0)))
        profiles = build(layers.net, q0, plan.how, cut_off(dtype))
        equal = (plan.degree is not None) | (gap <= norm_tolerance(dtype) * q0)
        limit = error_limit(dtype)
        good = equal & (profiles.nngp.error < limit) & (profiles.ntk.error < limit)
    by_profile = ByProfile(plan, profiles, layers.vanishes)
    return jax.lax.cond(good, lambda: fill(by_profile), lambda: fill(layers))
