"""What a training run is asked for, in one record."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from widelimit._base.names import unknown
from widelimit._base.scalars import as_count, as_float

from ._optimiser import check_optimiser

Progress = Callable[[int, int], None]


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of `optimise`, which explains them; checked as far as they need no data."""

    optimiser: Any = "sgd"
    learning_rate: float | None = None
    steps: int | None = None
    epochs: int | None = None
    batch_size: int | None = None
    shuffle: bool = True
    loss: Any = "squared"
    record: int | Sequence[int] | None = None
    probe: Any = None
    path: bool = False
    drift: bool = False
    keep_best: bool = False
    tolerance: float | None = None
    dtype: Any = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        check_optimiser(self.optimiser, self.learning_rate)
        if self.tolerance is not None and not 0 <= as_float(self.tolerance, "tolerance") < float(
            "inf"
        ):
            raise ValueError(f"tolerance must be a non-negative number, got {self.tolerance!r}.")

    @property
    def goal(self) -> float:
        """The loss to stop at; none is below zero."""
        return -1.0 if self.tolerance is None else float(self.tolerance)

    def batch(self, points: int) -> int:
        """The points of a step, out of so many."""
        if self.batch_size is None:
            return points
        return min(as_count(self.batch_size, "batch_size", minimum=1), points)

    def total(self, passes: int) -> int:
        """The number of steps, where a pass over the points takes so many."""
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(
                "Give either steps (gradient steps) or epochs (passes over the points), "
                f"got steps={self.steps!r} and epochs={self.epochs!r}."
            )
        if self.steps is not None:
            return as_count(self.steps, "steps", minimum=1)
        return as_count(self.epochs, "epochs", minimum=1) * passes

    def records(self, total: int) -> np.ndarray:
        """The steps to record, out of so many."""
        if self.record is None:
            return np.array([0, total])
        if isinstance(self.record, int | np.integer):
            count = as_count(self.record, "record", minimum=1)
            return np.unique(np.linspace(0, total, count + 1).round().astype(int))
        wanted = np.unique(np.asarray(self.record))
        whole = wanted.size > 0 and wanted.dtype.kind in "iu"
        if not whole or wanted[0] < 0 or wanted[-1] > total:
            raise ValueError(
                f"record must hold whole steps between 0 and {total}, got {self.record!r}. "
                "An integer asks for that many records."
            )
        return wanted


def as_options(options: dict[str, Any]) -> Options:
    """The record, or an error that suggests the nearest name."""
    known = [field.name for field in dataclasses.fields(Options)]
    for name in options:
        if name not in known:
            raise TypeError(unknown("option", name, known))
    return Options(**options)
