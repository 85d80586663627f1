"""The four files of MNIST and of the sets made in its image."""

import gzip
import itertools
import struct
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from .files import reason

SETS = (
    ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
)
FILES = ", ".join(itertools.chain(*SETS))


class Digits(NamedTuple):
    """Images and their labels, in the order of the files.

    Attributes:
        train: Training images, bytes.
        train_labels: What they show, 0 to 9.
        test: Test images.
        test_labels: What they show.
    """

    train: UInt8[np.ndarray, "train rows columns"]
    train_labels: UInt8[np.ndarray, " train"]
    test: UInt8[np.ndarray, "test rows columns"]
    test_labels: UInt8[np.ndarray, " test"]


def read_digits(folder: str | Path, option: str) -> Digits:
    """All images from the four files, plain or gzipped.

    Args:
        folder: Where they are.
        option: How the user named the folder, for messages.

    Returns:
        The images.

    Raises:
        ValueError: A file is missing or damaged; the message says which, and what was expected.
    """
    if not Path(folder).is_dir():
        raise ValueError(
            f"{folder} is not a folder; {option} needs one with MNIST's four files, plain or .gz: "
            f"{FILES}."
        )
    parts = []
    for images, labels in SETS:
        pixels, digits = _read(Path(folder), images, 3), _read(Path(folder), labels, 1)
        if len(pixels) != len(digits):
            raise ValueError(
                f"{images} in {folder} holds {len(pixels)} images and {labels} {len(digits)} labels; "
                "expected as many. Files of different sets may have been mixed."
            )
        parts += [pixels, digits]
    found = Digits(*parts)
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
            f"{folder} has no file {name} or {name}.gz. Expected MNIST's four files: {FILES}."
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
