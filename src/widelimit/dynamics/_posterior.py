"""Bayesian inference with a network of infinite width as the prior."""

import functools
from typing import Any

import numpy as np

from widelimit.layers import Layer
from widelimit.linalg import Cholesky, TiledGram, cholesky

from ._predictive import Predictive
from ._problem import Problem, as_problem, contradiction
from ._train import train


def posterior(
    net: Layer | None, x: Any, y: Any, x_test: Any, noise: float = 0.0, *, kernel: Any = "nngp"
) -> Predictive:
    r"""The posterior of a Gaussian process, its prior an infinitely wide network at initialisation.

    Mean $K(x,X)(K+\sigma^2I)^{-1}y$, covariance $K(x,x')-K(x,X)(K+\sigma^2I)^{-1}K(X,x')$.

    Args:
        net: The network; None where `kernel` needs none.
        x: Training points, shape (n, d).
        y: Targets, shape (n,) or (n, k).
        x_test: Where to predict, shape (m, d).
        noise: $\sigma^2$, the variance of the observation noise; 0 interpolates.
        kernel: "nngp", "ntk", "gaussian", or a function of (x1, x2).

    Returns:
        A record with `mean`, `variance`, `std`, `covariance` and `sample`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> p = wl.posterior(wl.mlp(1), [[1.0]], [2.0], [[1.0], [3.0]], noise=0.5)
        >>> p.mean, p.variance  # K(1, 1) = 1/2, so half of the target is noise
        (array([1., 3.]), array([0.25, 2.25]))

    Reference:
        Rasmussen and Williams (2006), algorithm 2.1; Lee et al. (2018).
    """
    problem = as_problem(net, x, y, kernel)
    noise = check_noise(noise, problem)
    points = problem.points(x_test)
    factor = cholesky(problem.gram(), noise, overwrite=True)
    cross = problem.cross(points)
    mean = cross @ fitted(factor, problem)
    half = factor.half_solve(np.asfortranarray(cross.T), overwrite=True)
    prior = problem.prior(points)
    variance = np.maximum(prior.diagonal() - np.einsum("ij,ij->j", half, half), 0)
    return Predictive(
        problem.answer(mean),
        problem.convert(variance),
        noise,
        problem,
        functools.partial(_conditioned, prior, half),
    )


def _conditioned(prior: TiledGram, half: np.ndarray) -> np.ndarray:
    return prior.dense() - half.T @ half


def ensemble(
    net: Layer, x: Any, y: Any, x_test: Any, t: float | None = None, *, kernel: str = "ntk"
) -> Predictive:
    r"""The distribution of networks trained from random initial weights, for time t.

    Before training a network is a draw from the Gaussian process with kernel $K$; training maps it
    linearly, $f_t(x)=f_0(x)+A_x(y-f_0(X))$ with $A_x=\Theta(x,X)\Theta^{-1}(I-e^{-\Theta t})$, so
    the mean is $A_xy$ and the covariance
    $K(x,x')-A_xK(X,x')-K(x,X)A_{x'}^\top+A_xK(X,X)A_{x'}^\top$.

    Args:
        net: The network.
        x: Training points, shape (n, d).
        y: Targets, shape (n,) or (n, k).
        x_test: Where to predict, shape (m, d).
        t: Training time; None: for ever.
        kernel: "ntk": all layers are trained; "nngp": the last one only.

    Returns:
        A record with `mean`, `variance`, `std`, `covariance` and `sample`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> net, x = wl.mlp(2), np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> e = wl.ensemble(net, x, [1.0, -1.0], x)  # all networks agree where they were trained
        >>> bool(np.allclose(e.mean, [1, -1]) and e.variance.max() < 1e-12)
        True
        >>> before = wl.ensemble(net, x, [1.0, -1.0], x, t=0.0)
        >>> bool(np.allclose(before.covariance, wl.nngp(net, x)))
        True

    Reference:
        Lee et al. (2019), Wide neural networks of any depth evolve as linear models.
    """
    model = train(net, x, y, kernel=kernel)
    prior = as_problem(net, x, y, "nngp")
    points = prior.points(x_test)
    operator = np.asarray(model.influence(points, t), np.float64)
    shift = prior.cross(points)
    inner = prior.gram()
    moved = operator @ inner - 2 * shift
    matrix = prior.prior(points)
    variance = np.maximum(matrix.diagonal() + np.einsum("ij,ij->i", moved, operator), 0)
    return Predictive(
        prior.answer(operator @ prior.y),
        prior.convert(variance),
        0.0,
        prior,
        functools.partial(_moved, matrix, operator, shift, inner),
    )


def _moved(
    prior: TiledGram, operator: np.ndarray, shift: np.ndarray, inner: np.ndarray
) -> np.ndarray:
    mixed = operator @ shift.T
    return prior.dense() - mixed - mixed.T + operator @ inner @ operator.T


def check_noise(noise: Any, problem: Problem) -> float:
    """A finite variance, and no contradiction among the targets if it is 0."""
    value = float(noise)
    if not (np.isfinite(value) and value >= 0):
        raise ValueError(f"noise is a variance, finite and at least 0; got {noise}.")
    if value == 0:
        pair = contradiction(problem)
        if pair is not None:
            raise ValueError(
                f"Rows {pair[0]} and {pair[1]} of x are equal but their targets differ, so without "
                "noise no function fits both. Give noise > 0, or average such targets."
            )
    return value


def fitted(factor: Cholesky, problem: Problem) -> np.ndarray:
    """The dual weights, or an error where a singular matrix cannot reach the targets.

    A jitter makes every system solvable; what it leaves unexplained, jitter times the weights, is
    rounding if the targets are in the kernel's range, and of their size if they are not.
    """
    dual = factor.solve(problem.y)
    missed = factor.jitter * float(np.abs(dual).max())
    if missed > 1e-3 * float(np.abs(problem.y).max()):
        raise ValueError(
            "Without noise no function of this kernel fits the targets: the kernel matrix is "
            f"singular, and {missed:.1e} of the targets lies outside its range. Give noise > 0 (a "
            "ridge), give the network biases, or remove points that it cannot tell apart."
        )
    return dual
