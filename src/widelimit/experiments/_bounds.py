"""The Jacobian bounds of the MLP and the ResNet, and what networks really do."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import bounds, smoothness
from widelimit.finite import finite

from ._result import Progress, Result, Table, judge
from ._setting import networks


def jacobian_bounds(
    *,
    depths: Sequence[int] = (1, 2, 3, 4, 5, 7, 10, 15, 20),
    alphas: Sequence[float] = (1.0, 0.1, 0.01),
    width: int = 2000,
    measured_width: int = 256,
    measured_depths: Sequence[int] = (1, 5),
    activation: Any = "relu",
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    r"""Bounds of $\|\partial f/\partial x\|$, their ratio to the MLP's, the threshold for $\alpha$, and measured norms.

    Args:
        depths: L.
        alphas: The attenuations.
        width: n in the bounds (the ratio does not depend on it).
        measured_width: Of the finite networks whose norms are measured.
        measured_depths: Of those networks.
        activation: Of all networks.
        samples: Without effect; every experiment takes it.
        seed: Of the finite networks.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), equations 16 to 21.
    """
    table: dict[str, list[float]] = {}
    for depth in depths:
        for name, net in networks(depth, alphas, activation).items():
            bound = float(bounds.jacobian(net, width=width, input_dim=2))
            table.setdefault(name, []).append(bound)
    ratios = {n: np.divide(v, table["MLP"]) for n, v in table.items() if n != "MLP"}
    threshold = [bounds.alpha_threshold(depth, activation=activation) for depth in depths]
    around = smoothness.circle_points(np.linspace(-np.pi, np.pi, 64, endpoint=False))
    norms: dict[str, list[float]] = {}
    done = 0
    for depth in measured_depths:
        for name, net in networks(depth, alphas, activation).items():
            network = finite(net, measured_width)
            params = network.init(seed, 2)
            found = bounds.jacobian_norms(network.apply, params, around.astype(np.float32))
            bound = float(bounds.jacobian(net, width=measured_width, input_dim=2))
            norms.setdefault(name, []).append(found.maximum / bound)
            done += 1
            if progress is not None:
                progress(done, len(measured_depths) * (1 + len(alphas)))
    rows = tuple(
        (depth, *(table[n][i] for n in table), *(ratios[n][i] for n in ratios), threshold[i])
        for i, depth in enumerate(depths)
    )
    columns = ("L", *(f"bound, {n}" for n in table), *(f"ratio, {n}" for n in ratios), "threshold")
    data = {
        "depths": list(depths),
        "bounds": table,
        "ratios": ratios,
        "threshold": threshold,
        "measured_depths": list(measured_depths),
        "measured_over_bound": norms,
    }
    settings = {
        "depths": list(depths),
        "alphas": list(alphas),
        "width": width,
        "measured_width": measured_width,
        "activation": str(activation),
        "seed": seed,
    }
    size = f"bounds at width {width}; norms measured at width {measured_width}, one network each"
    title = "Bounds of the input-output Jacobian"
    verdicts = _verdicts(depths, ratios, norms)
    return Result("bounds", settings, data, (Table(title, columns, rows),), tuple(verdicts), size)


def _verdicts(depths: Sequence[int], ratios: dict[str, Any], norms: dict[str, Any]) -> list[Any]:
    found = []
    for name, claim, smallest in (
        ("ResNet 0.1", "With alpha = 0.1 the ResNet's bound is below the MLP's for any depth.", 1),
        ("ResNet 0.1", "With alpha = 0.1 the ResNet's bound is below the MLP's for L >= 3.", 3),
        ("ResNet 1", "With alpha = 1 the ResNet's bound is below the MLP's.", 1),
    ):
        if name not in ratios:
            continue
        pairs = [(d, r) for d, r in zip(depths, ratios[name], strict=True) if d >= smallest]
        found.append(
            judge(
                claim,
                "The ratio of the bounds is at most 1 at each depth.",
                {f"L = {d}": r <= 1 for d, r in pairs},
                "ratios " + ", ".join(f"{r:.3g} (L = {d})" for d, r in pairs[:5]),
            )
        )
    worst = max(max(v) for v in norms.values())
    found.append(
        judge(
            "The bounds hold for networks at initialisation.",
            "The largest measured norm is below the bound, for each network.",
            {f"{n}, no. {i + 1}": r <= 1 for n, v in norms.items() for i, r in enumerate(v)},
            f"measured over bound: at most {worst:.3g}",
        )
    )
    return found
