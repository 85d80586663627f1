"""Finished experiments on disk: a folder each, complete or absent."""

import contextlib
import csv
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from widelimit._base.files import PARTIAL

from ._experiment import EXPERIMENTS
from ._result import Result, Table, plain

RESULT, RUN = "result.json", "run.json"
_OURS = {"report.html", "verdicts.csv", "verdicts.json"}


class FolderError(Exception):
    """The output folder cannot be used; the message says why and what to do."""


def open_folder(out: Path) -> None:
    """Make the folder, or check that it holds a reproduction and nothing else.

    Args:
        out: The folder.

    Raises:
        FolderError: It is a file, cannot be written, or holds foreign files.
    """
    if out.exists() and not out.is_dir():
        raise FolderError(f"{out} is a file; --out needs a folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise FolderError(
            f"Nothing can be written into {out} ({error.strerror or error}). Choose another folder "
            "with --out."
        ) from error
    foreign = sorted(p.name for p in out.iterdir() if not _is_ours(p))
    if foreign:
        shown = ", ".join(foreign[:5]) + (", ..." if len(foreign) > 5 else "")
        raise FolderError(
            f"{out} holds files that are not part of a reproduction ({shown}); nothing was touched. "
            "Choose an empty or new folder with --out."
        )
    for left in out.glob(f"{PARTIAL}*"):  # of a run that was killed
        shutil.rmtree(left, ignore_errors=True)
        left.unlink(missing_ok=True)


def _is_ours(path: Path) -> bool:
    if path.name in _OURS or path.name.startswith(PARTIAL) or path.name == ".DS_Store":
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
    """The numbers: JSON for all, a CSV file for each table."""
    (folder / RESULT).write_text(result.to_json(), encoding="utf-8")
    (folder / RUN).write_text(json.dumps(plain(run), indent=1), encoding="utf-8")
    for i, table in enumerate(result.tables):
        suffix = "" if len(result.tables) == 1 else f"_{i + 1}"
        write_csv(folder / f"{result.name}{suffix}.csv", table)


def write_csv(path: Path, table: Table) -> None:
    """A table as CSV."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows([["" if v is None else v for v in row] for row in table.rows])


def read(out: Path, name: str) -> tuple[Result, dict[str, Any]] | None:
    """A finished experiment, or None where there is none that can be read."""
    try:
        result = Result.from_json((out / name / RESULT).read_text(encoding="utf-8"))
        run = json.loads((out / name / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return result, run
