"""Kernels that are given as matrices, and kernels whose outputs are correlated."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import as_array, is_jax, is_transformed
from widelimit.linalg import KernelOperator

from ._data import Data, NewPoints, Points
from ._kernel import Answer
from ._problem import Problem, checked

Blocks = Float[np.ndarray, "n1 n2 k k"]
Rows = Float[np.ndarray, "_ _"]


def as_matrix(blocks: Blocks) -> Float[np.ndarray, "rows columns"]:
    """Blocks (n1, n2, k, k) as a matrix of n1 k rows: point by point, output by output."""
    n1, n2, k, _ = blocks.shape
    return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(n1 * k, n2 * k)


@dataclasses.dataclass(frozen=True, repr=False)
class BlockProblem(Problem):
    """A problem whose kernel has a block of k x k for each pair of points.

    Outputs are not independent then: every output of every point is a row of its own, and there is one
    column of targets. k = 1 stands for an ordinary kernel.

    Attributes:
        given: The training points as they came, shape (n, d).
        outputs: k.
        function: Of (x1, x2), giving the blocks.
    """

    given: Points = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    outputs: int = 1
    function: Callable[..., Any] = lambda x1, x2: None

    @property
    def inputs(self) -> Points:
        """The training points as they came."""
        return self.given

    @property
    def held(self) -> bool:
        """Whether the matrix is in memory from the start, or can be nowhere else."""
        return True

    def gram(self) -> Float[np.ndarray, "n n"]:
        """The matrix of the training points, ours to overwrite."""
        return self.weighted(checked(as_matrix(self.blocks(self.given, None))))

    def tiled(self) -> KernelOperator:
        """Refused: what is given whole, or in blocks, has no tiles."""
        raise ValueError(
            "solver='cg' computes a kernel tile by tile, but this one is given as a matrix, or has "
            "blocks for several outputs. Use solver='cholesky'."
        )

    def cross(self, points: NewPoints) -> Float[np.ndarray, "rows n"]:
        """Rows for each output of each new point."""
        return checked(as_matrix(self.blocks(points, self.given)))

    def combine(
        self, points: NewPoints, dual: Float[np.ndarray, "n k"]
    ) -> Float[np.ndarray, "rows k"]:
        """The sum of the kernels of the training points, weighted by `dual`."""
        return self.cross(points) @ dual

    def prior(self, points: NewPoints) -> Float[np.ndarray, "rows rows"]:
        """The kernel matrix of new points."""
        return checked(as_matrix(self.blocks(points, None)))

    def diagonal(self, points: NewPoints) -> Float[np.ndarray, " rows"]:
        """The prior variance of each output of each point."""
        own = [self.blocks(points[i : i + 1], None)[0, 0].diagonal() for i in range(len(points))]
        return np.concatenate(own)

    def blocks(self, x1: Rows, x2: Rows | None) -> Blocks:
        """The blocks between two sets of points; None stands for the first."""
        found = np.asarray(self.function(x1, x2), np.float64)
        shape = len(x1), len(x1 if x2 is None else x2), self.outputs, self.outputs
        if found.shape != shape:
            raise ValueError(f"The kernel gave shape {found.shape}, {shape} was expected.")
        return found

    def answer(self, value: np.ndarray) -> Answer:
        """Hand out an array whose last two axes are rows and columns."""
        if self.outputs == 1:
            return super().answer(value)
        shape = (*value.shape[:-2], value.shape[-2] // self.outputs, self.outputs)
        return self.convert(value.reshape(shape))

    def per_point(self, value: np.ndarray) -> Answer:
        """Hand out one number for each row, shape (..., m) or (..., m, k)."""
        if self.outputs == 1:
            return self.convert(value)
        return self.convert(value.reshape(*value.shape[:-1], -1, self.outputs))

    def per_pair(self, matrix: np.ndarray) -> Answer:
        """Hand out a matrix of rows, shape (..., m, m) or (..., m, m, k, k)."""
        if self.outputs == 1:
            return self.convert(matrix)
        k, m = self.outputs, matrix.shape[-1] // self.outputs
        blocks = matrix.reshape(*matrix.shape[:-2], m, k, m, k)
        return self.convert(np.moveaxis(blocks, -3, -2))

    def columns(self, value: np.ndarray) -> Float[np.ndarray, "rows k"]:
        """Outputs of points, shape (m,) or (m, k), as they are solved for."""
        return value.reshape(-1, 1) if self.outputs > 1 else value.reshape(len(value), -1)

    def loss_shape(self) -> tuple[int, int]:
        """The shape in which a loss sees the outputs."""
        return (len(self.given), self.outputs) if self.outputs > 1 else self.y.shape


@dataclasses.dataclass(frozen=True, repr=False)
class GivenProblem(BlockProblem):
    """A kernel matrix without points: a point is its row of kernels with the training points.

    New points come as an array of shape (m, n) or (m, n, k, k); for variances, as a pair with the
    kernel among themselves, shape (m, m) or (m, m, k, k). They are stored as one row of numbers each:
    the kernels with the training points, with itself, and with the other new points.
    """

    @property
    def _columns(self) -> int:
        return len(self.given) * self.outputs**2

    def blocks(self, x1: Rows, x2: Rows | None) -> Blocks:
        """Between new and training points, or among either of them."""
        k = self.outputs
        if x1 is self.given or x2 is not None:
            rows = x1[:, : self._columns]
        else:
            rows = x1[:, self._columns + k * k :]
            if rows.shape[1] != len(x1) * k * k:
                raise _unknown()
        return np.asarray(rows.reshape(len(x1), -1, k, k))

    def diagonal(self, points: NewPoints) -> Float[np.ndarray, " rows"]:
        """The prior variance of each output of each point."""
        k = self.outputs
        if points is self.given:
            return (
                self.blocks(points, None)[np.arange(len(points)), np.arange(len(points))]
                .diagonal(axis1=1, axis2=2)
                .ravel()
            )
        own = points[:, self._columns : self._columns + k * k]
        if own.shape[1] != k * k:
            raise _unknown()
        return np.asarray(own.reshape(-1, k, k).diagonal(axis1=1, axis2=2).ravel())

    def points(self, x: Any, name: str = "x_test") -> NewPoints:
        """Rows of kernels, checked against the training points."""
        if is_transformed(x):
            raise TypeError(f"{name} is being traced; the solvers work on concrete arrays.")
        n, k = len(self.given), self.outputs
        cross, own = x if isinstance(x, tuple) else (x, None)
        rows = as_blocks(cross, name)
        if rows.shape[1:] != (n, k, k):
            raise ValueError(
                f"{name} has shape {np.shape(cross)}; with kernel='precomputed' it holds the kernel "
                f"of new points with the {n} training points, shape (m, {n})"
                + (f" or (m, {n}, {k}, {k})." if k > 1 else ".")
            )
        flat = rows.reshape(len(rows), -1)
        if own is None:
            return flat
        mine = as_blocks(own, name)
        if mine.shape != (len(rows), len(rows), k, k):
            raise ValueError(
                f"The kernel of the new points among themselves has shape {np.shape(own)}; one row "
                f"and one column for each of the {len(rows)} was expected."
            )
        index = np.arange(len(rows))
        return np.concatenate(
            [flat, mine[index, index].reshape(len(rows), -1), mine.reshape(len(rows), -1)], axis=1
        )


def as_blocks(x: ArrayLike, name: str) -> Blocks:
    """A matrix, or blocks, as float64 blocks."""
    rank = np.ndim(x)
    layout = "(n1, n2) or (n1, n2, outputs, outputs)"
    array = np.asarray(as_array(x, name, rank=4 if rank == 4 else 2, layout=layout), np.float64)
    return array if rank == 4 else array[:, :, None, None]


def _unknown() -> ValueError:
    return ValueError(
        "Variances need the kernel of the new points among themselves. With kernel='precomputed' give "
        "a pair: (K(new, train), K(new, new))."
    )


def given_problem(x: Any, y: Any) -> Problem:
    """The problem of a kernel matrix, kernel='precomputed'."""
    blocks = as_blocks(x, "x")
    n, k = len(blocks), blocks.shape[2]
    if blocks.shape != (n, n, k, k):
        raise ValueError(
            "kernel='precomputed' means that x is the kernel of the training points, shape (n, n) or "
            f"(n, n, outputs, outputs); got shape {np.shape(x)}."
        )
    matrix = as_matrix(blocks)
    if np.abs(matrix - matrix.T).max() > 1e-6 * np.abs(matrix).max():
        raise ValueError("The kernel matrix of the training points is not symmetric.")
    flat = np.ndim(y) == 1
    targets = as_array(y, "y", rank=1 if flat else 2, layout="(points,) or (points, outputs)")
    expected = (n,) if flat else (n, k if k > 1 else np.shape(targets)[1])
    if targets.shape != expected or (k > 1 and flat):
        raise ValueError(
            f"y has shape {targets.shape}; the kernel is that of {n} points"
            + (f" with {k} outputs, so that (n, k) = {(n, k)} was expected." if k > 1 else ".")
        )
    host = np.asarray(targets, np.float64)
    rows = np.arange(float(n * k))[:, None]
    data = Data.of(rows, host.reshape(n * k, 1) if k > 1 else host.reshape(n, -1))
    dtype = (
        np.dtype(np.float32)
        if is_jax(x) and jnp.asarray(x).dtype == jnp.float32
        else np.dtype(float)
    )
    return GivenProblem(
        NoKernel(), data, flat, not is_jax(x), dtype, given=blocks.reshape(n, -1), outputs=k
    )


def block_problem(function: Callable[..., Any], problem: Problem) -> Problem:
    """The problem of a function that gives blocks, from the checked data."""
    n, k = problem.y.shape
    data = Data.of(np.arange(float(n * k))[:, None], problem.y.reshape(n * k, 1))
    return BlockProblem(
        NoKernel(), data, False, problem.numpy, problem.dtype, problem.x, k, function
    )


class NoKernel:
    """Stands where a kernel of points would be; the problem itself answers."""

    def __repr__(self) -> str:
        return "given as numbers"

    def __call__(self, x1: Answer, x2: Answer | None = None) -> Answer:
        raise _unknown()

    def diagonal(self, x: Answer) -> Answer:
        raise _unknown()

    def matvec(self, x1: Answer, x2: Answer | None, v: Answer) -> Answer:
        raise _unknown()
