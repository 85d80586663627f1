"""Figure 9: as Figure 8, with scalar inputs and biases."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.finite import finite

from ._circle import grid
from ._figure8 import adam_figure
from ._result import Progress, Result
from ._setting import networks as all_networks
from ._training import POINTS


def figure9(
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
    r"""The input is the angle itself; weights and biases uniform on $\pm n^{-1/2}$; Adam.

    The function is not periodic, so its roughness is the root mean square of second differences of
    f over its own root mean square.

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
        Tirer, Bruna and Giryes, first version (2020), Figure 9.
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
    models = {name: finite(net, width, parameterisation="torch") for name, net in nets.items()}
    column = lambda b: np.asarray(b, dtype=np.float64)[:, None]
    return adam_figure(
        "figure9", models, column, column(grid(POINTS)), _roughness, settings, progress
    )


def _roughness(outputs: np.ndarray) -> np.ndarray:
    step = 2 * np.pi / POINTS
    second = np.diff(outputs, n=2, axis=1) / step**2
    return np.sqrt(np.mean(second**2, axis=1) / np.mean(outputs**2, axis=1))
