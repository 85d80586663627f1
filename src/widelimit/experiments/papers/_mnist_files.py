"""MNIST's images of 0 and 8, from the files that a user has."""

import functools
import gzip
import itertools
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped, UInt8

from widelimit._base.files import reason

_SETS = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
_FILES = ", ".join(itertools.chain(*_SETS))


class Images(NamedTuple):
    """Images of 0 and 8.

    Attributes:
        train: In the order of the training file.
        train_is_zero: Whether they show a 0.
        test: In the order of the test file.
        test_is_zero: Whether they show a 0.
    """

    train: UInt8[np.ndarray, "train rows columns"]
    train_is_zero: Shaped[np.ndarray, " train"]
    test: UInt8[np.ndarray, "test rows columns"]
    test_is_zero: Shaped[np.ndarray, " test"]


def read(folder: str | Path) -> Images:
    """The images of 0 and 8 from the four files of MNIST, plain or gzipped.

    Args:
        folder: Where they are.

    Returns:
        The images.

    Raises:
        ValueError: A file is missing or damaged; the message says which, and what was expected.
    """
    if not Path(folder).is_dir():
        raise ValueError(
            f"{folder} is not a folder; --mnist needs one with MNIST's four files, plain or .gz: "
            f"{_FILES}."
        )
    files = sorted(Path(folder).iterdir())
    return _load(str(folder), tuple((p.stat().st_mtime_ns, p.stat().st_size) for p in files))


@functools.lru_cache(maxsize=1)
def _load(folder: str, state: tuple[tuple[int, int], ...]) -> Images:
    """The images, read once for each state of the folder."""
    parts = []
    for images, labels in _SETS:
        pixels, digits = _read(Path(folder), images, 3), _read(Path(folder), labels, 1)
        if len(pixels) != len(digits):
            raise ValueError(
                f"{images} in {folder} holds {len(pixels)} images and {labels} {len(digits)} labels; "
                "expected as many. Files of different sets may have been mixed."
            )
        chosen = np.isin(digits, (0, 8))
        parts += [pixels[chosen], digits[chosen] == 0]
    found = Images(*parts)
    if found.train.shape[1:] != found.test.shape[1:]:
        raise ValueError(
            f"{folder} holds training images of {found.train.shape[1:]} pixels and test images of "
            f"{found.test.shape[1:]}; expected one size."
        )
    return found


def _read(folder: Path, name: str, rank: int) -> UInt8[np.ndarray, "..."]:
    """An array of bytes in MNIST's format: 0, 0, 8, the rank, the sizes, the bytes."""
    paths = [
        folder / f"{n}{end}" for n in (name, name.replace("-idx", ".idx")) for end in ("", ".gz")
    ]
    path = next((p for p in paths if p.is_file()), None)
    if path is None:
        raise ValueError(
            f"{folder} has no file {name} or {name}.gz. Expected MNIST's four files: {_FILES}."
        )
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is not a complete gzip file ({error}). Get it again.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}).") from None
    head = 4 + 4 * rank
    if len(data) < head or data[:4] != bytes((0, 0, 8, rank)):
        raise ValueError(
            f"{path} begins with {data[:4].hex(' ') or 'nothing'}; expected {bytes((0, 0, 8, rank)).hex(' ')}"
            f" and {rank} size{'s' * (rank > 1)}, as MNIST's {'images' if rank > 1 else 'labels'} do."
        )
    shape = struct.unpack(f">{rank}I", data[4:head])
    expected = head + int(np.prod(shape, dtype=object))
    if len(data) != expected:
        raise ValueError(
            f"{path} has {len(data)} bytes{' when unpacked' * (path.suffix == '.gz')}, but its sizes "
            f"{' x '.join(map(str, shape))} need {expected}. Get it again."
        )
    return np.frombuffer(data, np.uint8, offset=head).reshape(shape)
