"""MNIST's images of 0 and 8, from the files that a user has."""

import functools
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Shaped, UInt8

from widelimit._base.idx import read_digits


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
    files = sorted(Path(folder).iterdir()) if Path(folder).is_dir() else []
    return _load(str(folder), tuple((p.stat().st_mtime_ns, p.stat().st_size) for p in files))


@functools.lru_cache(maxsize=1)
def _load(folder: str, state: tuple[tuple[int, int], ...]) -> Images:
    """The images, read once for each state of the folder."""
    found = read_digits(folder, "--mnist")
    train, test = (np.isin(labels, (0, 8)) for labels in (found.train_labels, found.test_labels))
    return Images(
        found.train[train],
        found.train_labels[train] == 0,
        found.test[test],
        found.test_labels[test] == 0,
    )
