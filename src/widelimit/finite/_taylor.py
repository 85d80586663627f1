"""Taylor models: a network as a polynomial in its parameters."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree
from numpy.typing import ArrayLike

from widelimit._base.arrays import float_dtype, is_transformed
from widelimit._base.renamed import renamed_function
from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit._base.types import Tensor

Model = Callable[[PyTree, ArrayLike], Tensor]


@shown("a model as a polynomial in its parameters")
class TaylorModel(eqx.Module):
    r"""The Taylor polynomial of a model in its parameters, around `params`.

    Call it like the model, with other parameters and points. It is a pytree and a pure function:
    differentiate it, train it, map over it.

    Attributes:
        apply: The model.
        params: The expansion point $\theta_0$.
        order: 1 or 2.
    """

    apply: Model
    params: PyTree
    order: int = eqx.field(static=True)

    def __call__(self, params: PyTree, x: ArrayLike) -> Tensor:
        """The polynomial at `params` and the points `x`; NumPy points give NumPy values."""
        if isinstance(x, np.ndarray) and not is_transformed((params, self.params)):
            with jax.enable_x64(True):
                return np.array(self._value(params, jnp.asarray(x, float_dtype(params))))
        return self._value(params, x)

    def _value(self, params: PyTree, x: ArrayLike) -> Array:
        start, frozen = eqx.partition(self.params, eqx.is_inexact_array)
        where, _ = eqx.partition(params, eqx.is_inexact_array)
        try:
            step = jax.tree.map(lambda a, b: jnp.asarray(a - b), where, start)
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"The parameters do not have the structure of the expansion point: {error}"
            ) from error
        model = lambda p: self.apply(eqx.combine(p, frozen), x)
        slope = lambda p: jax.jvp(model, (p,), (step,))
        start = jax.tree.map(jnp.asarray, start)
        if self.order == 1:
            value, first = slope(start)
            return value + first
        (value, first), (_, second) = jax.jvp(slope, (start,), (step,))
        return value + first + second / 2


def taylor(apply: Model, params: PyTree, order: int = 2) -> TaylorModel:
    r"""The Taylor model of any `apply(params, x)` around `params`.

    For order 2: $f+\langle\nabla f,h\rangle+\tfrac12h^\top\nabla^2f\,h$, $h=\theta-\theta_0$.

    Args:
        apply: A function of (params, points).
        params: The expansion point, any pytree.
        order: 1 or 2.

    Returns:
        A function of (params, points).

    Example:
        >>> import widelimit as wl
        >>> model = wl.taylor(lambda p, x: jnp.exp(p * x), jnp.array(0.0), order=2)
        >>> float(model(jnp.array(2.0), 1.0))  # 1 + 2 + 2
        5.0
    """
    if as_count(order, "order") not in (1, 2):
        raise ValueError(f"order must be 1 or 2, got {order}.")
    if not callable(apply):
        raise TypeError(f"apply must be a function of (params, x), got {apply!r}.")
    return TaylorModel(apply, params, order)


def linearise(apply: Model, params: PyTree) -> TaylorModel:
    r"""The linearised model $f(\theta_0,x)+\langle\nabla_\theta f(\theta_0,x),\theta-\theta_0\rangle$.

    Its tangent kernel is that of the model at `params`, wherever it is evaluated; gradient descent
    on it follows the closed form of linear dynamics exactly.

    Args:
        apply: A function of (params, points).
        params: The expansion point, any pytree.

    Returns:
        A function of (params, points).

    Example:
        >>> import widelimit as wl
        >>> model = wl.linearise(lambda p, x: jnp.exp(p * x), jnp.array(0.0))
        >>> float(model(jnp.array(2.0), 1.0))
        3.0

    Reference:
        Lee et al. (2019), Wide neural networks of any depth evolve as linear models.
    """
    return taylor(apply, params, order=1)


linearize = renamed_function("linearize", linearise)
