"""What the figures of the papers have in common: the look of a network, samples, notes, legends."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from widelimit.plot import COLOURS, angle_axis, plain_ticks, power_law

from .._setting import target

_COLOUR = {
    "MLP": COLOURS[1],
    "ResNet 1": COLOURS[0],
    "ResNet 0.5": COLOURS[3],
    "ResNet 0.1": COLOURS[2],
    "ResNet 0.01": COLOURS[4],
    "Gaussian": COLOURS[6],
}
_LINE = {"ResNet 1": "--", "ResNet 0.5": "-.", "ResNet 0.01": ":"}


def look(name: str, index: int = 0) -> dict[str, Any]:
    """Colour and line of a network: the same in all figures."""
    colour = _COLOUR.get(name, COLOURS[index % len(COLOURS)])
    return {"color": colour, "linestyle": _LINE.get(name, "-")}


def words(name: str) -> str:
    """The name of a network in a legend."""
    return f"ResNet, $\\alpha$ = {name[7:]}" if name.startswith("ResNet ") else name


def above(panel: Any, title: str | None = None, columns: int = 1) -> None:
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
    )


def inside(panel: Any, size: int = 8) -> None:
    """A legend inside the panel."""
    panel.legend(fontsize=size, frameon=False)


def shared(fig: Any, panel: Any, where: str, columns: int) -> None:
    """The legend of one panel for the whole figure."""
    handles, labels = panel.get_legend_handles_labels()
    fig.legend(
        handles, labels, loc=f"outside upper {where}", ncols=columns, fontsize=7, frameon=False
    )


def circle(panel: Any, what: str = "b") -> None:
    """A horizontal axis of angles."""
    angle_axis(panel)
    panel.set_xlabel(f"angle ${what}$")


def samples(panel: Any, case: Mapping[str, Any]) -> None:
    """The training samples and the target, over the angle b."""
    dense = np.linspace(-np.pi, np.pi, 400)
    panel.plot(dense, target(dense), color="0.75", lw=0.9, zorder=0)
    panel.plot(case["b"], case["y"], "o", color="k", ms=3.5, zorder=5, clip_on=False)
    circle(panel)


def lines(
    draw: Callable[..., Any],
    x: Any,
    by_name: Mapping[str, Any],
    numbers: Mapping[str, str] | None = None,
    **style: Any,
) -> None:
    """A line for each network.

    Args:
        draw: `panel.plot`, `panel.semilogy` or `panel.loglog`.
        x: Shared by all lines.
        by_name: Network to values.
        numbers: Network to what follows its name in the legend.
        **style: Of the lines, where it differs from `look`.
    """
    for i, (name, values) in enumerate(by_name.items()):
        label = words(name) if numbers is None else f"{words(name)}: {numbers[name]}"
        draw(x, values, label=label, **look(name, i) | style)


def shapes(panel: Any, angles: Any, depth: str, *by_name: Mapping[str, Any]) -> None:
    """Kernels per unit peak of one depth ("L=5"), and what follows their names."""
    lines(panel.plot, angles, *by_name)
    panel.set_ylabel(f"$\\Theta(\\Delta)/\\Theta(0)$, {depth.replace('=', ' = ')}")
    circle(panel, "\\Delta")


def fits(panel: Any, grid: Any, case: Mapping[str, Any]) -> None:
    """Interpolants, with the measures of each in the legend: both, where both are known."""
    samples(panel, case)
    values = {name: f"{value:.4g}" for name, value in case["mu"].items()}
    title = "$\\mu_{D2}$ (smaller is smoother)"
    if "mu_gauss" in case:
        values = {name: f"{v}; {case['mu_gauss'][name]:.2g}" for name, v in values.items()}
        title = "$\\mu_{D2}$ (smaller is smoother); $\\mu_G$ (larger)"
    lines(panel.plot, grid, case["curves"], values, lw=1.2)
    above(panel, title)


def power(panel: Any, n: Any, measured: tuple[Any, Any, float], label: str, colour: str) -> None:
    """Values, standard errors and fitted power against the width, whose values are the ticks."""
    values, stderr, rate = measured
    power_law(panel, n, values, stderr, rate, f"{label}: $n^{{{rate:.2f}}}$", colour)
    panel.set_xticks(n, [str(int(v)) for v in n])
    panel.set_xticks([], minor=True)
    plain_ticks(panel.yaxis)
