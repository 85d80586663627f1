"""Figures and animations as files."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ._style import pyplot, style


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


def save(drawn: Any, stem: Path, about: str = "") -> str:
    """Write a figure as PNG and PDF, or an animation as GIF, and free its memory.

    Args:
        drawn: The figure, or an `Animation`.
        stem: The path without its ending.
        about: What it shows and how it was computed, in words; kept inside the file, not drawn.

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
        words = {"Description": about} if about else {}
        fig.savefig(stem.with_name(name), dpi=160, metadata=words)
        words = {"CreationDate": None} | ({"Subject": about} if about else {})
        fig.savefig(stem.with_name(f"{stem.name}.pdf"), metadata=words)
    pyplot().close(fig)
    return name
