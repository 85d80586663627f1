"""The measure in two dimensions: interpolants on the sphere."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import linalg

from widelimit.analysis import smoothness
from widelimit.infinite import ntk

from ._interpolation import falling
from ._result import Progress, Result, Table, judge
from ._setting import JITTER, networks, target

GRID = (256, 128)


def table2(
    *,
    depth: int = 15,
    grids: Sequence[tuple[int, int]] = ((6, 3), (10, 5)),
    alphas: Sequence[float] = (1.0, 0.1),
    activation: Any = "relu",
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    r"""The mixed second-derivative measure of $(\frac12\cos b+\sin4b)\sin\xi$ learnt on the sphere.

    Args:
        depth: L.
        grids: Samples along b in $[-\pi,\pi]$ and $\xi$ in $[0,\pi]$, ends included.
        alphas: The attenuations.
        activation: Of all networks.
        samples: Without effect: the grids are the authors'.
        seed: Without effect.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes (2022), two-dimensional experiment.
    """
    nets = networks(depth, alphas, activation)
    b = -np.pi + 2 * np.pi * np.arange(GRID[0]) / GRID[0]
    xi = np.pi * np.arange(GRID[1]) / GRID[1]
    dense = smoothness.sphere_points(b, xi)
    most = max(g[0] * g[1] for g in grids)
    maps, mus, rows, done = {}, {}, [], 0
    for grid in grids:
        where = np.linspace(-np.pi, np.pi, grid[0]), np.linspace(0, np.pi, grid[1])
        x = smoothness.sphere_points(*where)
        y = np.outer(target(where[0]), np.sin(where[1])).ravel()
        key = f"{grid[0]} x {grid[1]}"
        maps[key], mus[key] = {}, {}
        # Padded to one shape, so that one compiled program serves all grids.
        padded = np.concatenate([x, np.repeat(x[:1], most - len(x), axis=0)])
        for name, net in nets.items():
            rows_of = ntk(net, np.concatenate([padded, dense]), padded)[:, : len(x)]
            gram = (rows_of[: len(x)] + rows_of[: len(x)].T) / 2 + JITTER * np.eye(len(x))
            weights = linalg.solve(gram, y, assume_a="pos")
            values = (rows_of[most:] @ weights).reshape(GRID)
            mus[key][name] = float(smoothness.second_derivative(values, check=False))
            maps[key][name] = values[::4, ::4]
            done += 1
            if progress is not None:
                progress(done, len(grids) * len(nets))
        rows.append((key, *mus[key].values()))
    data = {
        "b": b[::4],
        "xi": xi[::4],
        "target": np.outer(target(b[::4]), np.sin(xi[::4])),
        "maps": maps,
        "mu": mus,
    }
    title = f"Mixed measure on a grid of {GRID[0]} x {GRID[1]}, L = {depth}, smaller is smoother"
    verdict = judge(
        "In two dimensions, too, ResNets interpolate more smoothly, the more so the smaller alpha.",
        "mu_D2 falls from the MLP to the smallest alpha on each grid of samples.",
        {f"{key} samples": falling(list(mu.values())) for key, mu in mus.items()},
        "; ".join(
            f"{key}: {', '.join(f'{v:.4g}' for v in mu.values())}" for key, mu in mus.items()
        ),
    )
    settings = {
        "depth": depth,
        "grids": [list(g) for g in grids],
        "alphas": list(alphas),
        "activation": str(activation),
    }
    table = Table(title, ("samples", *nets), tuple(rows))
    size = "closed form; grids of samples with both ends, as in the papers' code"
    return Result("table2", settings, data, (table,), (verdict,), size)
