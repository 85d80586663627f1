"""Figures with their captions, and tables of numbers, as HTML."""

import base64
import html
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._result import Table
from ._prose import number, plain, prose

_FORMS = {
    "talk": "The same, drawn as in the talk",
    "gif": "The same as an animation",
}


class Image(NamedTuple):
    """A picture inside the page.

    Attributes:
        url: A data URL.
        width: In pixels.
        height: In pixels.
        form: Empty for the main figure; else which other form it is.
    """

    url: str
    width: int
    height: int
    form: str = ""


def read_image(path: Path, name: str) -> Image:
    """A figure of an experiment from its file, PNG or GIF."""
    data = path.read_bytes()
    moving = path.suffix == ".gif"
    width, height = (
        struct.unpack("<HH", data[6:10]) if moving else struct.unpack(">II", data[16:24])
    )
    url = f"data:image/{path.suffix[1:]};base64,{base64.b64encode(data).decode()}"
    form = "gif" if moving else path.stem.removeprefix(name).strip("_")
    return Image(url, width, height, form)


def figure(label: str, title: str, image: Image, caption: str, size: str, *, first: bool) -> str:
    """A figure; the first is open and has the caption, the others can be opened.

    Args:
        label: "Figure 1".
        title: For those who cannot see it.
        image: The picture.
        caption: What to see, with formulas between dollars.
        size: How it was computed, in plain words.
        first: Whether it is the main form.

    Returns:
        HTML.
    """
    words = _FORMS.get(image.form, image.form)
    picture = (
        f"<div class='scroll'><img alt='{html.escape(f'{label}: {title}')}' "
        f"width='{image.width}' height='{image.height}' style='--w:{image.width}' "
        f"src='{image.url}'></div>"
    )
    if not first:
        return f"<details><summary>{words}</summary><figure>{picture}</figure></details>"
    what = f"{prose(caption)} " if caption else ""
    return (
        f"<figure>{picture}<figcaption><b>{label}.</b> {what}"
        f"<span class='soft'>{plain(size[:1].upper() + size[1:])}</span></figcaption></figure>"
    )


def tables(found: Sequence[Table]) -> str:
    """Tables of numbers, closed until one asks for them."""
    if not found:
        return ""
    return f"<details><summary>Numbers</summary>{''.join(map(_table, found))}</details>"


def _table(t: Table) -> str:
    columns = list(zip(*t.rows, strict=True)) if t.rows else [()] * len(t.columns)
    mark = [" class='n'" if all(map(_is_number, column)) else "" for column in columns]
    cells = lambda tag, row, show: "".join(
        f"<{tag}{right}>{show(v)}</{tag}>" for v, right in zip(row, mark, strict=True)
    )
    body = "".join(f"<tr>{cells('td', row, number)}</tr>" for row in t.rows)
    return (
        f"<div class='scroll'><table><caption>{plain(t.title)}</caption>"
        f"<thead><tr>{cells('th', t.columns, plain)}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
