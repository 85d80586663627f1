"""The collection of small classification sets, in the layout in which it is given away.

A folder for each set, with `<set>.txt` (facts), a table whose last column is the class, and the rows of
the official splits, counted from 0: `conxuntos.dat` (one to tune on) and `conxuntos_kfold.dat` (four
folds).

Reference:
    Fernández-Delgado, Cernadas, Barro and Amorim (2014), Do we need hundreds of classifiers to solve
    real world classification problems?
"""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from widelimit._base.files import reason

FOLDS = 4
LARGEST = 5000  # rows of the sets that count as small

Rows = Int[np.ndarray, " _"]  # as many as there are, of its own


@dataclasses.dataclass(frozen=True)
class TableSet:
    """A set of the collection.

    Attributes:
        name: Its folder's.
        x: Columns of numbers.
        y: Classes, 0 to k - 1.
        splits: Rows to learn and rows to test: first the split to tune on, then the four folds.
    """

    name: str
    x: Float[np.ndarray, "n d"]
    y: Int[np.ndarray, " n"]
    splits: tuple[tuple[Rows, Rows], ...]


def find_sets(folder: Path) -> list[Path]:
    """The sets below a folder that are small and come in one file, by name.

    Args:
        folder: The collection, or a folder that holds nothing but the collection's folder.

    Returns:
        Their folders.

    Raises:
        ValueError: There are none.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; --data needs the collection's folder.")
    inside = sorted(p for p in folder.iterdir() if p.is_dir())
    found = [p for p in inside if (p / f"{p.name}.txt").is_file()]
    if not found and len(inside) == 1:
        return find_sets(inside[0])
    small = [p for p in found if _is_small(_facts(p), p)]
    if not small:
        raise ValueError(
            f"{folder} holds no set: expected folders such as abalone, each with abalone.txt, "
            "abalone_R.dat, conxuntos.dat and conxuntos_kfold.dat."
        )
    return small


def read_set(folder: Path) -> TableSet:
    """A set, checked.

    Args:
        folder: Its folder.

    Returns:
        The set.

    Raises:
        ValueError: A file is missing or damaged; the message says which, in which line, and what was
            expected.
    """
    facts = _facts(folder)
    path = folder / _fact(facts, "fich1", folder)
    columns = _count(facts, "n_entradas", folder)
    rows = [
        _row(path, i, line.split(), columns) for i, line in enumerate(_lines(path)[1:], start=2)
    ]
    table = np.array(rows)
    count = _count(facts, "n_patrons1", folder)
    if len(table) != count:
        raise ValueError(f"{path} has {len(table)} rows; {folder.name}.txt says {count}.")
    classes, y = np.unique(table[:, -1], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"{path} has only the class {classes[0]:g}; expected at least two.")
    tuning = _splits(folder / "conxuntos.dat", 1, count)
    folds = _splits(folder / "conxuntos_kfold.dat", FOLDS, count)
    return TableSet(folder.name, table[:, :-1], y, (*tuning, *folds))


def _facts(folder: Path) -> dict[str, str]:
    path = folder / f"{folder.name}.txt"
    facts = {}
    for i, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"{path}, line {i}: expected 'name= value', got {line.strip()!r}.")
        facts[key.strip()] = value.strip()
    return facts


def _fact(facts: dict[str, str], name: str, folder: Path) -> str:
    if name not in facts:
        raise ValueError(f"{folder / folder.name}.txt has no line '{name}= ...'.")
    return facts[name]


def _count(facts: dict[str, str], name: str, folder: Path) -> int:
    value = _fact(facts, name, folder)
    if not value.isdigit():
        raise ValueError(f"{folder / folder.name}.txt: {name} is {value!r}; expected a number.")
    return int(value)


def _is_small(facts: dict[str, str], folder: Path) -> bool:
    return "n_patrons2" not in facts and _count(facts, "n_patrons1", folder) <= LARGEST


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="latin-1").splitlines()
    except FileNotFoundError:
        raise ValueError(f"{path} is missing.") from None
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}).") from None


def _row(path: Path, line: int, words: Sequence[str], columns: int) -> list[float]:
    """Numbers of a line: its own number, the columns, the class."""
    if len(words) != columns + 2:
        raise ValueError(
            f"{path}, line {line}: {len(words)} entries; expected {columns + 2}: the row's number, "
            f"{columns} columns, the class."
        )
    try:
        numbers = [float(word) for word in words[1:]]
    except ValueError as error:
        raise ValueError(f"{path}, line {line}: {error}; expected numbers.") from None
    if not np.isfinite(numbers).all():
        raise ValueError(f"{path}, line {line}: not finite; expected numbers.")
    return numbers


def _splits(path: Path, count: int, rows: int) -> list[tuple[Rows, Rows]]:
    lines = [line for line in _lines(path) if line.strip()]
    if len(lines) != 2 * count:
        raise ValueError(
            f"{path} has {len(lines)} lines; expected {2 * count}: for each split the rows to learn, "
            "then the rows to test."
        )
    parts = []
    for i, line in enumerate(lines, start=1):
        words = line.split()
        if not all(word.isdigit() and int(word) < rows for word in words):
            wrong = next(word for word in words if not (word.isdigit() and int(word) < rows))
            raise ValueError(f"{path}, line {i}: row {wrong!r}; expected 0 to {rows - 1}.")
        parts.append(np.array([int(word) for word in words]))
    for i in range(count):
        if np.intersect1d(parts[2 * i], parts[2 * i + 1]).size:
            raise ValueError(f"{path}: lines {2 * i + 1} and {2 * i + 2} share rows.")
    return [(parts[2 * i], parts[2 * i + 1]) for i in range(count)]
