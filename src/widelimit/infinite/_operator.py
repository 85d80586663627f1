"""A network's kernel matrix as an operator on the device: products without the matrix."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from widelimit._base.arrays import Inputs
from widelimit._base.thresholds import DEVICE_PRODUCT_SIDE, MATVEC_ENTRIES, TILE_SIDE

from ._correlation import as_points, map_correlation
from ._evaluate import Request, fill_up
from ._matrix import Extra, evaluator, gram, triangle
from ._plan import Numbers, Plan, without_widths
from ._products import diagonal


class NetworkGram:
    r"""The matrix $K_{ij}=k(x_i,x_j)$ of a network, kept as its points.

    Entries are float32 or float64; their sums over a tile are float64. Half of the tiles are computed,
    each used for $K_{IJ}v_J$ and $K_{IJ}^\top v_I$; nothing of size $n^2$ is stored. The diagonal is
    exact in float64 in either case. Vectors are float64 JAX arrays where the computation runs.

    Args:
        request: Which kernel of which network.
        x: Points, shape (n, d).
        precision: "float32" or "float64": of the entries.
    """

    def __init__(self, request: Request, x: Float[np.ndarray, "n d"], precision: str):
        self.size = len(x)
        self.precision = precision
        dtype = np.dtype(precision)
        request = request._replace(form=without_widths(request.form))
        with jax.enable_x64(True):
            # As many pairs as are to come, so that what pays for large matrices is used.
            made = fill_up(request, Inputs(x.astype(dtype), None, True, dtype), dtype=precision)
            side = TILE_SIDE if jax.default_backend() == "cpu" else DEVICE_PRODUCT_SIDE
            self._side = min(side, -(-self.size // 8) * 8)
            rows = -(-self.size // self._side) * self._side
            points = np.zeros((rows, made.x1.shape[1]), dtype)
            points[: self.size] = made.x1[: self.size]
            self._x = jnp.asarray(points)
            self._plan, self._numbers = made.plan, made.numbers
            self._extra = made.extra._replace(counts=None)
            exact = diagonal(request, Inputs(x.astype(np.float64), None, True, np.dtype(float)))[0]
            self._diagonal = jnp.asarray(exact)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.size, self.size

    def vector(self, v: object) -> Float[Array, " n *k"]:
        """A vector, or several as columns, where products are computed."""
        with jax.enable_x64(True):
            return jnp.asarray(v, jnp.float64)

    def __matmul__(self, v: object) -> Float[Array, " n *k"]:
        """K v for v of shape (n,) or (n, k), in float64."""
        with jax.enable_x64(True):
            given = self.vector(v)
            if given.ndim not in (1, 2) or len(given) != self.size:
                raise ValueError(f"v must have {self.size} rows, got shape {given.shape}.")
            columns = given.reshape(self.size, -1)
            below = ((0, len(self._x) - self.size), (0, 0))
            out = _symmetric_product(
                self._plan, self._side, self._numbers, self._x, jnp.pad(columns, below), self._extra
            )[: self.size]
            return (out + self._diagonal[:, None] * columns).reshape(given.shape)

    def columns(self, index: object) -> Float[Array, "n k"]:
        """K[:, index], shape (n, len(index)), in the precision of the entries."""
        with jax.enable_x64(True):
            chosen = jnp.asarray(index, jnp.int32)
            out = _columns(self._plan, self._numbers, self._x, chosen, self._extra)[: self.size]
            exact = self._diagonal[chosen].astype(out.dtype)
            return out.at[chosen, jnp.arange(len(chosen))].set(exact)

    def diagonal(self) -> Float[Array, " n"]:
        """The diagonal of K, in float64."""
        return self._diagonal


@functools.partial(jax.jit, static_argnums=(0, 1))
def _symmetric_product(
    plan: Plan,
    side: int,
    numbers: Numbers,
    x: Float[Array, "n d"],
    v: Float[Array, "n k"],
    extra: Extra,
) -> Float[Array, "n k"]:
    """The matrix without its diagonal, times v; n is a multiple of the side of a tile."""
    evaluate, points = evaluator(plan, numbers, extra), as_points(x)
    edge, narrow = evaluate.sizes(points), v.astype(x.dtype)
    rows, many = x.shape[0], x.shape[0] // side
    cut = lambda tree, start: jax.tree.map(
        lambda a: jax.lax.dynamic_slice_in_dim(a, start, side), tree
    )

    def add(i: Int[Array, ""], out: Float[Array, "n k"]) -> Float[Array, "n k"]:
        row, column = triangle(i)
        start1, start2 = row * side, column * side
        edge1, edge2 = cut(edge, start1), cut(edge, start2)
        v1, v2 = cut(narrow, start1), cut(narrow, start2)
        place = [jax.lax.broadcasted_iota(jnp.int32, (side, side), axis) for axis in (0, 1)]
        other = place[0] + start1 != place[1] + start2

        def then(minus: Float[Array, "r c"], plus: Float[Array, "r c"]) -> tuple[Array, Array]:
            tile = jnp.where(other, evaluate.tile(minus, plus, edge1, edge2)[0], 0)
            return _times(tile, v2), _times(tile.T, v1)

        units = cut(points.unit, start1), cut(points.unit, start2)
        down, across = map_correlation(then, *units, start1 - start2, pairs=rows * rows)
        across = jnp.where(row == column, 0, across)
        for start, part in ((start1, down), (start2, across)):
            sums = jax.lax.dynamic_slice_in_dim(out, start, side) + part.astype(jnp.float64)
            out = jax.lax.dynamic_update_slice_in_dim(out, sums, start, 0)
        return out

    total = jnp.int32(many * (many + 1) // 2)
    return jax.lax.fori_loop(jnp.int32(0), total, add, jnp.zeros(v.shape, jnp.float64))


def _times(tile: Float[Array, "r c"], v: Float[Array, "c k"]) -> Float[Array, "r k"]:
    if v.shape[1] == 1 and jax.default_backend() != "cpu":  # fused with the entries
        return jnp.sum(tile * v[:, 0], axis=1)[:, None]
    return jnp.matmul(tile, v, precision=jax.lax.Precision.HIGHEST)


@functools.partial(jax.jit, static_argnums=0)
def _columns(
    plan: Plan, numbers: Numbers, x: Float[Array, "n d"], index: Int[Array, " k"], extra: Extra
) -> Float[Array, "n k"]:
    few, n = x[index], x.shape[0]
    strip = min(n, max(8, MATVEC_ENTRIES // max(len(few), 1)))

    def fill(i: Int[Array, ""], out: Float[Array, "n k"]) -> Float[Array, "n k"]:
        start = jnp.minimum(i * strip, n - strip)
        (part,) = gram(plan, numbers, jax.lax.dynamic_slice_in_dim(x, start, strip), few, extra)
        return jax.lax.dynamic_update_slice_in_dim(out, part, start, 0)

    return jax.lax.fori_loop(0, -(-n // strip), fill, jnp.zeros((n, len(few)), x.dtype))
