"""A fitted regression on weighted points: its function, its leave-one-out errors, its posterior."""

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float, Int

from widelimit._base.shown import shown
from widelimit.linalg import (
    Cholesky,
    Eigen,
    InverseDiagonal,
    RidgePath,
    Solution,
    System,
    cholesky,
    eigh,
    leave_one_out,
)

from ._choose import EXACT, loo_errors
from ._data import NewPoints
from ._judge import Score, Statistic, exact_score, sampled_score
from ._kernel import Answer, strips
from ._problem import Problem
from ._solvers import CG

_JUDGES = 1000  # points of many of which leave-one-out errors are computed
_CHUNK = 64  # variances computed together by CG


@shown("a fitted kernel ridge regression")
@dataclasses.dataclass(frozen=True, eq=False)
class Ridge:
    r"""A fitted regression, $f(x)=k(x)\,\alpha$, on weighted points.

    With $B=W^{1/2}KW^{1/2}$ and $\tilde y=W^{1/2}y$: $\alpha=W^{1/2}\phi(B)\tilde y$, where
    $\phi(\lambda)=(1-e^{-(\lambda+r)t})/(\lambda+r)$ is gradient flow for time $t$ with weight
    decay $r$, and $1/(\lambda+r)$ for ever. As a Gaussian process: $y\sim N(0,s^2(K+rW^{-1}))$,
    the amplitude $s^2$ of each output by maximal likelihood.

    Attributes:
        problem: The checked data and kernel.
        ridge: $r$.
        dual: $\alpha$, shape (n, k).
        t: Training time.
        path: The path, where several ridges were tried; of the points on which they were.
        outcome: Of the iteration, where CG was used.
    """

    problem: Problem
    ridge: float
    dual: Float[np.ndarray, "n k"]
    t: float = math.inf
    path: RidgePath | None = None
    outcome: Solution | None = None
    _made: Cholesky | Eigen | None = dataclasses.field(default=None, repr=False)
    _way: CG | None = dataclasses.field(default=None, repr=False)

    def summary(self) -> dict[str, object]:
        """What is shown of a fit; nothing is computed for it."""
        jitter = self._made.jitter if isinstance(self._made, Cholesky) else 0.0
        done = self.outcome
        return {
            **self.problem.summary(),
            "ridge": self.ridge,
            "time": None if self.t == math.inf else self.t,
            "jitter": jitter or None,
            "ridges tried": None if self.path is None else len(self.path.ridges),
            "conjugate gradients": None
            if done is None
            else f"{done.steps} steps, residual {done.residual:.1e}",
        }

    def __getstate__(self) -> dict[str, object]:
        state: dict[str, object] = {**self.__dict__, "_made": None, "_way": None}
        for name in ("factor", "system", "inverse_diagonal"):  # numbers that can be computed again
            state.pop(name, None)
        return state

    def predict(self, x_test: object) -> Answer:
        """The fitted function at new points.

        Args:
            x_test: Points, shape (m, d).

        Returns:
            Shape (m,) or (m, k).
        """
        return self.problem.answer(self.mean(self.problem.points(x_test)))

    @property
    def jitter(self) -> float:
        """What was added to the diagonal beyond the ridge."""
        factor = None if self.outcome is not None else self.factor
        return factor.jitter if isinstance(factor, Cholesky) else 0.0

    @functools.cached_property
    def errors(self) -> Answer:
        """Leave-one-out errors $y_i-f_{-i}(x_i)$, shape (n,) or (n, k); where CG has solved, an estimate."""
        return self.problem.answer(self.leave_one_out())

    @property
    def errors_std(self) -> Answer:
        """The standard error of each of `errors` as an estimate; 0 where they are exact."""
        if self.outcome is None:
            return self.problem.answer(np.zeros_like(self.dual))
        relative = np.sqrt(self.inverse_diagonal.moments()[1])[:, None]
        return self.problem.answer(np.abs(self.leave_one_out()) * relative)

    @property
    def amplitude(self) -> Float[np.ndarray, " k"]:
        """The most likely $s^2$ of each output."""
        data = self.problem.data
        within = data.spread / self.ridge if self.ridge > 0 else np.zeros_like(data.spread)
        return np.maximum((data.targets * self.dual).sum(0) + within, 0) / data.total

    @functools.cached_property
    def factor(self) -> Cholesky | Eigen:
        """What solves with $B+r$, made again after unpickling."""
        if self._made is not None:
            return self._made
        matrix = self.problem.gram()
        if self.t == math.inf:
            return cholesky(matrix, self.ridge, overwrite=True)
        return eigh(matrix, overwrite=True)

    def mean(self, points: NewPoints) -> Float[np.ndarray, "rows k"]:
        """The function, shape (m, k)."""
        return self.problem.combine(points, self.dual)

    def moments(
        self, points: NewPoints
    ) -> tuple[Float[np.ndarray, "rows k"], Float[np.ndarray, " rows"]]:
        """Mean, shape (m, k), and variance (m,) for an amplitude of 1."""
        means, variances = [], []
        for part in strips(points, len(self.dual)):
            cross = self.problem.cross(part)
            means.append(cross @ self.dual)
            known = self.problem.diagonal(part) - self._explained(cross)
            variances.append(np.maximum(known, 0))
        return np.concatenate(means), np.concatenate(variances)

    def covariance(self, points: NewPoints) -> Float[np.ndarray, "rows rows"]:
        """The posterior covariance for an amplitude of 1."""
        cross = self.problem.cross(points)
        matrix = self.problem.prior(points)
        if self.outcome is not None:
            return matrix - cross @ self._solve_by_cg(cross)
        half = self._half_solve(cross)
        return matrix - half.T @ half

    def leave_one_out(self, rows: Int[np.ndarray, " m"] | None = None) -> Float[np.ndarray, "_ k"]:
        """Errors at each point of the model without it, shape (n, k), or at some points only.

        Where CG has solved they are estimated (`linalg.inverse_diagonal`): a second iteration, the first time.
        """
        if self.outcome is not None:
            errors = self.inverse_diagonal.leave_one_out(self.dual)
            return errors if rows is None else errors[rows]
        data = self.problem.data
        if isinstance(self.factor, Eigen):
            targets = data.root * data.targets
            errors = loo_errors(self.factor, targets, self.ridge, self.t) / data.root
            return errors if rows is None else errors[rows]
        errors = leave_one_out(self.factor, self.dual / data.root, rows)
        return errors / (data.root if rows is None else data.root[rows])

    def log_det(self) -> float:
        """The logarithm of det(B + r)."""
        if self.outcome is not None:
            raise ValueError("A determinant needs a factorisation, which solver='cg' avoids.")
        if isinstance(self.factor, Eigen):
            return float(np.log(self.factor.values + self.ridge).sum())
        return self.factor.log_det()

    def judged(self) -> tuple[Int[np.ndarray, " m"], Float[np.ndarray, "m k"]]:
        """Points by which the fit is judged, and their leave-one-out errors.

        All points where there are few, or where CG has solved; else some of them.
        """
        count = len(self.problem.data.points)
        if self.outcome is not None or count <= EXACT:
            return np.arange(count), self.leave_one_out()
        rows = self.problem.data.some(_JUDGES)
        return rows, self.leave_one_out(rows)

    def score(self, statistic: Statistic) -> Score:
        """A statistic of points, by number, and their leave-one-out errors, with its standard error."""
        if self.outcome is not None:
            return sampled_score(statistic, self.inverse_diagonal, self.dual)
        return exact_score(statistic, *self.judged(), len(self.dual))

    @functools.cached_property
    def inverse_diagonal(self) -> InverseDiagonal:
        """What CG knows of the diagonal of $(K+rW^{-1})^{-1}$."""
        assert self.outcome is not None
        return (self._way or CG()).inverse_diagonal(self.system, self.outcome.seconds)

    def _explained(self, cross: Float[np.ndarray, "m n"]) -> Float[np.ndarray, " m"]:
        """How much of each variance the points explain."""
        if self.outcome is not None:
            return np.einsum("ij,ji->i", cross, self._solve_by_cg(cross))
        half = self._half_solve(cross)
        return np.einsum("ij,ij->j", half, half)

    def _half_solve(self, cross: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "n m"]:
        """H with H'H = k (K + r/W)^{-1} k'."""
        data, factor = self.problem.data, self.factor
        right = cross.T if data.plain else cross.T * data.root
        if isinstance(factor, Eigen):
            return (factor.vectors.T @ right) / np.sqrt(factor.values + self.ridge)[:, None]
        return factor.half_solve(np.asfortranarray(right), overwrite=True)

    @functools.cached_property
    def system(self) -> System:
        """What CG solves with: one preconditioner serves all variances."""
        return (self._way or CG()).system(self.problem, self.ridge / self.problem.data.weights)

    def _solve_by_cg(self, cross: Float[np.ndarray, "m n"]) -> Float[np.ndarray, "n m"]:
        way = dataclasses.replace(self._way or CG(), verbose=False, checkpoint=None)
        solve = lambda part: way.solve(self.system, np.ascontiguousarray(part.T)).x
        parts = [solve(cross[i : i + _CHUNK]) for i in range(0, len(cross), _CHUNK)]
        return np.concatenate(parts, axis=1)
