"""A kernel matrix that is never stored: what solvers ask of it."""

from typing import Any, Protocol, runtime_checkable

from numpy.typing import ArrayLike


@runtime_checkable
class KernelOperator(Protocol):
    r"""A symmetric matrix $K_{ij}=k(x_i,x_j)$, known by its products.

    `TiledGram` is one on the host, for any function; a network's prepared kernel gives one where JAX
    computes, `kernel.operator(x)`. Vectors are float64, in NumPy or JAX as `vector` makes them.

    Attributes:
        size: The number of points.
    """

    size: int

    def vector(self, v: ArrayLike) -> Any:
        """A vector (n,), or several (n, k), in float64 and where products are computed."""
        ...

    def __matmul__(self, v: Any) -> Any:
        """K v, in float64."""
        ...

    def columns(self, index: Any) -> Any:
        """K[:, index]."""
        ...

    def diagonal(self) -> Any:
        """The diagonal of K, in float64."""
        ...
