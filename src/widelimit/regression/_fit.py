"""The engine: a problem becomes a fitted regression."""

import dataclasses
import math

import numpy as np

from widelimit._base.scalars import as_float
from widelimit._base.watch import announce, say
from widelimit.linalg import Cholesky, RidgePath, System, cholesky, eigh

from ._choose import EXACT, SUBSET, Choice, choose
from ._fitted import Ridge
from ._judge import sampled_score
from ._phi import flow
from ._problem import Problem
from ._solvers import CG, Solver, as_solver, forecast


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
    way = as_solver(solver, 0 if problem.held else len(problem.data.points), **options)
    if isinstance(way, CG):
        return _iterate(problem, ridge, t, way)
    return _factorise(problem, ridge, t, way.verbose)


def _factorise(problem: Problem, ridge: Choice, t: float, verbose: bool | None) -> Ridge:
    data = problem.data
    targets, n = data.root * data.targets, len(data.points)
    number = not isinstance(ridge, str) and np.ndim(ridge) == 0
    # A named criterion does not need all points, candidates that somebody gives are all compared.
    some = isinstance(ridge, str) and n > EXACT
    if t < math.inf or not (number or some):
        announce(f"eigendecomposition of {n} points", forecast(n, eigen=True), verbose)
        factor = eigh(problem.gram(), overwrite=True)
        value, path = choose(factor, data, ridge, t)
        inner = factor.apply(lambda v: flow(v, t, value), targets)
        return Ridge(problem, value, data.root * inner, t, path, None, factor)
    announce(f"factorisation of {n} points", forecast(n), verbose)
    matrix, path = problem.gram(), None
    if some:
        rows = data.some(SUBSET)
        part = np.array(matrix[np.ix_(rows, rows)], order="F")
        ridge, path = choose(eigh(part, overwrite=True), data.subset(rows), ridge, t)
        say(f"ridge {ridge:.2e}, chosen on {SUBSET} of the points", verbose)
    value = as_float(ridge, "ridge")
    factor = cholesky(matrix, value, overwrite=True)
    return Ridge(problem, value, data.root * factor.solve(targets), t, path, None, factor)


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
    data, path = problem.data, None
    several = not isinstance(ridge, str) and np.ndim(ridge) > 0
    if isinstance(ridge, str):
        # A ridge is a variance of noise in units of the kernel: some of the points know it.
        some = dataclasses.replace(problem, data=data.subset(data.some(SUBSET)))
        ridge = fit(some, ridge, solver="cholesky").ridge
        say(f"ridge {ridge:.2e}, chosen on {SUBSET} of the points", solver.verbose)
    if several:
        system, path = _compare(problem, np.ravel(ridge), solver)
        value = path.ridge
    else:
        value = as_float(ridge, "ridge")
        system = solver.system(problem, value / data.weights)
    outcome = solver.solve(system, data.targets)
    model = Ridge(problem, value, outcome.x, path=path, outcome=outcome, _way=solver)
    vars(model)["system"] = system
    return model


def _compare(problem: Problem, ridges: np.ndarray, solver: CG) -> tuple[System, RidgePath]:
    """The system of the best of some ridges, by estimated leave-one-out errors of all points."""
    values = np.array([as_float(r, "A ridge") for r in ridges])
    if not ((values > 0) & np.isfinite(values)).all():
        raise ValueError(
            f"ridges must be positive and finite, got {values}: without a ridge a singular kernel "
            "matrix has no leave-one-out error."
        )
    data = problem.data
    first = solver.system(problem, values[0] / data.weights, 1 + len(values))
    first.preconditioner  # noqa: B018 - what it knows of the kernel serves all
    mean = lambda _, e: float((data.weights[:, None] * e**2).mean())
    systems, errors, squares = [], [], []
    for value in values:
        systems.append(first.shifted(value / data.weights))
        found = solver.inverse_diagonal(systems[-1], beside=data.targets)
        score = sampled_score(mean, found, found.beside)
        say(f"ridge {value:.2e}: {score.value:.5g} ± {score.std:.1g}", solver.verbose)
        squares.append(score.value)
        errors.append(data.root * found.leave_one_out(found.beside))
    best = int(np.argmin(squares))
    return systems[best], RidgePath(values, np.stack(errors), np.array(squares), best)
