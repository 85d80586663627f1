"""Gradient descent of a finite network against the closed form, and admissible learning rates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.dynamics import train
from widelimit.finite import finite
from widelimit.layers import resnet
from widelimit.plot import COLOURS, figure
from widelimit.training import optimise

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Setting, angles, target
from ._circle import grid
from ._panels import samples, shared


def _draw(result: Result) -> Any:
    """The network and its limit at several steps."""
    data = result.data
    fig, panels = figure(1, len(data["steps"]), width=2.0, height=2.2, sharey=True)
    for panel, step, f, g in zip(
        panels[0], data["steps"], data["network"], data["limit"], strict=True
    ):
        samples(panel, data)
        panel.plot(data["grid"], f, color=COLOURS[0], label="network")
        panel.plot(data["grid"], g, "--", color=COLOURS[1], label="closed form")
        panel.set_xticks([-np.pi, 0, np.pi], ["$-\\pi$", "0", "$\\pi$"])
        panel.set_title(f"step {int(step)}")
    shared(fig, panels[0][0], "right", 2)
    return fig


@experiment(
    title="Gradient descent against the closed form, and the papers' learning rates",
    source=f"{PAPER}: equations 3 and 4, learning rates of Figure 1",
    seconds=(7, 90, 600),
    full={"width": 2000},
    draws=_draw,
    takes={"depth": 3, "alpha": 0.5, "activation": "relu", "count": 6, "samples": "equispaced"},
    order=18,
    caption=(
        "One network (solid) and the closed form started from the same function (dashed), from "
        "left to right in time. They move together: the coarse shape is learnt within 10 steps, "
        "the rest takes hundreds. Grey: the target."
    ),
)
def descent(s: Setting, *, width: int = 512, steps: Sequence[int] = (0, 10, 50, 200, 500)) -> Found:
    """One network followed through training, and its limit started from the same function.

    Args:
        s: The setting; the authors' repeated point is left out.
        width: n.
        steps: When to compare.
    """
    counter, b, around = s.counter(3), s.distinct_angles(s.count), grid(128)
    x, y, probe = smoothness.circle_points(b), target(b), smoothness.circle_points(around)
    net = resnet(depth=s.depth, alpha=s.alpha, activation=s.activation)
    network = finite(net, width)
    params = network.init(s.seed, 2)
    start = lambda points: np.asarray(network.apply(params, points.astype(np.float32)))[:, 0]
    model = train(net, x, y, f0=start)
    rate = model.theorem5_learning_rate / 2
    counter.add()
    when = {"steps": max(steps), "record": list(steps)}
    run = optimise(
        network, x, y, params=params, learning_rate=rate, probe=probe, drift=True, **when
    )
    counter.add()
    limits = [
        model.descend(probe, steps=n, learning_rate=rate) if n else start(probe) for n in steps
    ]
    outputs = np.asarray(run.outputs, np.float64)
    rms = lambda f: np.sqrt(np.mean(f**2, axis=-1))
    gaps = dict(zip(steps, (rms(outputs - limits) / rms(limits[-1])).tolist(), strict=True))
    kernels = np.asarray(run.kernels, np.float64)
    drift = float(np.linalg.norm(kernels[-1] - kernels[0]) / np.linalg.norm(kernels[0]))
    verdict = judge(
        "A wide network under gradient descent follows the closed form through training.",
        "At each recorded step the root mean square difference is at most 10 % of the final "
        "function.",
        {f"step {n}": gap <= 0.1 for n, gap in gaps.items()},
        ", ".join(f"{100 * gap:.1f} % at step {n}" for n, gap in gaps.items())
        + f"; the kernel has drifted by {100 * drift:.1f} %",
    )
    rates, admissible = _rates()
    counter.add()
    shown = {"network": outputs, "limit": np.array(limits), "rate": rate}
    data = {"grid": around, "b": b, "y": y, "steps": list(steps), **shown}
    rows = zip(steps, (float(n * rate) for n in steps), map(float, run.loss), strict=True)
    rows = tuple((*row, 100 * gaps[row[0]]) for row in rows)
    columns = ("step", "time", "loss", "difference, %")
    tables = (Table("The network against its limit", columns, rows), rates)
    text = f"one network, L = {s.depth}, alpha = {s.alpha:g}, width {width}, {s.count} samples"
    return Found(data, tables, (verdict, *admissible), text)


def _rates() -> tuple[Table, tuple[Verdict, ...]]:
    """The learning rates of the papers' Figure 1 against what converges."""
    net, rows, checks = resnet(depth=5, alpha=0.1), [], {"text": {}, "caption": {}}
    for count, caption, text in ((6, 0.05, 0.5), (10, 0.5, 0.05)):
        for kind in ("authors", "equispaced"):
            b = angles(count, kind)
            model = train(net, smoothness.circle_points(b), target(b))
            rows.append(
                (
                    count,
                    kind,
                    model.theorem5_learning_rate,
                    model.critical_learning_rate,
                    text,
                    caption,
                )
            )
            checks["text"][f"{count} samples, {kind}"] = text < model.theorem5_learning_rate
            checks["caption"][f"{count} samples, {kind}"] = caption < model.theorem5_learning_rate
    columns = (
        "samples",
        "positions",
        "bound of Theorem 5",
        "divergence above",
        "rate in the text",
        "rate in the caption",
    )
    bounds = "; ".join(f"{r[0]} samples, {r[1]}: bound {r[2]:.4g}" for r in rows)
    verdicts = tuple(
        judge(
            f"The learning rates of Figure 1 as the {where} gives them are admissible.",
            "Each is below 2/(lambda_min + lambda_max) of the limiting kernel.",
            met,
            bounds,
        )
        for where, met in checks.items()
    )
    return Table("Learning rates, ResNet with L = 5, alpha = 0.1", columns, tuple(rows)), verdicts
