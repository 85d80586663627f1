"""Kernels with many axes as matrices, targets as columns, and back."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

Axes = int | Sequence[int]


def as_matrix(kernel: Any) -> Float[np.ndarray, "rows columns"]:
    """Pairs of axes (n1, n2, k, k', ...) as rows (n1, k, ...) and columns."""
    array = np.asarray(kernel, np.float64)
    if array.ndim % 2 or array.ndim == 0:
        raise ValueError(
            f"A kernel has a pair of axes for each axis of the outputs; got shape {array.shape}."
        )
    rows, columns = array.shape[::2], array.shape[1::2]
    order = (*range(0, array.ndim, 2), *range(1, array.ndim, 2))
    return array.transpose(order).reshape(math.prod(rows), math.prod(columns))


def as_kernel(matrix: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    """The inverse of `as_matrix` for equal rows and columns, behind any leading axes."""
    lead = matrix.shape[:-2]
    many, first = len(rows), len(lead)
    pairs = [first + i + many * j for i in range(many) for j in range(2)]
    return matrix.reshape(*lead, *rows, *rows).transpose(*range(first), *pairs)


def regularised(
    matrix: Float[np.ndarray, "n n"], diag_reg: float, absolute: bool
) -> Float[np.ndarray, "n n"]:
    """The matrix with something added to its diagonal, by default relative to its mean."""
    size = diag_reg if absolute else diag_reg * np.trace(matrix) / len(matrix)
    return matrix + size * np.eye(len(matrix))


@dataclasses.dataclass(frozen=True, eq=False)
class Targets:
    """Targets as columns, one for each entry of the axes over which kernels are multiples of 1.

    Attributes:
        y: The targets as they came.
        traced: Those axes, counted from the end.
    """

    y: Any
    traced: tuple[int, ...]

    @classmethod
    def of(cls, y: Any, trace_axes: Axes) -> "Targets":
        """Checked targets."""
        axes = (trace_axes,) if isinstance(trace_axes, int) else tuple(trace_axes)
        rank = np.ndim(y)
        if rank < 1 or any(not -rank < axis % rank - rank < 0 for axis in axes):
            raise ValueError(
                f"trace_axes={axes} must name axes of the outputs behind the first; targets have shape "
                f"{np.shape(y)}. For targets of shape (n,) write y[:, None]."
            )
        return cls(y, tuple(sorted(axis % rank - rank for axis in axes)))

    @property
    def size(self) -> int:
        """The number of targets."""
        return int(np.size(self.y))

    @property
    def columns(self) -> Float[np.ndarray, "n k"]:
        """The targets as a matrix."""
        return self.column(self.y)

    def column(self, values: Any) -> Float[np.ndarray, "n k"]:
        """Values of the shape of the targets, or a number, as a matrix."""
        array = np.broadcast_to(np.asarray(values, np.float64), np.shape(self.y))
        return self._last(array)

    def like(self, values: Any, rows: tuple[int, ...]) -> Float[np.ndarray, "m k"]:
        """Values at other points as a matrix."""
        return self._last(
            np.broadcast_to(np.asarray(values, np.float64), self._shape(rows))
        ).reshape(math.prod(rows), -1)

    def _last(self, array: np.ndarray) -> np.ndarray:
        moved = np.moveaxis(array, self.traced, range(-len(self.traced), 0))
        tail = math.prod(moved.shape[moved.ndim - len(self.traced) :])
        return moved.reshape(-1, tail)

    def _shape(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of outputs at points whose kernel has these rows."""
        rank, rest = np.ndim(self.y), list(rows)
        return tuple(
            np.shape(self.y)[axis] if axis - rank in self.traced else rest.pop(0)
            for axis in range(rank)
        )

    def outputs(self, columns: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
        """Columns, behind any leading axes, in the shape of the targets."""
        tail = tuple(np.shape(self.y)[axis] for axis in self.traced)
        array = columns.reshape(*columns.shape[:-2], *rows, *tail)
        return np.moveaxis(array, range(-len(tail), 0), self.traced)


def answer(value: np.ndarray, *given: Any) -> Any:
    """NumPy, unless something that was given is of JAX; then in its precision."""
    ours = [g for g in given if isinstance(g, jax.Array)]
    return jnp.asarray(value, jnp.result_type(*ours, jnp.float32)) if ours else value
