"""The gradient of a predictor in its input, exactly."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import as_array, is_jax
from widelimit._base.shown import shown
from widelimit.dynamics import Trained

from ._interpolant import as_interpolant
from ._sampling import Predictor


@shown("norms of the gradient at some points")
class GradientNorms(NamedTuple):
    """Input gradients of a predictor over a set of points; smaller is smoother.

    Attributes:
        gradients: Shape (n, d).
        norms: Their Euclidean norms, shape (n,).
        mean: The mean norm over the set.
        maximum: The largest norm over the set.
    """

    gradients: Any
    norms: Any
    mean: float
    maximum: float

    @property
    def direction(self) -> str:
        """In which direction to read the norms."""
        return "smaller is smoother"


def input_gradient(f: Any, x: Any, *, t: float | None = None) -> GradientNorms:
    r"""The input gradient $\nabla_xf$ of a predictor, by differentiation of its kernel.

    For $f(x)=\sum_ic_i\Theta(x,x_i)$ this is $\sum_ic_i\nabla_x\Theta(x,x_i)$, exact to rounding. At a kink, such
    as a ReLU interpolant has at its training points, it is the mean of the one-sided slopes.

    Args:
        f: An `Interpolant`, a model made by `widelimit.train`, any model whose `predict` JAX can
            trace, or a function of points (n, d).
        x: Where, shape (n, d).
        t: The training time of a model made by `widelimit.train`; None: trained for ever.

    Returns:
        Gradients and norms with their mean and maximum, in the caller's array kind.

    Example:
        >>> import numpy as np
        >>> out = input_gradient(lambda x: (x**2).sum(axis=1), np.array([[3.0, 4.0], [0.0, 1.0]]))
        >>> out.norms.tolist(), out.mean, out.maximum
        ([10.0, 2.0], 6.0, 10.0)
    """
    if isinstance(f, Trained):
        f = as_interpolant(f, t)
    elif t is not None:
        raise ValueError(f"t belongs to a model made by widelimit.train; {f!r} has no time.")
    points = as_array(x, "x", rank=2, layout="(points, features)")
    if is_jax(points):
        gradients = _gradients(f, points)
        norms = jnp.linalg.norm(gradients, axis=1)
    else:
        with jax.enable_x64(points.dtype == np.float64 or jnp.result_type(float) == jnp.float64):
            gradients = np.array(_gradients(f, jnp.asarray(points)))
        norms = np.linalg.norm(gradients, axis=1)
    return GradientNorms(gradients, norms, float(norms.mean()), float(norms.max()))


def _gradients(f: Any, x: Any) -> Any:
    predict = f.predict if isinstance(f, Predictor) else f

    def total(points: Any) -> Any:
        values = predict(points)
        if values.shape not in ((len(points),), (len(points), 1)):
            raise ValueError(
                f"The predictor returned an array of shape {values.shape} for {len(points)} points; "
                "one value for each was expected. Differentiate several outputs one by one."
            )
        return values.sum()  # each value depends on its own point alone

    try:
        return jax.grad(total)(x)
    except jax.errors.TracerArrayConversionError as error:
        raise TypeError(
            "The predictor turns its input into a NumPy array, so it cannot be differentiated. Use "
            "widelimit.smoothness.interpolate, or a function made of JAX operations."
        ) from error
