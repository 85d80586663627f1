"""A kernel matrix that is worth keeping."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from widelimit._base.functions import digest
from widelimit._base.watch import Watch
from widelimit.infinite import PreparedKernel, cost
from widelimit.layers import Layer
from widelimit.linalg import Job, StoredGram

from ._kernel import Kernel, KernelLike, as_kernel

Map = Callable[..., Iterable[object]]

_MOST_ROWS, _FEWEST_ROWS = 1024, 8  # of a tile
_TILE_SECONDS = 60.0  # that a run may lose when it is killed


def gram(
    net: Layer | None,
    x: object,
    *,
    store: str | Path,
    kernel: KernelLike = "ntk",
    map: Map = map,
    share: tuple[int, int] = (0, 1),
    tile: int | None = None,
    dtype: str | None = None,
    verbose: bool | None = None,
) -> StoredGram:
    """Compute a kernel matrix tile by tile into a folder, and go on where an earlier run stopped.

    For kernels that are dear: networks with pixels, functions of other people. (A fully connected
    network's kernel is computed anew faster than a disk can read it: `kernel.operator(x)`.)

    Args:
        net: The network; None where `kernel` needs none.
        x: Points, the first axis counting them.
        store: The folder, a Zarr array. Killed at any moment, a run loses the tiles that it was computing.
        kernel: "ntk", "nngp", or a function of (x1, x2), x2=None standing for x1.
        map: What runs the tiles: the built-in `map`, that of a process pool, or of a cluster.
        share: (i, n): only every n-th of the missing tiles, from the i-th on; for an array of n jobs.
        tile: The rows of a tile; None: 1024, or as many images as take about a minute.
        dtype: Of the stored entries; None: that of x.
        verbose: Whether progress is shown; None: where it takes longer than a minute.

    Returns:
        The matrix, an operator on disk: `@`, `columns`, `diagonal`, `dense()`; `missing` says which tiles
        other shares still owe.

    Example:
        >>> import numpy as np, tempfile, widelimit as wl
        >>> x = np.random.default_rng(0).standard_normal((6, 4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     k = wl.gram(wl.mlp(2), x, store=folder + "/k", tile=4)
        ...     k.missing, bool(np.allclose(k.dense(), wl.ntk(wl.mlp(2), x)))
        ([], True)
    """
    function = as_kernel(net, kernel)
    points = np.asarray(x)
    if points.ndim < 2:
        raise ValueError(f"x must have an axis of points and one of features, got {points.shape}.")
    if not np.isfinite(points).all():
        row = int(np.argwhere(~np.isfinite(points))[0][0])
        raise ValueError(f"Row {row} of x contains NaN or infinite values. Remove or impute them.")
    index, shares = share
    if not 0 <= index < shares:
        raise ValueError(f"share is (i, n) with 0 <= i < n, got {share}.")
    kind = dtype or ("float32" if points.dtype == np.float32 else "float64")
    if isinstance(function, PreparedKernel) and points.ndim > 2:
        function.of_rows(points.shape[1:])  # refuses what is no matrix
        tile = tile or _rows_of(function.net, points)
    tile = tile or _MOST_ROWS
    stored = StoredGram(store, function, points, mark_of(function, points), tile=tile, dtype=kind)
    todo = stored.missing[index::shares]
    watch = Watch("tiles", len(todo), verbose)
    for done, _ in enumerate(map(Job(stored), todo), 1):
        watch(done)
    watch.close()
    return stored


def _rows_of(net: Layer, images: np.ndarray) -> int:
    """As many as take no longer than what one would lose."""
    rows = min(_MOST_ROWS, len(images))
    while rows > _FEWEST_ROWS and cost(net, images[:rows], images[:rows]).seconds > _TILE_SECONDS:
        rows = max(rows // 2, _FEWEST_ROWS)
    return rows


def mark_of(kernel: Kernel, points: np.ndarray) -> str:
    """What names a kernel and its points."""
    known = isinstance(kernel, PreparedKernel)
    name = repr(kernel) if known else digest(getattr(kernel, "function", kernel))
    data = hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()
    return f"{name} {points.shape} {points.dtype} {data}"
