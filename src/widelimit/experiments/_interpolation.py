"""Kernel shapes and interpolants of several networks: the common part of Figures 2, 4 and 6."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from widelimit.analysis import spectrum

from ._circle import grid, interpolate, jitter_for, kernel_at
from ._result import Progress, Result, Table, Verdict, judge
from ._setting import angles, describe_samples, networks, target

# Tirer, Bruna and Giryes (2022): the second-derivative measure of ReLU networks, by (L, samples).
PUBLISHED = {
    (5, 6): {
        "MLP": 58.36,
        "ResNet 1": 13.99,
        "ResNet 0.5": 4.090,
        "ResNet 0.1": 1.012,
        "ResNet 0.01": 1.000,
    },
    (5, 10): {
        "MLP": 191.3,
        "ResNet 1": 158.7,
        "ResNet 0.5": 145.3,
        "ResNet 0.1": 110.2,
        "ResNet 0.01": 105.1,
    },
    (15, 6): {
        "MLP": 292.4,
        "ResNet 1": 60.23,
        "ResNet 0.5": 14.72,
        "ResNet 0.1": 1.104,
        "ResNet 0.01": 1.000,
    },
    (15, 10): {
        "MLP": 421.7,
        "ResNet 1": 205.4,
        "ResNet 0.5": 162.5,
        "ResNet 0.1": 118.6,
        "ResNet 0.01": 102.8,
    },
}


def interpolation(
    name: str,
    depths: Sequence[int],
    counts: Sequence[int],
    alphas: Sequence[float],
    activation: Any,
    samples: str,
    seed: int,
    progress: Progress | None,
) -> Result:
    """Shapes and interpolants for every depth, number of samples and network."""
    cases, done = {}, 0
    total = len(depths) * (1 + len(counts))
    for depth in depths:
        nets = networks(depth, alphas, activation)
        shapes = {n: kernel_at(net, grid(513)) for n, net in nets.items()}
        shapes = {n: v / kernel_at(nets[n], 0.0) for n, v in shapes.items()}
        kinks = {n: spectrum.kink(net) for n, net in nets.items()}
        cases[f"L={depth}"] = {"shapes": shapes, "kink": kinks, "samples": {}}
        done = _report(progress, done, total)
        for count in counts:
            cases[f"L={depth}"]["samples"][str(count)] = _fits(nets, count, samples, seed)
            done = _report(progress, done, total)
    data = {"angles": grid(513), "grid": grid(512), "cases": cases}
    settings = {
        "depths": list(depths),
        "counts": list(counts),
        "alphas": list(alphas),
        "activation": str(activation),
        "samples": samples,
        "seed": seed,
    }
    comparable = samples == "authors" and str(activation) == "relu"
    tables = (_table(cases, comparable), _kinks(cases))
    size = f"closed form; {describe_samples(samples)}"
    return Result(name, settings, data, tables, tuple(_verdicts(cases)), size)


def _report(progress: Progress | None, done: int, total: int) -> int:
    if progress is not None:
        progress(done + 1, total)
    return done + 1


def _fits(nets: dict[str, Any], count: int, samples: str, seed: int) -> dict[str, Any]:
    b = angles(count, samples, seed)
    y, jitter = target(b), jitter_for(samples)
    gauss = interpolate(None, b, y, jitter=jitter)
    fits = {n: interpolate(net, b, y, gauss, jitter) for n, net in nets.items()}
    return {
        "b": b,
        "y": y,
        "curves": {n: fit.shown for n, fit in fits.items()},
        "mu": {n: fit.mu for n, fit in fits.items()},
        "mu_gauss": {n: fit.mu_gauss for n, fit in fits.items()},
        "condition": {n: fit.condition for n, fit in fits.items()},
    }


def blocks(cases: dict[str, Any]) -> list[tuple[str, int, int, dict[str, Any]]]:
    """Every depth and number of samples: name, depth, count, numbers."""
    return [
        (f"{key}, {count} samples", int(key[2:]), int(count), case)
        for key, value in cases.items()
        for count, case in value["samples"].items()
    ]


def _table(cases: dict[str, Any], comparable: bool) -> Table:
    rows = []
    for name, depth, count, case in blocks(cases):
        known = PUBLISHED.get((depth, count), {}) if comparable else {}
        for net, mu in case["mu"].items():
            rows.append((name, net, mu, known.get(net), case["mu_gauss"][net]))
    columns = (
        "case",
        "network",
        "mu_D2 (smaller is smoother)",
        "published mu_D2",
        "mu_G, floor 1e-8 (larger is smoother)",
    )
    return Table("Smoothness of the interpolants, N = 4096", columns, tuple(rows))


def _kinks(cases: dict[str, Any]) -> Table:
    rows = [(d, net, kink) for d, case in cases.items() for net, kink in case["kink"].items()]
    title = "Kink of the kernel at equal inputs, per unit peak"
    return Table(title, ("depth", "network", "kink"), tuple(rows))


def falling(values: Sequence[float]) -> bool:
    """Strictly decreasing."""
    return all(a > b for a, b in itertools.pairwise(values))


def _verdicts(cases: dict[str, Any]) -> list[Verdict]:
    main = lambda values: [v for net, v in values.items() if net != "ResNet 0.01"]
    numbers = lambda values: ", ".join(f"{v:.4g}" for v in values)
    found = [
        judge(
            "The tangent kernel of a ResNet is less edgy than that of the MLP, the more so the "
            "smaller alpha.",
            "The kink of the kernel at equal inputs, per unit peak, falls from the MLP to the "
            "smallest alpha, at each depth.",
            {d: falling(list(case["kink"].values())) for d, case in cases.items()},
            "; ".join(f"{d}: {numbers(case['kink'].values())}" for d, case in cases.items()),
        )
    ]
    for measure, key, sign in (("mu_D2", "mu", 1), ("mu_G", "mu_gauss", -1)):
        word = "falls" if sign == 1 else "rises"
        checks = {
            name: falling([sign * v for v in main(case[key])]) for name, _, _, case in blocks(cases)
        }
        text = "; ".join(
            f"{name}: {numbers(main(case[key]))}" for name, _, _, case in blocks(cases)
        )
        found.append(
            judge(
                "ResNets interpolate more smoothly than the MLP, and a smaller alpha more smoothly "
                f"than a larger one (measure {measure}).",
                f"{measure} {word} from the MLP to alpha = 0.1 in every panel.",
                checks,
                text,
            )
        )
    return found


def ratio_of(cases: dict[str, Any], net: str, count: str) -> float:
    """mu_D2 of the deepest over that of the shallowest network."""
    depths = sorted(cases, key=lambda d: int(d[2:]))
    first, last = (cases[d]["samples"][count]["mu"][net] for d in (depths[0], depths[-1]))
    return float(last / first)


def difference(first: np.ndarray, second: np.ndarray) -> float:
    """The root mean square of a difference, relative to the first."""
    return float(np.sqrt(np.mean((first - second) ** 2) / np.mean(first**2)))
