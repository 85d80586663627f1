"""Functions on the circle, along lines, and their gradients, with their measures in the legend."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from widelimit.analysis import smoothness as measures

from ._style import COLOURS, angle_axis, figure


def legend_above(panel: Any, title: str | None = None) -> None:
    """A legend that covers no data."""
    panel.legend(
        title=title,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        fontsize=7,
        title_fontsize=7,
        frameon=False,
        borderpad=0.1,
    )


def smoothness(
    functions: Mapping[str, Any], *, samples: Any = None, points: int = 4096, on: str | None = None
) -> Any:
    """Functions on the circle with their second-derivative measures, and where those come from.

    Args:
        functions: Name to function of the angle, model with `predict`, or array of values.
        samples: Angles and labels of the training samples, drawn as dots.
        points: N of the measure.
        on: Where functions are evaluated, see `smoothness.second_derivative`.

    Returns:
        The figure: the functions (left); their spectra weighted as the measure weights them (right).
    """
    fig, panels = figure(1, 2, width=3.6)
    left, right = panels[0]
    for name, f in functions.items():
        mu = measures.second_derivative(f, points=points, on=on)
        values = measures.sample(f, on, points, None, check=False).values
        grid = -np.pi + 2 * np.pi * np.arange(len(values)) / len(values)
        left.plot(grid, values, label=f"{name}: {float(mu):.4g}")
        right.loglog(*_cumulative(values))
    if samples is not None:
        left.plot(*map(np.asarray, samples), "o", color="k", ms=3.5, zorder=5)
    angle_axis(left)
    left.set_xlabel("angle")
    left.set_ylabel("f")
    legend_above(left, f"$\\mu$, N = {points} (smaller is smoother)")
    right.set_xlabel("harmonic k")
    right.set_ylabel("$\\mu$ from harmonics up to k")
    return fig


def _cumulative(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the harmonics up to each k contribute to the measure; at the end, all of it."""
    n = len(values)
    power = np.abs(np.fft.fft(values / np.sqrt(np.mean(values**2))) / n) ** 2
    k = np.abs(np.fft.fftfreq(n, 1 / n)).astype(int)
    total = np.cumsum(np.bincount(k, k**4.0 * power))
    keep = np.arange(1, len(total))
    return keep, np.sqrt(np.maximum(total[1:], 1e-300))


def along_lines(functions: Mapping[str, Any], start: Any, end: Any, *, points: int = 257) -> Any:
    """Predictors along segments in the input space, with their total variation.

    Args:
        functions: Name to function of points (n, d) or model with `predict`.
        start: Where the segments begin, shape (m, d); one panel for each.
        end: Where they end.
        points: Points on each segment.

    Returns:
        The figure.
    """
    start, end = np.atleast_2d(start), np.atleast_2d(end)
    fig, panels = figure(1, len(start), width=2.6, sharey=True)
    s = np.linspace(0, 1, points)
    for panel, a, b in zip(panels[0], start, end, strict=True):
        x = a[None, :] * (1 - s[:, None]) + b[None, :] * s[:, None]
        for name, f in functions.items():
            variation = measures.total_variation(f, a, b, points=points)
            panel.plot(s, measures.values_of(f, x, points), label=f"{name}: {float(variation):.3g}")
        panel.set_xlabel("position on the line")
        legend_above(panel, "total variation")
    panels[0][0].set_ylabel("f")
    return fig


def gradient_norms(functions: Mapping[str, Any], *, points: int = 512) -> Any:
    """The norms of the input gradients around the unit circle.

    Args:
        functions: Name to `Interpolant`, traceable model, or function of points (n, 2).
        points: How many points of the circle.

    Returns:
        The figure; the legend gives mean and maximum.
    """
    fig, panels = figure(width=4.2)
    grid = -np.pi + 2 * np.pi * np.arange(points) / points
    for (name, f), colour in zip(functions.items(), COLOURS * len(functions), strict=False):
        out = measures.input_gradient(f, measures.circle_points(grid))
        label = f"{name}: mean {out.mean:.3g}, max {out.maximum:.3g}"
        panels[0][0].plot(grid, out.norms, color=colour, label=label, lw=1.1)
    angle_axis(panels[0][0])
    panels[0][0].set_xlabel("angle")
    panels[0][0].set_ylabel("$|\\nabla_x f|$")
    legend_above(panels[0][0])
    return fig
