"""Finished experiments on disk: a folder each, complete or absent."""

import contextlib
import csv
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

from widelimit._base.files import PARTIAL
from widelimit._base.folder import FolderError, own_folder
from widelimit._base.lock import LOCK

from ._experiment import EXPERIMENTS
from ._result import VERDICTS, Result, Table, plain

RESULT, RUN = "result.json", "run.json"
_OURS = {"report.html", "verdicts.csv", "verdicts.json"}


def open_folder(out: Path) -> AbstractContextManager[None]:
    """Make the folder, or check that it holds a reproduction and nothing else, and own it.

    Args:
        out: The folder.

    Raises:
        FolderError: It is a file, cannot be written, holds foreign files, or another run is at work
            there.
    """
    return own_folder(out, _refuse_foreign)


def _refuse_foreign(out: Path) -> None:
    foreign = sorted(p.name for p in out.iterdir() if not _is_ours(p))
    if foreign:
        shown = ", ".join(foreign[:5]) + (", ..." if len(foreign) > 5 else "")
        raise FolderError(
            f"{out} holds files that are not part of a reproduction ({shown}); nothing was touched. "
            "Choose an empty or new folder with --out."
        )


def _is_ours(path: Path) -> bool:
    if path.name in _OURS or path.name.startswith((PARTIAL, LOCK)) or path.name == ".DS_Store":
        return True
    return path.name in EXPERIMENTS and (path / RESULT).is_file()


@contextlib.contextmanager
def new_folder(out: Path, name: str) -> Iterator[Path]:
    """A folder to write an experiment into; it gets its final name only when all is written."""
    partial = Path(tempfile.mkdtemp(prefix=f"{PARTIAL}{name}-", dir=out))
    partial.chmod(0o755)
    try:
        yield partial
        final = out / name
        if final.exists():
            old = out / f"{PARTIAL}old-{name}"
            shutil.rmtree(old, ignore_errors=True)
            os.replace(final, old)
            os.replace(partial, final)
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(partial, final)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_result(folder: Path, result: Result, run: dict[str, Any]) -> None:
    """The numbers: JSON for all, a CSV file for each table; and what was written, to be missed."""
    text = result.to_json()
    (folder / RESULT).write_text(text, encoding="utf-8")
    for i, table in enumerate(result.tables):
        suffix = "" if len(result.tables) == 1 else f"_{i + 1}"
        write_csv(folder / f"{result.name}{suffix}.csv", table)
    there = {"written": sorted(p.name for p in folder.iterdir()), "sha256": _sha256(text)}
    (folder / RUN).write_text(json.dumps(plain(run | there), indent=1), encoding="utf-8")


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_csv(path: Path, table: Table) -> None:
    """A table as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows([["" if v is None else v for v in row] for row in table.rows])


class Stored(NamedTuple):
    """A finished experiment.

    Attributes:
        result: Its numbers.
        arguments: What it was computed with.
        seconds: How long that took.
        files: The figures to show.
        complete: Whether no file was deleted or emptied since.
        made: With what it was computed; empty where an older version wrote it.
    """

    result: Result
    arguments: dict[str, Any]
    seconds: float
    files: tuple[str, ...]
    complete: bool
    made: dict[str, str]


def read(out: Path, name: str) -> Stored | None:
    """A finished experiment, or None where there is none that can be trusted."""
    try:
        text = (out / name / RESULT).read_text(encoding="utf-8")
        run = json.loads((out / name / RUN).read_text(encoding="utf-8"))
        result = Result.from_json(text)
        files, seconds, arguments = (
            tuple(run["files"]),
            float(run["seconds"]),
            dict(run["arguments"]),
        )
        expected = [out / name / str(file) for file in (*files, *run.get("written", ()))]
        made = {str(head): str(value) for head, value in run.get("made", {}).items()}
        sound = result.name == name and run.get("sha256") in (None, _sha256(text))
        sound = sound and all(verdict.verdict in VERDICTS for verdict in result.verdicts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if not sound:
        return None
    complete = all(path.is_file() and path.stat().st_size > 0 for path in expected)
    return Stored(result, arguments, seconds, files, complete, made)
