"""What else people call an activation: spellings, and functions of other libraries."""

import functools
import math
import operator
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_SYNONYMS = {
    "absolute": "abs",
    "heaviside": "step",
    "linear": "identity",
    "logistic": "sigmoid",
    "swish": "silu",
}

# jax.nn.gelu is left out: unless told otherwise it is an approximation that differs by 5e-4.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "abs": (jnp.abs, jax.lax.abs, abs, operator.abs, math.fabs, jnp.fabs),
    "cos": (jnp.cos, jax.lax.cos, math.cos),
    "elu": (jax.nn.elu,),
    "erf": (jax.lax.erf, math.erf),
    "exp": (jnp.exp, jax.lax.exp, math.exp),
    "identity": (jax.nn.identity, jnp.positive),
    "leaky_relu": (jax.nn.leaky_relu,),
    "mish": (jax.nn.mish,),
    "monomial(2)": (jnp.square, jax.lax.square),
    "relu": (jax.nn.relu,),
    "sigmoid": (jax.nn.sigmoid, jax.lax.logistic),
    "sign": (jnp.sign, jax.lax.sign),
    "silu": (jax.nn.silu,),
    "sin": (jnp.sin, jax.lax.sin, math.sin),
    "softplus": (jax.nn.softplus,),
    "tanh": (jnp.tanh, jax.lax.tanh, jax.nn.tanh, math.tanh),
}

# NumPy's and SciPy's, by their own names.
_UFUNCS = {
    "absolute": "abs",
    "cos": "cos",
    "erf": "erf",
    "exp": "exp",
    "expit": "sigmoid",
    "fabs": "abs",
    "positive": "identity",
    "sign": "sign",
    "sin": "sin",
    "square": "monomial(2)",
    "tanh": "tanh",
}


@functools.cache
def _table() -> dict[Any, str]:
    from jax.scipy import special  # takes a tenth of a second, which most programs need not spend

    found = {function: name for name, functions in _FUNCTIONS.items() for function in functions}
    return {**found, special.erf: "erf", special.expit: "sigmoid"}


def name_of(function: Any) -> str | None:
    """The name of a function of JAX, NumPy, SciPy or Python that is known here.

    Args:
        function: Anything that can be called.

    Returns:
        The activation's name; None for functions of one's own.

    Example:
        >>> name_of(jax.nn.relu), name_of(np.tanh), name_of(lambda x: x)
        ('relu', 'tanh', None)
    """
    if isinstance(function, functools.partial):
        exact = function.func is jax.nn.gelu and not function.args
        return "gelu" if exact and function.keywords == {"approximate": False} else None
    if isinstance(function, np.ufunc):
        return _UFUNCS.get(function.__name__)
    try:
        return _table().get(function)
    except TypeError:  # no hash: it holds arrays
        return None


def _letters(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def spelt(name: str, known: Iterable[str]) -> str:
    """The known name that has the same letters and digits, or the name itself.

    Args:
        name: As a user wrote it.
        known: The names in use.

    Returns:
        A known name, if there is one.

    Example:
        >>> spelt("Leaky ReLU", ["relu", "leaky_relu"]), spelt("rellu", ["relu"])
        ('leaky_relu', 'rellu')
    """
    known = list(known)
    if name in known:
        return name
    wanted = _letters(name)
    wanted = _SYNONYMS.get(wanted, wanted)
    return next((other for other in known if _letters(other) == wanted), name)
