"""Running experiments one after another, keeping what is finished."""

import dataclasses
import inspect
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from widelimit._base.names import unknown
from widelimit.report import write_report

from . import _store as store
from ._registry import EXPERIMENTS, Experiment, find
from ._result import Progress, Result, plain
from ._setting import KINDS


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of an experiment.

    Attributes:
        experiment: The experiment.
        result: Its numbers, or None after a failure.
        seconds: What computing it took.
        kept: Whether it was there already.
        error: What went wrong, or None.
        files: The names of its figures, in its folder.
    """

    experiment: Experiment
    result: Result | None
    seconds: float
    kept: bool = False
    error: str | None = None
    files: tuple[str, ...] = ()


def arguments(
    experiment: Experiment, *, full: bool = False, samples: str | None = None, seed: int = 0
) -> dict[str, Any]:
    """The arguments of an experiment in one of its two sizes.

    Args:
        experiment: The experiment.
        full: The papers' settings instead of the quick ones.
        samples: The kind of samples; None for the experiment's own.
        seed: Of everything random.

    Returns:
        Keyword arguments of `experiment.run`.
    """
    if samples is not None and samples not in KINDS:
        raise ValueError(unknown("samples", samples, KINDS))
    chosen: dict[str, Any] = {"seed": int(seed)}
    if samples is not None:
        chosen["samples"] = samples
    return chosen | (dict(experiment.full) if full else {})


def reproduce(
    out: Any = "reproduction",
    *,
    figures: Sequence[Any] = (),
    full: bool = False,
    samples: str | None = None,
    seed: int = 0,
    again: bool = False,
    begin: Callable[[Experiment], Progress | None] | None = None,
    end: Callable[[Outcome], None] | None = None,
) -> list[Outcome]:
    """Compute experiments, draw them, and write everything into a folder with a report.

    Args:
        out: The folder; new, empty, or of an earlier run, whose finished parts are kept.
        figures: Names or numbers; empty for all.
        full: The papers' settings (hours on a CPU).
        samples: "authors", "equispaced" or "random"; None: as in the papers.
        seed: Of everything random.
        again: Whether to compute finished experiments again.
        begin: Called before each experiment; may return a progress callback for it.
        end: Called after each experiment.

    Returns:
        The outcomes, failures included.
    """
    chosen = [find(name) for name in figures] or list(EXPERIMENTS.values())
    chosen = list(dict.fromkeys(e.name for e in chosen))
    for name in chosen:
        arguments(EXPERIMENTS[name], samples=samples)
    folder = Path(out)
    store.open_folder(folder)
    outcomes = []
    for name in chosen:
        experiment = EXPERIMENTS[name]
        wanted = arguments(experiment, full=full, samples=samples, seed=seed)
        outcome = None if again else _kept(folder, experiment, wanted)
        if outcome is None:
            progress = None if begin is None else begin(experiment)
            outcome = _compute(folder, experiment, wanted, progress)
        outcomes.append(outcome)
        if end is not None:
            end(outcome)
    write_report(folder, _with_earlier(folder, outcomes), full=full)
    return outcomes


def _signature(experiment: Experiment, wanted: dict[str, Any]) -> dict[str, Any]:
    """All arguments, defaults included: what a finished result must have been computed with."""
    defaults = {
        name: p.default
        for name, p in inspect.signature(experiment.run).parameters.items()
        if name != "progress"
    }
    return plain(defaults | wanted)


def _kept(folder: Path, experiment: Experiment, wanted: dict[str, Any]) -> Outcome | None:
    found = store.read(folder, experiment.name)
    if found is None or found[1].get("arguments") != _signature(experiment, wanted):
        return None
    result, run = found
    return Outcome(experiment, result, run["seconds"], True, None, tuple(run["files"]))


def _compute(
    folder: Path, experiment: Experiment, wanted: dict[str, Any], progress: Progress | None
) -> Outcome:
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they warn of is judged in the verdicts
            result = experiment.run(**wanted, progress=progress)
            # The figure is drawn from what is stored, so that the stored numbers are enough for it.
            result = Result.from_json(result.to_json())
            seconds = time.perf_counter() - started
            with store.new_folder(folder, experiment.name) as place:
                files = _draw(result, place)
                run = {
                    "arguments": _signature(experiment, wanted),
                    "seconds": seconds,
                    "files": files,
                }
                store.write_result(place, result, run)
    except Exception as error:
        seconds = time.perf_counter() - started
        text = "".join(traceback.format_exception_only(error)).strip()
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text:
            text = f"Not enough memory: {text}"
        return Outcome(experiment, None, seconds, False, text)
    return Outcome(experiment, result, seconds, False, None, tuple(files))


def _draw(result: Result, place: Path) -> list[str]:
    from widelimit.plot import _paper as paper

    files = []
    for suffix, fig in paper.papers(result).items():
        stem = f"{result.name}{'_' if suffix else ''}{suffix}"
        fig.draw_without_rendering()
        fig.set_layout_engine("none")  # it is laid out once, not again for each file
        fig.savefig(place / f"{stem}.png", dpi=160)
        fig.savefig(place / f"{stem}.pdf", metadata={"CreationDate": None})
        paper.close(fig)
        files.append(f"{stem}.png")
    return files + paper.animate(result, place)


def _with_earlier(folder: Path, outcomes: list[Outcome]) -> list[Outcome]:
    """Those of this run and those of earlier runs in the same folder, in the papers' order."""
    known = {o.experiment.name: o for o in outcomes}
    for name, experiment in EXPERIMENTS.items():
        found = store.read(folder, name)
        if name not in known and found is not None:
            result, run = found
            known[name] = Outcome(
                experiment, result, run["seconds"], True, None, tuple(run["files"])
            )
    return [known[name] for name in EXPERIMENTS if name in known]
