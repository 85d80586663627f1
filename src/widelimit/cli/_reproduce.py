"""`widelimit reproduce`: every figure and table of the papers, with a verdict on every claim."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

_MARK = {"holds": "green", "holds in part": "yellow", "does not hold": "red"}


def reproduce(
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
        str | None,
        typer.Option(help="authors, equispaced or random; by default as in the papers."),
    ] = None,
) -> None:
    """Compute the figures and tables of the papers and judge their claims.

    Finished parts are kept: an interrupted run continues where it stopped.
    """
    from widelimit import experiments

    console = Console()
    if list_:
        _list(console, experiments.EXPERIMENTS.values())
        return
    try:
        chosen = list(dict.fromkeys(experiments.find(name).name for name in figure or ()))
        chosen = chosen or list(experiments.EXPERIMENTS)
        if full:
            _announce(console, [experiments.EXPERIMENTS[name] for name in chosen])
        outcomes = _run(console, experiments, chosen, out, full, samples, seed, again)
    except (ValueError, experiments.FolderError) as error:
        console.print(str(error), style="red", highlight=False, markup=False)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        console.print(
            "\nInterrupted. Finished parts are kept; the same command continues after them.",
            style="yellow",
        )
        raise typer.Exit(130) from None
    _conclude(console, outcomes, out)
    if any(outcome.error for outcome in outcomes):
        raise typer.Exit(1)


def _list(console: Console, known: Any) -> None:
    table = Table(title="widelimit reproduce --figure NAME")
    for column in ("name", "what it shows", "where", "seconds"):
        table.add_column(column)
    for e in known:
        table.add_row(e.name, e.title, e.source, f"{e.seconds:.0f}")
    console.print(table)


def _announce(console: Console, chosen: list[Any]) -> None:
    """How long the full size takes, before it starts."""
    import jax

    on_gpu = jax.default_backend() == "gpu"
    longest = lambda e: e.seconds_full if on_gpu else max(e.seconds_full, e.seconds_cpu)
    seconds = sum(map(longest, chosen))
    where = "the GPU" if on_gpu else "this CPU (no GPU was found)"
    minutes = max(1, round(seconds / 60))
    words = f"{minutes} minute{'s' * (minutes > 1)}" if minutes < 120 else f"{minutes // 60} hours"
    console.print(f"The papers' own sizes take about {words} on {where}.", style="bold")


def _run(
    console: Console,
    experiments: Any,
    chosen: list[str],
    out: Path,
    full: bool,
    samples: str | None,
    seed: int,
    again: bool,
) -> list[Any]:
    weight = {
        name: (e.seconds_full if full else e.seconds) for name, e in experiments.EXPERIMENTS.items()
    }
    columns = (
        TextColumn("{task.description:<13}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[what]}"),
    )
    with Progress(*columns, console=console) as bars:
        whole = bars.add_task("all", total=sum(weight[n] for n in chosen), what="")
        done = 0.0
        current: list[Any] = []

        def begin(e: Any) -> Any:
            current[:] = [bars.add_task(e.name, total=1.0, what=e.title)]

            def progress(steps: int, total: int) -> None:
                share = steps / max(total, 1)
                bars.update(current[0], completed=share)
                bars.update(whole, completed=done + weight[e.name] * share)

            return progress

        def end(outcome: Any) -> None:
            nonlocal done
            name = outcome.experiment.name
            done += weight[name]
            bars.update(whole, completed=done)
            for task in current:
                bars.remove_task(task)
            current.clear()
            bars.console.print(_line(outcome), highlight=False)

        return experiments.reproduce(
            out,
            figures=chosen,
            full=full,
            samples=samples,
            seed=seed,
            again=again,
            begin=begin,
            end=end,
        )


def _line(outcome: Any) -> str:
    name = f"{outcome.experiment.name:<13}"
    if outcome.error:
        from rich.markup import escape

        return f"[red]failed[/red]  {name} {escape(outcome.error)}"
    word = "[dim]kept[/dim]  " if outcome.kept else "[green]done[/green]  "
    return f"{word}  {name} {outcome.seconds:6.1f} s  {outcome.experiment.title}"


def _conclude(console: Console, outcomes: list[Any], out: Path) -> None:
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
