"""A kernel matrix on disk, tile by tile: computed once, by anyone, whole or not there."""

import contextlib
import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    import zarr

Kernel = Callable[..., ArrayLike]  # of (x1, x2), the latter None for x1
Place = tuple[int, int]  # row and column of a tile


def _zarr():
    try:
        import zarr
        import zarr.codecs
        import zarr.errors
    except ImportError as error:
        raise ImportError(
            "Matrices on disk need Zarr, which is not installed. "
            "Install it with: pip install 'widelimit[store]'"
        ) from error
    return zarr


class StoredGram:
    r"""The matrix $K_{ij}=k(x_i,x_j)$ in a Zarr array, its tiles on and below the diagonal.

    A tile's file is there when it is complete, and carries a checksum: a run that was killed loses the
    tiles that it was computing, and any number of runs may fill one folder at a time. It is a
    `KernelOperator` on the host; products read each tile once.

    Args:
        folder: Where the matrix and the points are kept; made if it is not there.
        kernel: A function of (x1, x2) that gives the (n1, n2) matrix; x2=None stands for x1.
        x: Points, the first axis counting them.
        mark: Text that names kernel and points: a folder with another is refused.
        tile: The rows of a tile.
        dtype: Of the stored entries.
    """

    def __init__(
        self,
        folder: str | Path,
        kernel: Kernel,
        x: Shaped[np.ndarray, "n ..."],
        mark: str,
        *,
        tile: int = 1024,
        dtype: str = "float64",
    ):
        self.folder, self.kernel, self.x, self.size = Path(folder), kernel, x, len(x)
        self.tile = min(tile, self.size)
        self._array = self._open(mark, dtype)
        self.tile = self._array.chunks[0]

    def _open(self, mark: str, dtype: str) -> "zarr.Array":
        zarr = _zarr()
        try:
            if not (self.folder / "zarr.json").exists():
                with contextlib.suppress(zarr.errors.ContainsArrayError):  # another run was quicker
                    zarr.create_array(
                        store=self.folder,
                        shape=(self.size, self.size),
                        chunks=(self.tile, self.tile),
                        dtype=dtype,
                        fill_value=np.nan,
                        compressors=[zarr.codecs.Crc32cCodec()],
                        attributes={"mark": mark},
                    )
            array = zarr.open_array(store=self.folder, mode="r+")
        except (OSError, ValueError, KeyError) as error:
            raise ValueError(f"{self.folder} is no store of a kernel matrix: {error}.") from error
        if array.attrs.get("mark") != mark or array.shape != (self.size, self.size):
            raise ValueError(
                f"{self.folder} holds the matrix of another kernel or of other points. Choose "
                "another folder, or remove it."
            )
        return array

    def __repr__(self) -> str:
        tiles, dtype = len(self.places), self._array.dtype
        there = f"{tiles - len(self.missing)} of {tiles} tiles"
        return f"StoredGram({self.size} x {self.size} {dtype}, {there}, {self.folder})"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.size, self.size

    @property
    def places(self) -> list[Place]:
        """Row and column of every tile on and below the diagonal."""
        many = -(-self.size // self.tile)
        return [(i, j) for i, j in itertools.product(range(many), repeat=2) if j <= i]

    @property
    def missing(self) -> list[Place]:
        """The tiles that are not there yet."""
        return [(i, j) for i, j in self.places if not (self.folder / f"c/{i}/{j}").exists()]

    def compute(self, place: Place) -> Float[np.ndarray, "r c"]:
        """Compute a tile and keep it."""
        rows, columns = self._slices(place)
        other = None if rows == columns else self.x[columns]
        block = np.asarray(self.kernel(self.x[rows], other))
        if not np.isfinite(block).all():
            i, j = np.argwhere(~np.isfinite(block))[0]
            raise ValueError(
                f"The kernel of points {rows.start + i} and {columns.start + j} is not finite."
            )
        try:
            self._array[rows, columns] = block
        except OSError as error:
            raise ValueError(
                f"Tile {place} of {self.folder} cannot be written: {error}. The others are kept; call gram "
                "again when there is room."
            ) from error
        return block.astype(self._array.dtype)

    def read(self, place: Place) -> Float[np.ndarray, "r c"]:
        """A tile; one that is damaged is computed again."""
        if not (self.folder / f"c/{place[0]}/{place[1]}").exists():
            raise ValueError(
                f"{len(self.missing)} tiles of {self.folder} are missing; call gram again to fill it."
            )
        try:
            return np.asarray(self._array[self._slices(place)])
        except (ValueError, RuntimeError) as error:  # its checksum does not hold
            warnings.warn(
                f"Tile {place} of {self.folder} is damaged ({error}); it is computed again.",
                stacklevel=2,
            )
            return self.compute(place)

    def vector(self, v: ArrayLike) -> Float[np.ndarray, " n *k"]:
        """A vector (n,), or several (n, k), in float64."""
        return np.asarray(v, dtype=np.float64)

    def __matmul__(self, v: ArrayLike) -> Float[np.ndarray, " n *k"]:
        """K v for v of shape (n,) or (n, k)."""
        v = self.vector(v)
        out = np.zeros_like(v)
        for rows, columns, block in self:
            out[rows] += block @ v[columns]
            if rows != columns:
                out[columns] += block.T @ v[rows]
        return out

    def columns(self, index: ArrayLike) -> Float[np.ndarray, "n k"]:
        """K[:, index]; all tiles are read."""
        chosen = np.asarray(index, dtype=int)
        unit = np.zeros((self.size, len(chosen)))
        unit[chosen, np.arange(len(chosen))] = 1
        return self @ unit

    def diagonal(self) -> Float[np.ndarray, " n"]:
        """The diagonal of K."""
        tiles = [self.read((i, j)) for i, j in self.places if i == j]
        return np.concatenate([np.diagonal(tile) for tile in tiles]).astype(np.float64)

    def dense(self) -> Float[np.ndarray, "n n"]:
        """The whole symmetric matrix in memory."""
        out = np.empty(self.shape, self._array.dtype)
        for rows, columns, block in self:
            out[rows, columns] = block
            out[columns, rows] = block.T
        return out

    def __iter__(self) -> Iterator[tuple[slice, slice, Float[np.ndarray, "r c"]]]:
        """Rows, columns and values of each tile on and below the diagonal."""
        for place in self.places:
            yield *self._slices(place), self.read(place)

    def _slices(self, place: Place) -> tuple[slice, slice]:
        starts = [k * self.tile for k in place]
        first, second = (slice(s, min(s + self.tile, self.size)) for s in starts)
        return first, second


class Job(NamedTuple):
    """The computation of a tile as a function that travels to other processes.

    Attributes:
        gram: The matrix.
    """

    gram: StoredGram

    def __call__(self, place: Place) -> Place:
        """Compute the tile; nothing but its place comes back."""
        self.gram.compute(place)
        return place
