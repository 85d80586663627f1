"""Figure 7: the Fourier transform of the kernels."""

from typing import Any

import numpy as np

from widelimit.analysis import spectrum

from ._circle import POINTS, kernel_at
from ._result import Progress, Result, Table, judge
from ._setting import networks


def figure7(
    *,
    depth: int = 5,
    alpha: float = 0.1,
    activation: Any = "relu",
    shown: int = 128,
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    r"""The first values of the transform of 4096 samples $\Theta(2\pi q/4096)$.

    Args:
        depth: L.
        alpha: Of the ResNet.
        activation: Of both networks.
        shown: How many values.
        samples: Without effect; every experiment takes it.
        seed: Without effect.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Example:
        >>> round(float(figure7().data["magnitude"]["MLP"][0]), 4)
        154.5911

    Reference:
        Tirer, Bruna and Giryes, first version (2020), Figure 7.
    """
    nets = networks(depth, (alpha,), activation)
    angle = 2 * np.pi * np.arange(POINTS) / POINTS
    magnitude, exact, peak = {}, {}, {}
    for i, (name, net) in enumerate(nets.items()):
        magnitude[name] = np.abs(np.fft.fft(kernel_at(net, angle)))[:shown]
        exact[name] = spectrum.circle(net, shown - 1).values
        peak[name] = float(kernel_at(net, 0.0))
        if progress is not None:
            progress(i + 1, len(nets))
    first, second = nets
    ratio = magnitude[first][2:] / magnitude[second][2:]
    unit = {n: magnitude[n] / (POINTS * peak[n]) for n in nets}
    some = [k for k in (0, 1, 2, 3, 4, 5, 8, 16, 32, 64, 127) if k < shown]
    rows = tuple(
        (k, magnitude[first][k], magnitude[second][k], magnitude[first][k] / magnitude[second][k])
        for k in some
    )
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
            {f"k = {k}": unit[second][k] < unit[first][k] for k in range(2, shown)},
            f"at k = 64: {unit[second][min(64, shown - 1)]:.3g} against "
            f"{unit[first][min(64, shown - 1)]:.3g}",
        ),
    )
    data = {"k": np.arange(shown), "magnitude": magnitude, "exact": exact, "peak": peak}
    settings = {"depth": depth, "alpha": alpha, "activation": str(activation), "shown": shown}
    columns = ("k", first, second, "ratio")
    table = Table("Magnitudes of the transform of 4096 values", columns, rows)
    return Result("figure7", settings, data, (table,), verdicts, "closed form")
