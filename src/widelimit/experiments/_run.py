"""Running experiments one after another, keeping what is finished: numbers, figures, report."""

import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from widelimit._base.folder import FolderError, not_written

from . import _store as store
from ._draw import write_figures
from ._experiment import EXPERIMENTS, Experiment, Outcome, choose, find
from ._provenance import command, provenance
from ._result import Result, plain
from ._setting import Progress
from .report import write_report


@runtime_checkable
class Watch(Protocol):
    """Is told when an experiment begins and ends."""

    def begin(self, experiment: Experiment, /) -> Progress | None:
        """Before an experiment; may return a progress callback for it."""
        ...

    def end(self, outcome: Outcome, /) -> None:
        """After an experiment."""
        ...


def reproduce(
    out: str | Path = "reproduction",
    *,
    figures: Sequence[str | int] = (),
    full: bool = False,
    samples: str | None = None,
    seed: int = 0,
    again: bool = False,
    mnist: str | Path | None = None,
    watch: Watch | None = None,
) -> list[Outcome]:
    """Compute experiments, draw them, and write everything into a folder with a report.

    Args:
        out: The folder; new, empty, or of an earlier run, whose finished parts are kept.
        figures: Names or numbers; empty for all that can run with what is given.
        full: The papers' settings (hours on a CPU).
        samples: "authors", "equispaced" or "random"; None: as in the papers.
        seed: Of everything random.
        again: Whether to compute finished experiments again.
        mnist: The folder of the four files of MNIST, for the experiment that needs them.
        watch: Told of each experiment.

    Returns:
        The outcomes, failures included.
    """
    given = {} if mnist is None else {"mnist": str(mnist)}
    how = {"full": full, "samples": samples, "seed": seed}
    chosen = choose(figures, given)
    arguments = {name: e.arguments(**how, given=given) for name, e in chosen.items()}
    folder = Path(out)
    again_by = lambda names, given: command(names, **how, **given, out=folder)
    with store.open_folder(folder):
        outcomes = []
        for name, experiment in chosen.items():
            outcome = None if again else _kept(folder, experiment, arguments[name])
            if outcome is None:
                progress = None if watch is None else watch.begin(experiment)
                only = {key: given[key] for key in experiment.needs}
                made = provenance(again_by([name], only))
                outcome = _compute(folder, experiment, arguments[name], made, progress)
            outcomes.append(outcome)
            if watch is not None:
                watch.end(outcome)
        made = provenance(again_by([find(name).name for name in figures], given))
        write_report(folder, _with_earlier(folder, outcomes), made | {"seed": str(seed)}, full=full)
    return outcomes


def _kept(folder: Path, experiment: Experiment, arguments: dict[str, Any] | None) -> Outcome | None:
    """The finished result, if there is one with these arguments (None: with any)."""
    found = store.read(folder, experiment.name)
    if found is None:
        return None
    if arguments is not None and found.arguments != plain(experiment.all_arguments(arguments)):
        return None
    files = found.files
    if not found.complete:  # a figure or table was deleted: it is made again from the numbers
        try:
            run = {"arguments": found.arguments, "seconds": found.seconds, "made": found.made}
            files = _store(folder, found.result, run)
        except FolderError:
            raise
        except Exception:  # the numbers were changed by hand
            return None
    return Outcome(
        experiment, found.result, found.seconds, True, files=tuple(files), made=found.made
    )


def _store(folder: Path, result: Result, run: dict[str, Any]) -> list[str]:
    """Draw a result and write it; the figures to show."""
    try:
        with warnings.catch_warnings(), store.new_folder(folder, result.name) as place:
            warnings.simplefilter("ignore")
            files = write_figures(result, place)
            store.write_result(place, result, run | {"files": files})
    except OSError as error:
        raise not_written(folder, error) from error
    return files


def _compute(
    folder: Path,
    experiment: Experiment,
    arguments: dict[str, Any],
    made: dict[str, str],
    progress: Progress | None,
) -> Outcome:
    started = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they warn of is judged in the verdicts
            result = experiment.run(**arguments, progress=progress)
        # The figure is drawn from what is stored, so that the stored numbers are enough for it.
        result = Result.from_json(result.to_json())
        seconds = time.perf_counter() - started
        all_arguments = experiment.all_arguments(arguments)
        run = {"arguments": all_arguments, "seconds": seconds, "made": made}
        files = _store(folder, result, run)
    except FolderError:  # nothing that follows could be written either
        raise
    except Exception as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in text:
            text = f"Not enough memory: {text}"
        return Outcome(experiment, None, time.perf_counter() - started, error=text)
    return Outcome(experiment, result, seconds, files=tuple(files), made=made)


def _with_earlier(folder: Path, outcomes: list[Outcome]) -> list[Outcome]:
    """Those of this run and those of earlier runs in the same folder, in the papers' order."""
    known = {o.experiment.name: o for o in outcomes}
    every = (known.get(name) or _kept(folder, e, None) for name, e in EXPERIMENTS.items())
    return [outcome for outcome in every if outcome is not None]
