"""How results show themselves: one line in a terminal, a small table in a notebook."""

import dataclasses
import html
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import jax
import numpy as np

C = TypeVar("C", bound=type)

_SHORT = 90  # letters of a value in a line
_FEW = 6  # numbers that are shown one by one
_TABLE = "border-collapse:collapse;background:transparent;color:inherit;font-size:90%;margin:.3em 0"
_CELL = "text-align:left;vertical-align:top;padding:.15em .8em .15em 0;border:0;color:inherit"


def shown(what: str) -> Callable[[C], C]:
    """Decorate a class of results: a short `repr`, and a table in notebooks.

    What is shown is `summary()`, a dict that the class may define; by default its fields. Arrays are told
    by shape, dtype and range, trees of weights by their size.

    Args:
        what: What an object is, in a few words.

    Returns:
        The decorator.

    Example:
        >>> from typing import NamedTuple
        >>> @shown("a demonstration")
        ... class Demo(NamedTuple):
        ...     rate: float
        ...     kernel: np.ndarray
        >>> Demo(0.5, np.eye(3))
        Demo(rate: 0.5, kernel: (3, 3) float64 from 0 to 1)
        >>> Demo(0.5, np.eye(3))._repr_html_().count("<tr>")
        2
    """

    def decorate(cls: C) -> C:
        if not hasattr(cls, "summary"):
            cls.summary = _fields
        line = lambda self: as_line(type(self).__name__, self.summary())
        table = lambda self: as_table(type(self).__name__, what, self.summary())
        for name, method in (("__repr__", line), ("_repr_html_", table)):
            setattr(cls, name, method)
        return cls

    return decorate


def _fields(self: Any) -> dict[str, object]:
    """What is shown of this object: its fields by name."""
    if dataclasses.is_dataclass(self):
        names = [f.name for f in dataclasses.fields(self) if f.repr]
    else:
        names = list(getattr(self, "_fields", ()))
    return {name: getattr(self, name) for name in names if not name.startswith("_")}


def as_line(name: str, rows: Mapping[str, object]) -> str:
    """One line: the class and what it holds; what is None is left out.

    Args:
        name: Of the class.
        rows: Names and values.

    Returns:
        The text.
    """
    parts = [f"{key}: {tell(value)}" for key, value in rows.items() if value is not None]
    return f"{name}({', '.join(parts)})"


def as_table(name: str, what: str, rows: Mapping[str, object]) -> str:
    """A table that reads on light and on dark pages: it has no colours of its own.

    Args:
        name: Of the class.
        what: What it is.
        rows: Names and values; what is None is left out.

    Returns:
        HTML, everything in it escaped.
    """
    cells = [
        f'<tr><th style="{_CELL};font-weight:normal;opacity:.75">{html.escape(str(key))}</th>'
        f'<td style="{_CELL}">{html.escape(tell(value, 10 * _SHORT))}</td></tr>'
        for key, value in rows.items()
        if value is not None
    ]
    head = (
        f'<caption style="text-align:left;caption-side:top;color:inherit;padding:0 0 .2em">'
        f"<b>{html.escape(name)}</b>, {html.escape(what)}</caption>"
    )
    return f'<table style="{_TABLE}">{head}<tbody>{"".join(cells)}</tbody></table>'


def tell(value: Any, room: int = _SHORT) -> str:
    """A value in a few words.

    Args:
        value: Anything.
        room: Letters, beyond which a text is cut.

    Returns:
        The text: numbers with four digits, arrays by shape, dtype and range, trees by their size.

    Example:
        >>> tell(1 / 3), tell({"w": np.zeros((30, 40))}), tell(np.array([1.0, 2.5]))
        ('0.3333', '1,200 numbers in 1 array', '[1, 2.5]')
    """
    if isinstance(value, str):
        return _cut(value, room)
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        return _array(value, room)
    if isinstance(value, float):
        return f"{value:.4g}"
    leaves = jax.tree.leaves(value) if isinstance(value, dict | list | tuple) else []
    if any(isinstance(leaf, np.ndarray | jax.Array) for leaf in leaves):
        arrays = [leaf for leaf in leaves if hasattr(leaf, "size")]
        count = sum(leaf.size for leaf in arrays)
        return f"{count:,} numbers in {len(arrays)} array{'s' * (len(arrays) > 1)}"
    if isinstance(value, dict):
        return _cut(", ".join(f"{key} {tell(v)}" for key, v in value.items()), room)
    if isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return _cut(f"[{', '.join(map(tell, value))}]", room)
    if callable(value) and hasattr(value, "__name__"):
        return _cut(value.__name__, room)
    return _cut(repr(value), room)


def _array(value: Any, room: int) -> str:
    kind = f"{tuple(value.shape)} {value.dtype}"
    try:
        numbers = np.asarray(value)
    except Exception:  # it is being traced, or has been given away
        return kind
    if numbers.dtype.kind not in "fiub" or numbers.size == 0:
        return kind
    if numbers.ndim == 0:
        return f"{numbers.item():.4g}" if numbers.dtype.kind == "f" else str(numbers.item())
    if numbers.ndim == 1 and numbers.size <= _FEW:
        return _cut(f"[{', '.join(f'{v:.4g}' for v in numbers.tolist())}]", room)
    finite = numbers[np.isfinite(numbers)]
    if not finite.size:
        return f"{kind}, nothing finite"
    low, high = float(finite.min()), float(finite.max())
    span = f"{kind} from {low:.4g} to {high:.4g}"
    lost = numbers.size - finite.size
    return f"{span}, {lost:,} not finite" if lost and math.isfinite(low) else span


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 4]} ..."
