"""Figures 3, 8 and 9: networks trained outside the kernel regime, sample by sample."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from widelimit.analysis import smoothness
from widelimit.finite import finite
from widelimit.plot import figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, judge
from .._setting import Counter, Setting, target
from ._circle import grid
from ._panels import above, look, samples, words
from ._training import POINTS, Ensemble, bends, clearly_below, spread

PANELS = (("Adam", 6, 1e-3), ("SGD", 6, 1e-2), ("SGD", 10, 1e-2))


def _bands(panel: Any, grid: Any, case: dict[str, Any]) -> None:
    """Mean and spread of the trained networks."""
    samples(panel, case)
    for i, (name, curves) in enumerate(case["curves"].items()):
        mean, std, style = curves.mean(0), curves.std(0), look(name, i)
        panel.fill_between(grid, mean - std, mean + std, color=style["color"], alpha=0.18, lw=0)
        label = f"{words(name)}: {np.mean(case['mu'][name]):.3g}"
        panel.plot(grid, mean, lw=1.3, label=label, **style)


def _by_panel(result: Result) -> Any:
    """Mean and spread of the trained networks in each panel."""
    data = result.data
    fig, panels = figure(1, len(data["panels"]), width=3.0, height=2.8)
    for panel, (key, case) in zip(panels[0], data["panels"].items(), strict=True):
        _bands(panel, data["grid"], case)
        panel.set_ylabel(key)
        above(panel, "mean of $\\mu_{D2}$, smaller is smoother")
    return fig


def _together(result: Result) -> Any:
    """All networks of Figure 8 or 9 in one panel."""
    fig, ((panel,),) = figure(1, 1, width=4.6, height=3.2)
    _bands(panel, result.data["grid"], result.data)
    panel.set_ylabel("f")
    above(panel, "mean roughness, smaller is smoother", 3)
    return fig


def _apart(result: Result) -> Any:
    """One panel for each network of Figure 8 or 9, as in the talk."""
    data = result.data
    fig, panels = figure(1, len(data["curves"]), width=2.8, height=2.5, sharey=True)
    for i, (name, curves) in enumerate(data["curves"].items()):
        panel = panels[0][i]
        samples(panel, data)
        panel.plot(data["grid"], curves.T, lw=0.8, alpha=0.8, **look(name, i) | {"linestyle": "-"})
        panel.set_title(f"{words(name)}: {np.mean(data['mu'][name]):.3g}")
    panels[0][0].set_ylabel("f")
    return fig


class _Recipe(NamedTuple):
    """How the networks are made and trained.

    Attributes:
        width: Of all networks.
        networks: Initialisations of each.
        epochs: Passes over the samples.
        parameterisation: Of the networks, which decides how they start.
        embed: Angles to inputs.
        measure: Roughness of each of several functions on the grid.
        keep_best: Whether the model of least loss is kept.
    """

    width: int
    networks: int
    epochs: int
    parameterisation: str = "xavier"
    embed: Callable[[np.ndarray], np.ndarray] = smoothness.circle_points
    measure: Callable[[np.ndarray], np.ndarray] = bends
    keep_best: bool = False

    def panel(
        self, s: Setting, counter: Counter, optimiser: str, count: int, rate: float
    ) -> tuple[dict[str, Any], list[tuple[Any, ...]]]:
        """Train every network of the setting on so many samples.

        Args:
            s: The setting.
            counter: Told of each network, by its samples.
            optimiser: "Adam" or "SGD".
            count: The number of samples.
            rate: The learning rate.

        Returns:
            Samples, curves on the grid, roughness and losses by network; and rows for a table.
        """
        b = s.angles(count)
        ensemble = Ensemble(self.networks, s.seed + 1, counter, count)
        curves, mus, losses, rows = {}, {}, {}, []
        for name, net in s.networks().items():
            trained = ensemble.train(
                finite(net, self.width, parameterisation=self.parameterisation),
                (self.embed(b), target(b)),
                self.embed(grid(POINTS)),
                keep_best=self.keep_best,
                optimiser=optimiser.lower(),
                learning_rate=rate,
                epochs=self.epochs,
                batch_size=1,
            )
            mu, loss = self.measure(trained.outputs), trained.loss
            curves[name], mus[name], losses[name] = trained.outputs, mu, loss
            rows.append((name, float(mu.mean()), spread(mu), float(loss.mean())))
        return {"b": b, "y": target(b), "curves": curves, "mu": mus, "loss": losses}, rows


def _every(step: int, case: dict[str, Any]) -> dict[str, Any]:
    """The case with every so many-th point of its curves, enough for a figure."""
    return case | {"curves": {name: f[:, ::step] for name, f in case["curves"].items()}}


@experiment(
    title="Networks trained outside the kernel regime",
    source=f"{PAPER}: Figure 3 (preprint and published), talk: Figure 3",
    seconds=(55, 150, 10_000),
    full={"width": 500, "networks": 30},
    draws=_by_panel,
    takes={"depth": 5, "alphas": (1.0, 0.1), "activation": "relu"},
    order=3,
    caption=(
        "Lines: means over initialisations; bands: one standard deviation. These networks are "
        "narrow, start as in practice and are trained sample by sample, so no theorem covers "
        "them. Is the ordering of Figure 2 still there? Compare the means in the legends. Mind "
        "the samples, too: a curve that misses them has not finished training, and is smooth for "
        "that reason alone."
    ),
)
def figure3(
    s: Setting,
    *,
    width: int = 128,
    networks: int = 4,
    epochs: int = 1000,
    panels: Sequence[tuple[str, int, float]] = PANELS,
) -> Found:
    """Networks with Xavier's initialisation, trained sample by sample with Adam or SGD.

    Args:
        s: The setting.
        width: Of all networks (500 in the paper).
        networks: Initialisations of each (30 in the paper).
        epochs: Passes over the samples; the paper's "1K iterations" read as passes.
        panels: Optimiser, number of samples and learning rate of each.
    """
    counter = s.counter((1 + len(s.alphas)) * networks * sum(count for _, count, _ in panels))
    recipe, drawn, rows = _Recipe(width, networks, epochs), {}, []
    for optimiser, count, rate in panels:
        key = f"{count} samples, {optimiser}"
        case, found = recipe.panel(s, counter, optimiser, count, rate)
        drawn[key] = _every(4, case)
        rows += [(key, *row) for row in found]
    verdict = judge(
        "Outside the kernel regime, too, ResNets are smoother, the more so the smaller alpha.",
        f"The mean of mu_D2 (N = {POINTS}) over the networks falls, by more than the standard error "
        "of the difference, from each network to the next, in each panel.",
        {
            f"{key}: {second} against {first}": clearly_below(case["mu"][second], case["mu"][first])
            for key, case in drawn.items()
            for first, second in itertools.pairwise(case["mu"])
        },
        "; ".join(f"{k}: {', '.join(map(spread, v['mu'].values()))}" for k, v in drawn.items()),
    )
    columns = ("panel", "network", "mean mu_D2", "mean ± std", "mean loss")
    table = Table(f"Trained networks, N = {POINTS}", columns, tuple(rows))
    size = (
        f"{networks} networks of width {width} each (paper: 30 of width 500), {epochs} passes, "
        f"batches of one sample; {s.samples_in_words}"
    )
    return Found({"grid": grid(256), "panels": drawn}, (table,), (verdict,), size)


def _adam(s: Setting, recipe: _Recipe, rate: float) -> Found:
    """Train all networks as Figures 8 and 9 ask, and judge their smoothness."""
    counter = s.counter((1 + len(s.alphas)) * recipe.networks * s.count)
    case, rows = recipe.panel(s, counter, "Adam", s.count, rate)
    mus, losses = case["mu"], case["loss"]
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
            {n: v.mean() <= 0.01 * np.sum(case["y"] ** 2) / 2 for n, v in losses.items()},
            "mean losses " + ", ".join(f"{n}: {v.mean():.2g}" for n, v in losses.items()),
        ),
    )
    size = (
        f"{recipe.networks} networks of width {recipe.width} each (paper: 5 of width 500), "
        f"{recipe.epochs} passes, Adam's rate {rate:g} (paper: 1e-4); {s.samples_in_words}"
    )
    columns = ("network", "mean roughness", "mean ± std", "mean loss")
    table = Table(f"Trained networks, N = {POINTS}, smaller is smoother", columns, tuple(rows))
    data = {"grid": grid(POINTS)[::2]} | _every(2, case)
    return Found(data, (table,), verdicts, size)


_ADAM = {
    "seconds": (50, 120, 3_000),
    "full": {"width": 500, "networks": 5, "rate": 1e-4},
    "draws": {"": _together, "talk": _apart},
    "takes": {"depth": 5, "alphas": (1.0, 0.1), "activation": "relu", "count": 20},
}


@experiment(
    title="Networks trained with Adam on 20 samples",
    source=f"{PAPER}: Figure 8 (preprint), talk: Figure 4",
    order=8,
    caption=(
        "With 20 samples the target (grey, hidden) is well determined and all networks find it; "
        "what differs is how they get from one sample to the next. Compare the mean roughness in "
        "the legend, and the peaks."
    ),
    **_ADAM,
)
def figure8(
    s: Setting, *, width: int = 128, networks: int = 3, epochs: int = 1000, rate: float = 4e-4
) -> Found:
    """Xavier's initialisation, Adam, batches of one sample; the model of least loss is kept.

    Args:
        s: The setting.
        width: Of all networks (500 in the paper).
        networks: Initialisations of each (5 in the paper).
        epochs: Passes over the samples.
        rate: Adam's learning rate; 1e-4 in the paper, for the width 500. A narrower network needs a
            larger one to move as far.
    """
    return _adam(s, _Recipe(width, networks, epochs, keep_best=True), rate)


@experiment(
    title="As Figure 8, with scalar inputs and biases",
    source=f"{PAPER}: Figure 9 (preprint)",
    order=9,
    caption=(
        "The input is the angle itself, not a point of the circle, so nothing makes the two ends "
        "meet. The networks differ most where the target turns; what has not reached the samples "
        "is not finished."
    ),
    **_ADAM,
)
def figure9(
    s: Setting, *, width: int = 128, networks: int = 3, epochs: int = 1000, rate: float = 4e-4
) -> Found:
    r"""The input is the angle itself; weights and biases uniform on $\pm n^{-1/2}$; Adam.

    The function is not periodic, so its roughness is the root mean square of second differences of
    f over its own root mean square. The keywords are those of `figure8`.
    """
    column = lambda b: np.asarray(b, dtype=np.float64)[:, None]
    recipe = _Recipe(width, networks, epochs, "torch", column, _roughness, keep_best=True)
    return _adam(s, recipe, rate)


def _roughness(outputs: Float[np.ndarray, "networks points"]) -> Float[np.ndarray, " networks"]:
    step = 2 * np.pi / POINTS
    second = np.diff(outputs, n=2, axis=1) / step**2
    return np.sqrt(np.mean(second**2, axis=1) / np.mean(outputs**2, axis=1))
