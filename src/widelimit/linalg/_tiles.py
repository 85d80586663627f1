"""A symmetric kernel matrix by tiles: half of them computed, none of them kept unless asked."""

import os
import tempfile
from collections.abc import Callable, Iterator

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.types import Tensor

Kernel = Callable[..., ArrayLike]  # of (x1, x2), the latter None for x1


class TiledGram:
    r"""The matrix $K_{ij}=k(x_i,x_j)$ as an operator.

    Tiles below the diagonal are computed and used twice, for $K_{IJ}v_J$ and $K_{IJ}^\top v_I$.
    Nothing of size n^2 is held in memory.

    Args:
        kernel: A function of (x1, x2) that gives the (n1, n2) matrix; x2=None stands for x1.
        x: Points, shape (n, d).
        tile: The most rows of a tile.
        store: None: tiles are computed each time. A folder: they are computed once and kept there
            in a file without name, which vanishes with this object.

    Example:
        >>> import numpy as np
        >>> linear = lambda a, b=None: a @ (a if b is None else b).T
        >>> x = np.arange(15.0).reshape(5, 3)
        >>> k = TiledGram(linear, x, tile=2)
        >>> bool(np.allclose(k @ np.ones(5), x @ x.T @ np.ones(5))), k.tiles
        (True, 6)
    """

    def __init__(self, kernel: Kernel, x: Tensor, *, tile: int = 2048, store: str | None = None):
        if int(tile) != tile or tile < 1:
            raise ValueError(f"tile is a number of rows, at least 1; got {tile!r}.")
        self.kernel = kernel
        self.x = x
        self.size = len(x)
        # Tiles of nearly equal size: the last one lacks a few rows, which are computed with it and
        # dropped, so that kernels that compile for each shape see one shape only.
        self.tile = -(-self.size // -(-self.size // int(tile)))
        self._edges = [
            slice(i, min(i + self.tile, self.size)) for i in range(0, self.size, self.tile)
        ]
        self._kept: np.ndarray | None = None
        if store is not None:
            self._kept = self._fill(store)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.size, self.size

    @property
    def tiles(self) -> int:
        """How many tiles a product touches: those on and below the diagonal."""
        return len(self._edges) * (len(self._edges) + 1) // 2

    def __iter__(self) -> Iterator[tuple[slice, slice, Float[np.ndarray, "rows columns"]]]:
        """Rows, columns and values of each tile on and below the diagonal."""
        start = 0
        for i, rows in enumerate(self._edges):
            for columns in self._edges[: i + 1]:
                if self._kept is None:
                    yield rows, columns, self._compute(rows, columns)
                else:
                    shape = rows.stop - rows.start, columns.stop - columns.start
                    stop = start + shape[0] * shape[1]
                    yield rows, columns, self._kept[start:stop].reshape(shape)
                    start = stop

    def vector(self, v: ArrayLike) -> Float[np.ndarray, " n *k"]:
        """A vector (n,), or several (n, k), in float64."""
        return np.asarray(v, dtype=np.float64)

    def __matmul__(self, v: ArrayLike) -> Float[np.ndarray, " n *k"]:
        """K v for v of shape (n,) or (n, k)."""
        v = self.vector(v)
        if v.ndim not in (1, 2) or len(v) != self.size:
            raise ValueError(f"v must have {self.size} rows, got shape {v.shape}.")
        out = np.zeros_like(v)
        for rows, columns, block in self:
            out[rows] += block @ v[columns]
            if rows != columns:
                out[columns] += block.T @ v[rows]
        return out

    def columns(self, index: ArrayLike) -> Float[np.ndarray, "n k"]:
        """K[:, index], shape (n, len(index)), computed by strips of rows."""
        picked = self.x[np.asarray(index, dtype=int)]
        out = np.empty((self.size, len(picked)))
        for rows in self._edges:
            whole = self._whole(rows)
            out[whole] = self.kernel(self.x[whole], picked)
        return out

    def diagonal(self) -> Float[np.ndarray, " n"]:
        """The diagonal of K, from small tiles so that little else is computed."""
        step = min(64, self.size)
        out = np.empty(self.size)
        for start in range(0, self.size, step):
            first = min(start, self.size - step)
            block = np.asarray(self.kernel(self.x[first : first + step], None))
            out[first : first + step] = np.diagonal(block)
        return out

    def dense(self) -> Float[np.ndarray, "n n"]:
        """The whole symmetric matrix, Fortran-ordered and writable, for half the work."""
        out = np.empty(self.shape, order="F")
        for rows, columns, block in self:
            out[rows, columns] = block
            if rows != columns:
                out[columns, rows] = block.T
        return out

    def _compute(self, rows: slice, columns: slice) -> Float[np.ndarray, "rows columns"]:
        whole = self._whole(rows)
        drop = rows.start - whole.start
        if rows == columns:
            return np.asarray(self.kernel(self.x[whole], None))[drop:, drop:]
        return np.asarray(self.kernel(self.x[whole], self.x[columns]))[drop:]

    def _whole(self, rows: slice) -> slice:
        """A short last strip, extended backwards to the size of the others."""
        return slice(max(rows.stop - self.tile, 0), rows.stop)

    def _fill(self, folder: str) -> Float[np.ndarray, " entries"]:
        if not os.path.isdir(folder):
            raise ValueError(f"store must be an existing folder, got {folder!r}.")
        sizes = [e.stop - e.start for e in self._edges]
        total = sum(a * sum(sizes[: i + 1]) for i, a in enumerate(sizes))
        with tempfile.TemporaryFile(dir=folder) as file:  # the mapping outlives the name
            kept = np.memmap(file, dtype=np.float64, mode="w+", shape=(total,))
        start = 0
        for _, _, block in self:
            kept[start : start + block.size] = block.ravel()
            start += block.size
        return kept
