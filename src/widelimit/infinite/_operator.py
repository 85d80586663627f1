"""A network's kernel matrix as an operator on the device: products without the matrix."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.arrays import Inputs, is_jax
from widelimit._base.thresholds import (
    DEVICE_PRODUCT_SIDE,
    FEW_FEATURES,
    MATVEC_ENTRIES,
    NEARLY_PARALLEL,
    REPRESENTABLE,
    TILE_SIDE,
)
from widelimit._base.types import Tensor

from ._correlation import as_points, cosines, map_correlation
from ._evaluate import Request, fill_up
from ._fused import Fused
from ._hopper import served as hopper
from ._host import second_moments
from ._matrix import gram, triangle
from ._plan import Numbers, Plan, without_widths
from ._products import diagonal
from ._tile import Extra, evaluator

_TRIED_ROWS = 256  # in which the first product by a device's own kernel is compared


class NetworkGram:
    r"""The matrix $K_{ij}=k(x_i,x_j)$ of a network, kept as its points.

    Entries are float32 or float64; their sums over a tile are float64. Half of the tiles are computed,
    each used for $K_{IJ}v_J$ and $K_{IJ}^\top v_I$; nothing of size $n^2$ is stored. The diagonal is
    exact in float64 in either case. Vectors are float64 JAX arrays where the computation runs.

    Args:
        request: Which kernel of which network.
        x: Points, shape (n, d).
        precision: "float32" or "float64": of the entries; float64 in any case where float32 cannot hold
            the sizes of the inputs or of their kernels.

    Attributes:
        size: The number of points.
        precision: Of the entries.
    """

    def __init__(self, request: Request, x: Float[np.ndarray, "n d"], precision: str):
        self.size = len(x)
        request = request._replace(form=without_widths(request.form))
        exact = diagonal(request, Inputs(x.astype(np.float64), None, True, np.dtype(float)))[0]
        sizes = np.concatenate([second_moments(x.astype(np.float64)), np.asarray(exact)])
        self.precision = precision if _fits(sizes) else "float64"
        dtype = np.dtype(self.precision)
        with jax.enable_x64(True):
            # As many pairs as are to come, so that what pays for large matrices is used.
            inputs = Inputs(x.astype(dtype), None, True, dtype)
            made = fill_up(request, inputs, dtype=self.precision)
            side = TILE_SIDE if jax.default_backend() == "cpu" else DEVICE_PRODUCT_SIDE
            self._side = min(side, -(-self.size // 8) * 8)
            rows = -(-self.size // self._side) * self._side
            points = np.zeros((rows, made.x1.shape[1]), dtype)
            points[: self.size] = made.x1[: self.size]
            self._x = jnp.asarray(points)
            self._plan, self._numbers = made.plan, made.numbers
            self._extra = made.extra._replace(counts=None)
            self._near = _near_tiles(self._x, self._side, self.size)
            self._diagonal = jnp.asarray(exact)
            self._fused = self._look_for_kernel(request.wanted[0])

    def _look_for_kernel(self, kind: str) -> Fused | None:
        """The product by a kernel of the device's own, where there is one and no pair needs care."""
        profiles = self._extra.profiles
        narrow = self.precision == "float32" and self._near is None
        if not narrow or self._plan.path != "profile" or profiles is None or not hopper():
            return None
        points = as_points(self._x[: self.size])
        edge = evaluator(self._plan, self._numbers, self._extra).sizes(points)
        edge = jnp.broadcast_to(jnp.asarray(edge), (self.size,))
        return Fused.of(points.unit, edge, getattr(profiles, kind))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.size, self.size

    def vector(self, v: object) -> Float[Array, " n *k"]:
        """A vector, or several as columns, where products are computed."""
        with jax.enable_x64(True):
            return jnp.asarray(v, jnp.float64)

    def __matmul__(self, v: object) -> Float[Tensor, " n *k"]:
        """K v for v of shape (n,) or (n, k), in float64: NumPy for NumPy, else where it was computed."""
        with jax.enable_x64(True):
            given = self.vector(v)
            if given.ndim not in (1, 2) or len(given) != self.size:
                raise ValueError(f"v must have {self.size} rows, got shape {given.shape}.")
            columns = given.reshape(self.size, -1)
            out = self._by_kernel(columns)
            if out is None:
                out = self._by_tiles(columns)
            out = (out + self._diagonal[:, None] * columns).reshape(given.shape)
            return out if is_jax(v) else np.asarray(out)

    def _by_tiles(self, columns: Float[Array, "n k"]) -> Float[Array, "n k"]:
        below = ((0, len(self._x) - self.size), (0, 0))
        wide, how = jnp.pad(columns, below), (self._plan, self._side)
        out = _symmetric_product(*how, self._numbers, self._x, wide, self._extra, self._near)
        return out[: self.size]

    def _by_kernel(self, columns: Float[Array, "n k"]) -> Float[Array, "n k"] | None:
        """The same by the device's own kernel, whose first product is checked; None: not served."""
        fused = self._fused
        if fused is None or not fused.serves(columns.shape[1]):
            return None
        if fused.tried:
            return fused(columns)
        chosen = np.unique(np.linspace(0, self.size - 1, _TRIED_ROWS).astype(np.int32))
        some = self.columns(chosen).astype(jnp.float64).at[chosen, np.arange(len(chosen))].set(0)
        right = jnp.stack([some.T @ columns, jnp.abs(some).T @ jnp.abs(columns)])
        return fused.first(columns, jnp.asarray(chosen), right)

    def columns(self, index: object) -> Float[Array, "n k"]:
        """K[:, index], shape (n, len(index)), in the precision of the entries."""
        with jax.enable_x64(True):
            chosen = jnp.asarray(index, jnp.int32)
            exact = self._diagonal[chosen]
            program = self._plan, self.size
            return _columns(*program, self._numbers, self._x, chosen, exact, self._extra)

    def diagonal(self) -> Float[Array, " n"]:
        """The diagonal of K, in float64."""
        return self._diagonal


def _fits(sizes: Float[np.ndarray, " sizes"]) -> bool:
    """Whether float32 holds these second moments, and products of four of their roots."""
    used = sizes[sizes != 0]
    return bool(np.all((used > 1 / REPRESENTABLE) & (used < REPRESENTABLE)))


def _near_tiles(x: Float[Array, "n d"], side: int, used: int) -> Bool[Array, " tiles"] | None:
    """Which tiles have nearly parallel pairs, so that only those are computed with care; None: none.

    With few features correlations come from differences in any case.
    """
    many = x.shape[0] // side
    if x.shape[1] <= FEW_FEATURES:
        return jnp.ones(many * (many + 1) // 2, bool)
    near = _look_for_near(x, side, jnp.int32(used))
    return near if bool(near.any()) else None


@functools.partial(jax.jit, static_argnums=1)
def _look_for_near(
    x: Float[Array, "n d"], side: int, used: Int[Array, ""]
) -> Bool[Array, " tiles"]:
    unit, limit = as_points(x).unit, 1 - NEARLY_PARALLEL[str(x.dtype)]

    def look(i: Int[Array, ""]) -> Bool[Array, ""]:
        row, column = triangle(i)
        rho = cosines(*(_cut(unit, start * side, side) for start in (row, column)))
        place = [jax.lax.broadcasted_iota(jnp.int32, rho.shape, axis) for axis in (0, 1)]
        other = (place[0] + row * side != place[1] + column * side) & (place[0] + row * side < used)
        return jnp.any(other & (jnp.abs(rho) > limit))

    many = x.shape[0] // side
    return jax.lax.map(look, jnp.arange(many * (many + 1) // 2, dtype=jnp.int32))


def _cut(tree: Any, start: Int[Array, ""], side: int) -> Any:
    return jax.tree.map(lambda a: jax.lax.dynamic_slice_in_dim(a, start, side), tree)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _symmetric_product(
    plan: Plan,
    side: int,
    numbers: Numbers,
    x: Float[Array, "n d"],
    v: Float[Array, "n k"],
    extra: Extra,
    near: Bool[Array, " tiles"] | None,
) -> Float[Array, "n k"]:
    """The matrix without its diagonal, times v; n is a multiple of the side of a tile."""
    evaluate, points = evaluator(plan, numbers, extra), as_points(x)
    edge, narrow = evaluate.sizes(points), v.astype(x.dtype)
    rows, many = x.shape[0], x.shape[0] // side

    def add(i: Int[Array, ""], out: Float[Array, "n k"]) -> Float[Array, "n k"]:
        row, column = triangle(i)
        start1, start2 = row * side, column * side
        edge1, edge2 = _cut(edge, start1, side), _cut(edge, start2, side)
        v1, v2 = _cut(narrow, start1, side), _cut(narrow, start2, side)
        place = [jax.lax.broadcasted_iota(jnp.int32, (side, side), axis) for axis in (0, 1)]
        other = place[0] + start1 != place[1] + start2
        units = _cut(points.unit, start1, side), _cut(points.unit, start2, side)

        def then(minus: Float[Array, "r c"], plus: Float[Array, "r c"]) -> tuple[Array, Array]:
            tile = jnp.where(other, evaluate.tile(minus, plus, edge1, edge2)[0], 0)
            return _times(tile, v2), _times(tile.T, v1)

        def plain() -> tuple[Array, Array]:
            rho = cosines(*units)
            return then(jnp.maximum(1 - rho, 0), jnp.maximum(1 + rho, 0))

        careful = lambda: map_correlation(then, *units, start1 - start2, pairs=rows * rows)
        down, across = plain() if near is None else jax.lax.cond(near[i], careful, plain)
        across = jnp.where(row == column, 0, across)
        for start, part in ((start1, down), (start2, across)):
            sums = _cut(out, start, side) + part.astype(jnp.float64)
            out = jax.lax.dynamic_update_slice_in_dim(out, sums, start, 0)
        return out

    total = jnp.int32(many * (many + 1) // 2)
    return jax.lax.fori_loop(jnp.int32(0), total, add, jnp.zeros(v.shape, jnp.float64))


def _times(tile: Float[Array, "r c"], v: Float[Array, "c k"]) -> Float[Array, "r k"]:
    if jax.default_backend() == "cpu" or tile.dtype == jnp.float64:
        return jnp.matmul(tile, v, precision=jax.lax.Precision.HIGHEST)
    if v.shape[1] == 1:  # fused with the entries
        return jnp.sum(tile * v[:, 0], axis=1)[:, None]
    return jnp.matmul(tile, v, precision=jax.lax.DotAlgorithmPreset.TF32_TF32_F32_X3)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _columns(
    plan: Plan,
    size: int,
    numbers: Numbers,
    x: Float[Array, "n d"],
    index: Int[Array, " k"],
    exact: Float[Array, " k"],
    extra: Extra,
) -> Float[Array, "size k"]:
    few = x[index]
    strip = min(size, max(8, MATVEC_ENTRIES // max(len(few), 1)))

    def fill(i: Int[Array, ""], out: Float[Array, "size k"]) -> Float[Array, "size k"]:
        start = jnp.minimum(i * strip, size - strip)
        (part,) = gram(plan, numbers, jax.lax.dynamic_slice_in_dim(x, start, strip), few, extra)
        return jax.lax.dynamic_update_slice_in_dim(out, part, start, 0)

    blank = jnp.zeros((size, len(few)), x.dtype)
    out = jax.lax.fori_loop(0, -(-size // strip), fill, blank)
    return out.at[index, jnp.arange(len(few))].set(exact.astype(x.dtype))
