"""Figures 2, 4 and 6: kernel shapes and interpolants of an MLP and of ResNets, in closed form."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from widelimit.analysis import spectrum
from widelimit.plot import figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, by_case, falling, judge
from .._setting import Setting
from ._circle import grid, interpolants, shapes
from ._panels import above, fits
from ._panels import shapes as draw_shapes

# Tirer, Bruna and Giryes (2022): the second-derivative measure of ReLU networks, by (L, samples).
_NETS = ("MLP", "ResNet 1", "ResNet 0.5", "ResNet 0.1", "ResNet 0.01")
PUBLISHED: dict[tuple[int, int], dict[str, float]] = {
    (5, 6): dict(zip(_NETS, (58.36, 13.99, 4.090, 1.012, 1.000), strict=True)),
    (5, 10): dict(zip(_NETS, (191.3, 158.7, 145.3, 110.2, 105.1), strict=True)),
    (15, 6): dict(zip(_NETS, (292.4, 60.23, 14.72, 1.104, 1.000), strict=True)),
    (15, 10): dict(zip(_NETS, (421.7, 205.4, 162.5, 118.6, 102.8), strict=True)),
}


def _draw(result: Result) -> Any:
    """Shapes (left) and interpolants with their measures; a row for each depth."""
    data, cases = result.data, result.data["cases"]
    counts = list(next(iter(cases.values()))["samples"])
    fig, panels = figure(len(cases), 1 + len(counts), width=2.9, height=2.7)
    for row, (depth, case) in zip(panels, cases.items(), strict=True):
        kinks = {name: f"{kink:.2g}" for name, kink in case["kink"].items()}
        draw_shapes(row[0], data["angles"], depth, case["shapes"], kinks)
        above(row[0], "kink at $\\Delta$ = 0")
        for panel, count in zip(row[1:], counts, strict=True):
            fits(panel, data["grid"], case["samples"][count])
            panel.set_ylabel(f"{count} samples")
    return fig


@experiment(
    title="Kernel shapes and interpolants: MLP, ResNets with alpha = 1 and 0.1, L = 5 and 15",
    source=f"{PAPER}: Figure 2 (preprint and published), talk: Figure 2",
    seconds=(5, 15),
    draws=_draw,
    takes={"depths": (5, 15), "counts": (6, 10), "alphas": (1.0, 0.1), "activation": "relu"},
    order=2,
    caption=(
        r"Left: the sharper the peak of the kernel at $\Delta=0$, the larger its kink $\kappa$ (in "
        r"the legend); it is largest for the MLP and nearly gone for $\alpha=0.1$. Middle and "
        "right: what the kernels make of the same samples (dots). The MLP bends at each sample as "
        r"if it were hung on pins, the ResNet with $\alpha=0.1$ swings through. Depth (second row) "
        r"sharpens the MLP and leaves the small $\alpha$ as it is. Six samples are too few for the "
        "target (grey) with any kernel."
    ),
)
def figure2(s: Setting) -> Found:
    """Kernel shapes and interpolants of 6 and 10 samples, in closed form.

    Args:
        s: The setting; a row of panels for each depth.

    Returns:
        The result; its data holds shapes, interpolants and both measures.

    Example:
        >>> found = figure2(depths=(2,), counts=(6,))
        >>> found.verdicts[0].verdict
        'holds'
    """
    found = _interpolation(s)
    if len(set(s.depths)) < 2:
        return found
    cases = found.data["cases"]
    first, last = (cases[f"L={f(s.depths)}"]["samples"] for f in (min, max))
    growth = {
        f"{n} samples": [mu / first[n]["mu"][net] for net, mu in last[n]["mu"].items()]
        for n in map(str, s.counts)
    }
    verdict = judge(
        "A larger depth makes the MLP's interpolant rougher, that of the ResNet moderately, and "
        "that of the ResNet with a small alpha hardly.",
        f"mu_D2 at L = {max(s.depths)} over that at L = {min(s.depths)} falls from the MLP to the "
        "smallest alpha, for which it is at most 1.25.",
        {case: falling(g) and g[-1] <= 1.25 for case, g in growth.items()},
        by_case(growth, ".3g"),
    )
    return found._replace(verdicts=(*found.verdicts, verdict))


@experiment(
    title="Figure 2 with alpha = 0.01",
    source=f"{PAPER}: Figure 4 (preprint)",
    seconds=(2, 5),
    draws=_draw,
    takes={"depths": (5, 15), "counts": (6, 10), "alphas": (1.0, 0.1, 0.01), "activation": "relu"},
    order=4,
    caption=(
        r"As Figure 2 with one network more. The kernel for $\alpha=0.01$ (dotted) lies on that "
        r"for $\alpha=0.1$, close to $\cos\Delta$, and the interpolants of 6 samples coincide; "
        r"with 10 samples they part a little between the samples. From here on a smaller $\alpha$ "
        "changes little."
    ),
)
def figure4(s: Setting) -> Found:
    """As `figure2`, with alpha = 0.01; does it still change anything?

    Args:
        s: The setting; the last two attenuations are compared.
    """
    found = _interpolation(s)
    if len(s.alphas) < 2:
        return found
    more = _smallest(found.data["cases"], s.alphas[-2], s.alphas[-1])
    return found._replace(verdicts=found.verdicts + more)


@experiment(
    title="15 random samples, L = 7",
    source=f"{PAPER}: Figure 6 (preprint)",
    seconds=(2, 5),
    draws=_draw,
    takes={
        "depth": 7,
        "count": 15,
        "alphas": (1.0, 0.1, 0.01),
        "activation": "relu",
        "samples": "random",
    },
    order=6,
    caption=(
        "Random positions leave gaps, and the networks differ in how they cross them: the MLP "
        r"nearly along a straight line, a small $\alpha$ by a wave that comes closer to the target "
        r"(grey). Below $\alpha=0.1$ the measure no longer falls."
    ),
)
def figure6(s: Setting) -> Found:
    """Kernel shapes and interpolants of random samples; their positions in the paper are unknown."""
    return _interpolation(s)


def _interpolation(s: Setting) -> Found:
    """Shapes and interpolants for every depth, number of samples and network."""
    depths, counts = s.depths or (s.depth,), s.counts or (s.count,)
    counter = s.counter(len(depths) * (1 + len(counts)))
    cases: dict[str, Any] = {}
    for depth in depths:
        nets = s.networks(depth)
        kinks = {name: spectrum.kink(net) for name, net in nets.items()}
        case = cases[f"L={depth}"] = {"shapes": shapes(nets), "kink": kinks, "samples": {}}
        counter.add()
        for count in counts:
            found = interpolants(nets, s.angles(count), s.jitter, gauss=True)
            case["samples"][str(count)] = found
            counter.add()
    comparable = s.samples == "authors" and str(s.activation) == "relu"
    return Found(
        {"angles": grid(513), "grid": grid(512), "cases": cases},
        (_table(cases, comparable), _kinks(cases)),
        _verdicts(cases),
        f"closed form; {s.samples_in_words}",
    )


def _panels(cases: dict[str, Any]) -> Iterator[tuple[str, tuple[int, int], dict[str, Any]]]:
    """Every depth and number of samples: name, both numbers, what was found."""
    for key, value in cases.items():
        for count, case in value["samples"].items():
            yield f"{key}, {count} samples", (int(key[2:]), int(count)), case


def _table(cases: dict[str, Any], comparable: bool) -> Table:
    known = PUBLISHED if comparable else {}
    rows = tuple(
        (name, net, mu, known.get(where, {}).get(net), case["mu_gauss"][net])
        for name, where, case in _panels(cases)
        for net, mu in case["mu"].items()
    )
    columns = (
        "case",
        "network",
        "mu_D2 (smaller is smoother)",
        "published mu_D2",
        "mu_G, floor 1e-8 (larger is smoother)",
    )
    return Table("Smoothness of the interpolants, N = 4096", columns, rows)


def _kinks(cases: dict[str, Any]) -> Table:
    rows = [(d, net, kink) for d, case in cases.items() for net, kink in case["kink"].items()]
    title = "Kink of the kernel at equal inputs, per unit peak"
    return Table(title, ("depth", "network", "kink"), tuple(rows))


def _verdicts(cases: dict[str, Any]) -> tuple[Verdict, ...]:
    kinks = {depth: list(case["kink"].values()) for depth, case in cases.items()}
    found = [
        judge(
            "The tangent kernel of a ResNet is less edgy than that of the MLP, the more so the "
            "smaller alpha.",
            "The kink of the kernel at equal inputs, per unit peak, falls from the MLP to the "
            "smallest alpha, at each depth.",
            {depth: falling(values) for depth, values in kinks.items()},
            by_case(kinks),
        )
    ]
    for measure, key, sign in (("mu_D2", "mu", 1), ("mu_G", "mu_gauss", -1)):
        main = {
            name: [value for net, value in case[key].items() if net != "ResNet 0.01"]
            for name, _, case in _panels(cases)
        }
        found.append(
            judge(
                "ResNets interpolate more smoothly than the MLP, and a smaller alpha more smoothly "
                f"than a larger one (measure {measure}).",
                f"{measure} {'falls' if sign == 1 else 'rises'} from the MLP to alpha = 0.1 in "
                "every panel.",
                {name: falling(sign * v for v in values) for name, values in main.items()},
                by_case(main),
            )
        )
    return tuple(found)


def _smallest(cases: dict[str, Any], larger: float, smaller: float) -> tuple[Verdict, ...]:
    first, second = f"ResNet {larger:g}", f"ResNet {smaller:g}"
    change, smoother, numbers = {}, {}, []
    for name, _, case in _panels(cases):
        f, g = case["curves"][first], case["curves"][second]
        change[name] = float(np.sqrt(np.mean((f - g) ** 2) / np.mean(f**2)))
        bend, ratio = case["mu"], case["mu_gauss"]
        smoother[f"{name}, mu_D2"] = bend[second] < bend[first]
        smoother[f"{name}, mu_G"] = ratio[second] > ratio[first]
        numbers.append(
            f"{name}: mu_D2 {bend[first]:.4g} -> {bend[second]:.4g}, mu_G "
            f"{ratio[first]:.3g} -> {ratio[second]:.3g}"
        )
    return (
        judge(
            f"alpha = {smaller:g} gives nearly the same interpolant as alpha = {larger:g}.",
            "The root mean square of the difference is at most 15 % of the function's.",
            {name: value <= 0.15 for name, value in change.items()},
            "; ".join(f"{name}: {100 * value:.1f} %" for name, value in change.items()),
        ),
        judge(
            f"Smaller is still smoother: alpha = {smaller:g} against alpha = {larger:g}.",
            "mu_D2 is smaller, and mu_G larger, in every panel.",
            smoother,
            "; ".join(numbers),
        ),
    )
