"""Tiles of kernels by blocks, in the precision of the data, and again in float64 where that is in doubt."""

import functools
import math
from typing import Any

import numpy as np

from widelimit._base.structured import Graphs, Masked
from widelimit._base.thresholds import DOUBTED, KEPT_BYTES
from widelimit.layers import Layer

from ._groups import Batch, Blocks, Values

_SOME = 0.25  # of the pairs of a tile: if more are in doubt, all are computed again


class Tiles:
    """The tiles of a matrix by blocks: in the precision of the data, and again in float64 where that is in doubt.

    Attributes:
        side: How many inputs a tile has along each side.
    """

    def __init__(self, net: Layer, kernels: tuple[str, ...], dtype: str, x1: Any, x2: Any | None):
        self._x1, self._x2, self._dtype = _on_host(x1), None if x2 is None else _on_host(x2), dtype
        plain = not any(isinstance(x, Masked | Graphs) for x in (x1, x2))
        points = max(len(x1), 0 if x2 is None else len(x2))
        sites = tuple(x1.shape[1:-1])
        self._in = functools.cache(
            lambda dtype, points=points: Blocks(net, sites, kernels, dtype, points, plain=plain)
        )
        self.side = self._in(dtype).side
        self._kept: dict[tuple[str, bool, int], Batch] = {}

    def at(self, i: int, j: int) -> Values:
        """The kernels of the tile that begins at input i and input j."""
        inner = self._x2 is None and i == j
        one = self._batch(i, inner=inner)
        two = None if inner else self._batch(j, second=self._x2 is not None)
        blocks = self._in(self._dtype)
        found = blocks.met(one, two)
        if inner:
            self._keep(i, one._replace(inner=None))
        if found.doubt is None:
            return found.values
        doubted = ~(found.doubt <= DOUBTED)
        if not doubted.any():
            return found.values
        rows, columns = (np.nonzero(doubted.any(axis))[0] for axis in (1, 0))
        if len(rows) * len(columns) > _SOME * doubted.size:
            self._dtype = "float64"
            return self.at(i, j)
        few = 2 ** math.ceil(math.log2(max(len(rows), len(columns))))
        double = self._in("float64", few)
        first = double.batch(one.x[rows], len(rows), inner=two is None)
        second = None if two is None else double.batch(two.x[columns], len(columns), inner=False)
        for to, part in zip(found.values, double.met(first, second).values, strict=True):
            to[np.ix_(rows, columns)] = part
        return found.values

    def alone(self, i: int) -> Values:
        """Each input from this one on with itself."""
        one = self._batch(i, inner=False)
        found = self._in(self._dtype).alone(one)
        if found.doubt is None or (found.doubt <= DOUBTED).all():
            return found.values
        self._dtype = "float64"
        return self.alone(i)

    def _batch(self, start: int, *, second: bool = False, inner: bool = False) -> Batch:
        key = self._dtype, second, start
        if key in self._kept and not inner:
            return self._kept[key]
        x = self._x2 if second and self._x2 is not None else self._x1
        out = self._in(self._dtype).batch(x[start : start + self.side], len(x), inner=inner)
        if not inner:
            self._keep(start, out, second=second)
        return out

    def _keep(self, start: int, batch: Batch, *, second: bool = False) -> None:
        """As long as there is room; of the first of two batches only the last is asked for again."""
        if self._x2 is not None and not second:
            self._kept = {key: kept for key, kept in self._kept.items() if key[1]}
        if sum(kept.nbytes for kept in self._kept.values()) + batch.nbytes <= KEPT_BYTES:
            self._kept[self._dtype, second, start] = batch


def _on_host(x: Any) -> Any:
    """In NumPy, whose parts are taken without compiling anything."""
    if isinstance(x, Masked):
        return Masked(np.asarray(x.x), np.asarray(x.mask))
    if isinstance(x, Graphs):
        return Graphs(np.asarray(x.x), np.asarray(x.adjacency))
    return np.asarray(x)
