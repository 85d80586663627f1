"""Kernel ridge regression with a network's kernel."""

import dataclasses
import warnings
from typing import Any

import numpy as np

from widelimit.layers import Layer
from widelimit.linalg import (
    RidgePath,
    Solution,
    cholesky,
    conjugate_gradients,
    eigh,
    leave_one_out,
    ridge_path,
)

from ._posterior import check_noise, fitted
from ._problem import Problem, as_problem

_DENSE = 20_000  # points up to which the matrix is held in memory (3 GiB)


@dataclasses.dataclass(frozen=True)
class Ridge:
    r"""A fitted ridge regression, $f(x)=k(x)\,\alpha$ with $\alpha=(K+rI)^{-1}y$.

    Attributes:
        problem: The checked data and kernel.
        ridge: $r$.
        dual: $\alpha$, shape (n, k).
        errors: Leave-one-out errors $y_i-f_{-i}(x_i)$, shape (n,) or (n, k); None by CG.
        jitter: What was added to the diagonal beyond the ridge.
        path: The path, where several ridges were tried.
        outcome: Of the iteration, where CG was used.
    """

    problem: Problem
    ridge: float
    dual: np.ndarray
    errors: Any
    jitter: float
    path: RidgePath | None
    outcome: Solution | None

    def predict(self, x_test: Any) -> Any:
        """The fitted function at new points.

        Args:
            x_test: Points, shape (m, d).

        Returns:
            Shape (m,) or (m, k).
        """
        points = self.problem.points(x_test)
        return self.problem.answer(self.problem.cross(points) @ self.dual)


def ridge(
    net: Layer | None,
    x: Any,
    y: Any,
    ridge: Any = 1e-3,
    *,
    kernel: Any = "ntk",
    solver: str = "auto",
    tolerance: float = 1e-6,
) -> Ridge:
    r"""Kernel ridge regression with leave-one-out errors in closed form.

    $\alpha=(K+rI)^{-1}y$, $y_i-f_{-i}(x_i)=\alpha_i/[(K+rI)^{-1}]_{ii}$. With several ridges, one
    eigendecomposition gives the errors of all, and the best is taken.

    Args:
        net: The network; None where `kernel` needs none.
        x: Training points, shape (n, d).
        y: Targets, shape (n,) or (n, k).
        ridge: A number, or several to choose from by the leave-one-out error.
        kernel: "ntk", "nngp", "gaussian", or a function of (x1, x2).
        solver: "cholesky"; "cg", which never stores the matrix and gives no leave-one-out errors;
            "auto" takes the first up to 20000 points.
        tolerance: Of the relative residual of CG.

    Returns:
        The fitted model.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x = np.linspace(-1, 1, 9)[:, None]
        >>> model = wl.ridge(wl.mlp(2, b_std=0.5), x, np.sin(3 * x[:, 0]), [1e-6, 1e-3, 1.0])
        >>> model.ridge, bool(np.abs(model.errors[1:-1]).max() < 0.3)
        (1e-06, True)

    Reference:
        Rasmussen and Williams (2006), section 5.4.2.
    """
    problem = as_problem(net, x, y, kernel)
    if solver not in ("auto", "cholesky", "cg"):
        raise ValueError(f"solver must be 'auto', 'cholesky' or 'cg', got {solver!r}.")
    if solver == "cg" or (solver == "auto" and len(problem.x) > _DENSE):
        return _by_iteration(problem, ridge, tolerance)
    if np.ndim(ridge) > 0:
        return _by_path(problem, ridge)
    value = check_noise(ridge, problem)
    factor = cholesky(problem.gram(), value, overwrite=True)
    dual = fitted(factor, problem)
    errors = problem.answer(leave_one_out(factor, dual))
    return Ridge(problem, value, dual, errors, factor.jitter, None, None)


def _by_path(problem: Problem, ridges: Any) -> Ridge:
    eigen = eigh(problem.gram(), overwrite=True)
    path = ridge_path(eigen, problem.y, ridges)
    best = path.ridge
    dual = eigen.apply(lambda v: 1 / (v + best), problem.y)
    return Ridge(problem, best, dual, problem.answer(path.errors[path.best]), 0.0, path, None)


def _by_iteration(problem: Problem, ridge: Any, tolerance: float) -> Ridge:
    if np.ndim(ridge) > 0:
        raise ValueError(
            "Choosing among ridges needs an eigendecomposition, which CG avoids. Give one ridge, "
            "or choose it on a subset with solver='cholesky'."
        )
    value = check_noise(ridge, problem)
    outcome = conjugate_gradients(problem.tiled(), problem.y, value, tolerance=tolerance)
    if not outcome.converged:
        warnings.warn(
            f"CG stopped after {outcome.steps} steps with residual {outcome.residual:.1e}; "
            f"{tolerance:.1e} was asked for. A larger ridge converges faster.",
            UserWarning,
            stacklevel=3,
        )
    return Ridge(problem, value, outcome.x, None, 0.0, None, outcome)
