"""Figure 8: networks trained with Adam on 20 samples; and its common part with Figure 9."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.finite import finite

from ._circle import grid
from ._result import Progress, Result, Table, judge
from ._setting import angles, describe_samples, target
from ._setting import networks as all_networks
from ._training import POINTS, Counter, bends, clearly_below, spread, train_all


def figure8(
    *,
    depth: int = 5,
    alphas: Sequence[float] = (1.0, 0.1),
    activation: Any = "relu",
    width: int = 128,
    networks: int = 3,
    epochs: int = 1000,
    count: int = 20,
    rate: float = 4e-4,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Xavier's initialisation, Adam, batches of one sample; the model of least loss is kept.

    Args:
        depth: L.
        alphas: The attenuations of the ResNets.
        activation: Of all networks.
        width: Of all networks (500 in the paper).
        networks: Initialisations of each (5 in the paper).
        epochs: Passes over the samples.
        count: The number of samples.
        rate: Adam's learning rate; 1e-4 in the paper, for the width 500. A narrower network needs a
            larger one to move as far.
        samples: "authors", "equispaced" or "random".
        seed: Of the initialisations.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes, first version (2020), Figure 8.
    """
    nets = all_networks(depth, alphas, activation)
    settings = {
        "depth": depth,
        "alphas": list(alphas),
        "activation": str(activation),
        "width": width,
        "networks": networks,
        "epochs": epochs,
        "count": count,
        "rate": rate,
        "samples": samples,
        "seed": seed,
    }
    models = {name: finite(net, width, parameterisation="xavier") for name, net in nets.items()}
    probe = smoothness.circle_points(grid(POINTS))
    return adam_figure(
        "figure8", models, smoothness.circle_points, probe, bends, settings, progress
    )


def adam_figure(
    figure: str,
    models: dict[str, Any],
    embed: Any,
    probe: np.ndarray,
    measure: Any,
    settings: dict[str, Any],
    progress: Progress | None,
) -> Result:
    """Train all models as Figures 8 and 9 ask, and judge their smoothness."""
    count, networks = settings["count"], settings["networks"]
    counter = Counter(progress, len(models) * networks)
    b = angles(count, settings["samples"], settings["seed"])
    curves, mus, losses, rows = {}, {}, {}, []
    for name, network in models.items():
        trained = train_all(
            network,
            embed(b),
            target(b),
            probe,
            networks=networks,
            seed=settings["seed"] + 1,
            counter=counter,
            keep_best=True,
            optimiser="adam",
            learning_rate=settings["rate"],
            epochs=settings["epochs"],
            batch_size=1,
        )
        mu = measure(trained.outputs)
        curves[name], mus[name], losses[name] = trained.outputs[:, ::2], mu, trained.loss
        rows.append((name, float(mu.mean()), spread(mu), float(trained.loss.mean())))
    verdicts = (
        judge(
            "ResNets trained with Adam are smoother than the MLP, the more so the smaller alpha.",
            "The mean roughness over the networks falls, by more than the standard error of the "
            "difference, with each step from the MLP to the smallest alpha, and over all.",
            {
                f"{b} against {a}": clearly_below(mus[b], mus[a])
                for a, b in [*itertools.pairwise(mus), (next(iter(mus)), list(mus)[-1])]
            },
            ", ".join(f"{name}: {spread(mu)}" for name, mu in mus.items()),
        ),
        judge(
            "The trained networks interpolate the samples.",
            "The mean loss is at most 1 % of the loss of the zero function.",
            {n: v.mean() <= 0.01 * np.sum(target(b) ** 2) / 2 for n, v in losses.items()},
            "mean losses " + ", ".join(f"{n}: {v.mean():.2g}" for n, v in losses.items()),
        ),
    )
    size = (
        f"{networks} networks of width {settings['width']} each (paper: 5 of width 500), "
        f"{settings['epochs']} passes, Adam's rate {settings['rate']:g} (paper: 1e-4); "
        f"{describe_samples(settings['samples'])}"
    )
    columns = ("network", "mean roughness", "mean ± std", "mean loss")
    table = Table(f"Trained networks, N = {POINTS}, smaller is smoother", columns, tuple(rows))
    data = {
        "grid": grid(POINTS)[::2],
        "b": b,
        "y": target(b),
        "curves": curves,
        "mu": mus,
        "loss": losses,
    }
    return Result(figure, settings, data, (table,), verdicts, size)
