"""A kernel matrix that is never stored: what solvers ask of it."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.types import Tensor


@runtime_checkable
class KernelOperator(Protocol):
    r"""A symmetric matrix $K_{ij}=k(x_i,x_j)$, known by its products.

    `TiledGram` is one on the host, for any function; a network's prepared kernel gives one where JAX
    computes, `kernel.operator(x)`. Vectors are float64, in NumPy or JAX as `vector` makes them.

    Attributes:
        size: The number of points.
    """

    size: int

    def vector(self, v: ArrayLike) -> Float[Tensor, " n *k"]:
        """A vector (n,), or several (n, k), in float64 and where products are computed."""
        ...

    def __matmul__(self, v: ArrayLike) -> Float[Tensor, " n *k"]:
        """K v, in float64."""
        ...

    def columns(self, index: ArrayLike) -> Float[Tensor, "n k"]:
        """K[:, index]."""
        ...

    def diagonal(self) -> Float[Tensor, " n"]:
        """The diagonal of K, in float64."""
        ...
