"""A kernel matrix on disk in the place of points."""

import dataclasses
from typing import Any

import numpy as np
from jaxtyping import Float

from widelimit._base.arrays import as_array
from widelimit.linalg import KernelOperator, StoredGram

from ._blocks import GivenProblem, NoKernel
from ._data import Data, NewPoints
from ._problem import Problem, checked


@dataclasses.dataclass(frozen=True, repr=False)
class StoredProblem(GivenProblem):
    """A problem whose kernel matrix is a `StoredGram`; what a solver does not need stays on disk.

    New points come as in any kernel that is given, as their kernels with the training points; or as points,
    of which the stored matrix knows the kernel.

    Attributes:
        stored: The matrix.
    """

    stored: StoredGram | None = None

    @property
    def _matrix(self) -> StoredGram:
        assert self.stored is not None
        return self.stored

    @property
    def held(self) -> bool:
        """It is on disk."""
        return False

    def gram(self) -> Float[np.ndarray, "n n"]:
        """The matrix of the training points, or of those that the data still have, in memory."""
        rows = self.data.points[:, 0].astype(int)
        if len(rows) < self._matrix.size:
            return self.weighted(checked(np.asfortranarray(self._matrix.columns(rows)[rows])))
        return self.weighted(checked(np.asfortranarray(self._matrix.dense(), np.float64)))

    def tiled(self) -> KernelOperator:
        """The matrix as it is stored."""
        return self._matrix

    def diagonal(self, points: NewPoints) -> Float[np.ndarray, " rows"]:
        """The prior variance at each point."""
        return self._matrix.diagonal() if points is self.given else super().diagonal(points)

    def points(self, x: Any, name: str = "x_test") -> NewPoints:
        """Rows of kernels; points are turned into them."""
        known = self._matrix
        shape = np.shape(x) if not isinstance(x, tuple) else ()
        if shape[1:] != known.x.shape[1:] or shape[1:] == (known.size,):
            return super().points(x, name)
        new = np.asarray(x, known.x.dtype)
        return super().points((known.kernel(new, known.x), known.kernel(new, None)), name)


def stored_problem(x: StoredGram, y: Any) -> Problem:
    """The problem of a kernel matrix on disk, kernel='precomputed'."""
    flat = np.ndim(y) == 1
    targets = as_array(y, "y", rank=1 if flat else 2, layout="(points,) or (points, outputs)")
    if len(targets) != x.size:
        raise ValueError(
            f"y has {len(targets)} rows; the stored kernel is that of {x.size} points."
        )
    if x.missing:
        raise ValueError(
            f"{len(x.missing)} tiles of {x.folder} are missing; call gram again to fill it."
        )
    rows = np.arange(float(x.size))[:, None]
    data = Data.of(rows, np.asarray(targets, np.float64).reshape(x.size, -1))
    return StoredProblem(NoKernel(), data, flat, given=rows, stored=x)
