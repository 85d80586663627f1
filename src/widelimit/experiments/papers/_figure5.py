"""Figure 5: the Gaussian kernel, the reference of the preprint's measure."""

from typing import Any

import numpy as np

from widelimit.analysis import smoothness
from widelimit.plot import COLOURS, figure

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, judge
from .._setting import Setting, networks
from ._circle import grid, interpolants, kernel_at
from ._panels import circle, samples


def _draw(result: Result) -> Any:
    """The Gaussian kernel, its eigenvalues, its interpolants."""
    data = result.data
    fig, panels = figure(1, 2 + len(data["panels"]), width=2.5, height=2.4)
    shape, decay, *rest = panels[0]
    shape.plot(data["angles"], data["shape"], color="k")
    circle(shape, "\\Delta")
    shape.set_ylabel("$\\exp(\\cos\\Delta-1)$")
    shape.set_ylim(0, 1.05)
    decay.semilogy(data["degrees"], data["eigenvalues"], "o-", color="k", ms=3)
    decay.set_xlabel("harmonic $k$")
    decay.set_ylabel("eigenvalue $e^{-1}I_k(1)$")
    for panel, (count, case) in zip(rest, data["panels"].items(), strict=True):
        samples(panel, case)
        panel.plot(data["grid"], case["curve"], color=COLOURS[0], lw=1.3)
        panel.set_title(f"{count} samples (grey: target)")
    return fig


@experiment(
    title="The Gaussian kernel: shape and interpolants",
    source=f"{PAPER}: Figure 5 (preprint)",
    seconds=(1, 2),
    draws=_draw,
    takes={"counts": (6, 10)},
    order=5,
    caption=(
        r"The reference of the measure $\mu_{\mathrm G}$. Its kernel has no kink (first panel), "
        "its eigenvalues fall faster than exponentially (second: a straight line would be "
        "exponential), and its interpolants (blue) are the smoothest that there are."
    ),
)
def figure5(s: Setting) -> Found:
    r"""The kernel $\exp(-|x-x'|^2/2)$ on the circle and its interpolants."""
    counter, panels, rows, smoothest = s.counter(len(s.counts)), {}, [], {}
    for count in s.counts:
        found = interpolants({"Gaussian": None, **networks(5)}, s.angles(count), s.jitter)
        curve, mus = found["curves"]["Gaussian"], found["mu"]
        panels[str(count)] = {"b": found["b"], "y": found["y"], "curve": curve}
        rows += [(count, name, mu) for name, mu in mus.items()]
        first, *others = mus
        smoothest |= {f"{count} samples, {n}": mus[first] <= mus[n] for n in others}
        counter.add()
    degrees = np.arange(17)
    eigenvalues = smoothness.gaussian_eigenvalues(degrees)
    fall = eigenvalues[1:] / eigenvalues[:-1]
    verdicts = (
        judge(
            "The Gaussian kernel is the smooth reference: its interpolants are smoother than those "
            "of the neural kernels.",
            "mu_D2 of the Gaussian interpolant is at most that of each network with L = 5.",
            smoothest,
            "; ".join(f"{n} samples, {name}: {mu:.4g}" for n, name, mu in rows),
        ),
        judge(
            "The eigenvalues of the Gaussian kernel on the circle decay exponentially.",
            "Successive eigenvalues fall by a factor below 1 (at least exponentially) that, for "
            "k <= 16, stays above half of its first value (not faster).",
            {"at least exponentially": fall.max() < 1, "not faster": fall.min() > 0.5 * fall[0]},
            f"ratios from {fall[0]:.3g} at k = 1 to {fall[-1]:.3g} at k = 16",
        ),
    )
    data = {
        "angles": grid(513),
        "shape": kernel_at(None, grid(513)),
        "grid": grid(512),
        "panels": panels,
        "degrees": degrees,
        "eigenvalues": eigenvalues,
    }
    table = Table("Smoothness, N = 4096", ("samples", "kernel", "mu_D2"), tuple(rows))
    return Found(data, (table,), verdicts, f"closed form; {s.samples_in_words}")
