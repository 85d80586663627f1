"""The argument `kernel`: whatever it names becomes one value with one interface."""

import dataclasses
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.arrays import as_inputs, convention, is_jax, is_transformed
from widelimit._base.names import unknown
from widelimit.infinite import prepare
from widelimit.layers import Layer
from widelimit.linalg import TiledGram

Answer = np.ndarray | jax.Array  # in the caller's kind of array
KernelLike = str | Callable[..., Answer]  # a name, or a function of (x1, x2)
_ENTRIES = 2**24  # of a kernel between new and known points that are held at once (128 MiB)


@runtime_checkable
class Kernel(Protocol):
    """What a kernel can be asked for; a network's prepared kernel is one."""

    def __call__(self, x1: Answer, x2: Answer | None = None) -> Answer:
        """The matrix, shape (n1, n2); None stands for `x1`."""
        ...

    def diagonal(self, x: Answer) -> Answer:
        """k(x, x) of each point, shape (n,)."""
        ...

    def matvec(self, x1: Answer, x2: Answer | None, v: Answer) -> Answer:
        """The matrix times v, without the matrix being stored."""
        ...


@dataclasses.dataclass(frozen=True)
class FunctionKernel:
    """A kernel that belongs to no network.

    Attributes:
        function: Of (x1, x2), giving the matrix; x2=None stands for x1.
    """

    function: Callable[..., Answer]

    def __call__(self, x1: Answer, x2: Answer | None = None) -> Answer:
        """The matrix, shape (n1, n2), in float64 for NumPy points."""
        matrix = self.function(x1, x2)
        expected = len(x1), len(x1 if x2 is None else x2)
        if np.shape(matrix) != expected:
            raise ValueError(f"The kernel gave shape {np.shape(matrix)}, {expected} was expected.")
        return matrix if is_jax(x1) or is_jax(x2) else np.asarray(matrix, dtype=np.float64)

    def diagonal(self, x: Answer) -> Answer:
        """k(x, x) of each point, shape (n,), from small tiles."""
        return TiledGram(self, x).diagonal()

    def matvec(self, x1: Answer, x2: Answer | None, v: Answer) -> Answer:
        """The matrix times v, by strips."""
        x2 = x1 if x2 is None else x2
        return np.concatenate([self(part, x2) @ v for part in strips(np.asarray(x1), len(x2))])


def strips(x: Float[np.ndarray, "m d"], columns: int) -> list[Float[np.ndarray, "_ d"]]:
    """New points in parts, so that their kernel with `columns` others stays small."""
    rows = max(_ENTRIES // columns, 1)
    return [x[i : i + rows] for i in range(0, len(x), rows)]


def as_kernel(net: Layer | None, kernel: KernelLike) -> Kernel:
    """The kernel that a pair of arguments `net`, `kernel` stands for.

    Args:
        net: A network; None where the kernel needs none.
        kernel: "ntk", "nngp", "gaussian", a prepared kernel, or a function of (x1, x2), x2=None
            standing for x1.

    Returns:
        A function of (x1, x2) with `diagonal` and `matvec`.
    """
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel):
        return FunctionKernel(kernel)
    if isinstance(kernel, str) and kernel == "gaussian":
        return FunctionKernel(gaussian_kernel)
    if not isinstance(kernel, str) and np.ndim(kernel) >= 2:  # type: ignore[arg-type]
        raise ValueError(
            f"kernel is an array of shape {np.shape(kernel)}; a matrix takes the place of the points: "
            "pass it as x, with kernel='precomputed'."
        )
    if not isinstance(kernel, str) or kernel not in ("ntk", "nngp"):
        raise ValueError(unknown("kernel", kernel, ("ntk", "nngp", "gaussian", "precomputed")))
    if not isinstance(net, Layer):
        raise TypeError(
            f"kernel={kernel!r} is a network's; a network was expected, got {net!r}. Build one with "
            "mlp() or resnet(), or pass a kernel function of (x1, x2)."
        )
    if is_transformed(net):
        raise TypeError(
            "The network's numbers are being traced. Solvers work on concrete numbers; "
            "log_marginal_likelihood is the function to differentiate."
        )
    return prepare(net, kernel)


def gaussian_kernel(x1: object, x2: object = None) -> Answer:
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
def _gaussian(x1: Float[Array, "n1 d"], x2: Float[Array, "n2 d"]) -> Float[Array, "n1 n2"]:
    # Differences first: |x|^2 + |x'|^2 - 2 <x, x'> would lose the digits of near points.
    return jnp.exp(-((x1[:, None, :] - x2[None, :, :]) ** 2).sum(2) / 2)
