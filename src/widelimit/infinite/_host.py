"""NumPy inputs on the way to a compiled program: sizes, correlations, buckets.

A program is compiled for each shape, which for small matrices takes far longer than the matrix. Small
ones are therefore cut into tiles of one shape, their correlations computed here, so that one program
serves all numbers of points and features; larger ones are filled up to a few capacities.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from widelimit._base.thresholds import (
    CAPACITIES,
    CAPACITY_STEP,
    CHEAP_DIFFERENCES,
    FEATURES,
    FEW_FEATURES,
    HOST_DIFFERENCES,
    NEARLY_PARALLEL,
    SMALL_TILE,
    SMALL_TILES,
)

Matrix = Float[np.ndarray, "n1 n2"]


class HostPoints(NamedTuple):
    """Inputs split into size and direction, in float64.

    Attributes:
        q: |x|^2/d, a tiny positive number for zero vectors.
        unit: x/|x|, 0 for zero vectors.
        zero: Which inputs are zero vectors.
    """

    q: Float[np.ndarray, " n"]
    unit: Float[np.ndarray, "n d"]
    zero: Bool[np.ndarray, " n"]


def second_moments(x: Float[np.ndarray, "n d"]) -> Float[np.ndarray, " n"]:
    """|x|^2/d of each row, in float64."""
    return np.einsum("ij,ij->i", x, x, dtype=np.float64) / x.shape[1]


def host_points(x: Float[np.ndarray, "n d"]) -> HostPoints:
    """Split inputs; a zero vector gets a tiny size."""
    x = x.astype(np.float64)
    q, zero = host_sizes(x)
    return HostPoints(q, x / np.sqrt(q * x.shape[1])[:, None], zero)


def host_sizes(
    x: Float[np.ndarray, "n d"],
) -> tuple[Float[np.ndarray, " n"], Bool[np.ndarray, " n"]]:
    """|x|^2/d, tiny for zero vectors, and which these are."""
    q = second_moments(x)
    zero = q == 0
    return np.where(zero, 1e-120 / x.shape[1], q), zero


def host_correlation(first: HostPoints, second: HostPoints) -> tuple[Matrix, Matrix]:
    r"""$1-\rho$ and $1+\rho$ of all pairs, with all digits where vectors are nearly parallel."""
    u1, u2 = first.unit, second.unit
    (n1, d), n2 = u1.shape, len(u2)
    if n1 * n2 * d <= HOST_DIFFERENCES:
        minus, plus = _settled(u1[:, None], u2[None, :])
    else:
        rho = u1 @ u2.T
        minus, plus = np.maximum(1 - rho, 0), np.maximum(1 + rho, 0)
        near = np.argwhere(np.abs(rho) > 1 - NEARLY_PARALLEL["float64"])
        for part in np.array_split(near, 1 + len(near) * d // CHEAP_DIFFERENCES):
            i, j = part.T
            minus[i, j], plus[i, j] = _settled(u1[i], u2[j])
    nothing = first.zero[:, None] | second.zero[None, :]  # has no direction: correlation 0
    minus[nothing] = plus[nothing] = 1
    return minus, plus


def _settled(
    u: Float[np.ndarray, "... d"], v: Float[np.ndarray, "... d"]
) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
    """Half the squared distance of u and v, and of u and -v; 0 where it is but rounding."""
    noise = (4 * np.finfo(np.float64).eps) ** 2
    halves = []
    for difference in (u - v, u + v):
        square = np.einsum("...i,...i->...", difference, difference)
        halves.append(np.where(square < noise, 0, square / 2))
    return halves[0], halves[1]


def fits_in_small_tiles(n1: int, n2: int) -> bool:
    """Whether the matrix is small: few tiles, evaluated by a program that compiles fast."""
    return -(-n1 // SMALL_TILE) * -(-n2 // SMALL_TILE) <= SMALL_TILES


class SmallTiles(NamedTuple):
    """A small matrix cut into tiles; what is missing at its edges is filled with harmless pairs.

    Attributes:
        places: The corners of the tiles.
        arguments: q1, q2, 1 - rho and 1 + rho of each tile, and the number of tiles.
    """

    places: list[tuple[int, int]]
    arguments: tuple[np.ndarray | np.int32, ...]


def cut_small(first: HostPoints, second: HostPoints | None, side: int) -> SmallTiles:
    """Cut a matrix into tiles; without `second` it is symmetric, and its lower half is enough."""
    symmetric = second is None
    second = second or first
    minus, plus = host_correlation(first, second)
    if symmetric:
        np.fill_diagonal(minus, 0)
        np.fill_diagonal(plus, 2)
    starts = [
        (i, j)
        for i in range(0, len(first.q), side)
        for j in range(0, len(second.q), side)
        if not symmetric or i >= j
    ]
    # Tiles beyond the last are never looked at, and stay as they come.
    room = 1 if len(starts) == 1 else SMALL_TILES
    while room < len(starts):
        room *= 4
    q1, q2 = np.empty((2, room, side))
    matrices = np.empty((2, room, side, side))
    q1[: len(starts)], q2[: len(starts)] = first.q[0], second.q[0]
    matrices[:, : len(starts)] = 1
    for k, (i, j) in enumerate(starts):
        rows, columns = first.q[i : i + side], second.q[j : j + side]
        q1[k, : len(rows)], q2[k, : len(columns)] = rows, columns
        for to, source in zip(matrices, (minus, plus), strict=True):
            to[k, : len(rows), : len(columns)] = source[i : i + side, j : j + side]
    return SmallTiles(starts, (q1, q2, *matrices, np.int32(len(starts))))


def paste(
    tiles: Float[np.ndarray, "k side side"],
    places: list[tuple[int, int]],
    shape: tuple[int, int],
    *,
    symmetric: bool,
) -> Matrix:
    """The matrix from its tiles; of a symmetric one the upper half mirrors the lower."""
    out, side = np.zeros(shape), tiles.shape[1]
    for (i, j), tile in zip(places, tiles, strict=False):
        part = out[i : i + side, j : j + side]
        part[...] = tile[: part.shape[0], : part.shape[1]]
    if symmetric:
        out = np.tril(out) + np.tril(out, -1).T
    return out


def capacity(n: int) -> int:
    """The number of rows for which the program that serves n of them is compiled."""
    # Not a multiple of a large power of two: the columns of such a matrix compete for the same cache lines.
    beyond = -(-(n - 8) // CAPACITY_STEP) * CAPACITY_STEP + 8
    return next((c for c in CAPACITIES if c >= n), beyond)


def filled(x: Float[np.ndarray, "n d"], bias: float = 0.0) -> Float[np.ndarray, "rows width"]:
    r"""The inputs in a larger array: the bias as a feature, zeros after it, zero rows below.

    The points are scaled such that $|x|^2/d$ stays what it is.
    """
    n, d = x.shape
    used = d + (bias > 0)
    width = used if used <= FEW_FEATURES else next((f for f in FEATURES if f >= used), used)
    out = np.zeros((capacity(n), width), x.dtype)
    out[:n, :d] = x
    if bias > 0:
        out[:n, d] = bias * np.sqrt(d)
    if width > d:
        out *= np.sqrt(width / d).astype(x.dtype)
    return out
