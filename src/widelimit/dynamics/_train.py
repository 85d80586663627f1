"""Training a network of infinite width."""

import warnings
from typing import Any

import numpy as np

from widelimit.layers import Layer
from widelimit.regression import Problem, Spectral, as_problem

from ._arguments import as_outputs, shaped_loss
from ._losses import Loss, as_loss, check_targets
from ._ode import check_loss
from ._trained import Initial, Trained


def train(
    net: Layer | None,
    x: Any,
    y: Any,
    *,
    kernel: Any = "ntk",
    f0: Any = None,
    loss: str | Loss = "squared",
    tolerance: float = 1e-10,
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
        tolerance: Of the ODE solver that serves the other losses.

    Returns:
        A model with `predict(x_test, t)` and `descend(x_test, steps=, learning_rate=)`.

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
    return Trained(problem, loss, initial, start, Spectral(problem.gram()), float(tolerance))


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
