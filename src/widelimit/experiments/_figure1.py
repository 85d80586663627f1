"""Figure 1: finite ResNets against their limit, at initialisation and after training."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.dynamics import train
from widelimit.finite import finite, monte_carlo_kernels
from widelimit.layers import resnet

from ._circle import grid, interpolate, jitter_for, kernel_at
from ._result import Progress, Result, Table, judge
from ._setting import angles, describe_samples, target
from ._training import Counter, train_all


def figure1(
    *,
    depth: int = 5,
    alpha: float = 0.1,
    activation: Any = "relu",
    width: int = 256,
    networks: int = 3,
    kernel_width: int = 1000,
    kernels: int = 10,
    counts: Sequence[int] = (6, 10),
    rates: Sequence[float] = (0.5, 0.05),
    steps: Sequence[int] = (5000, 10000),
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Empirical kernels on the circle, and networks trained by gradient descent on 6 and 10 samples.

    Args:
        depth: L.
        alpha: Of the ResNet.
        activation: Of the ResNet.
        width: Of the trained networks (2000 in the paper).
        networks: How many are trained (30 in the paper).
        kernel_width: Of the networks whose kernels are averaged (2000 in the paper).
        kernels: How many (30 in the paper).
        counts: The numbers of samples.
        rates: A learning rate for each.
        steps: Gradient steps for each.
        samples: "authors", "equispaced" or "random".
        seed: Of the initialisations.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), Figure 1. The learning rates are those of the text; the
        caption exchanges them, and 0.5 is then too large for 10 samples.
    """
    net = resnet(depth=depth, alpha=alpha, activation=activation)
    work = [s * n // 100 for s, n in zip(steps, counts, strict=True)]
    counter = Counter(progress, kernels * 20 + networks * sum(work))
    around = grid(256)
    probe = smoothness.circle_points(around).astype(np.float32)
    origin = np.array([[1.0, 0.0]], np.float32)
    found = monte_carlo_kernels(
        net,
        origin,
        probe,
        width=kernel_width,
        samples=kernels,
        key=seed,
        progress=lambda done, total: counter.add(20),
    ).ntk
    limit = kernel_at(net, around)
    peak = float(kernel_at(net, 0.0))
    kernel = {"angles": around, "limit": limit, "mean": found.mean[0], "std": found.std[0]}
    network, panels = finite(net, width), {}
    for count, rate, last, cost in zip(counts, rates, steps, work, strict=True):
        b = angles(count, samples, seed)
        x, y = smoothness.circle_points(b), target(b)
        trained = train_all(
            network,
            x,
            y,
            probe,
            networks=networks,
            seed=seed + 1,
            counter=counter,
            work=cost,
            learning_rate=rate,
            steps=last,
        )
        model = train(net, x, y)
        at_end = model.descend(smoothness.circle_points(around), steps=last, learning_rate=rate)
        for_ever = interpolate(net, b, y, jitter=jitter_for(samples)).shown[:: 512 // 256]
        panels[str(count)] = {
            "b": b,
            "y": y,
            "networks": trained.outputs,
            "start": trained.start,
            "loss": trained.loss,
            "limit": for_ever,
            "limit_at_end": at_end,
            "rate": rate,
            "steps": last,
            "lr_theorem5": model.theorem5_learning_rate,
        }
    settings = {
        "depth": depth,
        "alpha": alpha,
        "width": width,
        "networks": networks,
        "kernel_width": kernel_width,
        "kernels": kernels,
        "rates": list(rates),
        "steps": list(steps),
        "samples": samples,
        "seed": seed,
    }
    size = (
        f"kernels of {kernels} networks of width {kernel_width}; {networks} trained networks of "
        f"width {width} (paper: 30 of width 2000); {describe_samples(samples)}"
    )
    data = {"kernel": kernel, "peak": peak, "panels": panels}
    tables, verdicts = _read(kernel, peak, panels, kernels)
    return Result("figure1", settings, data, tables, verdicts, size)


def _read(kernel: dict, peak: float, panels: dict, kernels: int) -> tuple[tuple, tuple]:
    bias = np.abs(kernel["mean"] - kernel["limit"]) / peak
    one = kernel["std"] / peak
    errors = one / np.sqrt(kernels)
    rows, agree, single = [], {}, {}
    for count, panel in panels.items():
        size = np.sqrt(np.mean(panel["limit"] ** 2))
        rms = lambda f, size=size: float(np.sqrt(np.mean(f**2)) / size)
        mean = panel["networks"].mean(0)
        spread = rms(panel["networks"].std(0, ddof=1))
        at_end, ever = rms(mean - panel["limit_at_end"]), rms(mean - panel["limit"])
        allowed = 0.1 + 2 * spread / np.sqrt(len(panel["networks"]))
        agree[f"{count} samples, at the last step"] = at_end <= allowed
        agree[f"{count} samples, trained for ever"] = ever <= allowed
        each = [rms(f - panel["limit"]) for f in panel["networks"]]
        single[f"{count} samples"] = max(each) <= 0.1
        rows.append(
            (
                int(count),
                panel["rate"],
                panel["lr_theorem5"],
                int(panel["steps"]),
                100 * at_end,
                100 * ever,
                100 * spread,
                100 * max(each),
                float(np.mean(panel["loss"])),
            )
        )
    columns = (
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
    tables = (
        Table(
            "The empirical kernel, in % of the peak (at width 2000, 30 networks: 0.65 and 2.5)",
            ("largest error of the mean", "standard deviation of one network"),
            ((100 * float(bias.max()), 100 * float(one.max())),),
        ),
        Table("Trained networks against the closed form (root mean squares)", columns, tuple(rows)),
    )
    verdicts = (
        judge(
            "The empirical tangent kernel of wide networks agrees with its limit.",
            "The mean is within 4 standard errors plus 1 % of the peak of the limit, at each angle.",
            {"all angles": bool((bias <= 4 * errors + 0.01).all())},
            f"largest deviation {100 * bias.max():.2f} % of the peak, one network deviates by "
            f"{100 * one.max():.1f} %",
        ),
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
    return tables, verdicts
