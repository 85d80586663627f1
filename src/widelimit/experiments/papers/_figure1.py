"""Figure 1: finite ResNets against their limit, at initialisation and after training."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.dynamics import train
from widelimit.finite import finite, monte_carlo_kernels
from widelimit.layers import Layer, resnet
from widelimit.plot import COLOURS, figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Counter, Setting, target
from ._circle import grid, interpolant, kernel_at
from ._panels import above, circle, samples
from ._training import Ensemble

_ANGLES = 256  # points around the circle at which networks are compared


def _draw(result: Result) -> Any:
    """Empirical kernels, and trained networks against the closed form."""
    kernel, cases = result.data["kernel"], result.data["panels"]
    fig, panels = figure(1, 1 + len(cases), width=3.0, height=2.8)
    first, *rest = panels[0]
    around, mean, std = kernel["angles"], kernel["mean"], kernel["std"]
    first.fill_between(around, mean - std, mean + std, color=COLOURS[5], alpha=0.4, lw=0)
    first.plot(around, mean, color=COLOURS[0], label="mean ± std of networks")
    first.plot(around, kernel["limit"], "--", color=COLOURS[1], label="infinite width")
    first.set_ylabel("tangent kernel")
    circle(first, "\\Delta")
    for panel, (count, case) in zip(rest, cases.items(), strict=True):
        samples(panel, case)
        panel.plot(around, case["networks"].T, color=COLOURS[5], lw=0.7, alpha=0.7)
        panel.plot(around, case["networks"].mean(0), color=COLOURS[0], label="mean of networks")
        at_end = f"closed form, {int(case['steps'])} steps of {case['rate']:g}"
        panel.plot(around, case["limit_at_end"], ":", color=COLOURS[2], lw=2, label=at_end)
        panel.plot(around, case["limit"], "--", color=COLOURS[1], label="closed form, for ever")
        panel.set_ylabel(f"{count} samples")
    for panel in panels[0]:
        above(panel)
    return fig


@experiment(
    title="Finite ResNets and their limit: kernels, and networks trained by gradient descent",
    source=f"{PAPER}: Figure 1 (preprint and published), talk: Figure 1",
    seconds=(50, 400, 80_000),
    full={"width": 2000, "networks": 30, "kernel_width": 2000, "kernels": 30},
    draws=_draw,
    takes={"depth": 5, "alpha": 0.1, "activation": "relu", "counts": (6, 10)},
    order=1,
    caption=(
        "Left: the kernel of one network scatters around the limit (band), the mean of several "
        "lies on it. Middle and right: networks trained by gradient descent (thin) and their mean "
        "lie on the closed form of the same number of steps (dotted). With 10 samples and the "
        "small learning rate some directions are still on their way, so that the curve for ever "
        "(dashed) differs. Grey: the target."
    ),
)
def figure1(
    s: Setting,
    *,
    width: int = 256,
    networks: int = 3,
    kernel_width: int = 1000,
    kernels: int = 10,
    rates: Sequence[float] = (0.5, 0.05),
    steps: Sequence[int] = (5000, 10000),
) -> Found:
    """Empirical kernels on the circle, and networks trained by gradient descent on 6 and 10 samples.

    The learning rates are those of the paper's text; its caption exchanges them, and 0.5 is then
    too large for 10 samples.

    Args:
        s: The setting.
        width: Of the trained networks (2000 in the paper).
        networks: How many are trained (30 in the paper).
        kernel_width: Of the networks whose kernels are averaged (2000 in the paper).
        kernels: How many (30 in the paper).
        rates: A learning rate for each number of samples.
        steps: Gradient steps for each.
    """
    net = resnet(depth=s.depth, alpha=s.alpha, activation=s.activation)
    runs = [
        (count, rate, last, last * count // 100)
        for count, rate, last in zip(s.counts, rates, steps, strict=True)
    ]
    counter = s.counter(kernels * 20 + networks * sum(work for *_, work in runs))
    kernel = _kernel(net, kernel_width, kernels, s.seed, counter)
    panels = {}
    for count, rate, last, work in runs:
        ensemble = Ensemble(networks, s.seed + 1, counter, work)
        panels[str(count)] = _panel(s, net, width, ensemble, count, {"rate": rate, "steps": last})
    peak = float(kernel_at(net, 0.0))
    kernel_table, kernel_verdict = _judge_kernel(kernel, peak, kernels)
    table, verdicts = _judge_training(panels)
    size = (
        f"kernels of {kernels} networks of width {kernel_width}; {networks} trained networks of "
        f"width {width} (paper: 30 of width 2000); {s.samples_in_words}"
    )
    data = {"kernel": kernel, "peak": peak, "panels": panels}
    return Found(data, (kernel_table, table), (kernel_verdict, *verdicts), size)


def _kernel(net: Layer, width: int, kernels: int, seed: int, counter: Counter) -> dict[str, Any]:
    around = grid(_ANGLES)
    found = monte_carlo_kernels(
        net,
        np.array([[1.0, 0.0]], np.float32),
        smoothness.circle_points(around).astype(np.float32),
        width=width,
        samples=kernels,
        key=seed,
        progress=lambda done, total: counter.add(20),
    ).ntk
    limit = kernel_at(net, around)
    return {"angles": around, "limit": limit, "mean": found.mean[0], "std": found.std[0]}


def _panel(
    s: Setting, net: Layer, width: int, ensemble: Ensemble, count: int, how: dict[str, Any]
) -> dict[str, Any]:
    """Networks trained on so many samples, at a rate and for some steps, and their limit."""
    b, probe = s.angles(count), smoothness.circle_points(grid(_ANGLES))
    x, y = smoothness.circle_points(b), target(b)
    trained = ensemble.train(
        finite(net, width),
        (x, y),
        probe.astype(np.float32),
        learning_rate=how["rate"],
        steps=how["steps"],
    )
    model = train(net, x, y)
    return {
        "b": b,
        "y": y,
        "networks": trained.outputs,
        "start": trained.start,
        "loss": trained.loss,
        "limit": interpolant(net, b, y, s.jitter).predict(probe),
        "limit_at_end": model.descend(probe, steps=how["steps"], learning_rate=how["rate"]),
        **how,
        "lr_theorem5": model.theorem5_learning_rate,
    }


def _judge_kernel(kernel: dict[str, Any], peak: float, kernels: int) -> tuple[Table, Verdict]:
    bias = np.abs(kernel["mean"] - kernel["limit"]) / peak
    one = kernel["std"] / peak
    table = Table(
        "The empirical kernel, in % of the peak (at width 2000, 30 networks: 0.65 and 2.5)",
        ("largest error of the mean", "standard deviation of one network"),
        ((100 * float(bias.max()), 100 * float(one.max())),),
    )
    verdict = judge(
        "The empirical tangent kernel of wide networks agrees with its limit.",
        "The mean is within 4 standard errors plus 1 % of the peak of the limit, at each angle.",
        {"all angles": bool((bias <= 4 * one / np.sqrt(kernels) + 0.01).all())},
        f"largest deviation {100 * bias.max():.2f} % of the peak, one network deviates by "
        f"{100 * one.max():.1f} %",
    )
    return table, verdict


_COLUMNS = (
    "samples",
    "learning rate",
    "bound of Theorem 5",
    "steps",
    "mean - limit at that step, %",
    "mean - limit for ever, %",
    "spread of networks, %",
    "worst network, %",
    "mean loss",
)


def _judge_training(panels: dict[str, Any]) -> tuple[Table, tuple[Verdict, ...]]:
    rows, agree, single = [], {}, {}
    for count, panel in panels.items():
        size = np.sqrt(np.mean(panel["limit"] ** 2))
        rms = lambda f, size=size: float(np.sqrt(np.mean(f**2)) / size)
        nets, mean = panel["networks"], panel["networks"].mean(0)
        spread = rms(nets.std(0, ddof=1))
        at_end, ever = rms(mean - panel["limit_at_end"]), rms(mean - panel["limit"])
        worst = max(rms(f - panel["limit"]) for f in nets)
        allowed = 0.1 + 2 * spread / np.sqrt(len(nets))
        agree[f"{count} samples, at the last step"] = at_end <= allowed
        agree[f"{count} samples, trained for ever"] = ever <= allowed
        single[f"{count} samples"] = worst <= 0.1
        given = (int(count), panel["rate"], panel["lr_theorem5"], int(panel["steps"]))
        percents = (100 * value for value in (at_end, ever, spread, worst))
        rows.append((*given, *percents, float(np.mean(panel["loss"]))))
    title = "Trained networks against the closed form (root mean squares)"
    verdicts = (
        judge(
            "Networks trained by gradient descent agree with kernel regression, on average.",
            "The mean of the networks is within 10 % plus two standard errors of the closed form, "
            "at the last step and for ever (root mean square).",
            agree,
            "; ".join(f"{r[0]} samples: {r[4]:.1f} % and {r[5]:.1f} %" for r in rows),
        ),
        judge(
            "So does each single network.",
            "The worst network is within 10 % of the closed form.",
            single,
            "; ".join(f"{r[0]} samples: {r[7]:.0f} %" for r in rows),
        ),
    )
    return Table(title, _COLUMNS, tuple(rows)), verdicts
