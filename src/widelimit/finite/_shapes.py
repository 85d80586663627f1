"""Shapes of points, outputs and kernels at the border of a finite network."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.scalars import as_count
from widelimit._base.types import Params
from widelimit.layers import Layer

from ._values import Signals, as_values


def check_features(net: Layer, params: Params, x: Signals) -> None:
    """Refuse points for which the weights were not drawn."""
    if not jax.tree.leaves(params):
        raise ValueError(f"{net} has no weights; put a Dense() in it.")
    expected, given = _input_dim(params), as_values(x).x.shape[1:]
    if len(given) == 1 and expected is not None and expected != given[0]:
        raise ValueError(
            f"The weights were drawn for {expected} features, the points have {given[0]}. "
            f"Draw them again with init(key, input_dim={given[0]})."
        )


def as_output_dim(output_dim: int | None) -> int | None:
    """The number of outputs, or None."""
    return None if output_dim is None else as_count(output_dim, "output_dim", minimum=1)


def as_input_dim(input_dim: int | Sequence[int]) -> tuple[int, ...]:
    """The shape of a point: (features,), or (*spatial, channels)."""
    given = input_dim if isinstance(input_dim, tuple | list) else (input_dim,)
    return tuple(as_count(size, "input_dim", minimum=1) for size in given)


def is_frozen(path: Sequence[object]) -> bool:
    """Whether a place in a tree of weights is inside `Frozen`."""
    return any(getattr(step, "key", None) == "frozen" for step in path)


def pixels_apart(
    kernel: Float[Array, "n1 n2 all all"], shape: Sequence[int], outputs: str
) -> Float[Array, "n1 n2 *pixels_and_outputs"]:
    """Pixels and outputs as axes of their own: (n1, n2, *pixels, *pixels) and then those of the outputs."""
    *sites, k = shape
    pixels = math.prod(sites)
    found = kernel.reshape(*kernel.shape[:2], pixels, k, pixels, k).transpose(0, 1, 2, 4, 3, 5)
    if outputs != "full":
        found = jnp.diagonal(found, axis1=-2, axis2=-1)
    if outputs == "trace":
        found = found.sum(axis=-1)
    return found.reshape(*kernel.shape[:2], *sites, *sites, *found.shape[4:])


def _input_dim(params: Params) -> int | None:
    """The fan-in of the first layer; None where a network starts with several branches."""
    while isinstance(params, list):
        filled = [p for p in params if jax.tree.leaves(p)]
        params = filled[0] if filled else {}
    dense = isinstance(params, dict) and "w" in params and params["w"].ndim == 2
    return params["w"].shape[0] if dense else None
