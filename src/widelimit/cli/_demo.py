"""`widelimit demo`: kernels on the circle, as a table and a figure."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

_NAMES = {"MLP": "MLP", "ResNet 1": "ResNet, α = 1", "ResNet 0.1": "ResNet, α = 0.1"}


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the figure.")] = Path("demo"),
) -> None:
    """The tangent kernel of an MLP and of ResNets on the circle: a table and a figure."""
    import numpy as np

    from widelimit.analysis import spectrum
    from widelimit.experiments import networks
    from widelimit.experiments._circle import kernel_at
    from widelimit.plot._paper_closed import look, words
    from widelimit.plot._style import angle_axis, figure

    console = Console()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        console.print(f"The folder {out} cannot be made: {error.strerror}. Choose another: --out.")
        raise typer.Exit(2) from None
    degrees = (0, 10, 30, 60, 90, 120, 180)
    table = Table(title="Tangent kernel on the circle per unit peak, depth 5, infinite width")
    table.add_column("angle", justify="right")
    nets = networks(5)
    columns = []
    for name, net in nets.items():
        table.add_column(_NAMES[name], justify="right")
        columns.append(kernel_at(net, np.radians(degrees)) / kernel_at(net, 0.0))
    for i, angle in enumerate(degrees):
        table.add_row(f"{angle}°", *(f"{column[i]:.4f}" for column in columns))
    table.add_section()
    table.add_row("kink", *(f"{spectrum.kink(net):.4f}" for net in nets.values()))
    console.print(table)
    fig, panels = figure(width=4.4, height=3.0)
    around = np.linspace(-np.pi, np.pi, 513)
    for name, net in nets.items():
        values = kernel_at(net, around) / kernel_at(net, 0.0)
        panels[0, 0].plot(around, values, label=words(name), **look(name))
    angle_axis(panels[0, 0])
    panels[0, 0].set_xlabel("angle between the inputs")
    panels[0, 0].set_ylabel("tangent kernel, per unit peak")
    panels[0, 0].legend(fontsize=8, frameon=False)
    path = out / "ntk_circle.png"
    fig.savefig(path, dpi=200, bbox_inches="tight")
    console.print(
        "The kink is the slope at equal inputs: the smaller, the smoother what is learnt."
    )
    console.print(f"Figure: {path}")
