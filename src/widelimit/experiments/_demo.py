"""A first look: kernels on the circle, as a table and a figure."""

from pathlib import Path

import numpy as np

from widelimit.analysis import spectrum
from widelimit.plot import angle_axis, figure

from ._result import Table
from ._setting import networks
from .papers import inside, kernel_at, lines

_DEGREES = (0, 10, 30, 60, 90, 120, 180)


def demo(path: str | Path) -> Table:
    """The tangent kernel of an MLP and of ResNets of depth 5 on the circle.

    Args:
        path: Of the figure, which is written.

    Returns:
        The kernels per unit peak at some angles, and in the last row their kinks: the slope at
        equal inputs.
    """
    nets = networks(5)
    per_peak = lambda net, angles: kernel_at(net, angles) / kernel_at(net, 0.0)
    columns = [per_peak(net, np.radians(_DEGREES)) for net in nets.values()]
    rows = [(f"{angle}°", *values) for angle, *values in zip(_DEGREES, *columns, strict=True)]
    rows.append(("kink", *(spectrum.kink(net) for net in nets.values())))
    fig, ((panel,),) = figure(width=4.4, height=3.0)
    around = np.linspace(-np.pi, np.pi, 513)
    lines(panel.plot, around, {name: per_peak(net, around) for name, net in nets.items()})
    angle_axis(panel)
    panel.set_xlabel("angle between the inputs")
    panel.set_ylabel("tangent kernel, per unit peak")
    inside(panel)
    fig.savefig(path, dpi=200, bbox_inches="tight")
    title = "Tangent kernel on the circle per unit peak, depth 5, infinite width"
    return Table(title, ("angle", *nets), tuple(rows))
