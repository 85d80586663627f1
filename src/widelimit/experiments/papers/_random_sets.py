"""Do the orderings hold for sample positions that nobody chose? Many random sets at once."""

import itertools
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from widelimit.analysis import smoothness
from widelimit.layers import Layer
from widelimit.plot import figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Setting, target
from ._circle import POINTS, grid, kernel_at
from ._panels import shared, words


class Sets(NamedTuple):
    """Sample sets on the grid of 4096 points: a kernel is then evaluated once for all of them.

    Attributes:
        places: Grid indices of the samples.
        labels: Their labels.
        gauss: Their Gaussian interpolants on the grid.
    """

    places: Int[np.ndarray, "sets n"]
    labels: Float[np.ndarray, "sets n"]
    gauss: Float[np.ndarray, "sets 4096"]

    def interpolants(self, kernel: Float[np.ndarray, "4096"]) -> Float[np.ndarray, "sets 4096"]:
        """Interpolants on the grid by circular convolution with the kernel's values there."""
        # Thousands of tiny systems: one stacked solve takes a tenth of the time of a model each.
        gram = kernel[(self.places[:, :, None] - self.places[:, None, :]) % POINTS]
        weights = np.linalg.solve(gram, self.labels[:, :, None])[:, :, 0]
        spikes = np.zeros((len(self.places), POINTS))
        np.put_along_axis(spikes, self.places, weights, axis=1)
        return np.fft.irfft(np.fft.rfft(spikes) * np.fft.rfft(kernel)[None, :], POINTS)

    def measure(self, net: Layer) -> tuple[Float[np.ndarray, " sets"], Float[np.ndarray, " sets"]]:
        """mu_D2 and the floored mu_G of the network's interpolants, one for each set."""
        values = self.interpolants(_around(net))
        bend = [float(smoothness.second_derivative(f, check=False)) for f in values]
        pairs = zip(values, self.gauss, strict=True)
        ratio = [float(smoothness.gaussian_rkhs(f, g, check=False)) for f, g in pairs]
        return np.array(bend), np.array(ratio)


def _around(net: Layer | None) -> Float[np.ndarray, "4096"]:
    """The kernel at the angles between grid points."""
    return kernel_at(net, 2 * np.pi * np.arange(POINTS) / POINTS)


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
    sets = Sets(places, target(grid()[places]), np.zeros((draws, POINTS)))
    kernel = _around(None)
    kernel[0] *= 1 + 1e-12
    return sets._replace(gauss=sets.interpolants(kernel))


def _spread(rng: np.random.Generator, count: int) -> Int[np.ndarray, " n"]:
    while True:
        places = np.sort(rng.choice(POINTS, count, replace=False))
        gaps = np.diff(np.append(places, places[0] + POINTS))
        if gaps.min() >= 3:
            return places


def _draw(result: Result) -> Any:
    """How often one network is smoother than another."""
    data = result.data["shares"]
    cases = list(next(iter(data.values())))
    ticks = [c.replace("=", " = ").replace(", ", "\n") for c in cases]
    fig, panels = figure(1, 2, width=3.9, height=2.9, sharey=True)
    for panel, measure, title in zip(
        panels[0], ("mu_D2", "mu_G"), ("$\\mu_{D2}$", "$\\mu_G$, floor $10^{-8}$"), strict=True
    ):
        for i, (pair, by) in enumerate(data.items()):
            label = " smoother than ".join(map(words, pair.split(" smoother than ")))
            values = [100 * by[c][measure] for c in cases]
            panel.plot(range(len(cases)), values, "os^Dv"[i] + "-", ms=4, lw=1, label=label)
        panel.axhline(50, color="0.6", lw=0.8, ls=":")
        panel.set_xticks(range(len(cases)), ticks, fontsize=7)
        panel.set_xlabel("depth $L$, number of samples $n$")
        panel.set_title(f"by {title}")
        panel.set_ylim(-4, 104)
    panels[0][0].set_ylabel("% of random sample sets")
    shared(fig, panels[0][0], "left", 2)
    return fig


@experiment(
    title="The orderings over random sample sets",
    source=f"{PAPER}: the claims of Figures 2, 4 and 6",
    seconds=(3, 20),
    full={"draws": 400},
    draws=_draw,
    takes={
        "depths": (5, 15),
        "counts": (6, 10, 15),
        "alphas": (1.0, 0.1, 0.01),
        "activation": "relu",
    },
    ignores=("samples",),
    order=12,
    caption=(
        "Each point: in how many of the random sample sets the first network is smoother than the "
        "second. At 100 % the ordering does not depend on the samples; at 50 % (dotted line) it "
        r"is a coin toss. A ResNet beats the MLP nearly always; going on from $\alpha=0.1$ to "
        r"$0.01$ gains nothing, and loses by $\mu_{\mathrm G}$."
    ),
)
def random_sets(s: Setting, *, draws: int = 100) -> Found:
    """How often is one network smoother than another, over random sample sets?

    Args:
        s: The setting.
        draws: The number of random sets.

    Returns:
        The result: a percentage for each pair of networks, measure, depth and number of samples.
    """
    counter, shares, rows = s.counter(len(s.counts) * len(s.depths)), {}, []
    for count in s.counts:
        sets = on_grid(count, draws, s.seed)
        for depth in s.depths:
            found = {name: sets.measure(net) for name, net in s.networks(depth).items()}
            for a, b in _pairs(list(found)):
                pair = f"{b} smoother than {a}"
                bend = float(np.mean(found[b][0] < found[a][0]))
                ratio = float(np.mean(found[b][1] > found[a][1]))
                case = {"mu_D2": bend, "mu_G": ratio}
                shares.setdefault(pair, {})[f"L={depth}, n={count}"] = case
                rows.append((pair, depth, count, 100 * bend, 100 * ratio))
            counter.add()
    columns = ("pair", "L", "samples", "% by mu_D2", "% by mu_G")
    table = Table(f"How often, over {draws} random sets", columns, tuple(rows))
    verdicts = tuple(_verdict(pair, found, draws) for pair, found in shares.items())
    size = f"closed form; {draws} random sample sets"
    return Found({"shares": shares}, (table,), verdicts, size)


def _pairs(names: list[str]) -> list[tuple[str, str]]:
    first = [(names[0], name) for name in names[1:3]]
    return first + list(itertools.pairwise(names[1:]))


def _verdict(pair: str, found: dict[str, dict[str, float]], draws: int) -> Verdict:
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
