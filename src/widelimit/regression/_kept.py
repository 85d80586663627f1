"""A problem whose kernel matrix is kept on disk, from where it is solved, and solved again."""

import dataclasses
import functools
import hashlib
from pathlib import Path

import numpy as np
from jaxtyping import Float

from widelimit.linalg import KernelOperator, StoredGram

from ._gram import gram, mark_of
from ._problem import Problem


@dataclasses.dataclass(frozen=True, repr=False)
class KeptProblem(Problem):
    """Points, targets and a kernel that is dear: its matrix is computed into a folder, once.

    Every kernel with its points has a folder of its own below, named by their digest.

    Attributes:
        folder: Where matrices are kept.
        verbose: Whether progress is shown; None: where it takes longer than a minute.
    """

    folder: str | Path = ""
    verbose: bool | None = None

    @classmethod
    def of(cls, problem: Problem, folder: str | Path, verbose: bool | None = None) -> "KeptProblem":
        """The same problem, kept in a folder."""
        parts = {f.name: getattr(problem, f.name) for f in dataclasses.fields(Problem)}
        return cls(**parts, folder=folder, verbose=verbose)

    @functools.cached_property
    def kept(self) -> StoredGram:
        """The matrix on disk, complete."""
        mark = mark_of(self.kernel, self.x)
        name = hashlib.sha256(mark.encode()).hexdigest()[:16]
        path = Path(self.folder) / name
        return gram(None, self.x, store=path, kernel=self.kernel, verbose=self.verbose)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "kept"}

    @property
    def unstored(self) -> bool:
        """It is on disk."""
        return False

    def matrix(self) -> Float[np.ndarray, "n n"]:
        """K of the training points, without weights, ours to overwrite."""
        return self.kept.dense().T  # symmetric: in the order that factorisations want

    def tiled(self) -> KernelOperator:
        """K as it is kept."""
        return self.kept
