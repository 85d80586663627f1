"""Figures of signal propagation."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from widelimit.analysis.signal import DepthEffect, PhaseDiagram, correlation_map, fixed_point
from widelimit.layers import Layer

from ._spectrum import LEGEND
from ._style import COLOURS, figure, pyplot


def phase_diagram(diagram: PhaseDiagram) -> Any:
    r"""The plane $(\sigma_w,\sigma_b)$: colours show $\chi_1$, the black line is the edge of chaos.

    Args:
        diagram: What `widelimit.signal.phase_diagram` returns, on a grid of at least 2 x 2.

    Returns:
        The figure.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> d = wl.signal.phase_diagram("tanh", np.linspace(0.5, 3, 8), np.linspace(0, 1, 6))
        >>> phase_diagram(d).axes[0].get_xlabel()
        'weights $\\sigma_w$'
    """
    if min(diagram.chi.shape) < 2:
        raise ValueError(f"A grid of at least 2 x 2 is needed, got {diagram.chi.shape}.")
    colours = pyplot().get_cmap("RdBu_r")
    fig, panels = figure(width=4.2, height=3.1)
    panel = panels[0, 0]
    panel.grid(visible=False)
    log = np.log10(np.clip(diagram.chi, 1e-3, 1e3))
    bound = float(np.clip(np.max(np.abs(log)), 0.1, 1.0))
    levels = np.linspace(-bound, bound, 21)
    image = panel.contourf(
        diagram.w_std, diagram.b_std, log, levels=levels, cmap=colours, extend="both"
    )
    if np.any(log < 0) and np.any(log > 0):
        panel.contour(
            diagram.w_std, diagram.b_std, log, levels=[0.0], colors="black", linewidths=1.6
        )
        for side, name in ((log < 0, "ordered"), (log > 0, "chaotic")):
            row, column = np.argwhere(side).mean(axis=0).round().astype(int)
            at = (diagram.w_std[column], diagram.b_std[row])
            panel.text(*at, name, ha="center", va="center", fontsize=9)
    bar: Any = fig.colorbar(
        image, ax=panel, ticks=np.round([-bound, -bound / 2, 0, bound / 2, bound], 2)
    )
    bar.set_label("$\\log_{10}\\chi_1$")
    panel.set(xlabel="weights $\\sigma_w$", ylabel="biases $\\sigma_b$")
    return fig


def correlation_maps(networks: Mapping[str, Layer]) -> Any:
    """Correlation maps with their stable fixed points marked, against the diagonal.

    Args:
        networks: Networks, each with one repeated block, by name.

    Returns:
        The figure.

    Example:
        >>> import widelimit as wl
        >>> fig = correlation_maps({"ReLU": wl.mlp(depth=3)})
        >>> len(fig.axes[0].lines)  # the diagonal, the map, the fixed point
        3
    """
    if not networks:
        raise ValueError("At least one network was expected, got none.")
    fig, panels = figure(width=3.4, height=3.1)
    panel = panels[0, 0]
    c = np.linspace(-1, 1, 201)
    panel.plot(c, c, color="0.6", lw=0.8, ls="--")
    for i, (name, net) in enumerate(networks.items()):
        colour = COLOURS[i % len(COLOURS)]
        panel.plot(c, correlation_map(net, c), color=colour, label=name)
        point = fixed_point(net).c
        if point is not None:
            panel.plot([point], [point], "o", color=colour, ms=5, clip_on=False)
    panel.set(xlabel="correlation before", ylabel="correlation after", xlim=(-1, 1))
    panel.set_aspect("equal")
    panel.legend(**LEGEND)
    return fig


def depth_effect(effects: Mapping[str, DepthEffect]) -> Any:
    """Kernel shapes at growing depth, one panel for each family of networks.

    Args:
        effects: What `widelimit.signal.depth_effect` returns, by name.

    Returns:
        The figure.

    Example:
        >>> import widelimit as wl
        >>> e = wl.signal.depth_effect(lambda l: wl.mlp(depth=l), [1, 5])
        >>> len(depth_effect({"MLP": e}).axes)
        1
    """
    if not effects:
        raise ValueError("At least one family was expected, got none.")
    fig, panels = figure(1, len(effects), width=3.2, height=2.7, sharey=True)
    colours = pyplot().get_cmap("viridis")
    for panel, (name, one) in zip(panels[0], effects.items(), strict=True):
        for i, (depth, row) in enumerate(zip(one.depths, one.shape, strict=True)):
            shade = colours(0.9 * i / max(1, len(one.depths) - 1))
            panel.plot(one.angles, row, color=shade, label=f"$L={depth}$")
        panel.set(title=name, xlabel="angle", xlim=(0, np.pi))
        panel.set_xticks([0, np.pi / 2, np.pi])
        panel.set_xticklabels(["0", "$\\pi/2$", "$\\pi$"])
    panels[0, 0].set_ylabel("kernel / peak")
    panels[0, -1].legend(**LEGEND)
    return fig
