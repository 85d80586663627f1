"""The stability theorem: error, path of the weights and drift of the kernel against the width."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.layers import resnet
from widelimit.training import stability as measure

from ._result import Progress, Result, Table, judge
from ._setting import angles, target
from ._training import Counter


def stability(
    *,
    depth: int = 3,
    alpha: float = 0.5,
    activations: Sequence[Any] = ("relu", "erf"),
    widths: Sequence[int] = (64, 128, 256, 512),
    networks: int = 4,
    steps: int = 200,
    count: int = 5,
    samples: str = "equispaced",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Networks of several widths, trained; how far do they and their kernels move?

    Args:
        depth: L.
        alpha: Of the ResNet.
        activations: One experiment for each.
        widths: n.
        networks: For each width.
        steps: Gradient steps.
        count: The number of samples.
        samples: "equispaced" or "random"; the authors' repeated point is left out.
        seed: Of the networks.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), Theorem 5.
    """
    b = angles(count, "equispaced" if samples == "authors" else samples, seed)
    counter = Counter(progress, len(activations) * len(widths) * networks)
    data, rows, verdicts = {}, [], []
    for activation in activations:
        net = resnet(depth=depth, alpha=alpha, activation=activation)
        found = measure(
            net,
            smoothness.circle_points(b),
            target(b),
            widths,
            steps=steps,
            seeds=networks,
            key=seed,
            progress=lambda done, total: counter.add(),
        )
        name = str(activation)
        data[name] = found._asdict()
        rows.append((name, found.covered, *found.drift_rate, *found.path_rate))
        relative = found.error / found.error[:, :, :1]
        excess = float((relative / found.envelope[None, None, :])[:, :, 1:].max())
        worst = f"largest |e_t| over the bound: {excess:.3g}"
        note = "" if found.covered else " (outside the theorem's hypotheses)"
        rate, error = found.drift_rate
        path, path_error = found.path_rate
        verdicts += [
            judge(
                f"The error falls at least as fast as the theorem says: {name}{note}.",
                "|e_t| <= (1 - eta lambda_min/3)^t |e_0| at each record of each network.",
                {f"n = {n}": _below(relative[i], found.envelope) for i, n in enumerate(widths)},
                worst,
            ),
            judge(
                f"The kernel drifts by at most n^(-1/2), the weights by a bounded path: {name}{note}.",
                "The fitted exponents are at most -1/2 and 0, within 0.05 plus 2 standard errors.",
                {
                    "drift": rate <= -0.5 + 0.05 + 2 * error,
                    "path": path <= 0.05 + 2 * path_error,
                },
                f"drift {rate:.2f} ± {error:.2f}, path {path:.2f} ± {path_error:.2f}",
            ),
        ]
    settings = {
        "depth": depth,
        "alpha": alpha,
        "activations": [str(a) for a in activations],
        "widths": list(widths),
        "networks": networks,
        "steps": steps,
        "count": count,
        "samples": samples,
        "seed": seed,
    }
    columns = ("activation", "covered", "drift exponent", "±", "path exponent", "±")
    table = Table("Exponents of the width", columns, tuple(rows))
    size = (
        f"L = {depth}, alpha = {alpha:g}, {count} samples, {steps} steps, {networks} networks each"
    )
    return Result("stability", settings, {"found": data}, (table,), tuple(verdicts), size)


def _below(relative: np.ndarray, envelope: np.ndarray) -> bool:
    return bool((relative <= envelope[None, :] * (1 + 1e-4)).all())
