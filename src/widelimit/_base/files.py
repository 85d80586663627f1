"""Files that are complete or not there."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

PARTIAL = ".partial-"


def write_file(path: Path, content: str | bytes | Callable[[BinaryIO], object]) -> None:
    """Write a file under its final name only when it is complete; a crash leaves the old one.

    Args:
        path: The file.
        content: Its content, or what writes it.
    """
    data = content.encode() if isinstance(content, str) else content
    handle, temporary = tempfile.mkstemp(prefix=PARTIAL, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            data(file) if callable(data) else file.write(data)
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def why_not_writable(folder: Path) -> str:
    """Why no file can be made in a folder, in words; empty where one can."""
    try:
        with tempfile.TemporaryFile(dir=folder, prefix=PARTIAL) as file:
            file.write(b"x")
    except OSError as error:
        return reason(error)
    return ""


def reason(error: OSError) -> str:
    """What the operating system says, in its words: "No space left on device"."""
    return error.strerror or str(error) or type(error).__name__
