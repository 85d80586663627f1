"""The stability theorem: error, path of the weights and drift of the kernel against the width."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.activations import Activation
from widelimit.analysis import smoothness
from widelimit.layers import resnet
from widelimit.plot import COLOURS, figure
from widelimit.training import Stability
from widelimit.training import stability as measure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Setting, target
from ._panels import above, inside, power


def _draw(result: Result) -> Any:
    """Error, path and drift: a row for each activation."""
    found = result.data["found"]
    fig, panels = figure(len(found), 3, width=2.8, height=2.4)
    for (error, path, drift), (name, data) in zip(panels, found.items(), strict=True):
        for i, n in enumerate(data["widths"]):
            relative = (data["error"][i] / data["error"][i][:, :1]).mean(0)
            error.semilogy(data["steps"], relative, color=COLOURS[i], label=f"$n$ = {int(n)}")
        error.semilogy(data["steps"], data["envelope"], "k--", lw=1, label="bound")
        error.set_ylabel(f"{name}: $|e_t|/|e_0|$")
        error.set_xlabel("step")
        above(error, columns=3)
        for panel, key, text in (
            (path, "path", "path of the weights"),
            (drift, "drift", "drift of the kernel"),
        ):
            values, rate = data[key], float(data[f"{key}_rate"][0])
            spread = values.std(1, ddof=1) / np.sqrt(values.shape[1])
            power(panel, data["widths"], (values.mean(1), spread, rate), text, COLOURS[0])
            inside(panel, 7)
        path.set_ylim(path.get_ylim()[0] * 0.7, path.get_ylim()[1] * 1.4)
    return fig


@experiment(
    title="The stability theorem as an experiment",
    source=f"{PAPER}: Theorem 5; Jacot, Gabriel, Hongler: Theorem 2",
    seconds=(30, 200, 2_000),
    full={"widths": (64, 128, 256, 512, 1024, 2048), "networks": 10},
    draws=_draw,
    takes={"depth": 3, "alpha": 0.5, "count": 5, "samples": "equispaced"},
    order=19,
    caption=(
        "Left: the error falls below the bound of the theorem (dashed) for all widths. Middle: "
        "the weights of a wide network move as far as those of a narrow one, together. Right: yet "
        "the kernel moves less, the wider the network, and this is why the limit is a fixed "
        "kernel. Upper row: ReLU, which the theorem does not cover; lower row: erf, which it "
        "does."
    ),
)
def stability(
    s: Setting,
    *,
    activations: Sequence[str | Activation] = ("relu", "erf"),
    widths: Sequence[int] = (64, 128, 256, 512),
    networks: int = 4,
    steps: int = 200,
) -> Found:
    """Networks of several widths, trained; how far do they and their kernels move?

    Args:
        s: The setting; the authors' repeated point is left out.
        activations: One experiment for each.
        widths: n.
        networks: For each width.
        steps: Gradient steps.
    """
    b = s.distinct_angles(s.count)
    counter = s.counter(len(activations) * len(widths) * networks)
    data, rows, verdicts = {}, [], []
    for activation in activations:
        found = measure(
            resnet(depth=s.depth, alpha=s.alpha, activation=activation),
            smoothness.circle_points(b),
            target(b),
            widths,
            steps=steps,
            seeds=networks,
            key=s.seed,
            progress=lambda done, total: counter.add(),
        )
        name = str(activation)
        data[name] = found._asdict()
        rows.append((name, found.covered, *found.drift_rate, *found.path_rate))
        verdicts += _verdicts(name, found)
    columns = ("activation", "covered", "drift exponent", "±", "path exponent", "±")
    table = Table("Exponents of the width", columns, tuple(rows))
    size = (
        f"L = {s.depth}, alpha = {s.alpha:g}, {s.count} samples, {steps} steps, "
        f"{networks} networks each"
    )
    return Found({"found": data}, (table,), tuple(verdicts), size)


def _verdicts(name: str, found: Stability) -> tuple[Verdict, Verdict]:
    excess = found.error / found.error[:, :, :1] / found.envelope[None, None, :]
    note = "" if found.covered else " (outside the theorem's hypotheses)"
    (rate, error), (path, path_error) = found.drift_rate, found.path_rate
    return (
        judge(
            f"The error falls at least as fast as the theorem says: {name}{note}.",
            "|e_t| <= (1 - eta lambda_min/3)^t |e_0| at each record of each network.",
            {f"n = {n}": (excess[i] <= 1 + 1e-4).all() for i, n in enumerate(found.widths)},
            f"largest |e_t| over the bound: {excess[:, :, 1:].max():.3g}",
        ),
        judge(
            f"The kernel drifts by at most n^(-1/2), the weights by a bounded path: {name}{note}.",
            "The fitted exponents are at most -1/2 and 0, within 0.05 plus 2 standard errors.",
            {"drift": rate <= -0.5 + 0.05 + 2 * error, "path": path <= 0.05 + 2 * path_error},
            f"drift {rate:.2f} ± {error:.2f}, path {path:.2f} ± {path_error:.2f}",
        ),
    )
