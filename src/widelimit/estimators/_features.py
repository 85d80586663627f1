"""Inputs re-weighted by what the fitted function reacts to, as often as folds say that it helps."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator

import numpy as np

from widelimit._base.watch import say
from widelimit.regression import Problem, Ridge, average_outer_product

from ._trial import FEW, SOME, folds_of, gain, quick_fit

FORMS = ("diagonal", "full")
_SHRINKAGES = (0.1, 0.5)  # shares of the identity in the matrix
_FOLDS = 3


@dataclasses.dataclass(frozen=True)
class Features:
    r"""What was learnt: points are multiplied by the root of a matrix of trace d.

    Attributes:
        matrix: $M$, shape (d, d); the identity where no round helped.
        rounds: How many rounds were taken.
        form: "diagonal" or "full"; "" where no round was taken.
        shrinkage: The share of the identity in it.
    """

    matrix: np.ndarray
    rounds: int = 0
    form: str = ""
    shrinkage: float = 0.0

    @property
    def root(self) -> np.ndarray:
        """The symmetric root of the matrix, shape (d, d)."""
        values, vectors = np.linalg.eigh(self.matrix)
        return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def learn_features(
    problem: Problem,
    ridge: object,
    t: float,
    rounds: int,
    form: str,
    verbose: bool | None = None,
) -> Features:
    """Learn features, where rows on which they were not learnt agree.

    In each of three folds they are learnt anew, round by round, from the other rows; forms and shrinkages
    are compared there. What is taken must lower the squared errors of the left-out rows by more than 2.5
    standard errors, row by row, and one per cent; then it is learnt once more from all rows.

    Args:
        problem: Points, targets and kernel.
        ridge: As the estimator's.
        t: Training time.
        rounds: The most.
        form: "diagonal", "full", or "auto" for the better of the two.
        verbose: Whether to tell.

    Returns:
        The features.
    """
    data = problem.data
    if len(data.points) > SOME:
        problem = dataclasses.replace(problem, data=data.subset(data.some(SOME)))
        data = problem.data
    plain = Features(np.eye(data.points.shape[1]))
    folds = folds_of(data, _FOLDS)
    if len(data.points) < FEW:
        return plain
    kinds = [(kind, s) for kind in (FORMS if form == "auto" else (form,)) for s in _SHRINKAGES]
    errors = np.zeros((len(kinds), rounds + 1, len(folds)))
    for fold in range(_FOLDS):
        inside, left = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        first = _Round.of(dataclasses.replace(problem, data=data.subset(inside)), plain, ridge, t)
        for j, kind in enumerate(kinds):
            for i, found in enumerate(first.rounds(rounds, *kind)):
                outputs = found.fitted.mean(data.points[left] @ found.features.root)
                square = ((outputs - data.targets[left]) ** 2).mean(1)
                errors[j, i, left] = data.weights[left] * square
    best, taken = 0.0, None
    for j, i in itertools.product(range(len(kinds)), range(1, rounds + 1)):
        fell, margin = gain(errors[j, 0], errors[j, i])
        if fell - margin > best:
            best, taken = fell - margin, (j, i)
    say(f"errors by form and round: {errors.mean(2).round(4).tolist()}", verbose)
    if taken is None:
        return plain
    *_, last = _Round.of(problem, plain, ridge, t).rounds(taken[1], *kinds[taken[0]])
    return last.features


def importances(problem: Problem, dual: np.ndarray, root: np.ndarray) -> np.ndarray:
    """The diagonal of the average outer product of gradients in the points before the root, shape (d,)."""
    rows = problem.data.some(SOME)
    inner = average_outer_product(problem.kernel, problem.x[rows], problem.x, dual)
    return np.einsum("ij,jk,ik->i", root, inner, root)


@dataclasses.dataclass(frozen=True)
class _Round:
    """Features, and what was fitted with them to a problem whose points have none."""

    problem: Problem
    features: Features
    fitted: Ridge
    ridge: object
    t: float

    @classmethod
    def of(cls, problem: Problem, features: Features, ridge: object, t: float) -> "_Round":
        data = dataclasses.replace(problem.data, points=problem.x @ features.root)
        fitted = quick_fit(dataclasses.replace(problem, data=data), ridge, t)
        return cls(problem, features, fitted, ridge, t)

    @functools.cached_property
    def matrix(self) -> np.ndarray:
        """To which inputs the function reacts, in the points without features."""
        x, root = self.fitted.problem.x, self.features.root
        return root @ average_outer_product(self.problem.kernel, x, x, self.fitted.dual) @ root

    def rounds(self, count: int, form: str, shrinkage: float) -> "Iterator[_Round]":
        """This one, and those that follow."""
        yield self
        last = self
        for i in range(count):
            matrix = _shrunk(last.matrix, form, shrinkage)
            features = Features(matrix, i + 1, form, shrinkage)
            last = _Round.of(self.problem, features, self.ridge, self.t)
            yield last


def _shrunk(matrix: np.ndarray, form: str, shrinkage: float) -> np.ndarray:
    """The matrix, of trace d, mixed with the identity."""
    size, one = float(np.trace(matrix)) / len(matrix), np.eye(len(matrix))
    if not size > 0:
        return one
    scaled = matrix / size
    if form == "diagonal":
        scaled = np.diag(np.diagonal(scaled))
    return (1 - shrinkage) * scaled + shrinkage * one
