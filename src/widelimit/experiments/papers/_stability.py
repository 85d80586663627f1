"""The stability theorem: error, path of the weights and drift of the kernel against the width."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from widelimit.activations import Activation
from widelimit.analysis import smoothness
from widelimit.finite import finite
from widelimit.infinite import ntk
from widelimit.interpret import facts
from widelimit.layers import Layer, resnet
from widelimit.plot import COLOURS, figure
from widelimit.training import Stability, optimise
from widelimit.training import stability as measure
from widelimit.width import ntk_drift

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, Verdict, judge
from .._setting import Setting, target
from ._panels import above, inside, power


def _draw(result: Result) -> Any:
    """Error, path and drift: a row for each activation."""
    found = result.data["found"]
    fig, panels = figure(len(found), 3, width=2.8, height=2.4)
    for (error, path, drift), (name, data) in zip(panels, found.items(), strict=True):
        for i, n in enumerate(data["widths"]):
            relative = (data["error"][i] / data["error"][i][:, :1]).mean(0)
            error.semilogy(data["steps"], relative, color=COLOURS[i], label=f"$n$ = {int(n)}")
        error.semilogy(data["steps"], data["envelope"], "k--", lw=1, label="bound")
        error.set_ylabel(f"{name}: $|e_t|/|e_0|$")
        error.set_xlabel("step")
        above(error, columns=3)
        for panel, key, text in (
            (path, "path", "path of the weights"),
            (drift, "drift", "drift of the kernel"),
        ):
            values, rate = data[key], float(data[f"{key}_rate"][0])
            spread = values.std(1, ddof=1) / np.sqrt(values.shape[1])
            power(panel, data["widths"], (values.mean(1), spread, rate), text, COLOURS[0])
            inside(panel, 7)
        path.set_ylim(path.get_ylim()[0] * 0.7, path.get_ylim()[1] * 1.4)
    return fig


@experiment(
    title="The stability theorem as an experiment",
    source=f"{PAPER}: Theorem 5; Jacot, Gabriel, Hongler: Theorem 2",
    seconds=(30, 200, 2_000),
    full={"widths": (64, 128, 256, 512, 1024, 2048), "networks": 10, "drifts": 150},
    draws=_draw,
    takes={"depth": 3, "alpha": 0.5, "count": 5, "samples": "equispaced"},
    order=19,
    caption=(
        "Left: the error falls below the bound of the theorem (dashed) for all widths. Middle: "
        "the weights of a wide network move as far as those of a narrow one, together. Right: yet "
        "the kernel moves less, the wider the network, and this is why the limit is a fixed "
        "kernel. Upper row: ReLU, which the theorem does not cover; lower row: erf, which it "
        "does."
    ),
)
def stability(
    s: Setting,
    *,
    activations: Sequence[str | Activation] = ("relu", "erf"),
    widths: Sequence[int] = (64, 128, 256, 512),
    networks: int = 4,
    steps: int = 200,
    drifts: int = 60,
) -> Found:
    """Networks of several widths, trained; how far do they and their kernels move?

    Args:
        s: The setting; the authors' repeated point is left out.
        activations: One experiment for each.
        widths: n.
        networks: For each width.
        steps: Gradient steps.
        drifts: Networks of each of two widths for the mean drift on two samples.
    """
    b = s.distinct_angles(s.count)
    counter = s.counter(len(activations) * len(widths) * networks)
    data, rows, moved, verdicts = {}, [], [], []
    for activation in activations:
        net = resnet(depth=s.depth, alpha=s.alpha, activation=activation)
        found = measure(
            net,
            smoothness.circle_points(b),
            target(b),
            widths,
            steps=steps,
            seeds=networks,
            key=s.seed,
            progress=lambda done, total: counter.add(),
        )
        name = str(activation)
        data[name] = found._asdict()
        rows.append((name, found.covered, *found.drift_rate, *found.path_rate, _theory(net)))
        if not _kinked(net) and s.count > 1:
            rows_of = _moved(net, smoothness.circle_points(b[:2]), drifts, s.seed)
            moved += [(name, *row) for row in rows_of]
            verdicts.append(_agrees(name, rows_of))
        verdicts += _verdicts(name, found)
    columns = (
        "activation",
        "covered",
        "drift exponent",
        "±",
        "path exponent",
        "±",
        "theory of the drift",
    )
    tables = [Table("Exponents of the width", columns, tuple(rows))]
    if moved:
        measured = [text for n in _WIDTHS for text in (f"n = {n}", "±")]
        columns = ("activation", "entry", "predicted", *measured, "extrapolated", "±")
        title = f"Mean of n (Theta_t - Theta_0) over {drifts} networks, two samples"
        tables.append(Table(title, columns, tuple(moved)))
    size = (
        f"L = {s.depth}, alpha = {s.alpha:g}, {s.count} samples, {steps} steps, "
        f"{networks} networks each"
    )
    return Found({"found": data}, tuple(tables), tuple(verdicts), size)


def _kinked(net: Layer) -> bool:
    return any(act.breaks for act in facts(net).activations)


def _theory(net: Layer) -> str:
    """Why the exponents of ReLU and erf differ."""
    if _kinked(net):
        return "neurons cross the kink: n^(-1/2) plus 1/n, so between -1/2 and -1"
    return "1/n"


# Single kernels move by n^(-1/2) either way, their mean by 1/n: it is seen in many narrow networks, not in few wide
# ones; targets are large against the outputs at the start, since what they do grows with their square. What is left of
# the next order in 1/n, some 10 % at these widths, an extrapolation takes away.
_WIDTHS, _TARGETS = (64, 128), np.array([3.0, -2.0])


class _Drift(NamedTuple):
    """Of one entry: predicted, measured at either width with its standard error, and extrapolated."""

    entry: str
    predicted: float
    narrow: float
    narrow_error: float
    wide: float
    wide_error: float
    limit: float
    error: float


def _moved(net: Layer, x: np.ndarray, networks: int, seed: int) -> list[_Drift]:
    """Width times the mean drift of the kernel of two samples."""
    values = np.linalg.eigvalsh(ntk(net, x))
    rate, steps = float(0.1 / values[-1]), 200  # small steps: the prediction is for gradient flow
    options = {"learning_rate": rate, "steps": steps, "record": 1, "drift": True}

    def drift(width: int, key: jax.Array, y: np.ndarray) -> np.ndarray:
        run = optimise(finite(net, width), np.float32(x), np.float32(y), key=key, **options)
        kernels = np.asarray(run.kernels, np.float64)
        return width * (kernels[-1] - kernels[0])

    means, errors = [], []
    for width in _WIDTHS:
        keys = jax.random.split(jax.random.fold_in(jax.random.key(seed), width), networks)
        # With both signs of the targets: what is linear in them has mean zero.
        both = [[drift(width, key, sign * _TARGETS) for sign in (1, -1)] for key in keys]
        found = np.mean(both, axis=1)
        means.append(found.mean(0))
        errors.append(found.std(0, ddof=1) / np.sqrt(networks))
    ratio = _WIDTHS[1] / _WIDTHS[0]
    limit = (ratio * means[1] - means[0]) / (ratio - 1)
    error = np.hypot(ratio * errors[1], errors[0]) / (ratio - 1)
    expected = ntk_drift(net, x, _TARGETS, rate * steps)
    columns = expected, means[0], errors[0], means[1], errors[1], limit, error
    places = ((0, 0), (0, 1), (1, 1))
    return [_Drift(f"{i}{j}", *(float(values[i, j]) for values in columns)) for i, j in places]


def _agrees(name: str, rows: list[_Drift]) -> Verdict:
    """Whether the kernel moves as the first order in 1/n says."""
    size = max(abs(row.predicted) for row in rows)
    near = lambda row: abs(row.limit - row.predicted) <= 3 * row.error + 0.03 * size
    words = [f"{r.entry}: {r.limit:.3g} ± {r.error:.2g} against {r.predicted:.3g}" for r in rows]
    return judge(
        f"The mean drift of the kernel is the one that the first order in 1/n gives: {name}.",
        "Extrapolated from two widths, each entry agrees within 3 standard errors plus 3 % of the largest.",
        {row.entry: near(row) for row in rows},
        ", ".join(words),
    )


def _verdicts(name: str, found: Stability) -> tuple[Verdict, Verdict]:
    excess = found.error / found.error[:, :, :1] / found.envelope[None, None, :]
    note = "" if found.covered else " (outside the theorem's hypotheses)"
    (rate, error), (path, path_error) = found.drift_rate, found.path_rate
    return (
        judge(
            f"The error falls at least as fast as the theorem says: {name}{note}.",
            "|e_t| <= (1 - eta lambda_min/3)^t |e_0| at each record of each network.",
            {f"n = {n}": (excess[i] <= 1 + 1e-4).all() for i, n in enumerate(found.widths)},
            f"largest |e_t| over the bound: {excess[:, :, 1:].max():.3g}",
        ),
        judge(
            f"The kernel drifts by at most n^(-1/2), the weights by a bounded path: {name}{note}.",
            "The fitted exponents are at most -1/2 and 0, within 0.05 plus 2 standard errors.",
            {"drift": rate <= -0.5 + 0.05 + 2 * error, "path": path <= 0.05 + 2 * path_error},
            f"drift {rate:.2f} ± {error:.2f}, path {path:.2f} ± {path_error:.2f}",
        ),
    )
