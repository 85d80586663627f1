"""Measured Jacobian norms of finite networks, beside the bound."""

from collections.abc import Callable
from typing import NamedTuple, SupportsFloat

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from widelimit._base.arrays import as_array, is_jax
from widelimit._base.shown import shown
from widelimit._base.types import Tensor


@shown("measured norms of df/dx")
class JacobianNorms(NamedTuple):
    """Spectral norms of df/dx of one finite network over a set of inputs.

    Attributes:
        norms: Shape (n,).
        mean: Their mean.
        maximum: Their largest.
    """

    norms: Float[np.ndarray, " n"]
    mean: float
    maximum: float

    def looseness(self, bound: SupportsFloat) -> float:
        """How many times larger the bound is than the largest norm that was measured."""
        return float(bound) / self.maximum if self.maximum > 0 else float("inf")


def jacobian_norms(
    apply: Callable[[PyTree, Array], Tensor], params: PyTree, x: ArrayLike
) -> JacobianNorms:
    r"""The spectral norms $\|\partial f(x)/\partial x\|$ of a finite network, by automatic differentiation.

    Call it with the parameters before and after training and put the result beside
    `jacobian(net, ...)`: that the bound holds, and by how much it is too large.

    Args:
        apply: f(params, x) for points x of shape (n, d); returns (n,) or (n, outputs).
        params: The parameters, any pytree of arrays.
        x: Inputs, shape (n, d).

    Returns:
        The norms with mean and maximum.

    Example:
        >>> import jax.numpy as jnp, numpy as np
        >>> out = jacobian_norms(lambda w, x: x @ w, jnp.eye(2) * 3, np.ones((4, 2), np.float32))
        >>> out.norms.tolist()
        [3.0, 3.0, 3.0, 3.0]
    """
    if not callable(apply):
        raise TypeError(f"apply must be a function of (params, x), got {apply!r}.")
    points = as_array(x, "x", rank=2, layout="(points, features)")
    wide = any(np.dtype(a.dtype) == np.float64 for a in jax.tree.leaves(params) if is_array(a))
    with jax.enable_x64(wide or jnp.result_type(float) == jnp.float64):
        kind = jnp.float64 if wide else jnp.float32
        inputs = points if is_jax(points) else jnp.asarray(points, dtype=kind)

        def one(point: Float[Array, " d"]) -> Float[Array, " outputs"]:
            return jnp.ravel(apply(params, point[None, :]))

        jacobians = jax.jit(jax.vmap(jax.jacrev(one)))(inputs)
        norms = np.linalg.norm(np.asarray(jacobians), ord=2, axis=(1, 2)).astype(np.float64)
    return JacobianNorms(norms, float(norms.mean()), float(norms.max()))


def is_array(leaf: object) -> bool:
    """Whether a leaf of the parameters is an array."""
    return isinstance(leaf, jax.Array | np.ndarray)
