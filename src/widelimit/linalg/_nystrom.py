r"""A preconditioner on the device: the matrix as some of its columns know it."""

import copy
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Int

from widelimit._base import mesh as devices
from widelimit._base.ahead import ahead
from widelimit._base.keys import as_generator
from widelimit._base.mesh import BY_ROWS, EVERYWHERE
from widelimit._base.thresholds import TUNED_POINTS
from widelimit._base.types import Seed

from ._operator import KernelOperator

_ROWS = 8192  # of the factor that are held in float64 at once
_PANELS = (
    4  # into which columns are cut where half of a product is known to be 0, or the other half
)
_WIDE = 1024  # columns from which that pays
_MOST_MEMORY = 0.8  # of a device that the columns may take


class Nystrom:
    r"""$v\mapsto(FF^\top+\mathrm{diag}(s))^{-1}v$ with $FF^\top=K_{:S}K_{SS}^{-1}K_{S:}$ for random points S.

    $F$ is stored in the precision of the entries; all arithmetic with it is float64, since the largest
    eigenvalue exceeds $s$ by a factor of the size of the matrix. $s$ is the ridge plus what $F$ leaves out
    of the diagonal, row by row, halfway to its mean: without it the preconditioner would be stiff in
    directions that it does not know, and with the mean alone it would take isolated points for others.

    Args:
        gram: $K$.
        ridge: One number for each row.
        rank: The number of points S.
        key: Of their choice.
    """

    def __init__(
        self,
        gram: KernelOperator,
        ridge: Float[Array, " n"],
        rank: int,
        *,
        key: Seed = 0,
    ):
        chosen = as_generator(key).choice(gram.size, min(rank, gram.size), replace=False)
        self._mesh = mesh = getattr(gram, "mesh", None)
        self.rank = len(chosen)
        with jax.enable_x64(True):
            some = gram.columns(chosen) if mesh is None else gram.shared_columns(chosen)  # pyright: ignore[reportAttributeAccessIssue]
            self._known = gram.diagonal()
            given = some, chosen.astype(np.int32), self._known
            self._factor, self._left = _factor(mesh, *given)  # in the memory of the columns
        self._shift(ridge)

    @staticmethod
    def expect(size: int, rank: int, vectors: int, precision: str) -> None:
        """Begin to compile for a matrix of so many rows on one device, which need not be there yet."""
        with jax.enable_x64(True):
            of = jax.ShapeDtypeStruct
            columns, row = of((size, rank), precision), of((size,), np.float64)
            chosen, inner = of((rank,), np.int32), of((rank, rank), np.float64)
            tuned = size >= TUNED_POINTS
            _factor.prepare(None, columns, chosen, row, tuned=tuned)
            _inner.prepare(None, columns, row, row, row, tuned=tuned)
            _apply.prepare(None, columns, row, inner, of((size, vectors), np.float64))

    def _shift(self, ridge: Float[Array, " n"]) -> None:
        with jax.enable_x64(True):
            given = self._factor, ridge, self._left, self._known
            self._s, self._inner = _inner(self._mesh, *given)

    def shifted(self, ridge: Float[Array, " n"]) -> "Nystrom":
        """The same for another ridge, sharing $F$."""
        other = copy.copy(self)
        other._shift(ridge)
        return other

    def diagonal(self) -> Float[Array, " n"]:
        """The diagonal of what it applies."""
        with jax.enable_x64(True):
            return _diagonal(self._mesh, self._factor, self._s, self._inner)

    def __call__(self, v: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """Apply it to v of shape (n, k)."""
        with jax.enable_x64(True):
            return _apply(self._mesh, self._factor, self._s, self._inner, v)


def usual_rank(
    wanted: int | None, size: int, host: bool, mesh: Mesh | None = None, bytes_each: int = 4
) -> int:
    """Columns of a preconditioner: products of a GPU are dear beside it, those of a CPU less so.

    Where none are asked for, they are no more than the devices' memory holds.
    """
    if wanted is None:
        many = 4 if host else 5 if jax.default_backend() == "cpu" else 10
        wanted = int(many * np.sqrt(size))
        if not host:
            room = _MOST_MEMORY * devices.memory(mesh) / (bytes_each * size)
            wanted = max(1, int(min(wanted, room)))
    return min(size, wanted)


class _Block(NamedTuple):
    """Some rows of a matrix; the last block begins earlier, so that all have one size."""

    start: Int[Array, ""]
    fresh: Bool[Array, " rows"]

    def of(self, array: Array) -> Array:
        """The rows, in float64."""
        part = jax.lax.dynamic_slice_in_dim(array, self.start, len(self.fresh))
        return part.astype(jnp.float64)

    def put(self, array: Array, part: Array) -> Array:
        """The array with these rows replaced, those that an earlier block has done excepted."""
        old = jax.lax.dynamic_slice_in_dim(array, self.start, len(self.fresh))
        fresh = self.fresh.reshape((-1,) + (1,) * (array.ndim - 1))
        new = jnp.where(fresh, part.astype(array.dtype), old)
        return jax.lax.dynamic_update_slice_in_dim(array, new, self.start, 0)


def _over_blocks(n: int, function: Callable[[_Block, Any], Any], start: Any) -> Any:
    step = min(n, _ROWS)

    def run(i: Int[Array, ""], carry: Any) -> Any:
        first = jnp.minimum(i * step, n - step)
        return function(_Block(first, first + jnp.arange(step) >= i * step), carry)

    return jax.lax.fori_loop(0, -(-n // step), run, start)


Devices = Mesh | None


@ahead(static=1, donated=(1,))
def _factor(
    mesh: Devices,
    columns: Float[Array, "n r"],
    chosen: Int[Array, " r"],
    diagonal: Float[Array, " size"],
) -> tuple[Float[Array, "n r"], Float[Array, " size"]]:
    """F, and what FF' leaves out of the diagonal, halfway to the mean of that."""

    def share(
        columns: Float[Array, "m r"], chosen: Int[Array, " r"], diagonal: Float[Array, " size"]
    ) -> tuple[Float[Array, "m r"], Float[Array, " size"]]:
        core = _core(mesh, columns, chosen)
        # Entries in float32 leave the core uncertain by some of their rounding.
        noise = 4 * float(jnp.finfo(columns.dtype).eps) * jnp.trace(core)
        half = _inverse_root((core + core.T) / 2 + noise * jnp.eye(len(core)))
        known = devices.own(mesh, diagonal, len(columns))

        def solve(block: _Block, out: tuple[Array, Array]) -> tuple[Array, Array]:
            rows = _triangular_product(block.of(out[0]), half)
            gap = jnp.maximum(block.of(known) - jnp.sum(rows**2, axis=1), 0)
            return block.put(out[0], rows), block.put(out[1], gap)

        factor, left = _over_blocks(len(columns), solve, (columns, known))
        mean = devices.total(mesh, jnp.sum(left)) / len(diagonal)
        return factor, devices.gathered(mesh, (left + mean) / 2, len(diagonal))

    given, answer = (BY_ROWS, EVERYWHERE, EVERYWHERE), (BY_ROWS, EVERYWHERE)
    return devices.spread(mesh, share, given, answer)(columns, chosen, diagonal)


def _core(
    mesh: Devices, columns: Float[Array, "m r"], chosen: Int[Array, " r"]
) -> Float[Array, "r r"]:
    """The chosen rows, from whichever device has them, in float64."""
    here = chosen - devices.index(mesh) * len(columns)
    mine = (here >= 0) & (here < len(columns))
    rows = columns[jnp.clip(here, 0, len(columns) - 1)].astype(jnp.float64)
    return devices.total(mesh, jnp.where(mine[:, None], rows, 0))


def _inverse_root(matrix: Float[Array, "r r"]) -> Float[Array, "r r"]:
    """The inverse of the lower Cholesky factor, of which the lower half of the matrix is read."""
    lower = jnp.linalg.cholesky(matrix, symmetrize_input=False)
    return jax.scipy.linalg.solve_triangular(lower, jnp.eye(len(lower)), lower=True)


def _panels(width: int) -> list[tuple[int, int]]:
    many = _PANELS if width >= _WIDE else 1
    ends = [width * i // many for i in range(many + 1)]
    return list(itertools.pairwise(ends))


def _triangular_product(
    rows: Float[Array, "m r"], lower: Float[Array, "r r"]
) -> Float[Array, "m r"]:
    """The rows times the transpose of a lower triangular matrix."""
    parts = [rows[:, :stop] @ lower[start:stop, :stop].T for start, stop in _panels(len(lower))]
    return jnp.concatenate(parts, axis=1)


def _lower_square(part: Float[Array, "m r"]) -> Float[Array, "r r"]:
    """The lower half of the matrix of inner products of columns, and some of the upper one."""
    width = part.shape[1]
    strips = [part[:, start:stop].T @ part[:, :stop] for start, stop in _panels(width)]
    full = [jnp.pad(strip, ((0, 0), (0, width - strip.shape[1]))) for strip in strips]
    return jnp.concatenate(full)


@ahead(static=1)
def _inner(
    mesh: Devices,
    factor: Float[Array, "n r"],
    ridge: Float[Array, " size"],
    left: Float[Array, " size"],
    diagonal: Float[Array, " size"],
) -> tuple[Float[Array, " size"], Float[Array, "r r"]]:
    """S, and the inverse L of the Cholesky factor of 1 + F' S^{-1} F: products with it are fast."""

    def share(factor: Float[Array, "m r"], s: Float[Array, " size"]) -> Float[Array, "r r"]:
        mine = jnp.maximum(devices.own(mesh, s, len(factor)), jnp.min(s))

        def add(block: _Block, sums: Float[Array, "r r"]) -> Float[Array, "r r"]:
            root = jnp.where(block.fresh, jax.lax.rsqrt(block.of(mine)), 0)
            return sums + _lower_square(block.of(factor) * root[:, None])

        width = factor.shape[1]
        sums = devices.total(mesh, _over_blocks(len(factor), add, jnp.zeros((width, width))))
        return _inverse_root(jnp.eye(width) + sums)

    s = jnp.maximum(ridge + left, 1e-12 * jnp.max(diagonal))
    return s, devices.spread(mesh, share, (BY_ROWS, EVERYWHERE), EVERYWHERE)(factor, s)


@ahead(static=1)
def _diagonal(
    mesh: Devices,
    factor: Float[Array, "n r"],
    s: Float[Array, " size"],
    inner: Float[Array, "r r"],
) -> Float[Array, " size"]:
    def share(
        factor: Float[Array, "m r"], s: Float[Array, " size"], inner: Float[Array, "r r"]
    ) -> Float[Array, " size"]:
        blank = jnp.zeros(len(factor), s.dtype)
        half = lambda b: _triangular_product(b.of(factor), inner)
        square = lambda b, out: b.put(out, jnp.sum(half(b) ** 2, axis=1))
        known = devices.gathered(mesh, _over_blocks(len(factor), square, blank), len(s))
        return (1 - known / s) / s

    given = BY_ROWS, EVERYWHERE, EVERYWHERE
    return devices.spread(mesh, share, given, EVERYWHERE)(factor, s, inner)


def _times(block: Float[Array, "m r"], v: Float[Array, "_ k"], axis: int) -> Float[Array, "_ k"]:
    """A block in float64 times v, or its transpose; for one vector it is not written out for that."""
    if v.shape[1] == 1:
        line = v[None, :, 0] if axis == 1 else v
        return jnp.sum(block * line, axis=axis)[:, None]
    return block @ v if axis == 1 else block.T @ v


@ahead(static=1)
def _apply(
    mesh: Devices,
    factor: Float[Array, "n r"],
    s: Float[Array, " size"],
    inner: Float[Array, "r r"],
    v: Float[Array, "size k"],
) -> Float[Array, "size k"]:
    def share(
        factor: Float[Array, "m r"], inner: Float[Array, "r r"], scaled: Float[Array, "size k"]
    ) -> Float[Array, "size k"]:
        m, width = factor.shape
        mine = devices.own(mesh, scaled, m)
        new = lambda b: jnp.where(b.fresh[:, None], b.of(mine), 0)
        add = lambda b, sums: sums + _times(b.of(factor), new(b), 0)
        sums = _over_blocks(m, add, jnp.zeros((width, scaled.shape[1])))
        known = inner.T @ (inner @ devices.total(mesh, sums))
        parts = _over_blocks(m, lambda b, out: b.put(out, _times(b.of(factor), known, 1)), mine)
        return devices.gathered(mesh, parts, len(scaled))

    scaled = v / s[:, None]
    given = BY_ROWS, EVERYWHERE, EVERYWHERE
    explained = devices.spread(mesh, share, given, EVERYWHERE)(factor, inner, scaled)
    return scaled - explained / s[:, None]
