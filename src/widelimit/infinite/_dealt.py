"""The programs of an operator: tiles of a matrix, dealt out to the devices, multiplied and forgotten."""

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from widelimit._base import mesh as devices
from widelimit._base.ahead import ahead
from widelimit._base.mesh import BY_ROWS, EVERYWHERE
from widelimit._base.thresholds import MATVEC_ENTRIES, NEARLY_PARALLEL

from ._correlation import as_points, cosines, map_correlation
from ._matrix import gram, triangle
from ._plan import Numbers, Plan
from ._tile import ByProfile, Extra, evaluator


@ahead(static=2)
def look_for_near(
    mesh: Mesh | None, side: int, x: Float[Array, "n d"], used: Int[Array, ""]
) -> tuple[Bool[Array, " tiles"], Bool[Array, ""]]:
    limit, many = 1 - NEARLY_PARALLEL[str(x.dtype)], x.shape[0] // side
    tiles = many * (many + 1) // 2

    def share(x: Float[Array, "n d"], used: Int[Array, ""]) -> Bool[Array, " tiles"]:
        unit = as_points(x).unit

        def look(j: Int[Array, ""], found: Int[Array, " tiles"]) -> Int[Array, " tiles"]:
            i = j * devices.count(mesh) + devices.index(mesh)
            row, column = triangle(i)
            rho = cosines(*(_cut(unit, start * side, side) for start in (row, column)))
            rows, columns = (jax.lax.broadcasted_iota(jnp.int32, rho.shape, a) for a in (0, 1))
            rows, columns = rows + row * side, columns + column * side
            near = jnp.any((rows != columns) & (rows < used) & (jnp.abs(rho) > limit))
            return found.at[i].set(near.astype(jnp.int32))

        blank = jnp.zeros(tiles, jnp.int32)
        found = jax.lax.fori_loop(jnp.int32(0), _shared(mesh, tiles), look, blank)
        return devices.total(mesh, found) > 0

    near = devices.spread(mesh, share, EVERYWHERE, EVERYWHERE)(x, used)
    return near, near.any()


def _shared(mesh: Mesh | None, tiles: int) -> Int[Array, ""]:
    """How many of the tiles are this device's: every n-th of them."""
    return (tiles - devices.index(mesh) + devices.count(mesh) - 1) // devices.count(mesh)


def _cut(tree: Any, start: Int[Array, ""], side: int) -> Any:
    return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, start, side), tree)


@ahead(static=3)
def symmetric_product(
    plan: Plan,
    side: int,
    mesh: Mesh | None,
    numbers: Numbers,
    x: Float[Array, "rows d"],
    v: Float[Array, "n k"],
    extra: Extra,
    near: Bool[Array, " tiles"] | None,
    diagonal: Float[Array, " n"],
) -> Float[Array, "n k"]:
    """The matrix with this diagonal, times v; every device has its share of the tiles."""

    def share(*given: Any) -> Float[Array, "rows k"]:
        return devices.total(mesh, _share_of_product(plan, side, mesh, *given))

    wide = jnp.pad(v, ((0, len(x) - len(v)), (0, 0)))
    spread = devices.spread(mesh, share, EVERYWHERE, EVERYWHERE)
    return spread(numbers, x, wide, extra, near)[: len(v)] + diagonal[:, None] * v


def _share_of_product(
    plan: Plan,
    side: int,
    mesh: Mesh | None,
    numbers: Numbers,
    x: Float[Array, "n d"],
    v: Float[Array, "n k"],
    extra: Extra,
    near: Bool[Array, " tiles"] | None,
) -> Float[Array, "n k"]:
    """What this device's tiles add to the product; n is a multiple of the side of a tile."""
    evaluate, points = evaluator(plan, numbers, extra), as_points(x)
    edge, rows, many = evaluate.sizes(points), x.shape[0], x.shape[0] // side
    size = jnp.ones(rows)
    if isinstance(evaluate, ByProfile):  # sizes go to the vectors rather than to every entry
        size = jnp.broadcast_to(jnp.asarray(edge), (rows,))
    wide = v * size[:, None]
    largest = jnp.max(jnp.abs(wide), axis=0)
    scale = jnp.where(largest > 0, largest, 1)
    narrow = (wide / scale[None, :]).astype(x.dtype)

    def add(j: Int[Array, ""], out: Float[Array, "n k"]) -> Float[Array, "n k"]:
        i = j * devices.count(mesh) + devices.index(mesh)
        row, column = triangle(i)
        start1, start2 = row * side, column * side
        edge1, edge2 = _cut(edge, start1, side), _cut(edge, start2, side)
        v1, v2 = _cut(narrow, start1, side), _cut(narrow, start2, side)
        place = [jax.lax.broadcasted_iota(jnp.int32, (side, side), axis) for axis in (0, 1)]
        other = place[0] + start1 != place[1] + start2
        units = _cut(points.unit, start1, side), _cut(points.unit, start2, side)

        def then(minus: Float[Array, "r c"], plus: Float[Array, "r c"]) -> tuple[Array, Array]:
            if isinstance(evaluate, ByProfile):
                (tile,) = evaluate.normalised(minus, plus)
            else:
                (tile,) = evaluate.tile(minus, plus, edge1, edge2)
            tile = jnp.where(other, tile, 0)
            return _times(tile, v2, 1), _times(tile, v1, 0)

        def plain() -> tuple[Array, Array]:
            rho = cosines(*units)
            return then(jnp.abs(1 - rho), jnp.abs(1 + rho))

        careful = lambda: map_correlation(then, *units, start1 - start2, pairs=rows * rows)
        down, across = plain() if near is None else jax.lax.cond(near[i], careful, plain)
        across = jnp.where(row == column, 0, across)
        for start, part in ((start1, down), (start2, across)):
            sums = _cut(out, start, side) + part.astype(jnp.float64)
            out = jax.lax.dynamic_update_slice_in_dim(out, sums, start, 0)
        return out

    mine = _shared(mesh, many * (many + 1) // 2)
    out = jax.lax.fori_loop(jnp.int32(0), mine, add, jnp.zeros(v.shape, jnp.float64))
    return out * scale[None, :] * size[:, None]


def _times(tile: Float[Array, "r c"], v: Float[Array, "n k"], axis: int) -> Float[Array, "m k"]:
    """The tile times v, summed over an axis; for one vector in the pass that computes the entries."""
    if v.shape[1] == 1:
        line = v[None, :, 0] if axis == 1 else v
        return jnp.sum(tile * line, axis=axis)[:, None]
    precision = jax.lax.Precision.HIGHEST
    if jax.default_backend() != "cpu" and tile.dtype == jnp.float32:
        precision = jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3
    return jnp.matmul(tile if axis == 1 else tile.T, v, precision=precision)


@ahead(static=4)
def columns(
    plan: Plan, size: int, mesh: Mesh | None, plain: bool, *given: Any
) -> Float[Array, "rows k"]:
    """Some columns, dealt out by rows; plain: where no pair needs care."""
    mine = -(-size // devices.count(mesh))

    def share(
        numbers: Numbers,
        x: Float[Array, "n d"],
        index: Int[Array, " k"],
        exact: Float[Array, " size"],
        extra: Extra,
    ) -> Float[Array, "mine k"]:
        few, points = x[index], devices.own(mesh, x[:size], mine)
        strip = min(mine, max(8, MATVEC_ENTRIES // max(len(few), 1)))
        evaluate, others = evaluator(plan, numbers, extra), as_points(few)
        first, diagonal = devices.index(mesh) * mine, exact[index].astype(x.dtype)

        def part_of(rows: Float[Array, "strip d"]) -> Float[Array, "strip k"]:
            if not plain:
                return gram(plan, numbers, rows, few, extra)[0]
            these = as_points(rows)
            edges = evaluate.sizes(these), evaluate.sizes(others)
            return evaluate.tile(*_both(cosines(these.unit, others.unit)), *edges)[0]

        def fill(i: Int[Array, ""], out: Float[Array, "mine k"]) -> Float[Array, "mine k"]:
            start = jnp.minimum(i * strip, mine - strip)
            part = part_of(_cut(points, start, strip))
            row = first + start + jax.lax.broadcasted_iota(jnp.int32, part.shape, 0)
            part = jnp.where(row == index[None, :], diagonal[None, :], part)
            part = jnp.where(row < size, part, 0)
            return jax.lax.dynamic_update_slice_in_dim(out, part, start, 0)

        blank = jnp.zeros((mine, len(few)), x.dtype)
        return jax.lax.fori_loop(jnp.int32(0), jnp.int32(-(-mine // strip)), fill, blank)

    return devices.spread(mesh, share, EVERYWHERE, BY_ROWS)(*given)


def _both(rho: Float[Array, "r c"]) -> tuple[Float[Array, "r c"], Float[Array, "r c"]]:
    return jnp.maximum(1 - rho, 0), jnp.maximum(1 + rho, 0)


@ahead(static=2)
def some_rows(
    plan: Plan,
    side: int,
    numbers: Numbers,
    x: Float[Array, "rows d"],
    index: Int[Array, " r"],
    v: Float[Array, "n k"],
    extra: Extra,
) -> Float[Array, "2 r k"]:
    """Some rows of the product without the diagonal, and the size of their terms; no pair needs care."""
    evaluate, points = evaluator(plan, numbers, extra), as_points(x)
    edge, few = evaluate.sizes(points), points.unit[index]
    edge = jax.tree.map(lambda a: jnp.broadcast_to(jnp.asarray(a), (len(x),)), edge)
    chosen = jax.tree.map(lambda a: a[index], edge)
    wide = jnp.pad(v, ((0, len(x) - len(v)), (0, 0)))

    def add(i: Int[Array, ""], sums: Float[Array, "2 r k"]) -> Float[Array, "2 r k"]:
        start = i * side
        rho, part = cosines(few, _cut(points.unit, start, side)), _cut(wide, start, side)
        (tile,) = evaluate.tile(*_both(rho), chosen, _cut(edge, start, side))
        column = start + jax.lax.broadcasted_iota(jnp.int32, rho.shape, 1)
        tile = jnp.where(column == index[:, None], 0, tile).astype(jnp.float64)
        return sums + jnp.stack([tile @ part, jnp.abs(tile) @ jnp.abs(part)])

    blank = jnp.zeros((2, len(index), v.shape[1]))
    return jax.lax.fori_loop(jnp.int32(0), jnp.int32(len(x) // side), add, blank)
