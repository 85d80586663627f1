"""Laws of kernels: what any function k(x1, x2) that claims to be one owes to its users."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from widelimit._base.types import Tensor

from ._inputs import assert_bounded, assert_gram

Matrix = Float[Tensor, "n1 n2"]
KernelFunction = Callable[[Tensor, Tensor], Matrix]
Gradient = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Skipped(Exception):
    """A law that does not apply, with the reason."""


class Subject(NamedTuple):
    """A kernel under examination.

    Attributes:
        k: The kernel; NumPy arrays in.
        gradient: The derivative of k(x1, x2) of single points in the first, or None.
        traced: The kernel for JAX's transformations, or None.
        points: Points from which inputs are made, shape (6, d).
    """

    k: KernelFunction
    gradient: Gradient | None
    traced: KernelFunction | None
    points: Float[np.ndarray, "n d"]

    def __call__(self, x1: Tensor, x2: Tensor | None = None) -> np.ndarray:
        """The matrix, as NumPy."""
        return np.asarray(self.k(x1, x1 if x2 is None else x2))


Law = Callable[[Subject], None]


def symmetry(kernel: Subject) -> None:
    """k(x, y) = k(y, x), up to rounding."""
    x, y = kernel.points, kernel.points[::-1][:4] * 0.7
    cross = kernel(x, y)
    scale = np.abs(cross).max()
    np.testing.assert_allclose(cross, kernel(y, x).T, rtol=1e-12, atol=1e-14 * scale)


def positive_semidefinite(kernel: Subject) -> None:
    """A Gram matrix, of equal, opposite and nearly equal points too, has no negative eigenvalue beyond rounding."""
    x = kernel.points
    near = np.concatenate([x, x[:2] * (1 + 1e-8), x[:1] + 1e-9])
    assert_gram(kernel(near), slack=1e-14)


def diagonal(kernel: Subject) -> None:
    """A point and its copy are one point, and |k(x, y)|^2 <= k(x, x) k(y, y)."""
    x = kernel.points
    gram = kernel(x)
    np.testing.assert_allclose(np.diag(kernel(x, x.copy())), np.diag(gram), rtol=1e-12)
    np.testing.assert_allclose(gram[0, 1], gram[0, 0], rtol=1e-12)  # points 0 and 1 are equal
    assert_bounded(gram)


def gradient_at_equal_inputs(kernel: Subject) -> None:
    """The derivative of k(x, y) in x is a number at x = y, and at points 1e-9 apart."""
    if kernel.gradient is None:
        raise Skipped("no derivative was given")
    x = kernel.points[0]
    for other in (x, x + 1e-9):
        slope = np.asarray(kernel.gradient(x[None], other[None]))
        assert np.isfinite(slope).all(), f"the derivative is {slope.ravel()}"


def dtype(kernel: Subject) -> None:
    """float64 in, float64 out; float32 in, float32 out, and the two agree to single precision."""
    x = kernel.points
    double, single = kernel(x), kernel(x.astype(np.float32))
    assert double.dtype == np.float64, f"float64 gives {double.dtype}"
    assert single.dtype == np.float32, f"float32 gives {single.dtype}"
    scale = np.abs(double).max()
    np.testing.assert_allclose(single, double, rtol=1e-4, atol=1e-5 * scale)


def zero_vectors(kernel: Subject) -> None:
    """The zero vector is a point: finite entries, a Gram matrix."""
    x = kernel.points.copy()
    x[3] = 0
    assert_gram(kernel(x), slack=1e-14)


def unusual_sizes(kernel: Subject) -> None:
    """Points of norm 1e-30 and 1e15 are points: entries are finite."""
    x = kernel.points.copy()
    x[3], x[4] = 1e-30 * x[5], 1e15 * x[5]
    assert np.isfinite(kernel(x)).all(), "some entry is not finite"


def gram_against_pairs(kernel: Subject) -> None:
    """An entry of a matrix is the kernel of its pair, whatever else is in the matrix."""
    x = kernel.points
    gram = kernel(x)
    pairs = np.array([[kernel(a[None], b[None])[0, 0] for b in x] for a in x])
    scale = np.abs(gram).max()
    np.testing.assert_allclose(gram, pairs, rtol=1e-10, atol=1e-12 * scale)


def jit(kernel: Subject) -> None:
    """`jax.jit` changes nothing."""
    compiled = jax.jit(_traced(kernel))
    with jax.enable_x64(True):
        x = jnp.asarray(kernel.points)
        np.testing.assert_allclose(compiled(x, x), kernel(kernel.points), rtol=1e-10, atol=1e-12)


def vmap(kernel: Subject) -> None:
    """`jax.vmap` over single points gives the matrix."""
    k = _traced(kernel)
    with jax.enable_x64(True):
        x = jnp.asarray(kernel.points)
        rows = jax.vmap(lambda a: jax.vmap(lambda b: k(a[None], b[None])[0, 0])(x))(x)
        np.testing.assert_allclose(rows, kernel(kernel.points), rtol=1e-10, atol=1e-12)


def _traced(kernel: Subject) -> KernelFunction:
    if kernel.traced is None:
        raise Skipped("not written in JAX")
    return kernel.traced


KERNEL_LAWS: tuple[Law, ...] = (
    symmetry,
    positive_semidefinite,
    diagonal,
    gradient_at_equal_inputs,
    dtype,
    zero_vectors,
    unusual_sizes,
    gram_against_pairs,
    jit,
    vmap,
)
