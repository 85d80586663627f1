"""The state of an iteration in a file, complete or not there."""

import hashlib
import io
import time
import zipfile
from pathlib import Path

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh
from numpy.typing import ArrayLike

from widelimit._base.files import write_file

_SECONDS = 60.0  # between two checkpoints


class Checkpoint:
    """A file that an iteration writes to now and then; without a path, nothing is written.

    Attributes:
        path: The file, or None.
        found: The state that a run which was stopped has left, or None.
    """

    def __init__(self, path: Path | None, mark: str, mesh: Mesh | None = None):
        self._mark, self._last = mark, time.monotonic()
        several = mesh is not None and len({d.process_index for d in mesh.devices.flat}) > 1
        mine = not several or jax.process_index() == 0
        self.path = path if mine else None  # all have the same state; one writes it
        content = b""
        if self.path is not None and self.path.exists():
            content = self.path.read_bytes()
        if several and path is not None:
            content = _told(content)
        self.found: dict[str, np.ndarray] | None = None
        if content and path is not None:
            self.found = _read(content, path, mark)

    @classmethod
    def at(
        cls, path: str | Path | None, *problem: ArrayLike, mesh: Mesh | None = None
    ) -> "Checkpoint":
        """A checkpoint of the solution of a problem, which is known by its digest."""
        digest = hashlib.sha256()
        for part in problem:
            digest.update(np.ascontiguousarray(part).tobytes())
        return cls(None if path is None else Path(path), digest.hexdigest(), mesh)

    @property
    def due(self) -> bool:
        """Whether it is time to write again."""
        return self.path is not None and time.monotonic() - self._last > _SECONDS

    def write(self, **state: ArrayLike) -> None:
        """Save the state under the final name once it is complete."""
        if self.path is None:
            return
        content = io.BytesIO()
        arrays = {name: np.asarray(v) for name, v in state.items()}
        np.savez(content, allow_pickle=False, mark=np.asarray(self._mark), **arrays)
        try:
            write_file(self.path, content.getvalue())
        except OSError as error:
            raise ValueError(f"The checkpoint {self.path} cannot be written: {error}.") from error
        self._last = time.monotonic()

    def remove(self) -> None:
        """Nothing is left to be done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _told(content: bytes) -> bytes:
    """What process 0 has read, in all processes: the others may not see its disk."""
    size = np.array(divmod(len(content), 2**20), np.int32)
    high, low = np.asarray(multihost_utils.broadcast_one_to_all(size)).tolist()
    mine = content.ljust(high * 2**20 + low)
    told = multihost_utils.broadcast_one_to_all(np.frombuffer(mine, np.uint8))
    return np.asarray(told).astype(np.uint8).tobytes()


def _read(content: bytes, path: Path, mark: str) -> dict[str, np.ndarray]:
    try:
        # From memory: NumPy leaves the file of a damaged archive open.
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            state = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"The checkpoint {path} is damaged ({error}). Remove it to start anew."
        ) from error
    if str(state.pop("mark", "")) != mark:
        raise ValueError(
            f"The checkpoint {path} belongs to other targets, another ridge or another tolerance. "
            "Remove it, or choose another file."
        )
    return state
