"""The folder of a run's results: writable, and owned by one run at a time."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from widelimit._base.files import PARTIAL, reason, why_not_writable
from widelimit._base.lock import Busy, locked


class BenchError(Exception):
    """The run cannot go on; the message says why and what to do."""


@contextlib.contextmanager
def open_folder(out: Path) -> Iterator[None]:
    """Make the folder and own it.

    Args:
        out: The folder.

    Raises:
        BenchError: It is a file, cannot be written, or another run is at work there.
    """
    if out.exists() and not out.is_dir():
        raise BenchError(f"{out} is a file; --out needs a folder.")
    try:
        out.mkdir(parents=True, exist_ok=True)
        why = why_not_writable(out)
    except OSError as error:
        why = reason(error)
    if why:
        raise BenchError(f"Nothing can be written into {out} ({why}). Choose another with --out.")
    try:
        with locked(out):
            for left in out.rglob(f"{PARTIAL}*"):  # of a run that was killed
                left.unlink(missing_ok=True)
            yield
    except Busy as error:
        raise BenchError(f"{out} cannot be used now: {error}.") from None
    except OSError as error:
        raise BenchError(
            f"{out} could not be written ({reason(error)}). What was finished is kept: make room, and "
            "the same command continues after it."
        ) from error
