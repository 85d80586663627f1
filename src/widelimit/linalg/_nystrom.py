r"""A preconditioner on the device: the matrix as some of its columns know it."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
            rows = -(-gram.size // _ROWS) * _ROWS if gram.size > _ROWS else gram.size
            factor = _factor(columns, columns[chosen].astype(jnp.float64))
            self._factor = jnp.pad(factor, ((0, rows - gram.size), (0, 0)))
            diagonal = gram.diagonal()
            left = jnp.mean(jnp.maximum(diagonal - jnp.sum(factor.astype(jnp.float64) ** 2, 1), 0))
            floor = 1e-12 * jnp.max(diagonal)
            self._s = jnp.pad(
                jnp.maximum(ridge + left, floor), (0, rows - gram.size), constant_values=1
            )
            self._inner = _inner(self._factor, self._s)
        self.rank, self.size = factor.shape[1], gram.size

    def __call__(self, v: Float[Array, "n k"]) -> Float[Array, "n k"]:
        """Apply it to v of shape (n, k)."""
        with jax.enable_x64(True):
            below = ((0, len(self._s) - self.size), (0, 0))
            return _apply(self._factor, self._s, self._inner, jnp.pad(v, below))[: self.size]


@jax.jit
def _factor(columns: Float[Array, "n r"], core: Float[Array, "r r"]) -> Float[Array, "n r"]:
    # Entries in float32 leave the core uncertain by some of their rounding.
    noise = 4 * jnp.finfo(columns.dtype).eps * jnp.trace(core)
    lower = jnp.linalg.cholesky((core + core.T) / 2 + noise * jnp.eye(len(core)))
    solve = lambda part: jax.scipy.linalg.solve_triangular(lower, part.T, lower=True).T
    return _by_blocks(lambda part: solve(part.astype(jnp.float64)).astype(part.dtype), columns)


def _by_blocks(function, rows: Float[Array, "n r"]) -> Float[Array, "n r"]:
    """The function of blocks of rows, each result in the place of its rows."""
    n = rows.shape[0]
    step = min(n, _ROWS)

    def fill(i, out):
        start = jnp.minimum(i * step, n - step)
        part = function(jax.lax.dynamic_slice_in_dim(rows, start, step))
        return jax.lax.dynamic_update_slice_in_dim(out, part, start, 0)

    return jax.lax.fori_loop(0, -(-n // step), fill, jnp.zeros_like(rows))


def _blocks(factor: Float[Array, "n r"]) -> tuple[int, int]:
    step = min(factor.shape[0], _ROWS)
    return step, factor.shape[0] // step


@jax.jit
def _inner(factor: Float[Array, "n r"], s: Float[Array, " n"]) -> Float[Array, "r r"]:
    """The Cholesky factor of 1 + F' S^{-1} F."""
    step, many = _blocks(factor)

    def add(i, total):
        cut = functools.partial(jax.lax.dynamic_slice_in_dim, start_index=i * step, slice_size=step)
        part = cut(factor).astype(jnp.float64) / jnp.sqrt(cut(s))[:, None]
        return total + part.T @ part

    return jnp.linalg.cholesky(jax.lax.fori_loop(0, many, add, jnp.eye(factor.shape[1])))


@jax.jit
def _apply(
    factor: Float[Array, "n r"],
    s: Float[Array, " n"],
    inner: Float[Array, "r r"],
    v: Float[Array, "n k"],
) -> Float[Array, "n k"]:
    step, many = _blocks(factor)
    cut = lambda a, i: jax.lax.dynamic_slice_in_dim(a, i * step, step)
    scaled = v / s[:, None]
    add = lambda i, sums: sums + cut(factor, i).astype(jnp.float64).T @ cut(scaled, i)
    gathered = jax.lax.fori_loop(0, many, add, jnp.zeros((factor.shape[1], v.shape[1])))
    known = jax.scipy.linalg.cho_solve((inner, True), gathered)

    def subtract(i, out):
        part = cut(factor, i).astype(jnp.float64) @ known / cut(s, i)[:, None]
        return jax.lax.dynamic_update_slice_in_dim(out, cut(out, i) - part, i * step, 0)

    return jax.lax.fori_loop(0, many, subtract, scaled)
