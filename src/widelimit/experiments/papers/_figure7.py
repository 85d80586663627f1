"""Figure 7: the Fourier transform of the kernels."""

from typing import Any

import numpy as np

from widelimit.analysis import spectrum
from widelimit.plot import figure, plain_ticks

from .._experiment import PAPER, experiment
from .._result import Found, Result, Table, judge
from .._setting import Setting, networks
from ._circle import POINTS, kernel_at
from ._panels import inside, lines


def _draw(result: Result) -> Any:
    """Magnitudes of the kernels' transforms and their ratio."""
    data = result.data
    fig, ((left, right),) = figure(1, 2, width=3.4)
    lines(left.semilogy, data["k"], data["magnitude"], lw=1.1, linestyle="-")
    left.set_ylabel("magnitude")
    first, second = data["magnitude"].values()
    k, ratio = data["k"][2:], (first / second)[2:]
    for parity, label, mark in ((0, "even $k$", "o"), (1, "odd $k$", "s")):
        right.semilogy(k[parity::2], ratio[parity::2], mark, ms=2.5, label=label)
    plain_ticks(right.yaxis)
    right.set_ylabel("MLP / ResNet")
    for panel in (left, right):
        panel.set_xlabel("index $k$ of the transform")
        inside(panel)
    return fig


@experiment(
    title="Fourier transforms of the kernels",
    source=f"{PAPER}: Figure 7 (preprint)",
    seconds=(2, 5),
    draws=_draw,
    takes={"depth": 5, "alpha": 0.1, "activation": "relu"},
    ignores=("samples", "seed"),
    order=7,
    caption=(
        "Left: the high harmonics of the MLP's kernel fall like $k^{-2}$, which is its kink; "
        "those of the ResNet lie far lower and zigzag between even and odd $k$. Right: the ratio "
        "is not one factor: it starts at 1.5 and 52 and settles only beyond $k=50$, at two "
        "different values."
    ),
)
def figure7(s: Setting, *, shown: int = 128) -> Found:
    r"""The first values of the transform of 4096 samples $\Theta(2\pi q/4096)$.

    Args:
        s: The setting.
        shown: How many values.

    Example:
        >>> round(float(figure7().data["magnitude"]["MLP"][0]), 4)
        154.5911
    """
    nets = networks(s.depth, (s.alpha,), s.activation)
    counter = s.counter(len(nets))
    angle = 2 * np.pi * np.arange(POINTS) / POINTS
    magnitude, exact, peak = {}, {}, {}
    for name, net in nets.items():
        magnitude[name] = np.abs(np.fft.fft(kernel_at(net, angle)))[:shown]
        exact[name] = spectrum.circle(net, shown - 1).values
        peak[name] = float(kernel_at(net, 0.0))
        counter.add()
    first, second = magnitude.values()
    ratio = first[2:] / second[2:]
    mlp, other = (values / (POINTS * peak[name]) for name, values in magnitude.items())
    some = [k for k in (0, 1, 2, 3, 4, 5, 8, 16, 32, 64, 127) if k < shown]
    at = min(64, shown - 1)
    verdicts = (
        judge(
            "The spectra of the MLP and the ResNet differ approximately by a factor only.",
            "Their ratio varies by less than a factor of 2 over k = 2, ..., 127.",
            {"ratio": ratio.max() / ratio.min() < 2},
            f"the ratio lies between {ratio.min():.3g} (k = {2 + ratio.argmin()}) and "
            f"{ratio.max():.3g} (k = {2 + ratio.argmax()})",
        ),
        judge(
            "The ResNet's kernel has less of the high frequencies.",
            "Per unit peak, every magnitude with k >= 2 is smaller than the MLP's.",
            {f"k = {k}": other[k] < mlp[k] for k in range(2, shown)},
            f"at k = 64: {other[at]:.3g} against {mlp[at]:.3g}",
        ),
    )
    data = {"k": np.arange(shown), "magnitude": magnitude, "exact": exact, "peak": peak}
    rows = tuple((k, first[k], second[k], first[k] / second[k]) for k in some)
    table = Table("Magnitudes of the transform of 4096 values", ("k", *nets, "ratio"), rows)
    return Found(data, (table,), verdicts, "closed form")
