"""Are the papers' two measures numbers of the function, or of its sampling?"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.plot import figure, plain_ticks

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Setting, target
from ._circle import grid, interpolant
from ._panels import lines, shared

_TITLES = {
    "mu_D2": "$\\mu_{D2}$",
    "mu_G floored": "$\\mu_G$, floor $10^{-8}$",
    "mu_G published": "$\\mu_G$ by float32 FFT",
}


def _draw(result: Result) -> Any:
    """The measures against the number of grid points."""
    data = result.data
    fig, panels = figure(1, 3, width=2.6)
    for panel, (measure, by) in zip(panels[0], data["values"].items(), strict=True):
        lines(panel.loglog, data["points"], by, marker="o", ms=3)
        panel.set_title(_TITLES[measure])
        panel.set_xlabel("grid points $N$")
        plain_ticks(panel.yaxis)
    shared(fig, panels[0][0], "center", 4)
    return fig


@experiment(
    title="What the two measures depend on",
    source=f"{PAPER}: equations 22 and 23 (preprint), definition of mu (talk)",
    seconds=(1, 2),
    draws=_draw,
    takes={"depth": 5, "count": 6, "alphas": (1.0, 0.1, 0.01), "samples": "equispaced"},
    order=15,
    caption=(
        "The same functions measured on finer and finer grids. A number of the function would be "
        r"a horizontal line. $\mu_{\mathrm{D2}}$ rises with $\sqrt N$, since corners have no "
        r"second derivative; with a floor $\mu_{\mathrm G}$ is flat; by the preprint's recipe it "
        "falls, because it measures the rounding of a float32 transform."
    ),
)
def measures(s: Setting, *, points: Sequence[int] = (256, 1024, 4096, 16384)) -> Found:
    """Both measures against the number N of grid points, and the preprint's recipe in float32.

    Args:
        s: The setting; the authors' repeated point is left out.
        points: N.
    """
    b, counter = s.distinct_angles(s.count), s.counter(len(points))
    fits = {name: interpolant(net, b, target(b)) for name, net in s.networks().items()}
    reference = interpolant(None, b, target(b))
    found: dict[str, dict[str, list[float]]] = {m: {name: [] for name in fits} for m in _TITLES}
    for n in points:
        x = smoothness.circle_points(grid(n))
        gauss = reference.predict(x)
        for name, fit in fits.items():
            f = fit.predict(x)
            with warnings.catch_warnings():  # the warning says what this experiment shows
                warnings.simplefilter("ignore")
                recipe = smoothness.gaussian_rkhs(f, gauss, recipe="published")
            values = smoothness.second_derivative(f), smoothness.gaussian_rkhs(f, gauss), recipe
            for by, value in zip(found.values(), values, strict=True):
                by[name].append(float(value))
        counter.add()
    rows = tuple((m, name, *v) for m, by in found.items() for name, v in by.items())
    table = Table("Measures against N", ("measure", "network", *map(str, points)), rows)
    size = f"closed form; L = {s.depth}, {s.count} samples without the repeated end"
    data = {"points": list(points), "values": found}
    return Found(data, (table,), _verdicts(points, found), size)


def _verdicts(
    points: Sequence[int], found: dict[str, dict[str, list[float]]]
) -> tuple[Verdict, ...]:
    last = lambda by: {n: v[-1] / v[-2] for n, v in by.items()}
    show = lambda by: ", ".join(f"{n}: {v:.4g}" for n, v in by.items())
    step = f"N = {points[-2]} to {points[-1]}"
    root = np.sqrt(points[-1] / points[-2])
    bend, floored, published = (last(by) for by in found.values())
    return (
        judge(
            "The second-derivative measure approximates the norm of the second derivative.",
            f"It changes by less than 5 % from {step}.",
            {n: abs(v - 1) < 0.05 for n, v in bend.items()},
            f"ratios {show(bend)}; a function with kinks gives sqrt(N), here {root:.3g}, so N must "
            "be stated",
        ),
        judge(
            "The Gaussian-RKHS measure by dense sampling and FFT is a number of the function.",
            f"It changes by less than 5 % from {step}.",
            {n: abs(v - 1) < 0.05 for n, v in published.items()},
            f"ratios {show(published)}; the norm is infinite, the value is round-off of the transform",
        ),
        judge(
            "With an explicit floor of the eigenvalues the Gaussian measure is a number of the "
            "function.",
            f"It changes by less than 0.1 % from {step}.",
            {n: abs(v - 1) < 1e-3 for n, v in floored.items()},
            f"ratios minus 1: {', '.join(f'{n}: {v - 1:.1e}' for n, v in floored.items())}",
        ),
    )
