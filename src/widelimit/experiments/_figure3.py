"""Figure 3: networks trained outside the kernel regime."""

import itertools
from collections.abc import Sequence
from typing import Any

from widelimit.analysis import smoothness
from widelimit.finite import finite

from ._circle import grid
from ._result import Progress, Result, Table, judge
from ._setting import angles, describe_samples, target
from ._setting import networks as all_networks
from ._training import POINTS, Counter, bends, clearly_below, spread, train_all

PANELS = (("Adam", 6, 1e-3), ("SGD", 6, 1e-2), ("SGD", 10, 1e-2))


def figure3(
    *,
    depth: int = 5,
    alphas: Sequence[float] = (1.0, 0.1),
    activation: Any = "relu",
    width: int = 128,
    networks: int = 4,
    epochs: int = 1000,
    panels: Sequence[tuple[str, int, float]] = PANELS,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Networks with Xavier's initialisation, trained sample by sample with Adam or SGD.

    Args:
        depth: L.
        alphas: The attenuations of the ResNets.
        activation: Of all networks.
        width: Of all networks (500 in the paper).
        networks: Initialisations of each (30 in the paper).
        epochs: Passes over the samples; the paper's "1K iterations" read as passes.
        panels: Optimiser, number of samples and learning rate of each.
        samples: "authors", "equispaced" or "random".
        seed: Of the initialisations.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), Figure 3.
    """
    nets = all_networks(depth, alphas, activation)
    counter = Counter(progress, len(nets) * networks * sum(p[1] for p in panels))
    probe = smoothness.circle_points(grid(POINTS))
    drawn, rows = {}, []
    for optimiser, count, rate in panels:
        b = angles(count, samples, seed)
        key = f"{count} samples, {optimiser}"
        drawn[key] = {"b": b, "y": target(b), "curves": {}, "mu": {}, "loss": {}}
        for name, net in nets.items():
            trained = train_all(
                finite(net, width, parameterisation="xavier"),
                smoothness.circle_points(b),
                target(b),
                probe,
                networks=networks,
                seed=seed + 1,
                counter=counter,
                work=count,
                optimiser=optimiser.lower(),
                learning_rate=rate,
                epochs=epochs,
                batch_size=1,
            )
            mu = bends(trained.outputs)
            drawn[key]["curves"][name] = trained.outputs[:, ::4]
            drawn[key]["mu"][name], drawn[key]["loss"][name] = mu, trained.loss
            rows.append((key, name, float(mu.mean()), spread(mu), float(trained.loss.mean())))
    verdict = judge(
        "Outside the kernel regime, too, ResNets are smoother, the more so the smaller alpha.",
        f"The mean of mu_D2 (N = {POINTS}) over the networks falls, by more than the standard error "
        "of the difference, from each network to the next, in each panel.",
        {
            f"{key}: {second} against {first}": clearly_below(case["mu"][second], case["mu"][first])
            for key, case in drawn.items()
            for first, second in itertools.pairwise(case["mu"])
        },
        "; ".join(
            f"{key}: {', '.join(spread(mu) for mu in case['mu'].values())}"
            for key, case in drawn.items()
        ),
    )
    settings = {
        "depth": depth,
        "alphas": list(alphas),
        "activation": str(activation),
        "width": width,
        "networks": networks,
        "epochs": epochs,
        "samples": samples,
        "seed": seed,
    }
    size = (
        f"{networks} networks of width {width} each (paper: 30 of width 500), {epochs} passes, "
        f"batches of one sample; {describe_samples(samples)}"
    )
    columns = ("panel", "network", "mean mu_D2", "mean ± std", "mean loss")
    table = Table(f"Trained networks, N = {POINTS}", columns, tuple(rows))
    data = {"grid": grid(256), "panels": drawn}
    return Result("figure3", settings, data, (table,), (verdict,), size)
