"""Models of other libraries: functions of (params, points), or objects that hold their own weights."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.types import Tensor


def each_point(model: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """A model of single points, at each point of an array.

    Args:
        model: Of one point, such as an `equinox.nn.MLP`.
        x: Points, shape (n, ...).

    Returns:
        The outputs, shape (n, ...).
    """
    return jax.vmap(model)(jnp.asarray(x))


def as_model(apply: Any, params: Any) -> tuple[Any, Any]:
    """A function of (params, points) and its parameters.

    Args:
        apply: Such a function, or, with no parameters beside it, an Equinox module of single points,
            which is its own parameters.
        params: A pytree, or None.

    Returns:
        The function and the parameters.
    """
    if params is None and isinstance(apply, eqx.Module) and callable(apply):
        return each_point, apply
    return apply, params


class HeldModel:
    """A function of the trainable part of a tree, the rest of which it holds.

    Two of them are equal where model and held parts are, so that equal ones share a program.

    Attributes:
        model: A function of (params, points).
        rest: The tree without what is trained.
    """

    def __init__(self, model: Callable[[Any, Tensor], Tensor], rest: Any) -> None:
        self.model, self.rest = model, rest
        leaves, structure = jax.tree.flatten(rest)
        self._key: Any = model, structure, tuple(leaves)
        try:
            hash(self._key)
        except TypeError:  # arrays have no hash
            self._key = id(self)

    def __call__(self, live: Any, x: Tensor) -> Tensor:
        """The outputs at the points."""
        return self.model(eqx.combine(live, self.rest), x)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeldModel) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def has_frozen_parts(params: Any) -> bool:
    """Whether a tree holds more than weights: functions, integers, the settings of a module."""
    leaves = jax.tree.leaves(params)
    number = (jax.Array, np.ndarray, np.generic, float)
    if not all(isinstance(leaf, number) for leaf in leaves):
        return True
    if not all(eqx.is_inexact_array(leaf) or isinstance(leaf, float) for leaf in leaves):
        return True
    module = lambda node: isinstance(node, eqx.Module)
    nodes = jax.tree.leaves(params, is_leaf=module)
    return any(map(module, nodes)) and any(isinstance(leaf, float) for leaf in leaves)
