"""The engine: kernel regression on weighted points, its leave-one-out errors and its posterior."""

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float

from widelimit._base.scalars import as_float
from widelimit._base.shown import shown
from widelimit.linalg import (
    Cholesky,
    Eigen,
    RidgePath,
    Solution,
    System,
    cholesky,
    eigh,
    leave_one_out,
)

from ._choose import Choice, choose, loo_errors
from ._data import NewPoints, Targets
from ._kernel import Answer, strips
from ._phi import flow
from ._problem import Problem
from ._solvers import CG, Solver, as_solver

_SUBSET = 4000  # points on which the ridge is chosen where the matrix is not held
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
        path: The path, where several ridges were tried.
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
        for name in ("factor", "system"):  # many numbers that can be computed again
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
    def errors(self) -> Answer | None:
        """Leave-one-out errors $y_i-f_{-i}(x_i)$, shape (n,) or (n, k); None by CG."""
        return None if self.outcome is not None else self.problem.answer(self.leave_one_out())

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

    def leave_one_out(self) -> Targets:
        """Errors at each point of the model without it, shape (n, k)."""
        if self.outcome is not None:
            raise ValueError(
                "Leave-one-out errors need a factorisation, which solver='cg' avoids. Fit with "
                "solver='cholesky', or cross-validate."
            )
        data = self.problem.data
        if isinstance(self.factor, Eigen):
            targets = data.root * data.targets
            return loo_errors(self.factor, targets, self.ridge, self.t) / data.root
        return leave_one_out(self.factor, self.dual / data.root) / data.root

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


def fit(
    problem: Problem,
    ridge: Choice,
    *,
    t: float = math.inf,
    solver: str | Solver = "auto",
    **options: object,
) -> Ridge:
    """Fit weighted points: what every regression of this library goes through.

    Args:
        problem: Checked data and kernel.
        ridge: A number; several to choose from; "loo" or "evidence".
        t: Training time.
        solver: "cholesky"; "cg", which never stores the matrix; "auto": the first up to `DENSE`
            points; or a value, `Cholesky()` or `CG(...)`.
        **options: Of `CG`, where it is chosen by name.

    Returns:
        The fit.
    """
    data = problem.data
    way = as_solver(solver, len(data.points), **options)
    if isinstance(way, CG):
        return _iterate(problem, ridge, t, way)
    targets = data.root * data.targets
    if not isinstance(ridge, str) and np.ndim(ridge) == 0 and t == math.inf:
        value, path = as_float(ridge, "ridge"), None
        factor = cholesky(problem.gram(), value, overwrite=True)
        inner = factor.solve(targets)
    else:
        factor = eigh(problem.gram(), overwrite=True)
        value, path = choose(factor, data, ridge, t)
        inner = factor.apply(lambda v: flow(v, t, value), targets)
    return Ridge(problem, value, data.root * inner, t, path, None, factor)


def evidence(model: Ridge) -> float:
    r"""The log probability of the targets under $N(0,K+rW^{-1})$, W the weights of the points."""
    n, outputs = model.dual.shape
    if not isinstance(model.factor, Cholesky):
        raise ValueError(
            "The evidence needs a factorisation; fit one ridge with solver='cholesky'."
        )
    data = model.problem.data
    volume = model.factor.log_det() - float(np.log(data.weights).sum())
    half = model.factor.half_solve(data.root * data.targets)
    return -(float((half**2).sum()) + outputs * (volume + n * math.log(2 * math.pi))) / 2


def _iterate(problem: Problem, ridge: Choice, t: float, solver: CG) -> Ridge:
    if t < math.inf:
        raise ValueError(
            "Training for a finite time needs an eigendecomposition, which solver='cg' avoids. "
            "Set time=None, or solver='cholesky' if the matrix fits into memory."
        )
    data = problem.data
    if isinstance(ridge, str) or np.ndim(ridge) > 0:
        # A ridge is a variance of noise in units of the kernel: some of the points know it.
        some = dataclasses.replace(problem, data=data.subset(_SUBSET))
        ridge = fit(some, ridge, solver="cholesky").ridge
    value = as_float(ridge, "ridge")
    system = solver.system(problem, value / data.weights)
    outcome = solver.solve(system, data.targets)
    model = Ridge(problem, value, outcome.x, outcome=outcome, _way=solver)
    vars(model)["system"] = system
    return model
