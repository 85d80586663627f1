"""What is learnt: points, targets and a kernel, checked before any work."""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widelimit._base.arrays import as_array, as_plain, common_dtype, is_jax, is_transformed
from widelimit.infinite import PreparedKernel
from widelimit.layers import Layer
from widelimit.linalg import TiledGram

from ._data import Data, NewPoints, Points, Targets
from ._kernel import Answer, Kernel, KernelLike, as_kernel


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

    @property
    def x(self) -> Points:
        """The points, shape (n, d)."""
        return self.data.points

    @property
    def y(self) -> Targets:
        """The targets, shape (n, k)."""
        return self.data.targets

    def gram(self) -> Float[np.ndarray, "n n"]:
        """W^{1/2} K W^{1/2} of the training points, ours to overwrite."""
        matrix = _checked(self.tiled().dense())
        if not self.data.plain:
            matrix *= self.data.root
            matrix *= self.data.root[:, 0]
        return matrix

    def tiled(self) -> TiledGram:
        """K as an operator, nothing of it computed yet."""
        return TiledGram(self.kernel, self.x)

    def cross(self, points: NewPoints) -> Float[np.ndarray, "m n"]:
        """Kernel of new points with the training points."""
        return _checked(np.asarray(self.kernel(points, self.x)))

    def combine(
        self, points: NewPoints, dual: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "m k"]:
        """The sum of the kernels of the training points, weighted by `dual`, at new points."""
        return _checked(np.asarray(self.kernel.matvec(points, self.x, dual)))

    def prior(self, points: NewPoints) -> Float[np.ndarray, "m m"]:
        """The kernel matrix of new points."""
        return _checked(TiledGram(self.kernel, points).dense())

    def points(self, x: object, name: str = "x_test") -> NewPoints:
        """New points, checked against the training points."""
        if is_transformed(x):
            raise TypeError(f"{name} is being traced; the solvers work on concrete arrays.")
        given = as_plain(x, name)
        layout = getattr(self.kernel, "layout", None)
        if layout is not None and tuple(given.shape[1:]) == layout:
            given = given.reshape(len(given), -1)
        points = np.asarray(as_array(given, name, rank=2, layout="(points, features)"), np.float64)
        if points.shape[1] != self.x.shape[1]:
            raise ValueError(
                f"{name} has {points.shape[1]} features, the training points have "
                f"{self.x.shape[1]}; both must come from one space."
            )
        return points

    def answer(self, value: np.ndarray) -> Answer:
        """Hand out an array whose last axis is the outputs."""
        return self.convert(value[..., 0] if self.flat else value)

    def convert(self, value: np.ndarray) -> Answer:
        """Hand out an array in the caller's convention."""
        if self.numpy:
            return np.ascontiguousarray(value, dtype=self.dtype)
        return jnp.asarray(value, dtype=self.dtype)


def as_problem(net: Layer | None, x: object, y: object, kernel: KernelLike) -> Problem:
    """Check the arguments that training, regression and inference share."""
    function = as_kernel(net, kernel)
    if is_transformed((x, y)):
        raise TypeError(
            "x or y is being traced; the solvers work on concrete arrays. "
            "log_marginal_likelihood is the function to differentiate."
        )
    given = as_plain(x, "x")
    if given.ndim > 2 and isinstance(function, PreparedKernel):
        function = function.of_rows(tuple(given.shape[1:]))
        given = given.reshape(len(given), -1)
    points = as_array(given, "x", rank=2, layout="(points, features)")
    flat = np.asarray(y).ndim < 2
    targets = as_array(y, "y", rank=1 if flat else 2, layout="(points,) or (points, outputs)")
    if len(points) != len(targets):
        raise ValueError(
            f"x has {len(points)} rows and y has {len(targets)}; one target for each point was "
            "expected."
        )
    dtype = common_dtype(points, targets) if is_jax(points) else points.dtype
    host = np.asarray(targets, np.float64).reshape(len(targets), -1)
    data = Data.of(np.asarray(points, np.float64), host)
    return Problem(function, data, flat, not is_jax(points), dtype)


def _checked(matrix: np.ndarray) -> np.ndarray:
    if not np.isfinite(matrix.sum()) and not np.isfinite(matrix).all():
        raise ValueError("The kernel gave NaN or infinite values; check it, or scale the inputs.")
    return matrix
