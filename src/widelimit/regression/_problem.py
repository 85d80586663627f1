"""What is learnt: points, targets and a kernel, checked before any work."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widelimit._base.arrays import as_array, as_plain, is_transformed
from widelimit._base.shown import shown
from widelimit.infinite import PreparedKernel
from widelimit.linalg import KernelOperator, TiledGram

from ._data import Data, NewPoints, Points, Targets
from ._kernel import Answer, Kernel

_BRIEF = 640  # points up to which small tiles, of a program that compiles fast, are done sooner
_BRIEF_TILE = 128  # rows of such a tile
_WHOLE = 6000  # points whose matrix a network's kernel computes at once, by one program
_TILE = 2048  # rows of a tile otherwise


@shown("points, targets and a kernel")
@dataclasses.dataclass(frozen=True)
class Problem:
    """Checked training data, on the host, in float64, with the kernel that is to fit them.

    Attributes:
        kernel: A function of (x1, x2) with `diagonal` and `matvec`.
        data: Points, targets, weights.
        flat: Whether the targets came with shape (n,), so that answers have no output axis.
        numpy: Whether answers are NumPy.
        dtype: The dtype of answers.
    """

    kernel: Kernel
    data: Data
    flat: bool = False
    numpy: bool = True
    dtype: np.dtype = np.dtype(np.float64)

    def summary(self) -> dict[str, object]:
        """What is shown of a problem."""
        n, outputs = self.y.shape
        return {"points": n, "outputs": outputs, "kernel": self.kernel}

    @property
    def x(self) -> Points:
        """The points, shape (n, d)."""
        return self.data.points

    @property
    def y(self) -> Targets:
        """The targets, shape (n, k)."""
        return self.data.targets

    @property
    def inputs(self) -> Points:
        """The training points as they came: what a function of points is given."""
        return self.data.points

    @property
    def held(self) -> bool:
        """Whether the matrix is in memory from the start."""
        return False

    @property
    def unstored(self) -> bool:
        """Whether products with the matrix are best computed from the points, where JAX computes."""
        return self._vectors

    def gram(self) -> Float[np.ndarray, "n n"]:
        """W^{1/2} K W^{1/2} of the training points, ours to overwrite."""
        return self.weighted(checked(self.matrix()))

    def matrix(self) -> Float[np.ndarray, "n n"]:
        """K of the training points, without weights, ours to overwrite."""
        return self._tiles().dense()

    def weighted(self, matrix: Float[np.ndarray, "n n"]) -> Float[np.ndarray, "n n"]:
        """W^{1/2} K W^{1/2}, in place."""
        if not self.data.plain:
            matrix *= self.data.root
            matrix *= self.data.root[:, 0]
        return matrix

    def tiled(self) -> KernelOperator:
        """K as an operator, nothing of it computed yet."""
        return self._tiles()

    def _tiles(self) -> TiledGram:
        if self._vectors and len(self.x) <= _WHOLE:
            tile = _BRIEF_TILE if len(self.x) <= _BRIEF else _WHOLE
            return TiledGram(self.kernel, self.x, tile=tile)
        return TiledGram(self.kernel, self.x, tile=_TILE)

    @property
    def _vectors(self) -> bool:
        return isinstance(self.kernel, PreparedKernel) and not self.kernel.pixels

    def cross(self, points: NewPoints) -> Float[np.ndarray, "m n"]:
        """Kernel of new points with the training points."""
        if not self._vectors or max(len(points), len(self.x)) > _BRIEF:
            return checked(np.asarray(self.kernel(points, self.x)))
        out = np.empty((len(points), len(self.x)))
        for i, j in itertools.product(
            range(0, len(points), _BRIEF_TILE), range(0, len(self.x), _BRIEF_TILE)
        ):
            rows, columns = slice(i, i + _BRIEF_TILE), slice(j, j + _BRIEF_TILE)
            out[rows, columns] = self.kernel(points[rows], self.x[columns])
        return checked(out)

    def combine(
        self, points: NewPoints, dual: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "m k"]:
        """The sum of the kernels of the training points, weighted by `dual`, at new points."""
        if self._vectors and max(len(points), len(self.x)) <= _BRIEF:
            return checked(self.cross(points) @ dual)
        return checked(np.asarray(self.kernel.matvec(points, self.x, dual)))

    def prior(self, points: NewPoints) -> Float[np.ndarray, "m m"]:
        """The kernel matrix of new points."""
        return checked(TiledGram(self.kernel, points).dense())

    def diagonal(self, points: NewPoints) -> Float[np.ndarray, " m"]:
        """The prior variance at new points."""
        return np.asarray(self.kernel.diagonal(points))

    def points(self, x: object, name: str = "x_test") -> NewPoints:
        """New points, checked against the training points."""
        if is_transformed(x):
            raise TypeError(f"{name} is being traced; the solvers work on concrete arrays.")
        given = as_plain(x, name)
        layout = getattr(self.kernel, "layout", None)
        if layout is not None and tuple(given.shape[1:]) == layout:
            given = given.reshape(len(given), -1)
        points = np.asarray(as_array(given, name, rank=2, layout="(points, features)"), np.float64)
        if points.shape[1] != self.inputs.shape[1]:
            raise ValueError(
                f"{name} has {points.shape[1]} features, the training points have "
                f"{self.inputs.shape[1]}; both must come from one space."
            )
        return points

    def answer(self, value: np.ndarray) -> Answer:
        """Hand out an array whose last axis is the outputs."""
        return self.convert(value[..., 0] if self.flat else value)

    def per_point(self, value: np.ndarray) -> Answer:
        """Hand out one number for each point."""
        return self.convert(value)

    def per_pair(self, matrix: np.ndarray) -> Answer:
        """Hand out one number for each pair of points."""
        return self.convert(matrix)

    def columns(self, value: np.ndarray) -> Float[np.ndarray, "n k"]:
        """Outputs of points, shape (m,) or (m, k), as they are solved for."""
        return value.reshape(len(value), -1)

    def loss_shape(self) -> tuple[int, int]:
        """The shape in which a loss sees the outputs."""
        return self.y.shape

    def convert(self, value: np.ndarray) -> Answer:
        """Hand out an array in the caller's convention."""
        if self.numpy:
            return np.ascontiguousarray(value, dtype=self.dtype)
        return jnp.asarray(value, dtype=self.dtype)


def checked(matrix: np.ndarray) -> np.ndarray:
    """The matrix, or an error where it is not finite."""
    if not np.isfinite(matrix.sum()) and not np.isfinite(matrix).all():
        raise ValueError("The kernel gave NaN or infinite values; check it, or scale the inputs.")
    return matrix
