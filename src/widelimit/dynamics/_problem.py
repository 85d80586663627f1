"""What is learnt: points, targets and a kernel, checked before any work."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import as_array, as_inputs, common_dtype, convention, is_jax
from widelimit._base.names import unknown
from widelimit.describe import check
from widelimit.infinite import nngp, ntk
from widelimit.layers import Layer
from widelimit.linalg import TiledGram

Kernel = Callable[..., Any]
_BY_NAME = {"nngp": nngp, "ntk": ntk}


def is_abstract(tree: Any) -> bool:
    """Whether some value is being traced or differentiated, so that LAPACK cannot have it."""

    def abstract(leaf: Any) -> bool:
        try:
            np.asarray(leaf)
        except TypeError:
            return True
        return False

    return any(is_jax(leaf) and abstract(leaf) for leaf in jax.tree.leaves(tree))


def gaussian_kernel(x1: Any, x2: Any = None) -> Any:
    r"""The Gaussian kernel $\exp(-|x-x'|^2/2)$.

    On the unit circle it is $\exp(\cos\Delta-1)$, with Fourier coefficients $e^{-1}I_k(1)$.

    Args:
        x1: Points, shape (n1, d). NumPy in, NumPy out; JAX in, JAX out.
        x2: Points, shape (n2, d); None stands for `x1`.

    Returns:
        The kernel matrix, shape (n1, n2).

    Example:
        >>> import widelimit as wl
        >>> wl.gaussian_kernel([[0.0], [2.0]]).round(4)
        array([[1.    , 0.1353],
               [0.1353, 1.    ]])

    Reference:
        Tirer, Bruna and Giryes (2022), section 4.
    """
    inputs = as_inputs(x1, x2)
    second = inputs.x1 if inputs.x2 is None else inputs.x2
    with convention(inputs):
        return inputs.answer(_gaussian(inputs.x1, second))


@jax.jit
def _gaussian(x1: Any, x2: Any) -> Any:
    # Differences first: |x|^2 + |x'|^2 - 2 <x, x'> would lose the digits of near points.
    return jnp.exp(-((x1[:, None, :] - x2[None, :, :]) ** 2).sum(2) / 2)


@dataclasses.dataclass(frozen=True)
class NetworkKernel:
    """A kernel of a network as a function of points; it pickles, where a lambda would not.

    Attributes:
        net: The network.
        name: "ntk" or "nngp".
    """

    net: Layer
    name: str

    def __call__(self, x1: Any, x2: Any = None) -> Any:
        """The kernel matrix."""
        return _BY_NAME[self.name](self.net, x1, x2)


def as_kernel(net: Layer | None, kernel: Any) -> Kernel:
    """The kernel that a pair of arguments `net`, `kernel` stands for.

    Args:
        net: A network; None where the kernel needs none.
        kernel: "ntk", "nngp", "gaussian", or a function of (x1, x2), x2=None standing for x1.

    Returns:
        A function of (x1, x2).
    """
    if callable(kernel):
        return kernel
    if kernel == "gaussian":
        return gaussian_kernel
    if kernel not in _BY_NAME:
        raise ValueError(unknown("kernel", kernel, [*_BY_NAME, "gaussian"]))
    if not isinstance(net, Layer):
        raise TypeError(
            f"kernel={kernel!r} is a network's; a network was expected, got {net!r}. Build one with "
            "mlp() or resnet(), or pass a kernel function of (x1, x2)."
        )
    check(net, ntk=kernel == "ntk")
    if is_abstract(net):
        raise TypeError(
            "The network's numbers are being traced. Solvers work on concrete numbers; "
            "log_marginal_likelihood is the function to differentiate."
        )
    return NetworkKernel(net, kernel)


@dataclasses.dataclass(frozen=True)
class Problem:
    """Checked training data, on the host, in float64.

    Attributes:
        kernel: A function of (x1, x2).
        x: Points, shape (n, d).
        y: Targets, shape (n, k).
        flat: Whether the targets came with shape (n,), so that answers have no output axis.
        numpy: Whether answers are NumPy.
        dtype: The dtype of answers.
    """

    kernel: Kernel
    x: np.ndarray
    y: np.ndarray
    flat: bool
    numpy: bool
    dtype: Any

    def gram(self) -> np.ndarray:
        """The kernel matrix of the training points, Fortran-ordered, ours to overwrite."""
        return _checked(TiledGram(self._float64, self.x).dense())

    def tiled(self, tile: int = 2048) -> TiledGram:
        """The same matrix as an operator."""
        return TiledGram(self._float64, self.x, tile=tile)

    def cross(self, x: np.ndarray) -> np.ndarray:
        """Kernel of new points with the training points, shape (m, n)."""
        return _checked(self._float64(x, self.x))

    def prior(self, x: np.ndarray) -> TiledGram:
        """The kernel matrix of new points, nothing of it computed yet."""
        return TiledGram(self._float64, x)

    def points(self, x: Any, name: str = "x_test") -> np.ndarray:
        """New points, checked against the training points."""
        if is_abstract(x):
            raise TypeError(f"{name} is being traced; the solvers work on concrete arrays.")
        points = np.asarray(as_array(x, name, rank=2, layout="(points, features)"), np.float64)
        if points.shape[1] != self.x.shape[1]:
            raise ValueError(
                f"{name} has {points.shape[1]} features, the training points have "
                f"{self.x.shape[1]}; both must come from one space."
            )
        return points

    def answer(self, value: np.ndarray) -> Any:
        """Hand out an array whose last axis is the outputs."""
        return self.convert(value[..., 0] if self.flat else value)

    def convert(self, value: np.ndarray) -> Any:
        """Hand out an array in the caller's convention."""
        if self.numpy:
            return np.ascontiguousarray(value, dtype=self.dtype)
        return jnp.asarray(value, dtype=self.dtype)

    def _float64(self, x1: Any, x2: Any = None) -> np.ndarray:
        matrix = np.asarray(self.kernel(x1, x2), dtype=np.float64)
        expected = len(x1), len(x1 if x2 is None else x2)
        if matrix.shape != expected:
            raise ValueError(f"The kernel gave shape {matrix.shape}, {expected} was expected.")
        return matrix


def as_problem(net: Layer | None, x: Any, y: Any, kernel: Any) -> Problem:
    """Check the arguments that training, regression and inference share."""
    function = as_kernel(net, kernel)
    if is_abstract((x, y)):
        raise TypeError(
            "x or y is being traced; the solvers work on concrete arrays. "
            "log_marginal_likelihood is the function to differentiate."
        )
    points = as_array(x, "x", rank=2, layout="(points, features)")
    rank = 1 if np.ndim(y) < 2 else 2
    targets = as_array(y, "y", rank=rank, layout="(points,) or (points, outputs)")
    if len(points) != len(targets):
        raise ValueError(
            f"x has {len(points)} rows and y has {len(targets)}; one target for each point was "
            "expected."
        )
    dtype = common_dtype(points, targets) if is_jax(points) else points.dtype
    host = np.asarray(targets, np.float64).reshape(len(targets), -1)
    return Problem(
        function, np.asarray(points, np.float64), host, rank == 1, not is_jax(points), dtype
    )


def contradiction(problem: Problem) -> tuple[int, int] | None:
    """Two equal points with different targets, or None."""
    order = np.lexsort(problem.x.T)
    same = (problem.x[order[1:]] == problem.x[order[:-1]]).all(1)
    differ = (problem.y[order[1:]] != problem.y[order[:-1]]).any(1)
    found = np.flatnonzero(same & differ)
    if not found.size:
        return None
    i, j = sorted((int(order[found[0]]), int(order[found[0] + 1])))
    return i, j


def _checked(matrix: np.ndarray) -> np.ndarray:
    if not np.isfinite(matrix.sum()) and not np.isfinite(matrix).all():
        raise ValueError("The kernel gave NaN or infinite values; check it, or scale the inputs.")
    return matrix
