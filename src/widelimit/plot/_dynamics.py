"""Training and inference in pictures."""

from typing import Any

import numpy as np

from widelimit.dynamics import Trained
from widelimit.regression import Predictive

from ._style import COLOURS, figure, pyplot


def training(model: Trained, line: Any, x_line: Any, times: Any, points: Any = None) -> Any:
    """The function on a line at several times, and the error of each eigen-direction.

    Args:
        model: From `train`, squared loss, one output.
        line: Where the points stand on the horizontal axis, shape (m,).
        x_line: The points themselves, shape (m, d).
        times: Times at which the function is drawn, increasing.
        points: Where the training points stand on the line, shape (n,).

    Returns:
        The figure.
    """
    fig, ((left, right),) = figure(1, 2)
    shades = pyplot().colormaps["viridis"](np.linspace(0.85, 0.05, len(times)))
    curves = np.asarray(model.predict(x_line, np.asarray(times, float)))
    for t, curve, shade in zip(times, curves, shades, strict=True):
        left.plot(line, curve, color=shade, label=f"$t={t:g}$")
    if points is not None:
        left.plot(points, model.problem.y[:, 0], "o", color="black", markersize=3.5)
    left.set(xlabel="input", ylabel="$f_t$")
    left.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, handlelength=1)

    span = np.logspace(np.log10(0.05 / model.lambda_max), np.log10(3 * max(times)), 200)
    start = model.eigen.vectors.T @ (model.start - model.problem.y)[:, 0]
    for value, size in zip(model.eigen.values[::-1], np.abs(start[::-1]), strict=True):
        right.loglog(span, np.maximum(size * np.exp(-value * span), 1e-16), alpha=0.8)
    total = [np.linalg.norm(model.error(t)) for t in span]
    right.loglog(span, np.maximum(total, 1e-16), color="black", label="all directions")
    right.set(xlabel="time $t$", ylabel="training error", ylim=(1e-6, 3 * total[0]))
    right.legend()
    return fig


def band(
    line: Any, predictive: Predictive, points: Any = None, targets: Any = None, samples: int = 0
) -> Any:
    """Mean, two standard deviations and some draws of a posterior or an ensemble.

    Args:
        line: Where the points stand on the horizontal axis, shape (m,).
        predictive: From `posterior` or `ensemble`, one output.
        points: Where the training points stand on the line, shape (n,).
        targets: Their targets, shape (n,).
        samples: How many functions to draw.

    Returns:
        The figure.
    """
    fig, ((panel,),) = figure(width=4.2)
    mean = np.asarray(predictive.mean).reshape(len(line))
    spread = 2 * np.asarray(predictive.std)
    panel.fill_between(line, mean - spread, mean + spread, alpha=0.2, linewidth=0)
    panel.plot(line, mean, color=COLOURS[0])
    if samples:
        draws = np.asarray(predictive.sample(0, samples)).reshape(samples, len(line))
        panel.plot(line, draws.T, color=COLOURS[1], linewidth=0.7, alpha=0.7)
    if points is not None and targets is not None:
        panel.plot(points, targets, "o", color="black", markersize=3.5)
    panel.set(xlabel="input", ylabel="output")
    return fig
