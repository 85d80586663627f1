"""Figures of finite networks: how they approach the limit, and what training does to them."""

from typing import Any

import numpy as np

from ._style import COLOURS, angle_axis, figure, width_axis


def power_law(
    panel: Any, n: Any, values: Any, stderr: Any, rate: float, label: str, colour: str
) -> None:
    """Measurements against the width, with error bars, and the fitted power.

    Args:
        panel: The axes.
        n: Widths.
        values: Measured at each.
        stderr: Their standard errors.
        rate: The fitted exponent.
        label: Of the fitted line.
        colour: Of both.
    """
    panel.errorbar(n, values, yerr=stderr, fmt="o", color=colour, markersize=4, capsize=2)
    middle = np.exp(np.mean(np.log(values)) - rate * np.mean(np.log(n)))
    panel.plot(n, middle * np.asarray(n, float) ** rate, color=colour, label=label)
    width_axis(panel, n)
    panel.set_yscale("log")
    panel.set_xlabel("width $n$")


def _exponent(rate: float, stderr: float) -> str:
    return f"$n^{{{rate:.2f} \\pm {stderr:.2f}}}$"


def width_convergence(result: Any) -> Any:
    r"""$\lVert\hat\Theta-\Theta\rVert_F$ against the width, with the fitted rate, and how single kernels scatter.

    The second panel has one entry of every network in units of its limit, their mean and standard deviation, and the
    band that the first order in 1/n predicts (`widelimit.fluctuations`).

    Args:
        result: From `widelimit.width_convergence`.

    Returns:
        The figure.
    """
    fig, panels = figure(1, 1 if result.entry is None else 2)
    label = _exponent(result.rate, result.rate_stderr)
    measured = result.widths, result.error, result.stderr, result.rate
    power_law(panels[0, 0], *measured, label, COLOURS[0])
    if result.predicted is not None:
        predicted(panels[0, 0], result.widths, result.predicted, COLOURS[1])
    panels[0, 0].legend()
    panels[0, 0].set_ylabel(r"$\Vert\hat\Theta-\Theta\Vert_F$")
    if result.entry is not None:
        _scatter(panels[0, 1], result)
    return fig


def _scatter(panel: Any, result: Any) -> None:
    """Single networks, their mean and standard deviation, and what is predicted of both."""
    n, entry = np.asarray(result.widths, float), result.entry
    if result.band is not None:
        order = np.argsort(n)
        fine = np.geomspace(n.min(), n.max(), 100)
        # Both are powers of n between the widths: the shift 1/n, the spread its root.
        shift, spread = (result.band[0] - 1) * n, result.band[1] * n**0.5
        at = lambda values: np.interp(np.log(fine), np.log(n[order]), values[order])
        mean, std = 1 + at(shift) / fine, at(spread) / fine**0.5
        look = {"color": COLOURS[1], "alpha": 0.2, "linewidth": 0}
        panel.fill_between(fine, mean - std, mean + std, label="predicted, ± 1 std", **look)
        panel.plot(fine, mean, "--", color=COLOURS[1], linewidth=1.2)
    panel.axhline(1, color="k", linewidth=0.6)
    many = np.repeat(n[:, None], entry.shape[1], axis=1)
    panel.plot(many.ravel(), entry.ravel(), ".", color=COLOURS[5], markersize=3, alpha=0.6)
    look = {"fmt": "o", "color": COLOURS[0], "markersize": 4, "capsize": 3}
    spread = entry.std(1, ddof=1)
    panel.errorbar(n, entry.mean(1), yerr=spread, label="sampled, ± 1 std", **look)
    panel.set_xlabel("width $n$")
    panel.set_ylabel(r"$\hat\Theta(x,x)\,/\,\Theta(x,x)$")
    width_axis(panel, result.widths)
    panel.legend(loc="upper right")


def predicted(
    panel: Any, n: Any, values: Any, colour: str, label: str = "first order in $1/n$"
) -> None:
    """What theory says, beside what was measured.

    Args:
        panel: The axes.
        n: Widths.
        values: Predicted at each.
        colour: Of the line.
        label: Of the line; empty for none.
    """
    panel.plot(n, values, "--", color=colour, linewidth=1.2, label=label or None)


def required_width(depths: Any, widths: Any, rtol: float) -> Any:
    """The width that a kernel right to `rtol` needs, against depth, for several networks.

    Args:
        depths: Shape (depths,).
        widths: Name to widths, each of shape (depths,).
        rtol: The relative standard deviation that is allowed.

    Returns:
        The figure.
    """
    fig, panels = figure()
    panel = panels[0, 0]
    for i, (name, values) in enumerate(widths.items()):
        panel.plot(depths, values, "o-", color=COLOURS[i % len(COLOURS)], markersize=3, label=name)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log")
    panel.set_ylim(top=6 * max(max(values) for values in widths.values()))  # room for the legend
    panel.set_xlabel("depth $L$")
    panel.set_ylabel(f"width for {100 * rtol:g} %")
    panel.legend(loc="upper left", frameon=False, fontsize=8)
    return fig


def stability(result: Any) -> Any:
    """The three quantities of the stability theorem: error, path and drift.

    Args:
        result: From `widelimit.stability`.

    Returns:
        The figure.
    """
    fig, panels = figure(1, 3)
    error, path, drift = panels[0]
    for i, n in enumerate(result.widths):
        colour = COLOURS[i % len(COLOURS)]
        relative = result.error[i] / result.error[i][:, :1]
        error.plot(result.steps, relative.mean(0), color=colour, label=f"$n={n}$")
    error.plot(result.steps, result.envelope, "k--", linewidth=1, label="bound")
    error.set_yscale("log")
    error.set_xlabel("step $t$")
    error.set_ylabel("$|e_t|/|e_0|$")
    error.legend()
    root = np.sqrt(result.path.shape[1])
    for panel, values, rate, name in (
        (path, result.path, result.path_rate, r"$\sum_j\Vert\theta_j-\theta_{j-1}\Vert$"),
        (drift, result.drift, result.drift_rate, r"$\sup_t\Vert\Theta_t-\Theta_0\Vert_F$"),
    ):
        spread = values.std(1, ddof=1) / root
        measured = result.widths, values.mean(1), spread, rate[0]
        power_law(panel, *measured, _exponent(*rate), COLOURS[0])
        panel.legend()
        panel.set_ylabel(name)
    return fig


def kernel_on_the_circle(angles: Any, limit: Any, samples: Any, panel: Any = None) -> Any:
    """Kernels of finite networks along the circle against the limit.

    Args:
        angles: Between a point and the first one, shape (points,).
        limit: The limiting kernel there, shape (points,).
        samples: Kernels of finite networks, shape (networks, points).
        panel: Axes to draw into; None makes a figure.

    Returns:
        The figure.
    """
    fig = None
    if panel is None:
        fig, panels = figure()
        panel = panels[0, 0]
    samples = np.atleast_2d(samples)
    panel.plot(angles, samples.T, color=COLOURS[5], alpha=0.25, linewidth=0.7)
    panel.plot(angles, samples.mean(0), color=COLOURS[0], label=f"mean of {len(samples)} networks")
    panel.plot(angles, limit, "--", color=COLOURS[1], label="infinite width")
    angle_axis(panel)
    panel.set_xlabel("angle")
    panel.set_ylabel("tangent kernel")
    panel.legend()
    return fig or panel.figure


def trained_networks(
    angles: Any, outputs: Any, x: Any, y: Any, panel: Any = None, **lines: Any
) -> Any:
    """Trained networks on the circle: each one, their mean, and the samples.

    Args:
        angles: Of the probe points, shape (points,).
        outputs: Of the networks, shape (networks, points).
        x: Angles of the training points.
        y: Their targets.
        panel: Axes to draw into; None makes a figure.
        **lines: Further curves by name, shape (points,), such as the limit's prediction.

    Returns:
        The figure.
    """
    fig = None
    if panel is None:
        fig, panels = figure()
        panel = panels[0, 0]
    outputs = np.atleast_2d(outputs)
    panel.plot(angles, outputs.T, color=COLOURS[5], alpha=0.3, linewidth=0.7)
    panel.plot(angles, outputs.mean(0), color=COLOURS[0], label=f"mean of {len(outputs)} networks")
    for i, (name, values) in enumerate(lines.items()):
        panel.plot(angles, values, "--", color=COLOURS[1 + i], label=name.replace("_", " "))
    panel.plot(x, y, "k.", markersize=7, label="samples")
    angle_axis(panel)
    panel.set_xlabel("angle")
    panel.legend()
    return fig or panel.figure


def ntk_ellipse(kernels: Any, limit: Any, labels: Any = None) -> Any:
    r"""The ellipse $z^\top\Theta_t^{-1}z=1$ of two points during training, a panel for each network.

    Args:
        kernels: For each network the kernels over time, each of shape (records, 2, 2).
        limit: The kernel of infinite width, shape (2, 2).
        labels: The title of each panel, e.g. the widths.

    Returns:
        The figure; light curves come first.
    """
    from widelimit.training import kernel_ellipse

    fig, panels = figure(1, len(kernels), width=2.6, sharex=True, sharey=True)
    target = kernel_ellipse(limit).outline()
    for i, (panel, series) in enumerate(zip(panels[0], kernels, strict=True)):
        curves = kernel_ellipse(series).outline()
        for t, curve in enumerate(curves):
            shade = 0.15 + 0.85 * (t + 1) / len(curves)
            panel.plot(*curve.T, color=COLOURS[0], alpha=shade, linewidth=0.8)
        panel.plot(*target.T, "--", color=COLOURS[1], label="infinite width")
        panel.set_aspect("equal")
        if labels is not None:
            panel.set_title(str(labels[i]))
    panels[0, 0].legend(loc="upper left")
    return fig
