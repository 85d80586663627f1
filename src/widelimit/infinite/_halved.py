"""Symmetric matrices on an accelerator: tiles on and below the diagonal, then all of them in their places."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from widelimit._base.thresholds import HALVED_POINTS, HALVED_SIDE

from ._correlation import as_points, cosines
from ._layered import Matrices
from ._plan import Numbers, Plan
from ._tile import Extra, evaluator


def halves_pay(plan: Plan, x: Float[Array, "n d"]) -> bool:
    """Whether half of the entries cost more than it takes to write their mirror images."""
    cheap = plan.path == "profile" and x.dtype == jnp.float32
    return len(x) >= HALVED_POINTS and not cheap


def halved(
    plan: Plan,
    numbers: Numbers,
    x: Float[Array, "n d"],
    extra: Extra,
    limit: float,
    side: int = HALVED_SIDE,
) -> tuple[Matrices, Bool[Array, ""]]:
    """The wanted matrices, and whether some inputs are nearly parallel.

    All tiles go through all layers at once, as one array of shape (tiles, side, side), which is then read twice. In a
    loop over tiles the device would wait for longer than it computes.

    Args:
        plan: What to compute.
        numbers: The network's.
        x: Inputs.
        extra: What a program is given beside them.
        limit: The |rho| from which they are.
        side: Inputs in a tile.
    """
    evaluate, points, n = evaluator(plan, numbers, extra), as_points(x), len(x)
    many = -(-n // side)
    row, column = (i.astype(np.int32) for i in np.tril_indices(many))

    def cut(a: Array) -> Array:
        below = ((0, many * side - n),) + ((0, 0),) * (a.ndim - 1)
        return jnp.pad(a, below).reshape(many, side, *a.shape[1:])

    def both(tree: Any) -> tuple[Any, Any]:
        blocks = jax.tree.map(cut, tree)
        return jax.tree.map(lambda a: a[row], blocks), jax.tree.map(lambda a: a[column], blocks)

    rho = jax.vmap(cosines)(*both(points.unit))
    minus, plus = jnp.abs(1 - rho), jnp.abs(1 + rho)
    same = _diagonals(row == column, side)
    if plan.path != "profile":  # there the diagonal is replaced
        minus, plus = jnp.where(same, 0, minus), jnp.where(same, 2, plus)
    edge = jax.tree.map(lambda a: jnp.broadcast_to(jnp.asarray(a), (n,)), evaluate.sizes(points))
    tiles = jax.vmap(evaluate.tile)(minus, plus, *both(edge))
    exact = evaluate.diagonal(points)
    put = lambda name, m: jnp.where(same, both(exact[name])[0].astype(m.dtype)[:, :, None], m)
    tiles = tuple(put(name, m) for name, m in zip(plan.wanted, tiles, strict=True))
    near = ~same & (jnp.abs(rho) > limit)
    if (
        plan.path == "profile"
    ):  # what is no number is near too: so one pass computes entries and looks at them
        near = near | jnp.isnan(tiles[0])
    lines = jnp.any(near, axis=2)
    tiles, lines = jax.lax.optimization_barrier(
        (tiles, lines)
    )  # or all is computed where it is read
    return tuple(_in_place(m, many, n) for m in tiles), jnp.any(lines)


def _diagonals(on: Bool[np.ndarray, " tiles"], side: int) -> Bool[Array, "tiles side side"]:
    """Where an input meets itself."""
    shape = len(on), side, side
    rows, columns = (jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (1, 2))
    return jnp.asarray(on)[:, None, None] & (rows == columns)


def _in_place(tiles: Float[Array, "tiles r r"], many: int, n: int) -> Float[Array, "n n"]:
    """The matrix whose lower tiles these are, row by row."""
    low, high = np.tril(np.ones((many, many), bool)), np.arange(many)
    which = np.maximum.outer(high, high)
    which = which * (which + 1) // 2 + np.minimum.outer(high, high)
    found = tiles[which.astype(np.int32)]
    found = jnp.where(low[:, :, None, None], found, jnp.swapaxes(found, 2, 3))
    side = many * tiles.shape[1]
    return found.transpose(0, 2, 1, 3).reshape(side, side)[:n, :n]
