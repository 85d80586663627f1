"""From a user's arguments to a checked problem."""

import numpy as np

from widelimit._base.arrays import as_array, as_plain, common_dtype, is_jax, is_transformed
from widelimit.infinite import PreparedKernel
from widelimit.layers import Layer
from widelimit.linalg import StoredGram

from ._blocks import block_problem, given_problem
from ._data import Data
from ._kernel import FunctionKernel, KernelLike, as_kernel
from ._problem import Problem
from ._stored import stored_problem


def as_problem(net: Layer | None, x: object, y: object, kernel: KernelLike) -> Problem:
    """Check the arguments that training, regression and inference share.

    Args:
        net: The network; None where the kernel needs none.
        x: Training points, shape (n, d); with kernel="precomputed" their kernel.
        y: Targets, shape (n,) or (n, k).
        kernel: A name, a prepared kernel, or a function of (x1, x2) that gives the matrix, or blocks
            (n1, n2, k, k) for k correlated outputs.

    Returns:
        The problem.
    """
    if is_transformed((x, y)):
        raise TypeError(
            "x or y is being traced; the solvers work on concrete arrays. "
            "log_marginal_likelihood is the function to differentiate."
        )
    if isinstance(kernel, str) and kernel == "precomputed":
        if net is not None:
            raise ValueError(
                "kernel='precomputed' takes the place of a network; pass None for it, or name the "
                "network's kernel ('ntk', 'nngp')."
            )
        return stored_problem(x, y) if isinstance(x, StoredGram) else given_problem(x, y)
    function, given = as_kernel(net, kernel), as_plain(x, "x")
    if given.ndim > 2 and isinstance(function, PreparedKernel):
        function = function.of_rows(tuple(given.shape[1:]))
        given = given.reshape(len(given), -1)
    points = as_array(given, "x", rank=2, layout="(points, features)")
    flat = np.asarray(y).ndim < 2
    targets = as_array(y, "y", rank=1 if flat else 2, layout="(points,) or (points, outputs)")
    if len(points) != len(targets):
        raise ValueError(
            f"x has {len(points)} rows and y has {len(targets)}; one target for each point was "
            "expected."
        )
    dtype = common_dtype(points, targets) if is_jax(points) else points.dtype
    host = np.asarray(targets, np.float64).reshape(len(targets), -1)
    data = Data.of(np.asarray(points, np.float64), host)
    problem = Problem(function, data, flat, not is_jax(points), dtype)
    if isinstance(function, FunctionKernel) and host.shape[1] > 1:
        first = data.points[:1]
        if np.ndim(function.function(first, first)) == 4:  # several outputs, and blocks for them
            return block_problem(function.function, problem)
    return problem
