"""Networks as text and as JSON, and back."""

import ast
import dataclasses
import json
from typing import Any

from widelimit import layers as _layers
from widelimit._base.names import unknown
from widelimit._base.scalars import concrete
from widelimit.activations import Activation
from widelimit.layers import Layer, Serial, Sum

_FORMAT = 1


def to_text(net: Layer) -> str:
    """The network as an expression that `from_text` (and Python) reads.

    Args:
        net: The network, its numbers concrete.

    Returns:
        Text such as `Dense() >> Phi('relu') >> Dense()`.
    """
    return repr(net)


def from_text(text: str) -> Layer:
    """Read what `to_text` wrote. Nothing is executed: only layers, numbers and names are known.

    Args:
        text: An expression made of layers, `>>` and `+`.

    Returns:
        The network.

    Example:
        >>> import widelimit as wl
        >>> net = wl.resnet(depth=5, alpha=0.1)
        >>> wl.from_text(wl.to_text(net)) == net
        True
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, AttributeError) as error:
        raise ValueError(f"This is not the text of a network: {text!r} ({error}).") from None
    return _build(tree, text)


def _build(node: ast.AST, text: str) -> Any:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.RShift):
        return Serial(_build(node.left, text), _build(node.right, text))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return Sum(_build(node.left, text), _build(node.right, text))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        make = _known(node.func.id)
        named = {k.arg: _build(k.value, text) for k in node.keywords if k.arg}
        return make(*(_build(a, text) for a in node.args), **named)
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise ValueError(
            f"In {text!r}, {ast.unparse(node)!r} is not a layer, a number or a name."
        ) from None


def _known(name: str) -> Any:
    table = {cls.__name__: cls for cls in _all_layers(Layer)}
    if name not in table:
        raise ValueError(unknown("layer", name, table))
    return table[name]


def _all_layers(base: type) -> list[type]:
    """All layers, also those of other people; a name with an underscore is not part of the language."""
    direct = [cls for cls in base.__subclasses__() if not cls.__name__.startswith("_")]
    return direct + [deep for cls in direct for deep in _all_layers(cls)]


def to_json(net: Layer) -> str:
    """The network as JSON.

    Args:
        net: The network, its numbers concrete.

    Returns:
        A JSON document.
    """
    return json.dumps({"widelimit": _FORMAT, "network": _to_data(net)})


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

    Example:
        >>> import widelimit as wl
        >>> net = wl.mlp(depth=2, activation="leaky_relu(0.1)", w_std=1.5)
        >>> wl.from_json(wl.to_json(net)) == net
        True
    """
    try:
        data = json.loads(document)
    except (json.JSONDecodeError, TypeError) as error:
        raise ValueError(f"This is not JSON: {error}.") from None
    if not isinstance(data, dict) or data.get("widelimit") != _FORMAT or "network" not in data:
        raise ValueError(f"This JSON is not a network in format {_FORMAT} of widelimit.")
    return _from_data(data["network"])


def _from_data(data: Any) -> Any:
    if isinstance(data, list):
        return tuple(map(_from_data, data))
    if not isinstance(data, dict):
        return data
    fields = {k: _from_data(v) for k, v in data.items() if k != "layer"}
    make = _known(str(data.get("layer")))
    if make in (_layers.Serial, _layers.Sum):
        return make(*next(iter(fields.values())))
    try:
        return make(**fields)
    except TypeError as error:
        raise ValueError(f"The JSON of a {make.__name__} does not fit: {error}.") from None
