"""Parameterisations: where the scale of a weight lives, and what it is drawn from."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PRNGKeyArray

from widelimit._base.names import unknown
from widelimit._base.scalars import Scalar


class Scheme(NamedTuple):
    r"""One way to write $z=c_wWx+c_bb$.

    Attributes:
        factors: (w_std, b_std, fan_in) to $(c_w,c_b)$, the factors of the forward pass.
        spreads: (w_std, b_std, fan_in, fan_out) to the standard deviations of $W$ and $b$.
        draw: (key, shape, dtype) to random numbers of variance 1.
        bias: Whether every layer has a bias unless the caller says otherwise.
    """

    factors: Callable[[Scalar, Scalar, int], tuple[Scalar, Scalar]]
    spreads: Callable[[Scalar, Scalar, int, int], tuple[Scalar, Scalar]]
    draw: Callable[[PRNGKeyArray, tuple[int, ...], DTypeLike], Float[Array, "..."]]
    bias: bool = False


def _uniform(key: PRNGKeyArray, shape: tuple[int, ...], dtype: DTypeLike) -> Float[Array, "..."]:
    return jax.random.uniform(key, shape, dtype, -math.sqrt(3.0), math.sqrt(3.0))


SCHEMES = {
    # Jacot et al. (2018): everything is N(0, 1), every scale is in the forward pass.
    "ntk": Scheme(
        lambda w, b, m: (w / math.sqrt(m), b),
        lambda w, b, m, n: (1.0, 1.0),
        jax.random.normal,
    ),
    # The same distribution of functions with the scale in the weights: other gradients.
    "standard": Scheme(
        lambda w, b, m: (1.0, 1.0),
        lambda w, b, m, n: (w / math.sqrt(m), b),
        jax.random.normal,
    ),
    # Glorot and Bengio (2010), normal; w_std is their gain.
    "xavier": Scheme(
        lambda w, b, m: (1.0, 1.0),
        lambda w, b, m, n: (w * math.sqrt(2.0 / (m + n)), b),
        jax.random.normal,
    ),
    # PyTorch's Linear: both uniform on [-1, 1] / sqrt(fan_in), which has variance 1 / (3 fan_in).
    "torch": Scheme(
        lambda w, b, m: (1.0, 1.0),
        lambda w, b, m, n: (w / math.sqrt(3.0 * m), 1.0 / math.sqrt(3.0 * m)),
        _uniform,
        bias=True,
    ),
}


class How(NamedTuple):
    """What a description leaves open about the finite network.

    Attributes:
        width: Of every hidden layer that does not state its own.
        parameterisation: The name of a scheme.
        bias: True: a bias in every layer; False: in none; None: where the description has one.
    """

    width: int
    parameterisation: str
    bias: bool | None

    @property
    def scheme(self) -> Scheme:
        """The formulas behind the name."""
        return SCHEMES[self.parameterisation]

    def embedding(self, std: Scalar) -> tuple[Scalar, Scalar]:
        """The factor of the forward pass and the standard deviation of positional embeddings."""
        return (std, 1.0) if self.parameterisation == "ntk" else (1.0, std)


def check_parameterisation(name: str) -> str:
    """The name of a known parameterisation, or an error that lists them."""
    if name not in SCHEMES:
        raise ValueError(unknown("parameterisation", name, SCHEMES))
    return name


def cast(value: Scalar, dtype: DTypeLike) -> Scalar:
    """A number of the description in the dtype of the weights; Python floats adapt by themselves."""
    return value if isinstance(value, float) else jnp.asarray(value, dtype)
