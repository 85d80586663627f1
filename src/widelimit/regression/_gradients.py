"""Exact derivatives of a fitted function with respect to its inputs."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.compile import quick_jit
from widelimit.infinite import PreparedKernel

from ._data import NewPoints, Points
from ._kernel import Kernel

_ROWS = 256  # points that are differentiated at a time
_OUTPUTS = 8  # combinations of the outputs that are followed where there are more


def input_gradients(
    kernel: Kernel, x: NewPoints, points: Points, dual: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "k m d"]:
    r"""$\nabla f_c(x)$ of $f(x)=\sum_i k(x,x_i)\,\alpha_i$, through the kernel, exactly.

    Where the kernel has a kink, at $x=x_i$, the mean of its slopes is taken.

    Args:
        kernel: A network's kernel of vectors.
        x: Where, shape (m, d).
        points: The points $x_i$, shape (n, d).
        dual: $\alpha$, shape (n, k).

    Returns:
        Shape (k, m, d).
    """
    if not isinstance(kernel, PreparedKernel) or kernel.pixels:
        raise ValueError("Gradients need a network whose inputs are vectors.")
    # Few sizes, so that few programs are compiled: points are repeated with weight 0, rows are cut off.
    n, m = _capacity(len(points)), -(-len(x) // _ROWS) * _ROWS
    points = np.concatenate([points, np.repeat(points[:1], n - len(points), 0)])
    dual = np.concatenate([dual, np.zeros((n - len(dual), dual.shape[1]))])
    rows = np.concatenate([x, np.repeat(x[:1], m - len(x), 0)])
    with jax.enable_x64(True):
        known, weights = jnp.asarray(points), jnp.asarray(dual)
        parts = [
            np.asarray(_pulled(kernel, jnp.asarray(rows[i : i + _ROWS]), known, weights))
            for i in range(0, m, _ROWS)
        ]
    return np.concatenate(parts, axis=1)[:, : len(x)]


def average_outer_product(
    kernel: Kernel, x: NewPoints, points: Points, dual: Float[np.ndarray, "n k"]
) -> Float[np.ndarray, "d d"]:
    r"""$\frac1m\sum_i\sum_c\nabla f_c(x_i)\nabla f_c(x_i)^\top$: to which inputs the function reacts.

    Of many outputs the combinations with the largest coefficients are followed.

    Args:
        kernel: A network's kernel of vectors.
        x: Where the gradients are taken, shape (m, d).
        points: The points of the function, shape (n, d).
        dual: Their coefficients, shape (n, k).

    Returns:
        Shape (d, d), positive semidefinite.

    Reference:
        Radhakrishnan, Beaglehole, Pandit and Belkin (2024), Mechanism for feature learning in neural
        networks and backpropagation-free machine learning models.
    """
    if dual.shape[1] > _OUTPUTS:
        _, _, turn = np.linalg.svd(dual, full_matrices=False)
        dual = dual @ turn[:_OUTPUTS].T
    flat = input_gradients(kernel, x, points, dual).reshape(-1, x.shape[1])
    return flat.T @ flat / len(x)


def _capacity(n: int) -> int:
    """The next of few sizes: powers of two, and three quarters of them."""
    power = 1 << max(n - 1, 63).bit_length()
    return 3 * power // 4 if n <= 3 * power // 4 else power


def _gradients(
    kernel: PreparedKernel,
    x: Float[Array, "m d"],
    points: Float[Array, "n d"],
    dual: Float[Array, "n k"],
) -> Float[Array, "k m d"]:
    shape = x.shape[0], dual.shape[1]
    _, pull = jax.vjp(lambda rows: kernel(rows, points) @ dual, x)
    one = jnp.eye(shape[1], dtype=x.dtype)
    return jax.lax.map(lambda row: pull(jnp.broadcast_to(row, shape))[0], one)


_pulled = quick_jit(_gradients, ())
