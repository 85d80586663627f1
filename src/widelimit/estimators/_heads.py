"""What turns a kernel into classes: each head gives scores and probabilities for points."""

import dataclasses
import functools
import itertools
from typing import Any, Protocol

import numpy as np
from sklearn.svm import SVC

from widelimit._base.watch import say
from widelimit.regression import Laplace, Problem, Ridge, half_of, laplace

from ._probability import columns, fit_sharpness, probabilities, sharpness_of
from ._trial import SOME, folds_of

HEADS = ("ridge", "gp", "svc")
_AMPLITUDES = np.logspace(-1, 4, 11)  # prior variances that are tried, of the mean diagonal
_FOLDS = 5
_TOLERANCE = 1e-6  # of the support vector machine's gradients


class Head(Protocol):
    """What a fitted classifier asks."""

    def scores(self, points: np.ndarray) -> np.ndarray:
        """Shape (m, classes), or (m, 1) for two classes: positive for the second."""
        ...

    def chances(self, points: np.ndarray) -> np.ndarray:
        """Probabilities, shape (m, classes)."""
        ...

    def judged(self) -> tuple[np.ndarray, np.ndarray]:
        """Points, by number, and their scores from models that did not see their labels."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class RidgeHead:
    """Regression on ±1; probabilities by a softmax whose sharpness fits leave-one-out outputs."""

    fit: Ridge
    mean: np.ndarray
    known: float | None = None

    @classmethod
    def of(cls, fit: Ridge, mean: np.ndarray) -> "RidgeHead":
        """Fit the probabilities, where that costs little."""
        return cls(fit, mean, None if fit.outcome is not None else fit_sharpness(fit, mean))

    @functools.cached_property
    def sharpness(self) -> float:
        """What multiplies the outputs."""
        return fit_sharpness(self.fit, self.mean) if self.known is None else self.known

    def scores(self, points: np.ndarray) -> np.ndarray:
        """The outputs."""
        return self.mean + self.fit.mean(points)

    def chances(self, points: np.ndarray) -> np.ndarray:
        """The softmax of the outputs."""
        return probabilities(self.scores(points), self.sharpness)

    def judged(self) -> tuple[np.ndarray, np.ndarray]:
        """Leave-one-out outputs."""
        rows, errors = self.fit.judged()
        return rows, self.without(rows, errors)

    def without(self, rows: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """The outputs that leave-one-out errors mean."""
        return self.mean + self.fit.problem.data.targets[rows] - errors


@dataclasses.dataclass(frozen=True, eq=False)
class LaplaceHead:
    """A Gaussian process for each class against the others, under one prior variance."""

    problem: Problem
    amplitude: float
    dual: np.ndarray
    roots: np.ndarray
    log_evidence: float
    sharpness: float

    @classmethod
    def of(cls, problem: Problem, mean: np.ndarray, verbose: bool | None = None) -> "LaplaceHead":
        """The prior variance of largest evidence, on some of the rows where there are many."""
        shares = (problem.y + mean + 1) / 2
        data, matrix = problem.data, problem.matrix()
        rows = data.some(SOME)
        part = matrix[np.ix_(rows, rows)]
        unit = float(np.diagonal(matrix).mean()) or 1.0

        def evidence(amplitude: float) -> float:
            found = _all(amplitude / unit * part, shares[rows], data.weights[rows])
            say(f"prior variance {amplitude:.3g}: log evidence {_sum(found):.6g}", verbose)
            return _sum(found)

        values = [evidence(a) for a in _AMPLITUDES]
        amplitude = float(_AMPLITUDES[int(np.argmax(values))]) / unit
        found = _all(amplitude * matrix, shares, data.weights)
        dual = amplitude * np.stack([one.slope for one in found], axis=1)
        roots = np.stack([one.root for one in found], axis=1)
        head = cls(problem, amplitude, dual, roots, _sum(found), 1.0)
        both = columns(shares * 2 - 1) / 2 + 0.5
        sharpness = sharpness_of(head.judged()[1], both, data.weights)
        return dataclasses.replace(head, sharpness=sharpness)

    def scores(self, points: np.ndarray) -> np.ndarray:
        """The latent means, the smaller the less is known there."""
        return _moderated(self.problem.combine(points, self.dual), self.variances(points))

    def chances(self, points: np.ndarray) -> np.ndarray:
        """The softmax of the scores; its sharpness fits left-out rows."""
        return probabilities(self.scores(points), self.sharpness)

    def variances(self, points: np.ndarray) -> np.ndarray:
        """Of the latent functions, shape (m, k)."""
        prior = self.amplitude * self.problem.diagonal(points)
        matrix, cross = self._matrix, self.amplitude * self.problem.cross(points)
        known = [half_of(matrix, root, cross) for root in self.roots.T]
        return np.maximum(prior[:, None] - np.stack([(h**2).sum(0) for h in known], 1), 0)

    @functools.cached_property
    def _matrix(self) -> np.ndarray:
        return self.amplitude * self.problem.matrix()

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_matrix"}

    def judged(self) -> tuple[np.ndarray, np.ndarray]:
        """Leave-one-out means, moderated."""
        matrix = self._matrix
        mode, slope = matrix @ self.dual / self.amplitude, self.dual / self.amplitude
        found = [
            Laplace(mode[:, j], slope[:, j], self.roots[:, j], 0.0).leave_one_out(matrix)
            for j in range(mode.shape[1])
        ]
        means, variances = (np.stack(part, axis=1) for part in zip(*found, strict=True))
        return np.arange(len(mode)), _moderated(means, variances)


@dataclasses.dataclass(frozen=True, eq=False)
class MachineHead:
    """scikit-learn's support vector machine with this kernel; probabilities from five folds."""

    problem: Problem
    dual: np.ndarray
    offset: np.ndarray
    classes: int
    sharpness: float
    outside: np.ndarray

    @classmethod
    def of(cls, problem: Problem, mean: np.ndarray, C: float) -> "MachineHead":
        """Fit on all rows, and on five folds for the probabilities."""
        matrix = problem.matrix()
        shares = (columns(problem.y + mean) + 1) / 2
        classes = shares.shape[1]
        rows, labels = np.nonzero(shares > 0)  # equal rows may bear several labels
        weights = problem.data.weights[rows] * shares[rows, labels]
        every = np.arange(len(rows))
        dual, offset = _pairs(matrix, rows, labels, weights, every, C, classes)
        outside = np.zeros((len(matrix), 1 if classes == 2 else classes))
        folds = folds_of(problem.data, _FOLDS)
        for fold in range(_FOLDS):
            used, left = np.flatnonzero(folds[rows] != fold), folds == fold
            some = _pairs(matrix, rows, labels, weights, used, C, classes)
            outside[left] = _votes(matrix[left] @ some[0] + some[1], classes)
        sharpness = sharpness_of(outside, shares, problem.data.weights)
        return cls(problem, dual, offset, classes, sharpness, outside)

    def scores(self, points: np.ndarray) -> np.ndarray:
        """The decision function: for many classes votes of pairs, with their margins."""
        return _votes(self.problem.combine(points, self.dual) + self.offset, self.classes)

    def chances(self, points: np.ndarray) -> np.ndarray:
        """The softmax of the decision function."""
        return probabilities(self.scores(points), self.sharpness)

    def judged(self) -> tuple[np.ndarray, np.ndarray]:
        """Decisions about the rows of each fold by the others."""
        return np.arange(len(self.outside)), self.outside


def _moderated(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Log-odds of the logistic function's average over a Gaussian, about (MacKay 1992)."""
    return means / np.sqrt(1 + np.pi * variances / 8)


def _all(matrix: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> list[Laplace]:
    return [laplace(matrix, share, weights) for share in shares.T]


def _sum(found: list[Laplace]) -> float:
    return sum(one.log_evidence for one in found)


def _pairs(
    matrix: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray,
    used: np.ndarray,
    C: float,
    classes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients of the points and offsets for each pair of classes; positive for the first, of two the second."""
    pairs = list(itertools.combinations(range(classes), 2))
    dual, offset = np.zeros((len(matrix), len(pairs))), np.zeros(len(pairs))
    places, present = rows[used], np.unique(labels[used])
    if len(present) < 2:
        return dual, offset
    machine: Any = SVC(C=C, kernel="precomputed", cache_size=500, tol=_TOLERANCE)
    machine.fit(matrix[np.ix_(places, places)], labels[used], sample_weight=weights[used])
    starts = np.concatenate([[0], np.cumsum(machine.n_support_)])
    support = places[machine.support_]
    sign = -1.0 if len(present) == 2 and classes > 2 else 1.0
    for number, (a, b) in enumerate(itertools.combinations(range(len(present)), 2)):
        k = pairs.index((int(present[a]), int(present[b])))
        first, second = (slice(starts[c], starts[c + 1]) for c in (a, b))
        np.add.at(dual[:, k], support[first], sign * machine.dual_coef_[b - 1, first])
        np.add.at(dual[:, k], support[second], sign * machine.dual_coef_[a, second])
        offset[k] = sign * machine.intercept_[number]
    return dual, offset


def _votes(decisions: np.ndarray, classes: int) -> np.ndarray:
    """Pairs' decisions as scores of classes: votes, and margins that break ties."""
    if classes == 2:
        return decisions
    votes = np.zeros((len(decisions), classes))
    margins = np.zeros_like(votes)
    for k, (i, j) in enumerate(itertools.combinations(range(classes), 2)):
        votes[:, i] += decisions[:, k] > 0
        votes[:, j] += decisions[:, k] <= 0
        margins[:, i] += decisions[:, k]
        margins[:, j] -= decisions[:, k]
    return votes + margins / (3 * (np.abs(margins) + 1))
