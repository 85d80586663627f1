"""`widelimit bench`: accuracy and cost on data that people have."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ._sentences import sentences

app = typer.Typer(
    help="Accuracy and cost on data that you have: tables, images.", no_args_is_help=True
)
_TABLES = ("method", "acc. %", "± folds", "rank", "P90", "P95", "wins")
_IMAGES = ("network", "kernel", "images", "acc. %", "ridge", "kernels s", "solving s")


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

    90 UCI sets take one to two hours on two cores. Finished parts are kept: an interrupted run
    continues where it stopped.
    """
    from widelimit.bench import (
        PROTOCOLS,
        FolderError,
        StoppedError,
        chosen_by,
        rows_of,
        run_tables,
        write_page,
    )

    console = Console()
    bars = _bars(console)
    task = bars.add_task("", total=100, what="")

    def watch(done: int, of: int, share: float, what: str) -> None:
        text = f"{done} of {of}" + (f": {what}" if what else "")
        bars.update(task, completed=100 * share, what=text)

    with sentences(console, FolderError, StoppedError), bars:
        results = run_tables(
            data, out, methods=method or (), sets=set_ or (), jobs=jobs, again=again, watch=watch
        )
        write_page(out, results)
    for name, protocol in PROTOCOLS.items():
        rows = [
            tuple(row[i] for i in (0, 1, 3, 4, 5, 6, 8))
            for row in rows_of(chosen_by(results, name))
        ]
        _show(console, f"{protocol.title} ({protocol.reference})", _TABLES, rows)
    console.print(f"Page: {out / 'README.md'}", highlight=False)


@app.command("images")
def images(
    data: Annotated[
        Path,
        typer.Option(help="Folder of the four files of MNIST or Fashion-MNIST.", metavar="DIR"),
    ],
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("bench-images"),
    network: Annotated[
        list[str] | None, typer.Option(help="connected, cnn or myrtle5; may be repeated.")
    ] = None,
    size: Annotated[
        list[int] | None, typer.Option(help="Training images; may be repeated.", metavar="N")
    ] = None,
    tests: Annotated[int, typer.Option(min=1, help="Test images.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the order of the images.")] = 0,
) -> None:
    """Accuracy of kernel regression against the number of images.

    Without options: the fully connected network with up to 5,000 images, minutes on a CPU. Kernels of
    networks that read pixels are kept strip by strip: an interrupted run continues where it stopped.
    """
    from widelimit.bench import FolderError, image_rows, run_images, write_images_page

    console = Console()
    bars = _bars(console)
    task = bars.add_task("", total=100, what="")

    def watch(done: int, of: int, what: str) -> None:
        bars.update(task, completed=100 * done / of if of else 100, what=what)

    scores = []
    with sentences(console, FolderError), bars:
        for name in network or ["connected"]:
            sizes = size or [500, 1000, 2000, 5000]
            scores += run_images(
                data, out, model=name, sizes=sizes, tests=tests, seed=seed, watch=watch
            )
        write_images_page(out, scores)
    _show(console, f"Kernel regression, {tests} test images at most", _IMAGES, image_rows(scores))
    console.print(f"Page: {out / 'README.md'}", highlight=False)


def _bars(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.completed:>3.0f} %"),
        BarColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[what]}"),
        console=console,
    )


def _show(console: Console, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(head):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)
