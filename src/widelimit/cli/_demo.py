"""`widelimit demo`: kernels on the circle, as a table and a figure."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table


def command(
    out: Annotated[Path, typer.Option(help="Folder of the figure.")] = Path("demo"),
) -> None:
    """The tangent kernel of an MLP and of ResNets on the circle: a table and a figure."""
    from widelimit.experiments import demo

    console = Console()
    path = out / "ntk_circle.png"
    try:
        out.mkdir(parents=True, exist_ok=True)
        found = demo(path)
    except OSError as error:
        why = error.strerror or error
        console.print(f"{path} cannot be written: {why}. Choose another folder with --out.")
        raise typer.Exit(2) from None
    table = Table(title=found.title)
    for name in found.columns:
        table.add_column(name.replace("ResNet ", "ResNet, α = "), justify="right")
    *angles, kink = found.rows
    for name, *values in angles:
        table.add_row(name, *(f"{value:.4f}" for value in values))
    table.add_section()
    table.add_row(kink[0], *(f"{value:.4f}" for value in kink[1:]))
    console.print(table)
    console.print(
        "The kink is the slope at equal inputs: the smaller, the smoother what is learnt."
    )
    console.print(f"Figure: {path}")
