"""Taylor models: a network as a polynomial in its parameters."""

import math
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

_HIGHEST = 8

Model = Callable[[PyTree, ArrayLike], Tensor]


@shown("a model as a polynomial in its parameters")
class TaylorModel(eqx.Module):
    r"""The Taylor polynomial of a model in its parameters, around `params`.

    Call it like the model, with other parameters and points. It is a pytree and a pure function:
    differentiate it, train it, map over it.

    Attributes:
        apply: The model.
        params: The expansion point $\theta_0$.
        order: The degree of the polynomial.
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
        start = jax.tree.map(jnp.asarray, start)

        def along(s: Array) -> Array:
            moved = jax.tree.map(lambda a, h: a + s.astype(a.dtype) * h, start, step)
            return jnp.asarray(self.apply(eqx.combine(moved, frozen), x))

        zero = jnp.zeros((), jnp.result_type(*jax.tree.leaves(step)))
        terms = _derivatives(along, self.order)(zero)
        return sum((d / math.factorial(i) for i, d in enumerate(terms[1:], 1)), terms[0])


def _derivatives(f: Callable[[Array], Array], order: int) -> Callable[[Array], tuple[Array, ...]]:
    """A function of one number with its derivatives, each by one more push-forward."""
    if order == 0:
        return lambda s: (f(s),)
    below = _derivatives(f, order - 1)

    def with_next(s: Array) -> tuple[Array, ...]:
        values, slopes = jax.jvp(below, (s,), (jnp.ones_like(s),))
        return (*values, slopes[-1])

    return with_next


def taylor(apply: Model, params: PyTree, order: int = 2) -> TaylorModel:
    r"""The Taylor model of any `apply(params, x)` around `params`.

    $\sum_{j\le n}\frac1{j!}\frac{d^j}{ds^j}f(\theta_0+s\,h)$ at s = 0, $h=\theta-\theta_0$; for order 2
    $f+\langle\nabla f,h\rangle+\tfrac12h^\top\nabla^2f\,h$.

    Args:
        apply: A function of (params, points).
        params: The expansion point, any pytree.
        order: 1 to 8; every order doubles the work.

    Returns:
        A function of (params, points).

    Example:
        >>> import widelimit as wl
        >>> model = wl.taylor(lambda p, x: jnp.exp(p * x), jnp.array(0.0), order=2)
        >>> float(model(jnp.array(2.0), 1.0))  # 1 + 2 + 2
        5.0
        >>> model = wl.taylor(lambda p, x: jnp.exp(p * x), jnp.array(0.0), order=4)
        >>> round(float(model(jnp.array(2.0), 1.0)), 4)  # ... + 8/6 + 16/24
        7.0
    """
    if not 1 <= as_count(order, "order") <= _HIGHEST:
        raise ValueError(
            f"order must lie between 1 and {_HIGHEST}, got {order}: every order doubles the work."
        )
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
