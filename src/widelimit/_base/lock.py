"""One run at a time in a folder: a file that names its owner."""

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

LOCK = ".widelimit-lock"
_STARTING = 10.0  # seconds for which an owner may not have written its name yet


class Busy(Exception):
    """Another run owns the folder; the message says which."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Own a folder; a lock whose owner is dead is taken over.

    Args:
        folder: It must exist.

    Raises:
        Busy: Another run owns it.
    """
    path = folder / LOCK
    mine = {"host": socket.gethostname(), "pid": os.getpid(), "began": _began(os.getpid())}
    mine["since"] = time.strftime("%Y-%m-%d %H:%M:%S")
    if not _claim(path, mine):
        _take_over(path)
        if not _claim(path, mine):
            raise Busy(_owner(path))
    try:
        yield
    finally:
        if _read(path) == mine:
            path.unlink(missing_ok=True)


def _claim(path: Path, mine: dict[str, object]) -> bool:
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(mine, file)
    return True


def _read(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _take_over(path: Path) -> None:
    """Remove the lock if its owner is dead; moved away first, so that only one run removes it."""
    found = _read(path)
    if _alive(path, found):
        raise Busy(_owner(path))
    aside = path.with_name(f"{LOCK}-{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        os.replace(path, aside)
        if _read(aside) != found:  # another run was quicker, and this lock is its own
            os.replace(aside, path)
            raise Busy(_owner(path))
        aside.unlink()


def _alive(path: Path, owner: dict[str, object]) -> bool:
    pid = owner.get("pid")
    if not isinstance(pid, int) or isinstance(pid, bool) or pid < 1:
        with contextlib.suppress(OSError):
            return time.time() - path.stat().st_mtime < _STARTING
        return False
    if owner.get("host") != socket.gethostname() or os.name == "nt":
        return True  # it cannot be asked
    try:
        os.kill(pid, 0)  # asks, and sends nothing
    except PermissionError:
        pass
    except (OSError, OverflowError):
        return False
    return _began(pid) == owner.get("began")  # else its number went to another process


def _began(pid: int) -> str | None:
    """When a process was started, where the system tells."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None


def _owner(path: Path) -> str:
    owner = _read(path)
    who = (
        f"process {owner.get('pid')} on {owner.get('host')}, since {owner.get('since')}"
        if owner
        else "it has only begun"
    )
    return f"another run is at work there ({who}; if it is dead, delete {path})"
