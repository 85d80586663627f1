"""Training a network of infinite width."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from jax.sharding import Mesh

from widelimit.layers import Layer
from widelimit.regression import CG, Problem, Solver, Spectral, as_problem, as_solver

from ._arguments import as_outputs, shaped_loss
from ._losses import Loss, as_loss, check_targets
from ._ode import check_loss
from ._trained import Initial, Trained
from ._unstored import Unstored


def train(
    net: Layer | None,
    x: Any,
    y: Any,
    *,
    kernel: Any = "ntk",
    f0: Any = None,
    loss: str | Loss = "squared",
    tolerance: float = 1e-10,
    solver: str | Solver = "auto",
    rank: int | None = None,
    precision: str = "float64",
    mesh: Mesh | None = None,
    checkpoint: str | Path | None = None,
    verbose: bool | None = None,
) -> Trained:
    r"""Train a network of infinite width: gradient flow on $\dot f_t(x)=-\Theta(x,X)\nabla_f L$.

    Args:
        net: The network; None where `kernel` needs none.
        x: Training points, shape (n, d); with kernel="precomputed" their kernel, shape (n, n) or
            (n, n, k, k).
        y: Targets, shape (n,) or (n, k) for k outputs.
        kernel: "ntk"; "nngp" (only the last layer is trained); "gaussian"; a function of (x1, x2)
            that gives the matrix, x2=None standing for x1, or blocks (n1, n2, k, k) for k outputs
            (`empirical_ntk`); or "precomputed": `predict` then takes the kernel of new points with
            the training points.
        f0: The initial function: None for zero; a function of points; a pair (finite network,
            parameters); or its values at the training points.
        loss: "squared" (half the sum of squares), "mean" (half their mean over points and outputs, as
            in neural-tangents: times and learning rates are n k times longer), "huber", "logistic" (targets ±1),
            "cross-entropy" (rows of probabilities), or a differentiable function of (f, y), each of
            shape (n, k), that sums over the points.
        tolerance: Of the ODE solver that serves the other losses, and of the relative residual of CG.
        solver: "cholesky": the matrix is held, factorised for t = infinity and diagonalised for other times;
            "cg", which never stores it: the squared losses, trained for ever (conjugate gradients) or by
            `descend` (a product for each step); "auto": the first up to 20000 points, the second beyond; or
            a value, `regression.CG(...)`.
        rank: Columns of CG's preconditioner; None: about 5 sqrt(n), 10 on a GPU.
        precision: Of CG: "float64" refines products in float32 until a residual in float64 is below the
            tolerance; "float32" does not.
        mesh: The devices that share the work of CG (`processes`); None: all of this process.
        checkpoint: A file from which CG goes on if it was stopped.
        verbose: Whether progress is shown; None: where it takes longer than a minute.

    Returns:
        A model with `predict(x_test, t)` and `descend(x_test, steps=, learning_rate=)`. Nothing is solved before
        it is asked for.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
        >>> model = wl.train(wl.mlp(depth=3), x, y)
        >>> model.predict(x).round(12)  # trained for ever, it interpolates
        array([ 1., -1.])
        >>> t = model.time_scales[1]  # y lies in the slow direction
        >>> bool(np.allclose(model.predict(x, t=t), (1 - np.exp(-1)) * y))
        True

    Reference:
        Jacot, Gabriel and Hongler (2018); Tirer, Bruna and Giryes (2022), eq. 3 and 4.
    """
    problem = as_problem(net, x, y, kernel)
    function = as_loss(loss)
    check_targets(loss, problem.y.reshape(problem.loss_shape()))
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}.")
    initial, start = _initial(f0, problem)
    if not (isinstance(loss, str) and loss in ("squared", "mean")):
        check_loss(shaped_loss(function, problem), start, problem.y)
    else:
        _warn_of_contradiction(problem)
    size = 0 if problem.held else len(problem.x)
    options = {"rank": rank, "precision": precision, "tolerance": tolerance, "mesh": mesh}
    way = as_solver(solver, size, checkpoint=checkpoint, verbose=verbose, **options)
    if isinstance(way, CG):
        return _unstored(problem, loss, initial, start, way)
    spectral = Spectral(problem.gram(), way.verbose)
    return Trained(problem, loss, initial, start, spectral, float(tolerance))


def _unstored(
    problem: Problem, loss: str | Loss, initial: Initial, start: np.ndarray, way: CG
) -> Unstored:
    if not (isinstance(loss, str) and loss in ("squared", "mean")):
        raise ValueError(
            f"loss={loss!r} is followed through time with the kernel matrix in memory, which solver='cg' (that of "
            "more than 20000 points) does not store. Use loss='squared', fewer points, or solver='cholesky' if "
            "8 n^2 bytes fit into memory."
        )
    return Unstored.of(problem, loss, initial, start, way)


def _warn_of_contradiction(problem: Problem) -> None:
    pair = problem.data.contradiction
    if pair is not None:
        warnings.warn(
            f"Rows {pair[0]} and {pair[1]} of x are equal but their targets differ: no function "
            "fits both, and training tends to their mean. Average such targets, or use a ridge "
            "(wl.ridge).",
            UserWarning,
            stacklevel=3,
        )


def _initial(f0: Any, problem: Problem) -> tuple[Initial, np.ndarray]:
    shape = problem.y.shape
    if f0 is None:
        return None, np.zeros(shape)
    if isinstance(f0, tuple):
        if len(f0) != 2:
            raise ValueError(
                f"f0 as a pair is (finite network, parameters); got {len(f0)} entries."
            )
        finite, params = f0
        f0 = lambda x: finite.apply(params, x)
    if callable(f0):
        function, layout = f0, getattr(problem.kernel, "layout", None)
        if layout is not None:  # the problem holds images as rows
            function = lambda x: f0(np.reshape(x, (len(x), *layout)))
        return function, as_outputs(function(problem.inputs), shape, "f0(x)")
    return None, as_outputs(f0, shape, "f0")
