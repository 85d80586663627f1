"""The words of the description language."""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp

from widelimit._base.scalars import Scalar, as_count, as_float, as_scalar, check_scalar
from widelimit.activations import Activation
from widelimit.activations import get as get_activation

from ._layer import Layer, as_layer

_HIGHEST = 64  # the degree of a polynomial or power whose Gaussian moments are worth computing


def as_width(width: Any) -> int | None:
    """A stated width, or None."""
    return None if width is None else as_count(width, "width", minimum=1)


def _as_activation(activation: Any) -> Activation:
    """A name from outside may ask for any degree; moments beyond floats are refused before any work."""
    if isinstance(activation, str):
        family, _, numbers = activation.partition("(")
        degree = numbers.count(",")
        if "".join(filter(str.isalnum, family.lower())) == "relupower":
            degree = as_float(numbers.partition(")")[0] or 0, "The order of relu_power")
        if degree > _HIGHEST:
            raise ValueError(
                f"The activation {activation[:40]!r} has a degree above {_HIGHEST}; its moments are "
                "beyond the range of floats."
            )
    found = get_activation(activation)
    if found is not activation and not found.registered:
        _expect_elementwise(found)
    return found


def _expect_elementwise(activation: Activation) -> None:
    """A function of one's own must be one that JAX can trace, and keep the shape."""
    points = jax.ShapeDtypeStruct((3,), jnp.float64)
    try:
        with jax.enable_x64(True):
            found = jax.eval_shape(lambda v: activation.fn(v), points)  # NumPy's cannot be jitted
    except Exception as error:
        name = activation.name if hasattr(jnp, activation.name) else "tanh"
        raise TypeError(
            f"The function {activation.name!r} cannot be applied to a JAX array "
            f"({type(error).__name__}). Write it with jax.numpy, as jnp.{name} instead of np.{name}."
        ) from error
    if getattr(found, "shape", None) != (3,):
        raise TypeError(
            f"The function {activation.name!r} is no activation: of an array of shape (3,) it makes "
            f"{found!r}. It must act on each entry."
        )


class Dense(Layer):
    r"""A fully connected layer in NTK parameterisation.

    $z = \sigma_w W x/\sqrt{n} + \sigma_b b$ with all entries of $W$ and $b$ from $N(0,1)$, $n$ the
    width of $x$.

    Attributes:
        width: The number of outputs of a finite network; unused at infinite width.
        w_std: $\sigma_w\ge0$.
        b_std: $\sigma_b\ge0$; 0 means that the layer has no bias.
    """

    width: int | None = eqx.field(default=None, static=True, converter=as_width)
    w_std: Scalar = eqx.field(default=1.0, converter=as_scalar)
    b_std: Scalar = eqx.field(default=0.0, converter=as_scalar)

    def __check_init__(self) -> None:
        check_scalar(self.w_std, "w_std")
        check_scalar(self.b_std, "b_std")


class Phi(Layer):
    """An elementwise activation.

    Attributes:
        activation: A name (`"relu"`), an `Activation`, or a function.
    """

    activation: Activation = eqx.field(static=True, converter=_as_activation)

    def __repr__(self) -> str:
        return f"Phi({self.activation.name!r})"


class Residual(Layer):
    r"""$x+\alpha\,\mathrm{body}(x)$.

    Attributes:
        body: The branch; it must end in a fresh `Dense`.
        alpha: The attenuation of the branch.
    """

    cites: ClassVar[tuple[str, ...]] = ("tirer2022kernel",)

    body: Layer = eqx.field(converter=as_layer)
    alpha: Scalar = eqx.field(default=1.0, converter=as_scalar)

    def __check_init__(self) -> None:
        check_scalar(self.alpha, "alpha", minimum=None)


class Repeat(Layer):
    """The same structure several times, each time with weights of its own.

    Attributes:
        body: What is repeated.
        times: How often; depth as a number, so that compilation does not grow with it.
    """

    body: Layer = eqx.field(converter=as_layer)
    times: int = eqx.field(static=True, converter=lambda t: as_count(t, "times"))


class Identity(Layer):
    """Hands its input on; the skip path of a `Sum`."""


class Scale(Layer):
    """Multiplies by a number.

    Attributes:
        factor: The number.
    """

    factor: Scalar = eqx.field(converter=as_scalar)

    def __check_init__(self) -> None:
        check_scalar(self.factor, "factor", minimum=None)
