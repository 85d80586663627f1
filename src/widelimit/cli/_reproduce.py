"""`widelimit reproduce`: every figure and table of the papers, with a verdict on every claim."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from ._sentences import sentences

if TYPE_CHECKING:
    from widelimit.experiments import Experiment, Outcome

_MARK = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def command(
    figure: Annotated[
        list[str] | None,
        typer.Option(help="A figure or table, by number or name; may be repeated.", metavar="N"),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List what there is, and stop.")] = False,
    full: Annotated[bool, typer.Option(help="The papers' own sizes; meant for a GPU.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("reproduction"),
    again: Annotated[bool, typer.Option(help="Compute finished parts again.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    samples: Annotated[
        str | None, typer.Option(help="authors, equispaced or random; by default as in the papers.")
    ] = None,
    mnist: Annotated[
        Path | None,
        typer.Option(help="Folder of MNIST's four files, for the part mnist.", metavar="DIR"),
    ] = None,
) -> None:
    """Compute the figures and tables of the papers and judge their claims.

    Finished parts are kept: an interrupted run continues where it stopped.
    """
    from widelimit.experiments import EXPERIMENTS, FolderError, choose, reproduce

    console = Console()
    if list_:
        _list(console, EXPERIMENTS.values())
        return
    with sentences(console, FolderError):
        chosen = choose(figure or (), {"mnist": mnist})
        if full:
            _announce(console, chosen.values())
        seconds = {name: e.seconds_full if full else e.seconds for name, e in chosen.items()}
        options = {"full": full, "samples": samples, "seed": seed, "again": again, "mnist": mnist}
        with _Bars(console, seconds) as bars:
            outcomes = reproduce(out, figures=figure or (), watch=bars, **options)
    _conclude(console, outcomes, out)
    if any(outcome.error for outcome in outcomes):
        raise typer.Exit(1)


def _list(console: Console, known: "Iterable[Experiment]") -> None:
    table = Table(title="widelimit reproduce --figure NAME")
    for column in ("name", "what it shows", "where", "seconds"):
        table.add_column(column)
    for e in known:
        needs = "".join(f" (needs --{key})" for key in e.needs)
        table.add_row(e.name, f"{e.title}{needs}", e.source, f"{e.seconds:.0f}")
    console.print(table)


def _announce(console: Console, chosen: "Iterable[Experiment]") -> None:
    """How long the full size takes, before it starts."""
    import jax

    on_gpu = jax.default_backend() == "gpu"
    seconds = sum(e.seconds_full if on_gpu else e.seconds_cpu for e in chosen)
    where = "the GPU" if on_gpu else "this CPU (no GPU was found)"
    minutes = max(1, round(seconds / 60))
    words = f"{minutes} minute{'s' * (minutes > 1)}" if minutes < 120 else f"{minutes // 60} hours"
    console.print(f"The papers' own sizes take about {words} on {where}.", style="bold")


class _Bars:
    """A bar for the experiment that runs and one for all, by their expected seconds."""

    def __init__(self, console: Console, seconds: dict[str, int]) -> None:
        self.bars = Progress(
            TextColumn("{task.description:<13}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[what]}"),
            console=console,
        )
        self.seconds, self.done = seconds, 0.0
        self.whole = self.bars.add_task("all", total=sum(seconds.values()), what="")

    def __enter__(self) -> "_Bars":
        self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.bars.stop()

    def begin(self, experiment: "Experiment") -> Callable[[int, int], None]:
        """A bar for the experiment."""
        task = self.bars.add_task(experiment.name, total=1.0, what=experiment.title)
        seconds = self.seconds[experiment.name]

        def progress(steps: int, total: int) -> None:
            share = steps / max(total, 1)
            self.bars.update(task, completed=share)
            self.bars.update(self.whole, completed=self.done + seconds * share)

        return progress

    def end(self, outcome: "Outcome") -> None:
        """A line instead of the bar."""
        self.done += self.seconds[outcome.experiment.name]
        self.bars.update(self.whole, completed=self.done)
        for task in self.bars.task_ids:
            if task != self.whole:
                self.bars.remove_task(task)
        self.bars.console.print(_line(outcome), highlight=False)


def _line(outcome: "Outcome") -> str:
    name = f"{outcome.experiment.name:<13}"
    if outcome.error:
        return f"[red]failed[/red]  {name} {escape(outcome.error)}"
    word = "[dim]kept[/dim]  " if outcome.kept else "[green]done[/green]  "
    return f"{word}  {name} {outcome.seconds:6.1f} s  {outcome.experiment.title}"


def _conclude(console: Console, outcomes: "Sequence[Outcome]", out: Path) -> None:
    table = Table(title="Verdicts", show_lines=False)
    table.add_column("part", no_wrap=True)
    table.add_column("claim")
    table.add_column("verdict", no_wrap=True)
    for outcome in outcomes:
        verdicts = outcome.result.verdicts if outcome.result else ()
        for i, v in enumerate(verdicts):
            first = outcome.experiment.name if i == 0 else ""
            table.add_row(first, v.claim, f"[{_MARK[v.verdict]}]{v.verdict}[/]")
        if outcome.error:
            table.add_row(outcome.experiment.name, "not computed", "[red]failed[/]")
    console.print(table)
    console.print(f"Report: {out / 'report.html'}", highlight=False)
