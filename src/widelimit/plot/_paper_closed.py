"""The papers' figures in closed form."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._style import COLOURS, angle_axis, figure

_COLOUR = {
    "MLP": COLOURS[1],
    "ResNet 1": COLOURS[0],
    "ResNet 0.5": COLOURS[3],
    "ResNet 0.1": COLOURS[2],
    "ResNet 0.01": COLOURS[4],
    "Gaussian": COLOURS[6],
}
_LINE = {
    "MLP": "-",
    "ResNet 1": "--",
    "ResNet 0.5": "-.",
    "ResNet 0.1": "-",
    "ResNet 0.01": ":",
}


def look(name: str, index: int = 0) -> dict[str, Any]:
    """Colour and line of a network: the same in all figures."""
    colour = _COLOUR.get(name, COLOURS[index % len(COLOURS)])
    return {"color": colour, "linestyle": _LINE.get(name, "-")}


def words(name: str) -> str:
    """The name of a network in a legend."""
    return f"ResNet, $\\alpha$ = {name[7:]}" if name.startswith("ResNet ") else name


def target(b: np.ndarray) -> np.ndarray:
    """The function to be learnt."""
    return np.cos(b) / 2 + np.sin(4 * b)


def note(fig: Any, text: str) -> None:
    """A line below the panels that says how the figure was computed."""
    if text:
        fig.supxlabel(text[0].upper() + text[1:] + ".", fontsize=6.5, color="0.35")


def above(panel: Any, title: str | None = None, columns: int = 1, **options: Any) -> None:
    """A legend above the panel, where it covers nothing."""
    panel.legend(
        title=title,
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=columns,
        fontsize=7,
        title_fontsize=7,
        frameon=False,
        borderpad=0.1,
        handlelength=2.2,
        columnspacing=1.0,
        alignment="left",
        **options,
    )


def samples(panel: Any, b: Any, y: Any) -> None:
    """The training samples and the target."""
    dense = np.linspace(-np.pi, np.pi, 400)
    panel.plot(dense, target(dense), color="0.75", lw=0.9, zorder=0)
    panel.plot(b, y, "o", color="k", ms=3.5, zorder=5, clip_on=False)


def interpolation(result: Any, measure: str) -> Any:
    """Shapes (left) and interpolants with their measures; a row for each depth."""
    data = result.data
    cases = data["cases"]
    counts = list(next(iter(cases.values()))["samples"])
    fig, panels = figure(len(cases), 1 + len(counts), width=2.9, height=2.7)
    for row, (depth, case) in zip(panels, cases.items(), strict=True):
        for i, (name, shape) in enumerate(case["shapes"].items()):
            label = f"{words(name)}: {case['kink'][name]:.2g}"
            row[0].plot(data["angles"], shape, label=label, **look(name, i))
        row[0].set_ylabel(f"$\\Theta(\\Delta)/\\Theta(0)$, {depth.replace('=', ' = ')}")
        row[0].set_xlabel("angle $\\Delta$")
        above(row[0], "kink at $\\Delta$ = 0")
        angle_axis(row[0])
        for panel, count in zip(row[1:], counts, strict=True):
            _fits(panel, data["grid"], case["samples"][count], measure)
            panel.set_ylabel(f"{count} samples")
    note(fig, result.size)
    return fig


def _fits(panel: Any, grid: Any, case: Mapping[str, Any], measure: str) -> None:
    samples(panel, case["b"], case["y"])
    curves = case["curves"]
    for i, (name, curve) in enumerate(curves.items()):
        label = f"{words(name)}: {case[measure][name]:.4g}"
        panel.plot(grid, curve, label=label, lw=1.2, **look(name, i))
    angle_axis(panel)
    panel.set_xlabel("angle $b$")
    smaller = "$\\mu_{D2}$, smaller is smoother"
    above(panel, smaller if measure == "mu" else "$\\mu_G$, larger is smoother")


def gaussian(result: Any) -> Any:
    """The Gaussian kernel, its eigenvalues, its interpolants."""
    data = result.data
    fig, panels = figure(1, 2 + len(data["panels"]), width=2.5, height=2.4)
    shape, decay, *rest = panels[0]
    shape.plot(data["angles"], data["shape"], color="k")
    angle_axis(shape)
    shape.set_xlabel("angle $\\Delta$")
    shape.set_ylabel("$\\exp(\\cos\\Delta-1)$")
    shape.set_ylim(0, 1.05)
    decay.semilogy(data["degrees"], data["eigenvalues"], "o-", color="k", ms=3)
    decay.set_xlabel("harmonic $k$")
    decay.set_ylabel("eigenvalue $e^{-1}I_k(1)$")
    for panel, (count, case) in zip(rest, data["panels"].items(), strict=True):
        samples(panel, case["b"], case["y"])
        panel.plot(data["grid"], case["curve"], color=COLOURS[0], lw=1.3)
        angle_axis(panel)
        panel.set_xlabel("angle $b$")
        panel.set_title(f"{count} samples (grey: target)")
    note(fig, result.size)
    return fig


def transforms(result: Any) -> Any:
    """Magnitudes of the kernels' transforms and their ratio."""
    data = result.data
    fig, panels = figure(1, 2, width=3.4)
    left, right = panels[0]
    for i, (name, values) in enumerate(data["magnitude"].items()):
        style = look(name, i) | {"linestyle": "-"}
        left.semilogy(data["k"], values, lw=1.1, label=words(name), **style)
    left.set_xlabel("index $k$ of the transform")
    left.set_ylabel("magnitude")
    left.legend(fontsize=8, frameon=False)
    first, second = data["magnitude"].values()
    k = data["k"][2:]
    ratio = (first / second)[2:]
    for parity, label, mark in ((0, "even $k$", "o"), (1, "odd $k$", "s")):
        right.semilogy(k[parity::2], ratio[parity::2], mark, ms=2.5, label=label)
    right.set_xlabel("index $k$ of the transform")
    right.set_ylabel("MLP / ResNet")
    right.legend(fontsize=8, frameon=False)
    note(fig, result.size)
    return fig


def table_of_mu(result: Any) -> Any:
    """Our values beside the published ones, and the spread over random sample sets."""
    data = result.data
    cases = data["ours"]
    fig, panels = figure(1, 2, width=3.6, height=2.9)
    left, right = panels[0]
    names = list(next(iter(cases.values())))
    for i, (case, values) in enumerate(cases.items()):
        mus = [values[n] for n in names]
        left.semilogy(range(len(names)), mus, "-", color=COLOURS[i], label=case.replace("=", " = "))
        known = data["published"].get(case, {})
        at = [j for j, n in enumerate(names) if n in known]
        left.semilogy(at, [known[names[j]] for j in at], "o", ms=6, mfc="none", color=COLOURS[i])
    left.set_xticks(range(len(names)), [n.replace("ResNet ", "$\\alpha$ = ") for n in names])
    left.set_ylabel("$\\mu_{D2}$, smaller is smoother")
    above(left, "lines: ours; circles: published", 2)
    right.boxplot(
        list(data["random"].values()),
        showfliers=False,
        medianprops={"color": COLOURS[1]},
        tick_labels=[n.replace("ResNet ", "$\\alpha$ = ") for n in data["random"]],
    )
    right.set_ylabel("$\\mu_{D2}$")
    right.set_title("15 random samples, L = 7")
    note(fig, result.size)
    return fig


def sphere(result: Any) -> Any:
    """Interpolants on the sphere, as maps."""
    data = result.data
    maps = data["maps"]
    names = list(next(iter(maps.values())))
    image: Any = None
    fig, panels = figure(len(maps), 1 + len(names), width=2.4, height=1.9, sharex=True, sharey=True)
    for row, (grid, by) in zip(panels, maps.items(), strict=True):
        for panel, (title, values) in zip(
            row, [("target", data["target"]), *((n, by[n]) for n in names)], strict=True
        ):
            image = panel.pcolormesh(
                data["b"], data["xi"], values.T, cmap="RdBu_r", vmin=-1.5, vmax=1.5, rasterized=True
            )
            panel.grid(False)
            text = (
                title
                if title == "target"
                else f"{words(title)}\n$\\mu$ = {data['mu'][grid][title]:.4g}"
            )
            panel.set_title(text, fontsize=8)
            panel.set_xticks([-np.pi, 0, np.pi], ["$-\\pi$", "0", "$\\pi$"])
            panel.set_yticks([0, np.pi / 2], ["0", "$\\pi/2$"])
        row[0].set_ylabel(f"$\\xi$ ({grid} samples)")
    for panel in panels[-1]:
        panel.set_xlabel("$b$")
    fig.colorbar(image, ax=panels, shrink=0.7)
    note(fig, result.size)
    return fig


def shares(result: Any) -> Any:
    """How often one network is smoother than another."""
    data = result.data["shares"]
    cases = list(next(iter(data.values())))
    fig, panels = figure(1, 2, width=3.9, height=2.9, sharey=True)
    for panel, measure, title in zip(
        panels[0], ("mu_D2", "mu_G"), ("$\\mu_{D2}$", "$\\mu_G$, floor $10^{-8}$"), strict=True
    ):
        for i, (pair, by) in enumerate(data.items()):
            a, b = pair.split(" smoother than ")
            label = f"{words(a)} smoother than {words(b)}"
            values = [100 * by[c][measure] for c in cases]
            panel.plot(range(len(cases)), values, "os^Dv"[i] + "-", ms=4, lw=1, label=label)
        panel.axhline(50, color="0.6", lw=0.8, ls=":")
        ticks = [c.replace("L=", "L ").replace(", n=", "\n") for c in cases]
        panel.set_xticks(range(len(cases)), ticks, fontsize=7)
        panel.set_xlabel("depth, number of samples")
        panel.set_title(f"by {title}")
        panel.set_ylim(-4, 104)
    panels[0][0].set_ylabel("% of random sample sets")
    handles, labels = panels[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper left", ncols=2, fontsize=7, frameon=False)
    note(fig, result.size)
    return fig


def erf(result: Any) -> Any:
    """Kernels and interpolants of erf networks."""
    data = result.data
    shown = [k for k in data["curves"] if not k.endswith("(equispaced)")]
    columns = 1 + len(shown) // len(data["shapes"])
    fig, panels = figure(len(data["shapes"]), columns, width=2.9, height=2.8)
    for row, (depth, shapes) in zip(panels, data["shapes"].items(), strict=True):
        for i, (name, shape) in enumerate(shapes.items()):
            row[0].plot(data["angles"], shape, label=words(name), **look(name, i))
        row[0].set_ylabel(f"$\\Theta(\\Delta)/\\Theta(0)$, {depth.replace('=', ' = ')}")
        row[0].set_xlabel("angle $\\Delta$")
        angle_axis(row[0])
        above(row[0])
        keys = [k for k in shown if k.startswith(f"{depth},")]
        for panel, key in zip(row[1:], keys, strict=True):
            case = data["curves"][key]
            _fits(panel, data["grid"], case | {"mu": data["mu"][key]}, "mu")
            panel.set_ylabel(key.split(", ")[1])
    note(fig, result.size)
    return fig


def measures(result: Any) -> Any:
    """The measures against the number of grid points."""
    data = result.data
    fig, panels = figure(1, 3, width=2.6)
    titles = {
        "mu_D2": "$\\mu_{D2}$",
        "mu_G floored": "$\\mu_G$, floor $10^{-8}$",
        "mu_G published": "$\\mu_G$ by float32 FFT",
    }
    for panel, (measure, by) in zip(panels[0], data["values"].items(), strict=True):
        for i, (name, values) in enumerate(by.items()):
            panel.loglog(
                data["points"], values, marker="o", ms=3, label=words(name), **look(name, i)
            )
        panel.set_title(titles[measure])
        panel.set_xlabel("grid points $N$")
    handles, labels = panels[0][0].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=7, frameon=False)
    note(fig, result.size)
    return fig


def bounds(result: Any) -> Any:
    """Bounds, their ratio, and how far networks stay below them."""
    data = result.data
    fig, panels = figure(1, 3, width=2.7)
    left, middle, right = panels[0]
    for i, (name, values) in enumerate(data["bounds"].items()):
        left.semilogy(data["depths"], values, label=words(name), **look(name, i))
    left.set_ylabel("bound of $\\|\\partial f/\\partial x\\|$")
    left.legend(fontsize=7, frameon=False)
    middle.plot(data["depths"], data["threshold"], "o-", ms=3, color=COLOURS[6])
    middle.fill_between(data["depths"], 0, data["threshold"], color=COLOURS[2], alpha=0.2, lw=0)
    middle.axhline(2 / 9, color="0.5", lw=0.8, ls="--")
    middle.text(data["depths"][-1], 2 / 9, "2/9", ha="right", va="bottom", fontsize=7)
    middle.set_ylabel("$\\alpha$")
    middle.set_title("shaded: ResNet's bound is smaller")
    middle.set_ylim(0, 0.26)
    for i, (name, values) in enumerate(data["measured_over_bound"].items()):
        right.semilogy(data["measured_depths"], values, marker="o", ms=4, **look(name, i))
    right.set_title("measured norm / bound")
    for panel in panels[0]:
        panel.set_xlabel("depth $L$")
    note(fig, result.size)
    return fig


def digits(result: Any) -> Any:
    """Error rates against depth, a panel for each number of training images."""
    data = result.data
    sizes = [int(n) for n in data["sizes"]]
    fig, panels = figure(1, len(sizes), width=3.2, height=2.6)
    for panel, size in zip(panels[0], sizes, strict=True):
        cases = [data["accuracy"][f"N = {size}, L = {int(depth)}"] for depth in data["depths"]]
        for i, name in enumerate(cases[0]):
            rates = [100 * (1 - case[name]) for case in cases]
            means = [r.mean() for r in rates]
            errors = [r.std(ddof=1) / np.sqrt(len(r)) if len(r) > 1 else 0.0 for r in rates]
            style = look(name, i)
            panel.errorbar(
                data["depths"], means, yerr=errors, fmt="o", capsize=2, label=words(name), **style
            )
        panel.set_xlabel("depth $L$")
        panel.set_title(f"{size} training images")
        panel.set_ylim(bottom=0)
    panels[0][0].set_ylabel("errors, %")
    panels[0][-1].legend(fontsize=7, frameon=False)
    note(fig, result.size)
    return fig
