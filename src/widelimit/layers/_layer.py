"""A layer is data; `>>` puts one after another, `+` side by side."""

import dataclasses
import functools
import reprlib
from typing import Any, ClassVar

import equinox as eqx
import jax
import numpy as np

from widelimit._base.shown import as_table


class Layer(eqx.Module):
    """The base of all layers: frozen, comparable, printable, without behaviour.

    What it does to a signal is one rule (`widelimit.interpret`), which answers every question about
    networks of infinite width; two more (`draw`, `forward`) give it weights. A layer of your own is a
    subclass with fields and these rules; `widelimit.extend` has all that they need.

    Attributes:
        cites: Keys of the works that the layer comes from (see `widelimit.cite`).
    """

    cites: ClassVar[tuple[str, ...]] = ()

    def __rshift__(self, after: "Layer") -> "Serial":
        return Serial(self, _expect_layer(after, ">>"))

    def __add__(self, other: "Layer") -> "Sum":
        return Sum(self, _expect_layer(other, "+"))

    def __repr__(self) -> str:
        positional, named = [], []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING and not named:
                positional.append(_show(value))
            elif not _same(value, field.default):
                named.append(f"{field.name}={_show(value)}")
        return f"{type(self).__name__}({', '.join(positional + named)})"

    def summary(self) -> dict[str, object]:
        """What a notebook shows of a network: its text, its activations, its numbers."""
        nodes = jax.tree.leaves(self, is_leaf=lambda node: hasattr(node, "activation"))
        names = {str(node.activation) for node in nodes if hasattr(node, "activation")}
        return {
            "layers": repr(self),
            "activations": ", ".join(sorted(names)) or None,
            "numbers": len(jax.tree.leaves(self)),
        }

    def _repr_html_(self) -> str:
        return as_table(type(self).__name__, "a network or a part of one", self.summary())

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return False
        return all(map(_same, _values(self), _values(other)))

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashable, _values(self))))


@functools.cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _values(layer: object) -> list[Any]:
    """The fields; as plain attributes, since every call of a kernel asks for the hash of its network."""
    return [object.__getattribute__(layer, name) for name in _names(type(layer))]


def _hashable(value: Any) -> Any:
    if isinstance(value, jax.Array | np.ndarray):
        return float(value)
    return value


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, jax.Array | np.ndarray) or isinstance(b, jax.Array | np.ndarray):
        return a is b or bool(np.array_equal(a, b))
    return bool(a == b)


def _show(value: Any) -> str:
    if isinstance(value, jax.Array) and value.ndim == 0:
        try:
            return repr(float(value))
        except jax.errors.ConcretizationTypeError:
            return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return f"{value:.1f}"
    return repr(value)


def _expect_layer(value: Any, sign: str) -> Layer:
    if not isinstance(value, Layer):
        raise TypeError(
            f"{sign} combines layers, got {value!r} ({type(value).__name__}). "
            "An activation becomes a layer as Phi('relu')."
        )
    return value


def as_layer(value: Any) -> Layer:
    """Refuse strings, functions, numbers and whatever else is no layer."""
    if not isinstance(value, Layer):
        hint = (
            f" An activation is written Phi({value!r})."
            if callable(value) or isinstance(value, str)
            else ""
        )
        raise TypeError(
            f"A layer was expected, got {reprlib.repr(value)} ({type(value).__name__}).{hint}"
        )
    return value


class Serial(Layer):
    """Layers one after another: `Serial(a, b)` is `a >> b`. Nested ones are flattened."""

    layers: tuple[Layer, ...]

    def __init__(self, *layers: Layer):
        flat: list[Layer] = []
        for layer in layers:
            flat.extend(layer.layers if isinstance(layer, Serial) else [as_layer(layer)])
        self.layers = tuple(flat)

    def __repr__(self) -> str:
        if not self.layers:
            return "Serial()"
        return " >> ".join(f"({l})" if isinstance(l, Sum) else repr(l) for l in self.layers)


class Sum(Layer):
    """The sum of parallel branches that see the same input: `Sum(a, b)` is `a + b`.

    Each occurrence of a layer has weights of its own. Paths that do share randomness, such as
    x + x, are combined before they are squared.
    """

    branches: tuple[Layer, ...]

    def __init__(self, *branches: Layer):
        if len(branches) < 1:
            raise ValueError("Sum needs at least one branch.")
        flat: list[Layer] = []
        for branch in branches:
            flat.extend(branch.branches if isinstance(branch, Sum) else [as_layer(branch)])
        self.branches = tuple(flat)

    def __repr__(self) -> str:
        if len(self.branches) == 1:
            return f"Sum({self.branches[0]!r})"
        return " + ".join(f"({b})" if isinstance(b, Serial) else repr(b) for b in self.branches)
