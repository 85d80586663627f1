"""Plain frozen dataclasses as trees of arrays: a state is made anew for every layer, and must cost nothing."""

import dataclasses
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import jax

T = TypeVar("T")


def as_tree(*static: str) -> Callable[[type[T]], type[T]]:
    """Register a dataclass with JAX; the fields named are no arrays and are known when a program is compiled."""

    def register(cls: type[T]) -> type[T]:
        names = [field.name for field in dataclasses.fields(cls) if field.name not in static]  # pyright: ignore[reportArgumentType]
        if len(names) == 1:
            raise TypeError(
                f"{cls.__name__} has a single field of arrays; it needs no tree of its own."
            )
        arrays = operator.attrgetter(*names)
        rest = lambda tree: tuple(getattr(tree, name) for name in static)

        def flatten(tree: T) -> tuple[Any, Any]:
            return arrays(tree), rest(tree)

        def flatten_with_keys(tree: T) -> tuple[Any, Any]:
            keys = map(jax.tree_util.GetAttrKey, names)
            return tuple(zip(keys, arrays(tree), strict=True)), rest(tree)

        def unflatten(known: Any, leaves: Any) -> T:
            tree = object.__new__(cls)
            tree.__dict__.update(
                zip(names, leaves, strict=True)
            )  # whatever JAX puts in place of arrays
            tree.__dict__.update(zip(static, known, strict=True))
            return tree

        jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
        return cls

    return register
