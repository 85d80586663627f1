"""Gradient descent of a finite network against the closed form, and admissible learning rates."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.dynamics import train
from widelimit.finite import finite
from widelimit.layers import resnet
from widelimit.training import optimise

from ._circle import grid
from ._result import Progress, Result, Table, judge
from ._setting import angles, target
from ._training import Counter


def descent(
    *,
    depth: int = 3,
    alpha: float = 0.5,
    activation: Any = "relu",
    width: int = 512,
    count: int = 6,
    steps: Sequence[int] = (0, 10, 50, 200, 500),
    samples: str = "equispaced",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """One network followed through training, and its limit started from the same function.

    Args:
        depth: L.
        alpha: Of the ResNet.
        activation: Of the ResNet.
        width: n.
        count: The number of samples.
        steps: When to compare.
        samples: "equispaced" or "random"; the authors' repeated point is left out.
        seed: Of the network.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), equations 3 and 4, Figure 1.
    """
    counter = Counter(progress, 4)
    net = resnet(depth=depth, alpha=alpha, activation=activation)
    b = angles(count, "equispaced" if samples == "authors" else samples, seed)
    x, y, around = smoothness.circle_points(b), target(b), grid(128)
    probe = smoothness.circle_points(around)
    network = finite(net, width)
    params = network.init(seed, 2)
    start = lambda points: np.asarray(network.apply(params, points.astype(np.float32)))[:, 0]
    model = train(net, x, y, f0=start)
    rate = model.theorem5_learning_rate / 2
    counter.add()
    run = optimise(
        network,
        x,
        y,
        params=params,
        learning_rate=rate,
        steps=max(steps),
        record=list(steps),
        probe=probe,
        drift=True,
    )
    counter.add()
    limits = [
        model.descend(probe, steps=s, learning_rate=rate) if s else start(probe) for s in steps
    ]
    outputs = np.asarray(run.outputs, np.float64)
    size = np.sqrt(np.mean(limits[-1] ** 2))
    gaps = [
        float(np.sqrt(np.mean((f - g) ** 2)) / size) for f, g in zip(outputs, limits, strict=True)
    ]
    kernels = np.asarray(run.kernels, np.float64)
    drift = float(np.linalg.norm(kernels[-1] - kernels[0]) / np.linalg.norm(kernels[0]))
    rows = tuple(
        (s, float(s * rate), float(l), 100 * g)
        for s, l, g in zip(steps, run.loss, gaps, strict=True)
    )
    rates, verdict = _rates()
    counter.add()
    verdicts = (
        judge(
            "A wide network under gradient descent follows the closed form through training.",
            "At each recorded step the root mean square difference is at most 10 % of the final "
            "function.",
            {f"step {s}": g <= 0.1 for s, g in zip(steps, gaps, strict=True)},
            ", ".join(f"{100 * g:.1f} % at step {s}" for s, g in zip(steps, gaps, strict=True))
            + f"; the kernel has drifted by {100 * drift:.1f} %",
        ),
        *verdict,
    )
    counter.add()
    settings = {
        "depth": depth,
        "alpha": alpha,
        "activation": str(activation),
        "width": width,
        "count": count,
        "steps": list(steps),
        "samples": samples,
        "seed": seed,
    }
    data = {
        "grid": around,
        "b": b,
        "y": y,
        "steps": list(steps),
        "network": outputs,
        "limit": np.array(limits),
        "rate": rate,
    }
    columns = ("step", "time", "loss", "difference, %")
    tables = (Table("The network against its limit", columns, rows), rates)
    text = f"one network, L = {depth}, alpha = {alpha:g}, width {width}, {count} samples"
    return Result("descent", settings, data, tables, verdicts, text)


def _rates() -> tuple[Table, tuple[Any, ...]]:
    """The learning rates of the papers' Figure 1 against what converges."""
    net, rows, checks = resnet(depth=5, alpha=0.1), [], {"caption": {}, "text": {}}
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
            checks[where],
            bounds,
        )
        for where in ("text", "caption")
    )
    return Table("Learning rates, ResNet with L = 5, alpha = 0.1", columns, tuple(rows)), verdicts
