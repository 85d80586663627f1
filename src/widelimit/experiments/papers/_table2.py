"""The measure in two dimensions: interpolants on the sphere."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.plot import figure
from widelimit.regression import ridge

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, by_case, falling, judge
from .._setting import JITTER, Setting, target
from ._panels import words

GRID = (256, 128)


def _draw(result: Result) -> Any:
    """Interpolants on the sphere, as maps."""
    data, maps = result.data, result.data["maps"]
    columns = 1 + len(next(iter(maps.values())))
    image: Any = None
    fig, panels = figure(len(maps), columns, width=2.4, height=1.9, sharex=True, sharey=True)
    for row, (grid, by) in zip(panels, maps.items(), strict=True):
        mu = {n: f"{v:.4g}" if v < 1000 else f"{v:.0f}" for n, v in data["mu"][grid].items()}
        titles = {n: f"{words(n)}\n$\\mu_{{D2}}$ = {mu[n]}" for n in by}
        for panel, (name, values) in zip(
            row, [("target", data["target"]), *by.items()], strict=True
        ):
            image = panel.pcolormesh(
                data["b"], data["xi"], values.T, cmap="RdBu_r", vmin=-1.5, vmax=1.5, rasterized=True
            )
            panel.grid(False)
            panel.set_title(titles.get(name, name), fontsize=8)
            panel.set_xticks([-np.pi, 0, np.pi], ["$-\\pi$", "0", "$\\pi$"])
            panel.set_yticks([0, np.pi / 2], ["0", "$\\pi/2$"])
        row[0].set_ylabel(f"$\\xi$ ({grid} samples)")
    for panel in panels[-1]:
        panel.set_xlabel("$b$")
    fig.colorbar(image, ax=panels, shrink=0.7)
    return fig


@experiment(
    title="Table of mu in two dimensions",
    source=f"{PAPER}: published version, experiment on the sphere",
    seconds=(5, 15),
    draws=_draw,
    takes={"depth": 15, "alphas": (1.0, 0.1), "activation": "relu"},
    ignores=("samples", "seed"),
    order=11,
    caption=(
        "The sphere unrolled: colour is the function's value, rows are grids of samples. The MLP "
        "raises a narrow bump at each sample and falls back to zero between them; the ResNet with "
        r"$\alpha=0.1$ joins them to the bands of the target (left)."
    ),
)
def table2(s: Setting, *, grids: Sequence[tuple[int, int]] = ((6, 3), (10, 5))) -> Found:
    r"""The mixed second-derivative measure of $(\frac12\cos b+\sin4b)\sin\xi$ learnt on the sphere.

    Args:
        s: The setting; samples and seed are without effect, the grids are the authors'.
        grids: Samples along b in $[-\pi,\pi]$ and $\xi$ in $[0,\pi]$, ends included.
    """
    nets = s.networks()
    counter = s.counter(len(grids) * len(nets))
    learnt = lambda b, xi: np.outer(target(b), np.sin(xi))
    b = -np.pi + 2 * np.pi * np.arange(GRID[0]) / GRID[0]
    xi = np.pi * np.arange(GRID[1]) / GRID[1]
    dense = smoothness.sphere_points(b, xi)
    maps, mus = {}, {}
    for grid in grids:
        where = np.linspace(-np.pi, np.pi, grid[0]), np.linspace(0, np.pi, grid[1])
        x, y = smoothness.sphere_points(*where), learnt(*where).ravel()
        key = f"{grid[0]} x {grid[1]}"
        maps[key], mus[key] = {}, {}
        for name, net in nets.items():
            values = ridge(net, x, y, JITTER).predict(dense).reshape(GRID)
            mus[key][name] = float(smoothness.second_derivative(values, check=False))
            maps[key][name] = values[::4, ::4]
            counter.add()
    verdict = judge(
        "In two dimensions, too, ResNets interpolate more smoothly, the more so the smaller alpha.",
        "mu_D2 falls from the MLP to the smallest alpha on each grid of samples.",
        {f"{key} samples": falling(mu.values()) for key, mu in mus.items()},
        by_case({key: mu.values() for key, mu in mus.items()}),
    )
    some = {"b": b[::4], "xi": xi[::4], "target": learnt(b[::4], xi[::4])}
    title = f"Mixed measure on a grid of {GRID[0]} x {GRID[1]}, L = {s.depth}, smaller is smoother"
    table = Table(title, ("samples", *nets), tuple((k, *mu.values()) for k, mu in mus.items()))
    size = "closed form; grids of samples with both ends, as in the papers' code"
    return Found(some | {"maps": maps, "mu": mus}, (table,), (verdict,), size)
