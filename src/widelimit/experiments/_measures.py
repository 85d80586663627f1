"""Are the papers' two measures numbers of the function, or of its sampling?"""

import warnings
from collections.abc import Sequence

import numpy as np

from widelimit.analysis import smoothness

from ._circle import kernel_at
from ._result import Progress, Result, Table, judge
from ._setting import angles, networks, target


def measures(
    *,
    points: Sequence[int] = (256, 1024, 4096, 16384),
    depth: int = 5,
    count: int = 6,
    alphas: Sequence[float] = (1.0, 0.1, 0.01),
    samples: str = "equispaced",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Both measures against the number N of grid points, and the preprint's recipe in float32.

    Args:
        points: N.
        depth: L.
        count: The number of samples.
        alphas: The attenuations.
        samples: "equispaced", or "random"; the authors' repeated point is left out.
        seed: Of random samples.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.
    """
    b = angles(count, "equispaced" if samples == "authors" else samples, seed)
    nets = {**networks(depth, alphas), "Gaussian": None}
    weights = {
        n: np.linalg.solve(kernel_at(net, b[:, None] - b[None, :]), target(b))
        for n, net in nets.items()
    }
    found: dict[str, dict[str, list[float]]] = {
        "mu_D2": {},
        "mu_G floored": {},
        "mu_G published": {},
    }
    for i, n in enumerate(points):
        at = -np.pi + 2 * np.pi * np.arange(n) / n
        values = {
            name: kernel_at(net, at[:, None] - b[None, :]) @ weights[name]
            for name, net in nets.items()
        }
        gauss = values.pop("Gaussian")
        for name, f in values.items():
            with warnings.catch_warnings():  # the warning says what this experiment shows
                warnings.simplefilter("ignore")
                recipe = float(smoothness.gaussian_rkhs(f, gauss, recipe="published"))
            found["mu_D2"].setdefault(name, []).append(float(smoothness.second_derivative(f)))
            floored = float(smoothness.gaussian_rkhs(f, gauss))
            found["mu_G floored"].setdefault(name, []).append(floored)
            found["mu_G published"].setdefault(name, []).append(recipe)
        if progress is not None:
            progress(i + 1, len(points))
    rows = tuple((m, name, *v) for m, by in found.items() for name, v in by.items())
    table = Table("Measures against N", ("measure", "network", *map(str, points)), rows)
    size = f"closed form; L = {depth}, {count} samples without the repeated end"
    settings = {
        "points": list(points),
        "depth": depth,
        "count": count,
        "alphas": list(alphas),
        "samples": samples,
        "seed": seed,
    }
    data = {"points": list(points), "values": found}
    return Result("measures", settings, data, (table,), _verdicts(points, found), size)


def _verdicts(points: Sequence[int], found: dict) -> tuple:
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
