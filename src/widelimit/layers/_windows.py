r"""Which pixels a window reads: the geometry of convolutions and pools, in NumPy.

Everything is along one axis at a time: a *table* of integers, `table[p, o]` being the input position that
tap `o` of output position `p` reads, or -1 where it reads padding. Kernels and finite networks use the same
tables.
"""

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

Sites = tuple[int, ...]  # the sizes of the spatial axes
Extent = int | tuple[int, ...]  # along every axis the same, or one for each
Table = Int[np.ndarray, "_ _"]

PADDINGS = ("same", "valid", "circular")


@dataclasses.dataclass(frozen=True)
class Window:
    """A window that slides over pixels.

    Attributes:
        size: How many taps along each axis; one number stands for all axes.
        stride: How far it moves.
        padding: "same", "valid" or "circular".
        transposed: Whether the pixels are spread out by the stride instead (`ConvTranspose`).
    """

    size: Extent
    stride: Extent = 1
    padding: str = "same"
    transposed: bool = False

    def tables(self, sites: Sites) -> tuple[Table, ...]:
        """For each axis, which position each tap of each output position reads (-1: padding)."""
        rule = _spread if self.transposed else _read
        sizes, strides = spread_out(self.size, len(sites)), spread_out(self.stride, len(sites))
        return tuple(
            rule(n, k, s, self.padding) for n, k, s in zip(sites, sizes, strides, strict=True)
        )

    def out(self, sites: Sites) -> Sites:
        """The sizes of the output's axes."""
        return tuple(len(table) for table in self.tables(sites))

    def taps(self, axes: int) -> int:
        """F, the number of taps, by which variances are divided."""
        return int(np.prod(spread_out(self.size, axes)))

    def refuse(self, sites: Sites) -> str | None:
        """Why such pixels cannot be read, or None."""
        axes = len(sites)
        for name, given in (("window", self.size), ("stride", self.stride)):
            if isinstance(given, tuple) and len(given) != axes:
                return (
                    f"its {name} {given} is for images of {len(given)} axes, the input has {axes} "
                    f"({_by(sites)} pixels). Give one number for each, or a single one for all."
                )
        sizes = spread_out(self.size, axes)
        if self.padding == "valid" and not self.transposed:
            wide = [(k, n) for k, n in zip(sizes, sites, strict=True) if k > n]
            if wide:
                return (
                    f"its window of {_by(sizes)} is larger than the image of {_by(sites)} pixels, so "
                    "without padding nothing remains. Use a smaller window, or padding='same'."
                )
        return None

    def steps(self, axes: int) -> Sites:
        """The stride along each axis."""
        return spread_out(self.stride, axes)

    def extents(self, axes: int) -> Sites:
        """The number of taps along each axis."""
        return spread_out(self.size, axes)


def spread_out(extent: Extent, axes: int) -> Sites:
    """One number for each axis."""
    return (extent,) * axes if isinstance(extent, int) else extent


def _by(sizes: Sites) -> str:
    return " x ".join(map(str, sizes)) or "no"


@functools.lru_cache(maxsize=512)
def _read(n: int, k: int, s: int, padding: str) -> Table:
    """Along an axis of n positions, window k, stride s."""
    if padding == "valid":
        front, count = 0, (n - k) // s + 1
    else:
        count = -(-n // s)
        front = max((count - 1) * s + k - n, 0) // 2
    table = np.arange(max(count, 0))[:, None] * s + np.arange(k)[None, :] - front
    if padding == "circular":
        return _frozen(table % n)
    return _frozen(np.where((table >= 0) & (table < n), table, -1))


@functools.lru_cache(maxsize=512)
def _spread(n: int, k: int, s: int, padding: str) -> Table:
    """The transposed convolution (`jax.lax.conv_transpose`): s - 1 zeros between the positions."""
    full = n * s + max(k - s, 0)
    before = k - 1
    if padding == "same":
        full, before = n * s, k - 1 if s > k - 1 else -(-(k + s - 2) // 2)
    index = np.arange(full)[:, None] + np.arange(k)[None, :] - before
    hit = (index % s == 0) & (index >= 0) & (index < n * s)
    table = np.where(hit, index // s, -1)
    if padding != "circular":
        return _frozen(table)
    # What hangs over is added onto the other end, where the same tap reads nothing.
    around = np.full((n * s, k), -1)
    shift = (full - n * s) // 2
    for q, row in enumerate(table):
        place = around[(q - shift) % (n * s)]
        place[row >= 0] = row[row >= 0]
    return _frozen(around)


def _frozen(table: Table) -> Table:
    table.flags.writeable = False
    return table


def centre(tables: Sequence[Table]) -> tuple[Int[np.ndarray, " positions"], ...]:
    """For each axis, the position under the middle of the window, whose mask is handed on (-1: none)."""
    return tuple(table[:, (table.shape[1] - 1) // 2] for table in tables)


def flat_table(tables: Sequence[Table], sites: Sites) -> Table:
    """One table for all axes together: pixels and taps in row-major order."""
    out = np.zeros((1, 1), int)
    for table, n in zip(tables, sites, strict=True):
        both = out[:, None, :, None] * n + table[None, :, None, :]
        nothing = (out[:, None, :, None] < 0) | (table[None, :, None, :] < 0)
        rows, taps = len(out) * len(table), out.size // len(out) * (table.size // len(table))
        out = np.where(nothing, -1, both).reshape(rows, taps)
    return out


def distances(sites: Sites) -> np.ndarray:
    """The Euclidean distance between all pixels, in row-major order."""
    places = np.array([*itertools.product(*map(range, sites))], float).reshape(-1, len(sites))
    return np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=-1))
