"""The table of the second-derivative measure in one dimension."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._circle import interpolate, jitter_for
from ._interpolation import PUBLISHED, falling
from ._random_sets import on_grid
from ._result import Progress, Result, Table, judge
from ._setting import angles, networks, target

# Tirer, Bruna and Giryes (2022): one random set of 15 samples whose positions are not known.
_PUBLISHED_RANDOM = (252.3, 177.1, 153.6, 117.8, 110.2)


def table1(
    *,
    depths: Sequence[int] = (5, 15),
    counts: Sequence[int] = (6, 10),
    alphas: Sequence[float] = (1.0, 0.5, 0.1, 0.01),
    activation: Any = "relu",
    draws: int = 100,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """The published table, and the ordering of its last row over many random sample sets.

    Args:
        depths: L.
        counts: The numbers of samples.
        alphas: The attenuations.
        activation: Of all networks.
        draws: Random sets of 15 samples at depth 7.
        samples: "authors", "equispaced" or "random".
        seed: Of the random sets.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), table of mu.
    """
    rows, ours, done = [], {}, 0
    total = len(depths) * len(counts) + 1
    comparable = samples == "authors" and str(activation) == "relu"
    for depth in depths:
        nets = networks(depth, alphas, activation)
        for count in counts:
            b = angles(count, samples, seed)
            fits = [interpolate(n, b, target(b), jitter=jitter_for(samples)) for n in nets.values()]
            mu = {name: fit.mu for name, fit in zip(nets, fits, strict=True)}
            ours[depth, count] = mu
            rows.append((f"L = {depth}, {count} samples", "ours", *mu.values()))
            known = PUBLISHED.get((depth, count), {}) if comparable else {}
            if known:
                rows.append(("", "published", *(known.get(n) for n in nets)))
            done += 1
            if progress is not None:
                progress(done, total)
    nets = networks(7, alphas, activation)
    sets = on_grid(15, draws, seed)
    many = {name: sets.measure(net)[0] for name, net in nets.items()}
    rows.append(
        (f"L = 7, 15 random samples, median of {draws}", "ours", *map(np.median, many.values()))
    )
    if str(activation) == "relu" and tuple(alphas) == (1.0, 0.5, 0.1, 0.01):
        rows.append(("", "published (one set)", *_PUBLISHED_RANDOM))
    if progress is not None:
        progress(total, total)
    table = Table("mu_D2 at N = 4096, smaller is smoother", ("case", "source", *nets), tuple(rows))
    data = {
        "ours": {f"L={d}, {n} samples": mu for (d, n), mu in ours.items()},
        "random": many,
        "published": {
            f"L={d}, {n} samples": PUBLISHED[d, n]
            for d, n in ours
            if comparable and (d, n) in PUBLISHED
        },
    }
    settings = {
        "depths": list(depths),
        "counts": list(counts),
        "alphas": list(alphas),
        "activation": str(activation),
        "draws": draws,
        "samples": samples,
        "seed": seed,
    }
    verdicts = []
    errors = {
        f"L={d}, {n} samples, {net}": abs(mu[net] / PUBLISHED[d, n][net] - 1)
        for (d, n), mu in ours.items()
        if comparable and (d, n) in PUBLISHED
        for net in mu
        if net in PUBLISHED[d, n]
    }
    if errors:
        worst = max(errors, key=lambda k: errors[k])
        verdicts.append(
            judge(
                "The published values of mu.",
                "Each agrees to 0.1 % (they are printed with four digits).",
                {name: error <= 1e-3 for name, error in errors.items()},
                f"{len(errors)} values, largest difference {100 * errors[worst]:.3f} % ({worst})",
            )
        )
    columns = np.array(list(many.values()))
    share = {
        f"{a} > {b}": float(np.mean(columns[i] > columns[i + 1]))
        for i, (a, b) in enumerate(zip(list(nets), list(nets)[1:], strict=False))
    }
    verdicts.append(
        judge(
            "On 15 random samples mu falls from the MLP to alpha = 0.01.",
            f"Each step of the ordering is found in at least 95 % of {draws} random sets, and the "
            "medians are ordered.",
            {name: value >= 0.95 for name, value in share.items()}
            | {"medians": falling(list(map(np.median, many.values())))},
            ", ".join(f"{name}: {100 * value:.0f} %" for name, value in share.items()),
        )
    )
    return Result("table1", settings, data, (table,), tuple(verdicts), "closed form")
