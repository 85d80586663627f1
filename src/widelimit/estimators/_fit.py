"""Ridge regression and its posterior on distinct, weighted points."""

import dataclasses
import math
import numbers
import warnings
from typing import Any

import numpy as np

from widelimit.linalg import (
    Cholesky,
    Eigen,
    Solution,
    cholesky,
    conjugate_gradients,
    eigh,
    leave_one_out,
)

from ._choose import choose, loo_errors, shrink
from ._data import Data
from ._gram import NetworkGram

_DENSE = 20_000  # points up to which the matrix is held in memory (3 GiB)
_SUBSET = 4000  # points on which the ridge is chosen where the matrix is not held
_CHUNK = 64  # variances computed together by CG
_ENTRIES = 2**24  # of a kernel between new and fitted points that are held at once (128 MiB)


@dataclasses.dataclass
class Fit:
    r"""$f(x)=k(x)\,\alpha$, fitted to weighted points.

    With $B=W^{1/2}KW^{1/2}$ and $\tilde y=W^{1/2}y$: $\alpha=W^{1/2}\phi(B)\tilde y$, where
    $\phi(\lambda)=(1-e^{-(\lambda+r)t})/(\lambda+r)$ is gradient flow for time $t$ with weight
    decay $r$, and $1/(\lambda+r)$ for ever. As a Gaussian process: $y\sim N(0,s^2(K+rW^{-1}))$,
    the amplitude $s^2$ of each output by maximal likelihood.

    Attributes:
        gram: The kernel.
        data: The points.
        ridge: $r$.
        time: $t$, or None for ever.
        dual: $\alpha$, shape (n, k).
        amplitude: $s^2$, shape (k,).
        outcome: Of CG, where it was used.
        factor: What solves with $B+r$; None after unpickling, made again when it is needed.
    """

    gram: NetworkGram
    data: Data
    ridge: float
    time: float | None
    dual: np.ndarray
    amplitude: np.ndarray
    outcome: Solution | None = None
    factor: Cholesky | Eigen | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"factor": None}  # n^2 numbers that can be computed again

    def mean(self, x: np.ndarray) -> np.ndarray:
        """The function, shape (m, k)."""
        parts = [self.gram(part, self.data.points) @ self.dual for part in self._strips(x)]
        return np.concatenate(parts)

    def moments(self, x: np.ndarray, *, full: bool) -> tuple[np.ndarray, np.ndarray]:
        """Mean, shape (m, k), and variance (m,) or covariance (m, m) for an amplitude of 1."""
        if full:
            return self._moments(x, full=True)
        means, variances = zip(
            *(self._moments(part, full=False) for part in self._strips(x)), strict=True
        )
        return np.concatenate(means), np.concatenate(variances)

    def _strips(self, x: np.ndarray) -> list[np.ndarray]:
        """New points in parts, so that their kernel with the fitted ones stays small."""
        rows = max(_ENTRIES // len(self.data.points), 1)
        return [x[i : i + rows] for i in range(0, len(x), rows)]

    def _moments(self, x: np.ndarray, *, full: bool) -> tuple[np.ndarray, np.ndarray]:
        cross = self.gram(x, self.data.points)
        mean = cross @ self.dual
        prior = self.gram(x) if full else self.gram.diagonal(x)
        if self.outcome is not None:
            return mean, prior - self._explained_by_cg(cross, full)
        half = self._half_solve(cross)
        if full:
            return mean, prior - half.T @ half
        return mean, np.maximum(prior - np.einsum("ij,ij->j", half, half), 0)

    def leave_one_out(self) -> np.ndarray:
        """Errors at each point of the model without it, shape (n, k)."""
        if self.outcome is not None:
            raise ValueError(
                "Leave-one-out errors need a factorisation, which solver='cg' avoids. Fit with "
                "solver='cholesky', or cross-validate."
            )
        factor = self._solver()
        root = self.data.root
        if isinstance(factor, Eigen):
            return loo_errors(factor, root * self.data.targets, self.ridge, self.time) / root
        return leave_one_out(factor, self.dual / root) / root

    def _solver(self) -> Cholesky | Eigen:
        if self.factor is None:
            matrix = _weighted(self.gram, self.data)
            if self.time is None:
                self.factor = cholesky(matrix, self.ridge, overwrite=True)
            else:
                self.factor = eigh(matrix, overwrite=True)
        return self.factor

    def _half_solve(self, cross: np.ndarray) -> np.ndarray:
        """H with H'H = k (K + r/W)^{-1} k'."""
        factor = self._solver()
        right = cross.T if self.data.plain else cross.T * self.data.root
        if isinstance(factor, Eigen):
            return (factor.vectors.T @ right) / np.sqrt(factor.values + self.ridge)[:, None]
        return factor.half_solve(np.asfortranarray(right), overwrite=True)

    def _explained_by_cg(self, cross: np.ndarray, full: bool) -> np.ndarray:
        parts = []
        gram, ridges = self.gram.tiled(self.data.points), self.ridge / self.data.weights
        for i in range(0, len(cross), _CHUNK):
            right = np.ascontiguousarray(cross[i : i + _CHUNK].T)
            parts.append(_by_cg(gram, right, ridges, 1e-6).x)
        solved = np.concatenate(parts, axis=1)
        return cross @ solved if full else np.einsum("ij,ji->i", cross, solved)


def fit(
    gram: NetworkGram,
    data: Data,
    *,
    ridge: Any,
    time: float | None = None,
    solver: str = "auto",
    tolerance: float = 1e-6,
) -> Fit:
    """Fit weighted points.

    Args:
        gram: The kernel.
        data: Distinct points with weights.
        ridge: A number, "loo" or "evidence".
        time: Training time; None: for ever.
        solver: "cholesky", "cg", or "auto".
        tolerance: Of the relative residual of CG.

    Returns:
        The fit.
    """
    _check(data, ridge, time, solver)
    if solver == "cg" or (solver == "auto" and len(data.points) > _DENSE):
        return _iterate(gram, data, ridge, time, tolerance)
    matrix = _weighted(gram, data)
    targets = data.root * data.targets
    if not isinstance(ridge, str) and time is None:
        factor = cholesky(matrix, ridge, overwrite=True)
        inner = factor.solve(targets)
    else:
        factor = eigh(matrix, overwrite=True)
        ridge = choose(factor, targets, data, ridge, time)
        inner = factor.apply(lambda v: shrink(v, ridge, time), targets)
    square = (targets * inner).sum(0)
    return Fit(
        gram,
        data,
        float(ridge),
        time,
        data.root * inner,
        _amplitude(square, data, float(ridge)),
        None,
        factor,
    )


def _amplitude(square: np.ndarray, data: Data, ridge: float) -> np.ndarray:
    within = data.spread / ridge if ridge > 0 else np.zeros_like(data.spread)
    return np.maximum(square + within, 0) / data.total


def _weighted(gram: NetworkGram, data: Data) -> np.ndarray:
    """W^{1/2} K W^{1/2}, Fortran-ordered, ours to overwrite."""
    matrix = gram.tiled(data.points).dense()
    if not data.plain:
        matrix *= data.root
        matrix *= data.root[:, 0]
    return matrix


def _iterate(
    gram: NetworkGram, data: Data, ridge: Any, time: float | None, tolerance: float
) -> Fit:
    if time is not None:
        raise ValueError(
            "Training for a finite time needs an eigendecomposition, which solver='cg' avoids. "
            "Set time=None, or solver='cholesky' if the matrix fits into memory."
        )
    if isinstance(ridge, str):
        ridge = fit(gram, _subset(data), ridge=ridge, solver="cholesky").ridge
    outcome = _by_cg(gram.tiled(data.points), data.targets, ridge / data.weights, tolerance)
    square = (data.targets * outcome.x).sum(0)
    amplitude = _amplitude(square, data, ridge)
    return Fit(gram, data, float(ridge), None, outcome.x, amplitude, outcome)


def _subset(data: Data) -> Data:
    """Some of the points, drawn once and for all."""
    count = min(_SUBSET, len(data.points))
    rows = np.sort(np.random.default_rng(0).permutation(len(data.points))[:count])
    share = data.spread * (count / len(data.points))
    return Data(data.points[rows], data.targets[rows], data.weights[rows], share, data.group)


def _by_cg(gram: Any, right: np.ndarray, ridges: np.ndarray, tolerance: float) -> Solution:
    outcome = conjugate_gradients(gram, right, ridges, tolerance=tolerance)
    if not outcome.converged:
        warnings.warn(
            f"CG stopped after {outcome.steps} steps with residual {outcome.residual:.1e}; "
            f"{tolerance:.1e} was asked for. A larger ridge converges faster.",
            UserWarning,
            stacklevel=4,
        )
    return outcome


def _check(data: Data, ridge: Any, time: float | None, solver: str) -> None:
    if solver not in ("auto", "cholesky", "cg"):
        raise ValueError(f"solver must be 'auto', 'cholesky' or 'cg', got {solver!r}.")
    if time is not None and not isinstance(time, numbers.Real):
        raise TypeError(f"time must be a number, or None for ever; got {time!r}.")
    if time is not None and not (math.isfinite(time) and float(time) >= 0):
        raise ValueError(f"time must be finite and at least 0, or None for ever; got {time}.")
    if isinstance(ridge, str):
        _check_choice(data, ridge, time)
    elif not isinstance(ridge, numbers.Real):
        raise TypeError(f"ridge must be a number, 'loo' or 'evidence', got {ridge!r}.")
    elif not (math.isfinite(ridge) and float(ridge) >= 0):
        raise ValueError(f"ridge must be finite and at least 0, got {ridge}.")
    elif len(data.points) < 2:
        warnings.warn(
            "There is only one distinct row to fit (n_samples = 1, or all rows of X are equal), so "
            "the model is a constant. Give more points.",
            UserWarning,
            stacklevel=4,
        )
    elif ridge == 0 and data.spread.any():
        warnings.warn(
            "Some rows of X are equal but their targets differ; without a ridge no function fits "
            "both, and their mean is fitted. Give ridge > 0, or ridge='loo', to treat the "
            "difference as noise.",
            UserWarning,
            stacklevel=4,
        )


def _check_choice(data: Data, ridge: str, time: float | None) -> None:
    if ridge not in ("loo", "evidence"):
        raise ValueError(f"ridge must be a number, 'loo' or 'evidence', got {ridge!r}.")
    if ridge == "evidence" and time is not None:
        raise ValueError(
            "ridge='evidence' belongs to the posterior, which training for a finite time does not "
            "reach. Set time=None, or ridge='loo'."
        )
    if len(data.points) < 2:
        raise ValueError(
            f"ridge={ridge!r} compares points, but there is only one sample (n_samples = 1, or all "
            "rows of X are equal). Give more points, or a number as the ridge."
        )
