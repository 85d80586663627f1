"""The Jacobian bounds of the MLP and the ResNet, and what networks really do."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import bounds, smoothness
from widelimit.finite import finite
from widelimit.plot import COLOURS, figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Setting
from ._panels import inside, lines

_CLAIMS = (
    ("ResNet 0.1", "With alpha = 0.1 the ResNet's bound is below the MLP's for any depth.", 1),
    ("ResNet 0.1", "With alpha = 0.1 the ResNet's bound is below the MLP's for L >= 3.", 3),
    ("ResNet 1", "With alpha = 1 the ResNet's bound is below the MLP's.", 1),
)


def _draw(result: Result) -> Any:
    """Bounds, their ratio, and how far networks stay below them."""
    data = result.data
    depths, threshold = data["depths"], data["threshold"]
    fig, ((left, middle, right),) = figure(1, 3, width=2.7)
    lines(left.semilogy, depths, data["bounds"])
    left.set_ylabel("bound of $\\|\\partial f/\\partial x\\|$")
    inside(left, 7)
    middle.plot(depths, threshold, "o-", ms=3, color=COLOURS[6])
    middle.fill_between(depths, 0, threshold, color=COLOURS[2], alpha=0.2, lw=0)
    middle.axhline(2 / 9, color="0.5", lw=0.8, ls="--")
    middle.text(depths[-1], 2 / 9, "2/9", ha="right", va="bottom", fontsize=7)
    middle.set_ylabel("$\\alpha$")
    middle.set_title("shaded: ResNet's bound is smaller")
    middle.set_ylim(0, 0.26)
    measured = data["measured_over_bound"]
    lines(right.semilogy, data["measured_depths"], measured, marker="o", ms=4)
    right.set_title("measured norm / bound")
    for panel in (left, middle, right):
        panel.set_xlabel("depth $L$")
    return fig


@experiment(
    name="bounds",
    title="Bounds of the input-output Jacobian",
    source=f"{PAPER}: equations 16 to 21; reading-group slides",
    seconds=(4, 15),
    full={"measured_width": 2000},
    draws=_draw,
    takes={
        "depths": (1, 2, 3, 4, 5, 7, 10, 15, 20),
        "alphas": (1.0, 0.1, 0.01),
        "activation": "relu",
    },
    ignores=("samples",),
    order=16,
    caption=(
        "Left: upper bounds of how fast the output can change with the input, growing "
        r"exponentially with depth. Middle: the largest $\alpha$ for which the ResNet's bound is "
        "below the MLP's; it approaches $2/9$ and is 0 at $L=1$. Right: real networks stay orders "
        "of magnitude below their bounds, so the bounds alone decide little."
    ),
)
def jacobian_bounds(
    s: Setting,
    *,
    width: int = 2000,
    measured_width: int = 256,
    measured_depths: Sequence[int] = (1, 5),
) -> Found:
    r"""Bounds of $\|\partial f/\partial x\|$, their ratio to the MLP's, the threshold for $\alpha$, and measured norms.

    Args:
        s: The setting.
        width: n in the bounds (the ratio does not depend on it).
        measured_width: Of the finite networks whose norms are measured.
        measured_depths: Of those networks.
    """
    table: dict[str, list[float]] = {}
    for depth in s.depths:
        for name, net in s.networks(depth).items():
            bound = float(bounds.jacobian(net, width=width, input_dim=2))
            table.setdefault(name, []).append(bound)
    ratios = {n: np.divide(v, table["MLP"]) for n, v in table.items() if n != "MLP"}
    threshold = [bounds.alpha_threshold(depth, activation=s.activation) for depth in s.depths]
    norms = _measured(s, measured_width, measured_depths)
    rows = tuple(zip(s.depths, *table.values(), *ratios.values(), threshold, strict=True))
    columns = ("L", *(f"bound, {n}" for n in table), *(f"ratio, {n}" for n in ratios), "threshold")
    data = {
        "depths": list(s.depths),
        "bounds": table,
        "ratios": ratios,
        "threshold": threshold,
        "measured_depths": list(measured_depths),
        "measured_over_bound": norms,
    }
    size = f"bounds at width {width}; norms measured at width {measured_width}, one network each"
    tables = (Table("Bounds of the input-output Jacobian", columns, rows),)
    return Found(data, tables, _verdicts(s.depths, ratios, norms), size)


def _measured(s: Setting, width: int, depths: Sequence[int]) -> dict[str, list[float]]:
    """The largest norm on the circle over the bound, for one network of each kind and depth."""
    around = smoothness.circle_points(np.linspace(-np.pi, np.pi, 64, endpoint=False))
    counter = s.counter(len(depths) * (1 + len(s.alphas)))
    norms: dict[str, list[float]] = {}
    for depth in depths:
        for name, net in s.networks(depth).items():
            network = finite(net, width)
            params = network.init(s.seed, 2)
            found = bounds.jacobian_norms(network.apply, params, around.astype(np.float32))
            bound = float(bounds.jacobian(net, width=width, input_dim=2))
            norms.setdefault(name, []).append(found.maximum / bound)
            counter.add()
    return norms


def _verdicts(
    depths: Sequence[int], ratios: dict[str, np.ndarray], norms: dict[str, list[float]]
) -> tuple[Verdict, ...]:
    found = []
    for name, claim, smallest in _CLAIMS:
        if name in ratios:
            pairs = [(d, r) for d, r in zip(depths, ratios[name], strict=True) if d >= smallest]
            criterion = "The ratio of the bounds is at most 1 at each depth."
            text = "ratios " + ", ".join(f"{r:.3g} (L = {d})" for d, r in pairs[:5])
            found.append(judge(claim, criterion, {f"L = {d}": r <= 1 for d, r in pairs}, text))
    worst = max(max(v) for v in norms.values())
    holds = judge(
        "The bounds hold for networks at initialisation.",
        "The largest measured norm is below the bound, for each network.",
        {f"{n}, no. {i + 1}": r <= 1 for n, v in norms.items() for i, r in enumerate(v)},
        f"measured over bound: at most {worst:.3g}",
    )
    return (*found, holds)
