"""One look for all figures: colour-blind-safe, readable at column width. Matplotlib lives here only."""

from contextlib import AbstractContextManager
from typing import Any

import numpy as np

# Okabe and Ito's palette, ordered so that neighbours differ in lightness too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")

_STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "savefig.bbox": "tight",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "figure.constrained_layout.use": True,
}


def pyplot() -> Any:
    """`matplotlib.pyplot`, or an error that says how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "Figures need Matplotlib, which is not installed. "
            "Install it with: pip install 'widelimit[plot]'"
        ) from error
    return plt


def style() -> AbstractContextManager[None]:
    """A context in which all that is drawn has the library's style."""
    return pyplot().rc_context(_STYLE)


def figure(
    rows: int = 1, columns: int = 1, *, width: float = 3.4, height: float = 2.6, **options: Any
):
    """A figure in the library's style.

    Args:
        rows: Rows of panels.
        columns: Columns of panels.
        width: Inches for each panel.
        height: Inches for each panel.
        **options: Passed to `matplotlib.pyplot.subplots`.

    Returns:
        The figure and its panels, an array of shape (rows, columns), each with the colour cycle set.
    """
    plt = pyplot()
    with style():
        fig, panels = plt.subplots(
            rows, columns, figsize=(width * columns, height * rows), squeeze=False, **options
        )
        for panel in panels.flat:
            panel.set_prop_cycle(color=COLOURS)
    return fig, np.asarray(panels)


def angle_axis(panel: Any) -> None:
    """Ticks at multiples of pi/2 on an axis that runs from -pi to pi."""
    panel.set_xticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi])
    panel.set_xticklabels(["$-\\pi$", "$-\\pi/2$", "0", "$\\pi/2$", "$\\pi$"])
    panel.set_xlim(-np.pi, np.pi)


def plain_ticks(axis: Any) -> None:
    """Numbers in full, at 1, 2 and 5 of each decade, on a logarithmic axis of few decades.

    Args:
        axis: `panel.xaxis` or `panel.yaxis`.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def width_axis(panel: Any, widths: Any) -> None:
    """A logarithmic axis whose ticks are the widths themselves, as plain numbers.

    Args:
        panel: The axes.
        widths: What was measured; of many, every second or third is labelled.
    """
    widths = sorted({int(n) for n in widths})
    labelled = widths[:: -(-len(widths) // 7)]
    panel.set_xscale("log")
    panel.set_xticks(labelled, [str(n) for n in labelled])
    panel.set_xticks([n for n in widths if n not in labelled], minor=True)
    panel.xaxis.set_minor_formatter(pyplot().NullFormatter())
