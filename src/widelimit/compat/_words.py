"""What a layer of `stax` is here: three functions around words that become a description."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from widelimit.layers import Concat, Identity, Layer, Product, Serial, Sum


@dataclasses.dataclass(frozen=True)
class FanOut:
    """From here on there are several streams, all equal."""

    streams: int


@dataclasses.dataclass(frozen=True)
class Parallel:
    """One list of words for each stream."""

    parts: tuple["Words", ...]


@dataclasses.dataclass(frozen=True)
class FanIn:
    """The streams become one: by "sum", "concat" or "prod"."""

    how: str


@dataclasses.dataclass(frozen=True)
class Standard:
    """A layer with weights in standard parameterisation."""

    layer: Layer


Word = Layer | FanOut | Parallel | FanIn | Standard
Words = tuple[Word, ...]


class Network(NamedTuple):
    """Words put together.

    Attributes:
        net: The description.
        parameterisation: "ntk" or "standard".
    """

    net: Layer
    parameterisation: str


def put_together(words: Words) -> Network:
    """The description that the words spell; unfinished ones are refused.

    Args:
        words: Those of one network, in their order.

    Returns:
        The description, and where its scales are.
    """
    kinds = {_kind(word) for word in _leaves(words)} - {None}
    if len(kinds) > 1:
        raise ValueError(
            "Layers with parameterization='ntk' and 'standard' are mixed; give all of them the same one."
        )
    return Network(_serial(words), kinds.pop() or "ntk" if kinds else "ntk")


def _leaves(words: Words) -> list[Word]:
    found: list[Word] = []
    for word in words:
        if isinstance(word, Parallel):
            for part in word.parts:
                found.extend(_leaves(part))
        else:
            found.append(word)
    return found


def _kind(word: Word) -> str | None:
    if isinstance(word, Standard):
        return "standard"
    return "ntk" if hasattr(word, "w_std") or hasattr(word, "v_std") else None


def _serial(words: Words) -> Layer:
    done: list[Layer] = []
    streams: list[list[Layer]] | None = None
    for word in words:
        if isinstance(word, FanOut):
            if streams is not None:
                raise ValueError("FanOut inside FanOut: put the inner one into a part of parallel.")
            streams = [[] for _ in range(word.streams)]
        elif isinstance(word, Parallel):
            if streams is None or len(streams) != len(word.parts):
                raise ValueError(
                    f"parallel has {len(word.parts)} parts and meets {len(streams or [None])} stream(s). "
                    f"Put FanOut({len(word.parts)}) before it. Networks of several inputs have no "
                    "description here."
                )
            for stream, part in zip(streams, word.parts, strict=True):
                stream.append(_serial(part))
        elif isinstance(word, FanIn):
            if streams is None:
                raise ValueError(f"FanIn{word.how.title()} needs FanOut(...) before it.")
            done.append(_joined(word.how, [_chain(stream) for stream in streams]))
            streams = None
        elif streams is not None:
            raise ValueError(f"{word} stands between FanOut and FanIn; put it into parallel(...).")
        else:
            done.append(word.layer if isinstance(word, Standard) else word)
    if streams is not None:
        raise ValueError(
            f"The network ends in {len(streams)} streams. Put FanInSum(), FanInConcat() or FanInProd() behind "
            "them: several outputs have no description here."
        )
    return _chain(done)


def _chain(layers: Sequence[Layer]) -> Layer:
    if not layers:
        return Identity()
    return layers[0] if len(layers) == 1 else Serial(*layers)


def _joined(how: str, branches: Sequence[Layer]) -> Layer:
    if how == "sum":
        return Sum(*branches)
    if how == "prod":
        return Product(*branches)
    widths = [channels(branch) for branch in branches]
    known = [width for width in widths if width is not None]
    if len(known) != len(widths):
        raise ValueError(
            "FanInConcat weighs branches by their numbers of channels, and a branch states none: let "
            "each end in a Dense or Conv (perhaps before activations and pools), or write "
            "widelimit.Concat(..., widths=...)."
        )
    common = math.gcd(*known)
    return Concat(*branches, widths=tuple(width // common for width in known))


def channels(layer: Layer) -> int | None:
    """The number of channels that a description ends with, where it states one."""
    if isinstance(layer, Serial):
        for part in reversed(layer.layers):
            width = channels(part)
            if width is not None:
                return width
        return None
    if isinstance(layer, Sum | Product):
        return next((w for w in map(channels, layer.branches) if w is not None), None)
    if isinstance(layer, Concat):
        widths = [channels(branch) for branch in layer.branches]
        return None if None in widths else sum(w for w in widths if w is not None)
    inner: Any = getattr(layer, "body", None)
    width = getattr(layer, "width", None)
    return channels(inner) if isinstance(inner, Layer) else width
