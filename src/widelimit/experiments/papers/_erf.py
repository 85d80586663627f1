"""Smooth activations: the erf case."""

import dataclasses
from typing import Any

import numpy as np

from widelimit.plot import figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, by_case, judge
from .._setting import Setting, angles
from ._circle import grid, interpolants, shapes
from ._panels import above, fits
from ._panels import shapes as draw_shapes

# Tirer, Bruna and Giryes (2022): MLP, alpha = 1, 0.5, 0.1.
PUBLISHED = {
    "L=5, 6 samples": (1.000, 1.016, 1.000, 1.000),
    "L=5, 10 samples": (22.36, 22.36, 22.36, 22.36),
}
_ALPHAS = (1.0, 0.5, 0.1)


def _draw(result: Result) -> Any:
    """Kernels and interpolants of erf networks."""
    data = result.data
    shown = [k for k in data["curves"] if not k.endswith("(equispaced)")]
    columns = 1 + len(shown) // len(data["shapes"])
    fig, panels = figure(len(data["shapes"]), columns, width=2.9, height=2.8)
    for row, (depth, by) in zip(panels, data["shapes"].items(), strict=True):
        draw_shapes(row[0], data["angles"], depth, by)
        above(row[0])
        keys = [k for k in shown if k.startswith(f"{depth},")]
        for panel, key in zip(row[1:], keys, strict=True):
            fits(panel, data["grid"], data["curves"][key] | {"mu": data["mu"][key]})
            panel.set_ylabel(key.split(", ")[1])
    return fig


@experiment(
    title="A smooth activation: erf",
    source=f"{PAPER}: published version and talk, remark on erf",
    seconds=(5, 10),
    draws=_draw,
    takes={"depths": (5, 15), "counts": (6, 10), "alphas": _ALPHAS},
    order=14,
    caption=(
        "erf is smooth, so no kernel has a kink (left, compare Figure 2), and all networks give "
        "the same interpolant to within the width of a line. The exception is deep and "
        r"unattenuated: $L=15$ with $\alpha=1$ (dashed), whose kernel is narrow without being "
        "edgy."
    ),
)
def erf(s: Setting) -> Found:
    """The measure of interpolants of erf networks, which have no kinks.

    Args:
        s: The setting; equispaced samples are made odd in number.
    """
    s = dataclasses.replace(s, activation="erf")
    sets = _sets(s)
    counter, rows, mus, curves = s.counter(len(s.depths) * len(sets)), [], {}, {}
    known = PUBLISHED if s.samples == "authors" and tuple(s.alphas) == _ALPHAS else {}
    for depth in s.depths:
        nets = s.networks(depth)
        for name, b, jitter in sets:
            key, found = f"L={depth}, {name}", interpolants(nets, b, jitter)
            mus[key] = found.pop("mu")
            curves[key] = found
            rows.append((key, "ours", *mus[key].values()))
            if key in known:
                rows.append(("", "published", *known[key]))
            counter.add()
    data = {
        "angles": grid(513),
        "grid": grid(512),
        "shapes": {f"L={depth}": shapes(s.networks(depth)) for depth in s.depths},
        "curves": curves,
        "mu": mus,
    }
    columns = ("case", "source", *s.networks(1))
    table = Table("mu_D2 of erf networks, N = 4096", columns, tuple(rows))
    verdicts = (*(_similar(depth, mus) for depth in s.depths), *_agreement(mus, known))
    return Found(data, (table,), verdicts, f"closed form; {s.samples_in_words}")


def _sets(s: Setting) -> list[tuple[str, np.ndarray, float]]:
    """Name, positions and jitter of each set of samples."""
    # Antipodes make the kernels of odd networks singular, so equispaced samples are odd in number.
    equispaced = s.samples == "equispaced"
    counts = [n | 1 for n in s.counts] if equispaced else s.counts
    sets = [(f"{n} samples", s.angles(n), s.jitter) for n in counts]
    return sets if equispaced else [*sets, ("7 samples (equispaced)", angles(7, "equispaced"), 0.0)]


def _similar(depth: int, mus: dict[str, dict[str, float]]) -> Verdict:
    part = {key: list(mu.values()) for key, mu in mus.items() if key.startswith(f"L={depth},")}
    return judge(
        f"For erf, MLP and ResNets interpolate with similar smoothness, L = {depth}.",
        "The largest mu_D2 is at most 5 % above the smallest, on each set of samples.",
        {key: max(values) / min(values) <= 1.05 for key, values in part.items()},
        by_case(part),
    )


def _agreement(
    mus: dict[str, dict[str, float]], known: dict[str, tuple[float, ...]]
) -> list[Verdict]:
    errors = {
        f"{key.split(', ')[1]}, {net}": abs(mu / value - 1)
        for key, values in known.items()
        if key in mus
        for (net, mu), value in zip(mus[key].items(), values, strict=True)
    }
    if not errors:
        return []
    return [
        judge(
            "The published values of mu for erf.",
            "Each agrees to 0.1 %.",
            {name: error <= 1e-3 for name, error in errors.items()},
            f"largest difference {100 * max(errors.values()):.3f} %",
        )
    ]
