"""`widelimit bench`: accuracy and cost on data that people have."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

app = typer.Typer(
    help="Accuracy and cost on data that you have: tables, images.", no_args_is_help=True
)
_HEAD = ("method", "accuracy %", "± sets", "± folds", "rank", "P90 %", "P95 %", "PMA %", "best on")


@app.command("tables")
def tables(
    data: Annotated[
        Path, typer.Option(help="The collection's folder, one folder a set.", metavar="DIR")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("bench-tables"),
    method: Annotated[
        list[str] | None, typer.Option(help="ntk, nngp, resnet, ...; may be repeated.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A set by name; may be repeated.")
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0: one for each core.")] = 0,
    again: Annotated[bool, typer.Option(help="Compute finished parts again.")] = False,
) -> None:
    """Kernels of infinite networks beside forests, boosting and Gaussian kernels, on small tables.

    90 UCI sets take about 80 minutes on two cores. Finished parts are kept: an interrupted run
    continues where it stopped.
    """
    from widelimit.bench import PROTOCOLS, BenchError, chosen_by, rows_of, run_tables, write_page

    console = Console()
    bars = Progress(
        TextColumn("{task.completed:>3.0f} %"),
        BarColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[what]}"),
        console=console,
    )
    task = bars.add_task("", total=100, what="")

    def watch(done: int, of: int, share: float, what: str) -> None:
        text = f"{done} of {of}" + (f": {what}" if what else "")
        bars.update(task, completed=100 * share, what=text)

    try:
        with bars:
            results = run_tables(
                data,
                out,
                methods=method or (),
                sets=set_ or (),
                jobs=jobs,
                again=again,
                watch=watch,
            )
        write_page(out, results)
    except (ValueError, BenchError) as error:
        console.print(str(error), style="red", highlight=False, markup=False)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print(
            "\nInterrupted. Finished parts are kept; the same command continues after them.",
            style="yellow",
        )
        raise typer.Exit(130) from None
    for name, protocol in PROTOCOLS.items():
        table = Table(title=f"{protocol.title} ({protocol.reference})")
        for i, column in enumerate(_HEAD):
            table.add_column(column, justify="right" if i else "left", no_wrap=True)
        for row in rows_of(chosen_by(results, name)):
            table.add_row(*row)
        console.print(table)
    console.print(f"Page: {out / 'README.md'}", highlight=False)
