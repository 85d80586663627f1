"""Networks as text and as JSON, and back."""

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from widelimit import layers as _layers
from widelimit._base.names import unknown
from widelimit._base.scalars import concrete
from widelimit.activations import Activation
from widelimit.layers import Layer

from ._parse import parse

_FORMAT = 1


def to_text(net: Layer) -> str:
    """The network as an expression that `from_text` (and Python) reads.

    Args:
        net: The network, its numbers concrete and its activations registered.

    Returns:
        Text such as `Dense() >> Phi('relu') >> Dense()`.
    """
    return _written(
        net, lambda: (_to_data(net), repr(net))[1]
    )  # refuses what could not be read back


def from_text(text: str) -> Layer:
    """Read what `to_text` wrote. Nothing is executed: only layers, numbers and names are known.

    Args:
        text: An expression made of layers, `>>` and `+`.

    Returns:
        The network.

    Raises:
        ValueError: It is not the text of a network.

    Example:
        >>> import widelimit as wl
        >>> net = wl.resnet(depth=5, alpha=0.1)
        >>> wl.from_text(wl.to_text(net)) == net
        True
    """
    if not isinstance(text, str):
        raise ValueError(f"This is not the text of a network: {_short(text)} is not a string.")
    return _expect_network(parse(text, _make))


def _make(name: str, args: list[Any], named: dict[str, Any]) -> Layer:
    """A layer of its name and arguments; whatever is wrong with them is a ValueError."""
    make = _known(name)
    try:
        return make(*args, **named)
    except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"The arguments of {name} do not fit: {error}") from None


def _expect_network(found: Any) -> Layer:
    if not isinstance(found, Layer):
        raise ValueError(f"A network was expected, {_short(found)} was written.")
    return found


def _short(value: object) -> str:
    shown = f"{value!s:.40}" if isinstance(value, str | bytes | int | float) else "that"
    return f"{shown} ({type(value).__name__})"


def _known(name: str) -> Any:
    table = {cls.__name__: cls for cls in _all_layers(Layer)}
    if name not in table:
        raise ValueError(unknown("layer", name[:40], table))
    return table[name]


def _all_layers(base: type) -> list[type]:
    """All layers, also those of other people; a name with an underscore is not part of the language."""
    direct = base.__subclasses__()
    named = [cls for cls in direct if not cls.__name__.startswith("_")]
    return named + [deep for cls in direct for deep in _all_layers(cls)]


def to_json(net: Layer) -> str:
    """The network as JSON.

    Args:
        net: The network, its numbers concrete.

    Returns:
        A JSON document.
    """
    return _written(net, lambda: json.dumps({"widelimit": _FORMAT, "network": _to_data(net)}))


def _written(net: Layer, write: Callable[[], str]) -> str:
    if not isinstance(net, Layer):
        raise TypeError(f"A network was expected, got {_short(net)}.")
    try:
        return write()
    except RecursionError:
        raise ValueError("The network is nested too deeply to be written down.") from None


def _to_data(value: Any) -> Any:
    if isinstance(value, Layer):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return {"layer": type(value).__name__, **{k: _to_data(v) for k, v in fields.items()}}
    if isinstance(value, Activation):
        if not value.registered:
            raise ValueError(
                f"The activation {value.name!r} is not registered, so its name would not find it "
                "again. Register it with widelimit.activations.register first."
            )
        return value.name
    if isinstance(value, tuple):
        return [_to_data(v) for v in value]
    if value is None or isinstance(value, int | str):
        return value
    number = concrete(value)
    if number is None:
        raise TypeError("A network that is being traced has no numbers to write down yet.")
    return number


def from_json(document: str) -> Layer:
    """Read what `to_json` wrote.

    Args:
        document: The JSON document.

    Returns:
        The network.

    Raises:
        ValueError: It is not the JSON of a network.

    Example:
        >>> import widelimit as wl
        >>> net = wl.mlp(depth=2, activation="leaky_relu(0.1)", w_std=1.5)
        >>> wl.from_json(wl.to_json(net)) == net
        True
    """
    try:
        data = json.loads(document)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"This is not JSON: {error}.") from None
    if not isinstance(data, dict) or data.get("widelimit") != _FORMAT or "network" not in data:
        raise ValueError(f"This JSON is not a network in format {_FORMAT} of widelimit.")
    try:
        return _expect_network(_from_data(data["network"]))
    except RecursionError:
        raise ValueError("The network in this JSON is nested too deeply.") from None


def _from_data(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(map(_from_data, data))
    if not isinstance(data, dict):
        return data
    fields = {k: _from_data(v) for k, v in data.items() if k != "layer"}
    name = str(data.get("layer"))
    if _known(name) in (_layers.Serial, _layers.Sum, _layers.Concat, _layers.Product):
        parts = [v for k, v in fields.items() if k in ("layers", "branches")]
        named = {k: v for k, v in fields.items() if k == "widths"}
        if len(parts) != 1 or len(fields) > 1 + len(named) or not isinstance(parts[0], tuple):
            raise ValueError(f"The JSON of a {name} needs one list of layers.")
        return _make(name, [*parts[0]], named)
    return _make(name, [], fields)
