"""Kernel ridge regression with a network's kernel."""

import dataclasses
from pathlib import Path

import numpy as np
from jax.sharding import Mesh

from widelimit._base.scalars import as_float
from widelimit.layers import Layer

from ._as_problem import as_problem
from ._choose import Choice
from ._fit import fit
from ._fitted import Ridge
from ._kernel import KernelLike
from ._problem import Problem
from ._solvers import Solver


def ridge(
    net: Layer | None,
    x: object,
    y: object,
    ridge: Choice = 1e-3,
    *,
    kernel: KernelLike = "ntk",
    solver: str | Solver = "auto",
    tolerance: float = 1e-6,
    rank: int | None = None,
    precision: str = "float64",
    checkpoint: str | Path | None = None,
    verbose: bool | None = None,
    mesh: Mesh | None = None,
) -> Ridge:
    r"""Kernel ridge regression with leave-one-out errors in closed form.

    $\alpha=(K+rI)^{-1}y$, $y_i-f_{-i}(x_i)=\alpha_i/[(K+rI)^{-1}]_{ii}$. With several ridges, one
    eigendecomposition gives the errors of all, and the best is taken.

    Args:
        net: The network; None where `kernel` needs none.
        x: Training points, shape (n, d); with kernel="precomputed" their kernel, shape (n, n) or
            (n, n, k, k), or on disk (`gram`).
        y: Targets, shape (n,) or (n, k).
        ridge: A number; several to choose from by the leave-one-out error of all points (which "cg"
            estimates, an iteration for each); "loo": twenty over nine decades; "evidence": the largest
            marginal likelihood. Of more than 2000 points, and by "cg", these two are asked on 1500.
        kernel: "ntk", "nngp", "gaussian", a function of (x1, x2) that gives the matrix, or blocks
            (n1, n2, k, k) for k outputs; or "precomputed": `predict` then takes the kernel of new
            points with the training points.
        solver: "cholesky"; "cg", which never stores the matrix, and estimates leave-one-out errors
            (`errors`, with `errors_std`) by a second, shorter iteration when they are asked for; "auto" takes
            the first up to 20000 points; or a value, `regression.CG(...)`, with the options below.
        tolerance: Of the relative residual of CG, computed anew in the end.
        rank: Columns of CG's preconditioner; None: about 5 sqrt(n), 10 on a GPU.
        precision: Of CG: "float64" refines products in float32 until a residual in float64 is below the
            tolerance; "float32" does not.
        checkpoint: A file from which CG goes on if it was stopped.
        verbose: Whether progress is shown; None: where it takes longer than a minute.
        mesh: The devices that share the work of CG, of one process or of several (`processes`); None: all
            of this process.

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
    if isinstance(ridge, str):
        if ridge not in ("loo", "evidence"):
            raise ValueError(f"ridge must be numbers, 'loo' or 'evidence', got {ridge!r}.")
    elif np.ndim(ridge) == 0:
        ridge = check_noise(ridge, problem)
    options = {"rank": rank, "precision": precision, "tolerance": tolerance, "mesh": mesh}
    more = {"checkpoint": checkpoint, "verbose": verbose}
    return reaching(fit(problem, ridge, solver=solver, **options, **more))


def check_noise(noise: object, problem: Problem) -> float:
    """A finite variance, and no contradiction among the targets if it is 0."""
    value = as_float(noise, "noise")
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"noise is a variance, finite and at least 0; got {noise}.")
    if value == 0:
        pair = problem.data.contradiction
        if pair is not None:
            raise ValueError(
                f"Rows {pair[0]} and {pair[1]} of x are equal but their targets differ, so without "
                "noise no function fits both. Give noise > 0, or average such targets."
            )
    return value


def noisy(problem: Problem, noise: object) -> tuple[Problem, float, float]:
    r"""The problem whose rows carry their own noise as weights, its ridge, and the noise of new points.

    $\sigma_i^2=r/w_i$ with r the mean variance. A new point has no noise of its own to go by: where the
    points' differ, nothing is added to its observations.
    """
    if np.ndim(noise) == 0:  # type: ignore[arg-type]
        level = check_noise(noise, problem)
        return problem, level, level
    levels = np.asarray(noise, np.float64)
    n = len(problem.inputs)
    if levels.shape != (n,):
        raise ValueError(
            f"noise has shape {levels.shape}; a number was expected, or one variance for each of the "
            f"{n} training points."
        )
    if not (np.isfinite(levels).all() and (levels > 0).all()):
        raise ValueError(
            "The noise of each point is a variance, finite and above 0. Of points without noise give a "
            "small one, such as 1e-8 of the kernel's diagonal."
        )
    mean = float(levels.mean())
    weights = np.repeat(mean / levels, len(problem.y) // n)
    data = dataclasses.replace(problem.data, weights=weights)
    return dataclasses.replace(problem, data=data), mean, 0.0


def reaching(model: Ridge) -> Ridge:
    """The model, or an error where a singular matrix cannot reach the targets.

    A jitter makes every system solvable; what it leaves unexplained, jitter times the weights, is
    rounding if the targets are in the kernel's range, and of their size if they are not.
    """
    missed = model.jitter * float(np.abs(model.dual).max())
    if missed > 1e-3 * float(np.abs(model.problem.y).max()):
        raise ValueError(
            "Without noise no function of this kernel fits the targets: the kernel matrix is "
            f"singular, and {missed:.1e} of the targets lies outside its range. Give noise > 0 (a "
            "ridge), give the network biases, or remove points that it cannot tell apart."
        )
    return model
