"""A table with options: what is fitted once or, while something is chosen, many times."""

import dataclasses
from types import SimpleNamespace

import numpy as np

from widelimit._base.scalars import as_count
from widelimit.regression import Data, Problem, Ridge, fit, merge

from ._network import kernel_of
from ._scaling import Scaling, fit_scaling

SOME = 1500  # rows on which something is chosen where there are more
FEW = 30  # rows of which nothing beyond the ridge is chosen: their errors say too little
_CERTAIN = 2.5  # standard errors by which a change must be better
_WORTHWHILE = 0.01  # of the errors, by which it must be better too

Options = SimpleNamespace  # an estimator's options, as they were given or changed


@dataclasses.dataclass(frozen=True)
class Trial:
    """Rows, targets of mean 0, and weights.

    Attributes:
        X: Shape (n, d).
        targets: Shape (n, k).
        weights: Shape (n,).
        layout: The shape of an input that has pixels, or None.
    """

    X: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    layout: tuple[int, ...] | None = None

    def some(self) -> "Trial":
        """The same with few of the rows, drawn once and for all, where there are many."""
        used = np.flatnonzero(self.weights > 0)
        if len(used) <= SOME:
            return self
        rows = np.sort(np.random.default_rng(0).permutation(used)[:SOME])
        return dataclasses.replace(
            self, X=self.X[rows], targets=self.targets[rows], weights=self.weights[rows]
        )

    def problem(self, options: Options) -> tuple[Problem, Scaling]:
        """The regression that the options describe, and how its points were made from rows."""
        kernel, channels = kernel_of(options), None
        if self.layout is not None:
            kernel, channels = kernel.of_rows(self.layout), self.layout[-1]
        scaling = fit_scaling(
            self.X,
            self.weights,
            standardise=options.standardise,
            sphere=options.normalise,
            channels=channels,
            squash=options.squash,
            categories=as_count(options.categories, "categories"),
        )
        return Problem(kernel, merge(scaling(self.X), self.targets, self.weights)), scaling


def per_row(fitted: Ridge) -> np.ndarray:
    """Squared leave-one-out errors of the rows that a fit is judged by, shape (m,)."""
    rows, errors = fitted.judged()
    return fitted.problem.data.weights[rows] * (errors**2).mean(1)


def gain(before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
    """By how much errors of the same rows fell on average, and by how much they must have.

    That is 2.5 standard errors of the differences, and one per cent of the errors: models that both know next
    to nothing differ by little, and always alike.
    """
    fell = before - after
    doubt = _CERTAIN * float(fell.std()) / np.sqrt(max(len(fell) - 1, 1))
    return float(fell.mean()), float(doubt) + _WORTHWHILE * float(before.mean())


def folds_of(data: Data, count: int) -> np.ndarray:
    """A fold for each point, about equal in what the targets are, whatever the order of the points."""
    targets = data.targets
    rank = np.empty(len(targets), int)
    rank[np.lexsort(data.points.T)] = np.random.default_rng(0).permutation(len(targets))
    key = targets.argmax(1) if targets.shape[1] > 1 else targets[:, 0]
    out = np.empty(len(targets), int)
    out[np.lexsort((rank, key))] = np.arange(len(targets)) % count
    return out


def quick_fit(problem: Problem, ridge: object, t: float) -> Ridge:
    """A fit of few points, silent."""
    return fit(problem, ridge, t=t, solver="cholesky", verbose=False)  # pyright: ignore[reportArgumentType]
