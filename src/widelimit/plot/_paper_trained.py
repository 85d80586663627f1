"""The papers' figures of finite networks and their training."""

from pathlib import Path
from typing import Any

import numpy as np

from ._paper_closed import above, look, note, samples, words
from ._style import COLOURS, angle_axis, figure, pyplot


def finite_and_limit(result: Any) -> Any:
    """Empirical kernels, and trained networks against the closed form."""
    data = result.data
    kernel, panels_of = data["kernel"], data["panels"]
    fig, panels = figure(1, 1 + len(panels_of), width=3.0, height=2.8)
    first, *rest = panels[0]
    mean, std = kernel["mean"], kernel["std"]
    first.fill_between(kernel["angles"], mean - std, mean + std, color=COLOURS[5], alpha=0.4, lw=0)
    first.plot(kernel["angles"], mean, color=COLOURS[0], label="mean ± std of networks")
    first.plot(kernel["angles"], kernel["limit"], "--", color=COLOURS[1], label="infinite width")
    first.set_ylabel("tangent kernel")
    above(first)
    angle_axis(first)
    first.set_xlabel("angle $\\Delta$")
    for panel, (count, case) in zip(rest, panels_of.items(), strict=True):
        samples(panel, case["b"], case["y"])
        panel.plot(kernel["angles"], case["networks"].T, color=COLOURS[5], lw=0.7, alpha=0.7)
        panel.plot(
            kernel["angles"], case["networks"].mean(0), color=COLOURS[0], label="mean of networks"
        )
        panel.plot(
            kernel["angles"],
            case["limit_at_end"],
            ":",
            color=COLOURS[2],
            lw=2,
            label=f"closed form, {int(case['steps'])} steps of {case['rate']:g}",
        )
        panel.plot(
            kernel["angles"], case["limit"], "--", color=COLOURS[1], label="closed form, for ever"
        )
        panel.set_ylabel(f"{count} samples")
        panel.set_xlabel("angle $b$")
        angle_axis(panel)
        above(panel)
    note(fig, result.size)
    return fig


def outside_the_regime(result: Any) -> Any:
    """Mean and spread of the trained networks in each panel."""
    data = result.data
    fig, panels = figure(1, len(data["panels"]), width=3.0, height=2.8)
    for panel, (key, case) in zip(panels[0], data["panels"].items(), strict=True):
        samples(panel, case["b"], case["y"])
        for i, (name, curves) in enumerate(case["curves"].items()):
            label = f"{words(name)}: {np.mean(case['mu'][name]):.3g}"
            _band(panel, data["grid"], curves, label, look(name, i))
        angle_axis(panel)
        panel.set_xlabel("angle $b$")
        panel.set_ylabel(key)
        above(panel, "mean of $\\mu_{D2}$, smaller is smoother")
    note(fig, result.size)
    return fig


def _band(panel: Any, grid: Any, curves: Any, label: str, style: dict[str, Any]) -> None:
    mean, std = curves.mean(0), curves.std(0)
    panel.fill_between(grid, mean - std, mean + std, color=style["color"], alpha=0.18, lw=0)
    panel.plot(grid, mean, lw=1.3, label=label, **style)


def adam_together(result: Any) -> Any:
    """All networks of Figure 8 or 9 in one panel."""
    data = result.data
    fig, panels = figure(1, 1, width=4.6, height=3.2)
    panel = panels[0][0]
    samples(panel, data["b"], data["y"])
    for i, (name, curves) in enumerate(data["curves"].items()):
        _band(
            panel,
            data["grid"],
            curves,
            f"{words(name)}: {np.mean(data['mu'][name]):.3g}",
            look(name, i),
        )
    angle_axis(panel)
    panel.set_xlabel("angle $b$")
    panel.set_ylabel("f")
    above(panel, "mean roughness, smaller is smoother", 3)
    note(fig, _broken(result.size))
    return fig


def _broken(text: str) -> str:
    return text.replace("; ", ";\n")


def adam_apart(result: Any) -> Any:
    """One panel for each network of Figure 8 or 9, as in the talk."""
    data = result.data
    fig, panels = figure(1, len(data["curves"]), width=2.8, height=2.5, sharey=True)
    for i, (panel, (name, curves)) in enumerate(
        zip(panels[0], data["curves"].items(), strict=True)
    ):
        samples(panel, data["b"], data["y"])
        style = look(name, i) | {"linestyle": "-"}
        panel.plot(data["grid"], curves.T, lw=0.8, alpha=0.8, **style)
        angle_axis(panel)
        panel.set_xlabel("angle $b$")
        panel.set_title(f"{words(name)}: {np.mean(data['mu'][name]):.3g}")
    panels[0][0].set_ylabel("f")
    note(fig, result.size)
    return fig


def convergence(result: Any) -> Any:
    """Distances to the limit against the width."""
    data = result.data
    fig, panels = figure(1, 1, width=4.0, height=2.9)
    panel = panels[0][0]
    n = data["widths"]
    for i, (name, curve) in enumerate(data["curves"].items()):
        _power(panel, n, curve["error"], curve["stderr"], curve["rate"], words(name), look(name, i))
    panel.set_xlabel("width $n$")
    panel.set_ylabel("$\\|\\hat\\Theta-\\Theta\\|_F$")
    _width_ticks(panel, n)
    panel.legend(fontsize=8, frameon=False)
    note(fig, result.size)
    return fig


def _power(
    panel: Any, n: Any, values: Any, error: Any, rate: float, label: str, style: Any
) -> None:
    colour = style["color"]
    panel.errorbar(n, values, yerr=error, fmt="o", color=colour, ms=4, capsize=2)
    middle = np.exp(np.mean(np.log(values)) - rate * np.mean(np.log(n)))
    text = f"{label}: $n^{{{rate:.2f}}}$"
    panel.plot(n, middle * np.asarray(n) ** rate, color=colour, lw=1.1, label=text)
    panel.set_xscale("log")
    panel.set_yscale("log")


def _width_ticks(panel: Any, n: Any) -> None:
    panel.set_xticks(n, [str(int(v)) for v in n])
    panel.set_xticks([], minor=True)


def descent(result: Any) -> Any:
    """The network and its limit at several steps."""
    data = result.data
    fig, panels = figure(1, len(data["steps"]), width=2.0, height=2.2, sharey=True)
    for panel, step, f, g in zip(
        panels[0], data["steps"], data["network"], data["limit"], strict=True
    ):
        samples(panel, data["b"], data["y"])
        panel.plot(data["grid"], f, color=COLOURS[0], label="network")
        panel.plot(data["grid"], g, "--", color=COLOURS[1], label="closed form")
        angle_axis(panel)
        panel.set_xticks([-np.pi, 0, np.pi], ["$-\\pi$", "0", "$\\pi$"])
        panel.set_title(f"step {int(step)}")
        panel.set_xlabel("angle $b$")
    handles, labels = panels[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper right", ncols=2, fontsize=7, frameon=False)
    note(fig, result.size)
    return fig


def stability(result: Any) -> Any:
    """Error, path and drift: a row for each activation."""
    found = result.data["found"]
    fig, panels = figure(len(found), 3, width=2.8, height=2.4)
    for row, (name, data) in zip(panels, found.items(), strict=True):
        error, path, drift = row
        for i, n in enumerate(data["widths"]):
            relative = (data["error"][i] / data["error"][i][:, :1]).mean(0)
            error.semilogy(data["steps"], relative, color=COLOURS[i], label=f"$n$ = {int(n)}")
        error.semilogy(data["steps"], data["envelope"], "k--", lw=1, label="bound")
        error.set_ylabel(f"{name}: $|e_t|/|e_0|$")
        error.set_xlabel("step")
        above(error, columns=3)
        root = np.sqrt(data["path"].shape[1])
        for panel, key, text in (
            (path, "path", "path of the weights"),
            (drift, "drift", "drift of the kernel"),
        ):
            values = data[key]
            spread = values.std(1, ddof=1) / root
            rate = float(data[f"{key}_rate"][0])
            style = {"color": COLOURS[0]}
            _power(panel, data["widths"], values.mean(1), spread, rate, text, style)
            _width_ticks(panel, data["widths"])
            panel.set_xlabel("width $n$")
            panel.legend(fontsize=7, frameon=False)
        path.set_ylim(path.get_ylim()[0] * 0.7, path.get_ylim()[1] * 1.4)
    note(fig, result.size)
    return fig


def ellipse(result: Any) -> Any:
    """The two images and the ellipses over time."""
    data = result.data
    fig, panels = figure(1, 1 + len(data["kernels"]), width=2.3, height=2.5)
    _images(panels[0][0], data["images"])
    target = _outline(data["limit"])
    reach = 1.15 * max(
        np.abs(_outline(k)).max() for k in (*data["kernels"].values(), data["limit"])
    )
    for panel, (n, series) in zip(panels[0][1:], data["kernels"].items(), strict=True):
        for t, curve in enumerate(_outline(series)):
            shade = 0.15 + 0.85 * (t + 1) / len(series)
            panel.plot(*curve.T, color=COLOURS[0], alpha=shade, lw=0.7)
        panel.plot(*target.T, "--", color=COLOURS[1], lw=1.4)
        _frame(panel, n, reach)
    note(fig, f"{result.size}; darker is later, dashed: infinite width")
    return fig


def _outline(theta: Any) -> np.ndarray:
    from widelimit.training import kernel_ellipse

    return kernel_ellipse(theta).outline()


def _images(panel: Any, images: np.ndarray) -> None:
    side = int(np.sqrt(images.shape[1]))
    panel.axis("off")
    if side * side == images.shape[1]:
        gap = np.zeros((1, side))
        stack = np.concatenate([images[0].reshape(side, side), gap, images[1].reshape(side, side)])
        panel.imshow(stack, cmap="gray_r", interpolation="nearest")
        panel.set_title("targets +1 and -1")


def _frame(panel: Any, n: Any, reach: float) -> None:
    panel.set_aspect("equal")
    panel.set_xlim(-reach, reach)
    panel.set_ylim(-reach, reach)
    panel.set_title(f"width {n}")


def ellipse_animation(result: Any, path: Path) -> None:
    """The ellipses as a GIF."""
    from matplotlib.animation import FuncAnimation, PillowWriter

    data = result.data
    fig, panels = figure(1, len(data["kernels"]), width=2.4, height=2.7)
    reach = 1.15 * max(
        np.abs(_outline(k)).max() for k in (*data["kernels"].values(), data["limit"])
    )
    lines = []
    for panel, (n, series) in zip(panels[0], data["kernels"].items(), strict=True):
        panel.plot(*_outline(data["limit"]).T, "--", color=COLOURS[1], lw=1.4)
        panel.plot(*_outline(series[0]).T, color="0.7", lw=1)
        lines.append(panel.plot([], [], color=COLOURS[0], lw=1.8)[0])
        _frame(panel, n, reach)
    title = fig.suptitle(" ", fontsize=9)

    def show(frame: int) -> Any:
        for line, series in zip(lines, data["kernels"].values(), strict=True):
            line.set_data(*_outline(series[frame]).T)
        step = int(data["steps"][frame])
        title.set_text(f"step {step} (grey: start, dashed: infinite width)")
        return lines

    frames = FuncAnimation(fig, show, frames=len(data["steps"]), blit=False)
    frames.save(path, writer=PillowWriter(fps=10), dpi=90)
    pyplot().close(fig)
