"""Do the orderings hold for sample positions that nobody chose? Many random sets at once."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from widelimit.analysis import smoothness

from ._circle import POINTS, grid, kernel_at
from ._result import Progress, Result, Table, judge
from ._setting import networks, target


class Sets(NamedTuple):
    """Sample sets on the grid of 4096 points: a kernel is then evaluated once for all of them.

    Attributes:
        places: Grid indices of the samples, shape (sets, n).
        labels: Their labels.
        gauss: Their Gaussian interpolants on the grid, shape (sets, 4096).
    """

    places: np.ndarray
    labels: np.ndarray
    gauss: np.ndarray

    def interpolants(self, kernel: np.ndarray) -> np.ndarray:
        """Interpolants on the grid by circular convolution with the kernel's values there."""
        gram = kernel[(self.places[:, :, None] - self.places[:, None, :]) % POINTS]
        weights = np.linalg.solve(gram, self.labels[:, :, None])[:, :, 0]
        spikes = np.zeros((len(self.places), POINTS))
        np.put_along_axis(spikes, self.places, weights, axis=1)
        return np.fft.irfft(np.fft.rfft(spikes) * np.fft.rfft(kernel)[None, :], POINTS)

    def measure(self, net: Any) -> tuple[np.ndarray, np.ndarray]:
        """mu_D2 and the floored mu_G of the network's interpolants, one for each set."""
        angle = 2 * np.pi * np.arange(POINTS) / POINTS
        values = self.interpolants(kernel_at(net, angle))
        bend = [float(smoothness.second_derivative(f, check=False)) for f in values]
        pairs = zip(values, self.gauss, strict=True)
        ratio = [float(smoothness.gaussian_rkhs(f, g, check=False)) for f, g in pairs]
        return np.array(bend), np.array(ratio)


def on_grid(count: int, draws: int, seed: int) -> Sets:
    """Random sets of distinct grid points, at least three steps apart.

    Args:
        count: Samples in a set.
        draws: The number of sets.
        seed: Of the draws.

    Returns:
        The sets with the labels of the target.
    """
    rng = np.random.default_rng([seed, count, draws])
    # Nearer pairs make the Gaussian matrix singular to rounding, and say nothing about networks.
    places = np.stack([_spread(rng, count) for _ in range(draws)])
    labels = target(grid()[places])
    sets = Sets(places, labels, np.zeros((draws, POINTS)))
    angle = 2 * np.pi * np.arange(POINTS) / POINTS
    kernel = kernel_at(None, angle)
    kernel[0] *= 1 + 1e-12
    return sets._replace(gauss=sets.interpolants(kernel))


def _spread(rng: np.random.Generator, count: int) -> np.ndarray:
    while True:
        places = np.sort(rng.choice(POINTS, count, replace=False))
        gaps = np.diff(np.append(places, places[0] + POINTS))
        if gaps.min() >= 3:
            return places


def random_sets(
    *,
    depths: Sequence[int] = (5, 15),
    counts: Sequence[int] = (6, 10, 15),
    alphas: Sequence[float] = (1.0, 0.1, 0.01),
    activation: Any = "relu",
    draws: int = 100,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """How often is one network smoother than another, over random sample sets?

    Args:
        depths: L.
        counts: The numbers of samples.
        alphas: The attenuations, in falling order.
        activation: Of all networks.
        draws: The number of random sets.
        samples: Without effect; every experiment takes it.
        seed: Of the sets.
        progress: Called with (steps done, steps in all).

    Returns:
        The result: a percentage for each pair of networks, measure, depth and number of samples.
    """
    shares, rows, done = {}, [], 0
    for count in counts:
        sets = on_grid(count, draws, seed)
        for depth in depths:
            nets = networks(depth, alphas, activation)
            found = {name: sets.measure(net) for name, net in nets.items()}
            for a, b in _pairs(list(nets)):
                bend = float(np.mean(found[b][0] < found[a][0]))
                ratio = float(np.mean(found[b][1] > found[a][1]))
                shares.setdefault(f"{b} smoother than {a}", {})[f"L={depth}, n={count}"] = {
                    "mu_D2": bend,
                    "mu_G": ratio,
                }
                rows.append((f"{b} smoother than {a}", depth, count, 100 * bend, 100 * ratio))
            done += 1
            if progress is not None:
                progress(done, len(counts) * len(depths))
    columns = ("pair", "L", "samples", "% by mu_D2", "% by mu_G")
    table = Table(f"How often, over {draws} random sets", columns, tuple(rows))
    verdicts = tuple(_verdict(pair, found, draws) for pair, found in shares.items())
    settings = {
        "depths": list(depths),
        "counts": list(counts),
        "alphas": list(alphas),
        "activation": str(activation),
        "draws": draws,
        "seed": seed,
    }
    size = f"closed form; {draws} random sample sets"
    return Result("random_sets", settings, {"shares": shares}, (table,), verdicts, size)


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    first = [(names[0], name) for name in names[1:3]]
    return first + list(itertools.pairwise(names[1:]))


def _verdict(pair: str, found: dict[str, Any], draws: int) -> Any:
    checks = {
        f"{case}, {measure}": share >= 0.95
        for case, both in found.items()
        for measure, share in both.items()
    }
    worst = {m: min(both[m] for both in found.values()) for m in ("mu_D2", "mu_G")}
    return judge(
        f"{pair[0].upper()}{pair[1:]}, whatever the samples.",
        f"In at least 95 % of {draws} random sets, for each depth, number of samples and measure.",
        checks,
        "least share: " + ", ".join(f"{100 * v:.0f} % by {m}" for m, v in worst.items()),
    )
