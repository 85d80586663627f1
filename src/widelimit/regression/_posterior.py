"""Bayesian inference with a network of infinite width as the prior."""

import functools

from widelimit.layers import Layer

from ._fit import fit
from ._kernel import KernelLike
from ._predictive import Predictive
from ._problem import as_problem
from ._ridge import check_noise, reaching


def posterior(
    net: Layer | None,
    x: object,
    y: object,
    x_test: object,
    noise: float = 0.0,
    *,
    kernel: KernelLike = "nngp",
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
    model = reaching(fit(problem, noise))
    mean, variance = model.moments(points)
    return Predictive(
        problem.answer(mean),
        problem.convert(variance),
        noise,
        problem,
        functools.partial(model.covariance, points),
    )
