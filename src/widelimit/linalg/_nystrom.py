r"""A preconditioner on the device: the matrix as some of its columns know it."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.keys import as_generator
from widelimit._base.types import Seed

from ._operator import KernelOperator

_ROWS = 8192  # of the factor that are held in float64 at once


class Nystrom:
    r"""$v\mapsto(FF^\top+\mathrm{diag}(s))^{-1}v$ with $FF^\top=K_{:S}K_{SS}^{-1}K_{S:}$ for random points S.

    $F$ is stored in the precision of the entries; all arithmetic with it is float64, since the largest
    eigenvalue exceeds $s$ by a factor of the size of the matrix. $s$ is the ridge plus the mean of what
    $F$ leaves out of the diagonal: without it the preconditioner would be stiff in directions that it does
    not know.

    Args:
        gram: $K$.
        ridge: One number for each row.
        rank: The number of points S.
        key: Of their choice.
    """

    def __init__(
        self, gram: KernelOperator, ridge: Float[Array, " n"], rank: int, *, key: Seed = 0
    ):
        chosen = as_generator(key).choice(gram.size, min(rank, gram.size), replace=False)
        with jax.enable_x64(True):
            columns = gram.columns(chosen)
            core = columns[chosen].astype(jnp.float64)
            self._factor = _factor(columns, core)  # in the memory of the columns
            diagonal = gram.diagonal()
            left = jnp.mean(jnp.maximum(diagonal - _squares(self._factor), 0))
            self._s = jnp.maximum(ridge + left, 1e-12 * jnp.max(diagonal))
            self._inner = _inner(self._factor, self._s)
        self.rank = len(chosen)

    def __call__(self, v: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """Apply it to v of shape (n, k)."""
        with jax.enable_x64(True):
            return _apply(self._factor, self._s, self._inner, v)


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


def _over_blocks(n: int, function: Callable[[_Block, Array], Array], start: Array) -> Array:
    step = min(n, _ROWS)

    def run(i: Int[Array, ""], carry: Array) -> Array:
        first = jnp.minimum(i * step, n - step)
        return function(_Block(first, first + jnp.arange(step) >= i * step), carry)

    return jax.lax.fori_loop(0, -(-n // step), run, start)


@functools.partial(jax.jit, donate_argnums=0)
def _factor(columns: Float[Array, "n r"], core: Float[Array, "r r"]) -> Float[Array, "n r"]:
    # Entries in float32 leave the core uncertain by some of their rounding.
    noise = 4 * float(jnp.finfo(columns.dtype).eps) * jnp.trace(core)
    lower = jnp.linalg.cholesky((core + core.T) / 2 + noise * jnp.eye(len(core)))
    solve = lambda part: jax.scipy.linalg.solve_triangular(lower, part.T, lower=True).T
    return _over_blocks(len(columns), lambda b, out: b.put(out, solve(b.of(out))), columns)


@jax.jit
def _squares(factor: Float[Array, "n r"]) -> Float[Array, " n"]:
    """The diagonal of FF'."""
    sums = lambda block, out: block.put(out, jnp.sum(block.of(factor) ** 2, axis=1))
    return _over_blocks(len(factor), sums, jnp.zeros(len(factor)))


@jax.jit
def _inner(factor: Float[Array, "n r"], s: Float[Array, " n"]) -> Float[Array, "r r"]:
    """The Cholesky factor of 1 + F' S^{-1} F."""

    def add(block: _Block, total: Float[Array, "r r"]) -> Float[Array, "r r"]:
        part = block.of(factor) * jnp.where(block.fresh, jax.lax.rsqrt(block.of(s)), 0)[:, None]
        return total + part.T @ part

    return jnp.linalg.cholesky(_over_blocks(len(s), add, jnp.eye(factor.shape[1])))


@jax.jit
def _apply(
    factor: Float[Array, "n r"],
    s: Float[Array, " n"],
    inner: Float[Array, "r r"],
    v: Float[Array, "n k"],
) -> Float[Array, "n k"]:
    n, scaled = len(s), v / s[:, None]
    add = lambda b, sums: sums + b.of(factor).T @ jnp.where(b.fresh[:, None], b.of(scaled), 0)
    gathered = _over_blocks(n, add, jnp.zeros((factor.shape[1], v.shape[1])))
    known = jax.scipy.linalg.cho_solve((inner, True), gathered)
    part = lambda b: b.of(factor) @ known / b.of(s)[:, None]
    return _over_blocks(n, lambda b, out: b.put(out, b.of(out) - part(b)), scaled)
