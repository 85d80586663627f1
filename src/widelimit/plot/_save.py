"""Figures and animations as files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ._style import pyplot, style

_INCHES = 0.047  # for a letter of a note, on average


def note(fig: Any, text: str) -> None:
    """A line below the panels that says how the figure was computed.

    Args:
        fig: The figure.
        text: A sentence without its full stop; broken after each semicolon where the figure is
            narrower than it.
    """
    if not text:
        return
    if len(text) * _INCHES > fig.get_figwidth():
        text = text.replace("; ", ";\n")
    fig.supxlabel(text[0].upper() + text[1:] + ".", fontsize=6.5, color="0.35")


class Animation(NamedTuple):
    """A figure that moves; `save` writes it.

    Attributes:
        figure: The figure.
        show: Changes the figure to its frame of that number.
        frames: Their number.
    """

    figure: Any
    show: Callable[[int], None]
    frames: int


def save(drawn: Any, stem: Path) -> str:
    """Write a figure as PNG and PDF, or an animation as GIF, and free its memory.

    Args:
        drawn: The figure, or an `Animation`.
        stem: The path without its ending.

    Returns:
        The name of the file to show.
    """
    if isinstance(drawn, Animation):
        from matplotlib.animation import FuncAnimation, PillowWriter

        name, fig = f"{stem.name}.gif", drawn.figure
        with style():
            moving = FuncAnimation(fig, drawn.show, drawn.frames, blit=False)  # pyright: ignore
            moving.save(stem.with_name(name), writer=PillowWriter(fps=10), dpi=90)
    else:
        name, fig = f"{stem.name}.png", drawn
        fig.draw_without_rendering()
        fig.set_layout_engine("none")  # it is laid out once, not again for each file
        fig.savefig(stem.with_name(name), dpi=160)
        fig.savefig(stem.with_name(f"{stem.name}.pdf"), metadata={"CreationDate": None})
    pyplot().close(fig)
    return name
