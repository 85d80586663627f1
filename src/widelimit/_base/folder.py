"""The folder of a command's results: writable, and owned by one run at a time."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from .files import PARTIAL, reason, why_not_writable
from .lock import Busy, locked


class FolderError(Exception):
    """The output folder cannot be used; the message says why and what to do."""


@contextlib.contextmanager
def own_folder(out: Path, check: Callable[[Path], None] = lambda out: None) -> Iterator[None]:
    """Make the folder, and own it.

    Args:
        out: The folder.
        check: Raises where the folder holds what it should not; asked before anything is touched.

    Raises:
        FolderError: It is a file, cannot be written, or another run is at work there.
    """
    if out.exists() and not out.is_dir():
        raise FolderError(f"{out} is a file; --out needs a folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        why = why_not_writable(out)
    except OSError as error:
        why = reason(error)
    if why:
        raise FolderError(
            f"Nothing can be written into {out} ({why}). Choose another folder with --out."
        )
    check(out)
    try:
        with locked(out):
            for left in out.rglob(f"{PARTIAL}*"):  # of a run that was killed
                shutil.rmtree(left, ignore_errors=True)
                left.unlink(missing_ok=True)
            yield
    except Busy as error:
        raise FolderError(
            f"{out} cannot be used now: {error}. Wait for it, or choose another folder with --out."
        ) from None
    except OSError as error:
        raise not_written(out, error) from error


def not_written(out: Path, error: OSError) -> FolderError:
    """The sentence for a disk that is full or cannot be written any more."""
    return FolderError(
        f"{out} could not be written ({reason(error)}). What was finished is kept: make room, and the "
        "same command continues after it."
    )
