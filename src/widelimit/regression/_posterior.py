"""Bayesian inference with a network of infinite width as the prior."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import overload

import jax
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.keys import as_generator
from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit.layers import Layer
from widelimit.linalg import cholesky, eigh

from ._as_problem import as_problem
from ._fit import evidence, fit
from ._fitted import Ridge
from ._kernel import Answer, KernelLike
from ._problem import Problem
from ._ridge import noisy, reaching


@shown("mean and covariance of a Gaussian process at some points")
@dataclasses.dataclass(frozen=True, eq=False)
class Predictive:
    """Mean and covariance of the outputs at some points.

    Outputs are independent and alike, unless the kernel has blocks for them: then variances have the
    shape (m, k) and covariances (m, m, k, k). For several times all have a leading axis.

    Attributes:
        mean: Shape (m,) or (m, k).
        variance: Of each point, shape (m,), without observation noise.
        noise: The variance of the observation noise at new points.
    """

    mean: Answer
    variance: Answer
    noise: float
    _problem: Problem = dataclasses.field(repr=False)
    _covariance: Callable[[], np.ndarray] = dataclasses.field(repr=False)

    def summary(self) -> dict[str, object]:
        """What is shown: the covariance is not computed for it."""
        return {"mean": self.mean, "std": self.std, "noise": self.noise or None}

    @property
    def std(self) -> Answer:
        """The square root of the variance, shape (m,)."""
        return self._problem.convert(np.sqrt(np.asarray(self.variance, np.float64)))

    @property
    def observed_variance(self) -> Answer:
        """The variance of a noisy observation at each point, shape (m,)."""
        return self._problem.convert(np.asarray(self.variance, np.float64) + self.noise)

    @functools.cached_property
    def _matrix(self) -> Float[np.ndarray, "*times m m"]:
        matrix = self._covariance()
        return (matrix + np.swapaxes(matrix, -1, -2)) / 2

    @functools.cached_property
    def covariance(self) -> Answer:
        """The full covariance, shape (m, m), computed when first asked for."""
        return self._problem.per_pair(self._matrix)

    def sample(self, key: int | jax.Array, count: int = 1) -> Answer:
        """Draw functions at the points.

        Args:
            key: An integer or a JAX key.
            count: How many.

        Returns:
            Shape (count, m) or (count, m, k); for several times (count, times, m), where the draws of one
            row are made of the same random numbers at all times.
        """
        count = as_count(count, "count", minimum=1)
        mean = np.asarray(self.mean, np.float64)
        matrices = self._matrix.reshape(-1, *self._matrix.shape[-2:])
        means = mean.reshape(len(matrices), *mean.shape[self._matrix.ndim - 2 :])
        columns = [self._problem.columns(one) for one in means]
        # A posterior is what is left of the prior: rounding is measured against that.
        scale = float(np.max(self._problem.diagonal(self._problem.inputs)))
        draws = as_generator(key).standard_normal((count, *columns[0].shape))
        out = []
        for matrix, center in zip(matrices, columns, strict=True):
            eigen = eigh(matrix, scale=scale)
            root = eigen.vectors * np.sqrt(eigen.values)
            out.append(center + np.einsum("ij,cjk->cik", root, draws))
        return self._problem.convert(np.stack(out, axis=1).reshape((count, *mean.shape)))

    def log_prob(self, y: ArrayLike) -> float:
        """The log probability of observed outputs at the points, noise included.

        Args:
            y: Outputs, of the shape of `mean`.

        Returns:
            The logarithm of the joint density.
        """
        mean = np.asarray(self.mean, np.float64)
        if self._matrix.ndim > 2:
            raise ValueError("log_prob is that of one time; ask the ensemble for one.")
        if np.shape(y) != mean.shape:
            raise ValueError(f"y has shape {np.shape(y)}, the mean {mean.shape}; they must agree.")
        error = self._problem.columns(np.asarray(y, np.float64) - mean)
        factor = cholesky(self._matrix.copy(), self.noise)
        half = factor.half_solve(error)
        constant = factor.log_det() + len(error) * math.log(2 * math.pi)
        return -(float((half**2).sum()) + error.shape[1] * constant) / 2


@shown("a Gaussian process that has seen its data")
@dataclasses.dataclass(frozen=True, eq=False)
class Posterior:
    """A Gaussian process that has seen its data: conditioned once, asked as often as one likes.

    Made by `posterior` without points to predict at; it holds the factorisation of the kernel matrix.

    Attributes:
        model: The fitted regression, whose function is the posterior mean.
        noise: The variance of the observation noise at new points.
    """

    model: Ridge
    noise: float

    def summary(self) -> dict[str, object]:
        """What is shown of a posterior."""
        return {**self.model.problem.summary(), "noise": self.noise or None}

    def __call__(self, x_test: object) -> Predictive:
        """Mean and covariance at new points, shape (m, d)."""
        return self.predict(x_test)

    def predict(self, x_test: object) -> Predictive:
        """Mean and covariance at new points.

        Args:
            x_test: Points, shape (m, d).

        Returns:
            A record with `mean`, `variance`, `std`, `covariance`, `sample` and `log_prob`.
        """
        problem = self.model.problem
        points = problem.points(x_test)
        mean, variance = self.model.moments(points)
        return Predictive(
            problem.answer(mean),
            problem.per_point(variance),
            self.noise,
            problem,
            functools.partial(self.model.covariance, points),
        )

    @functools.cached_property
    def log_marginal_likelihood(self) -> float:
        """The log probability of the targets under the prior."""
        return evidence(self.model)


@overload
def posterior(
    net: Layer | None,
    x: object,
    y: object,
    x_test: None = None,
    noise: float | np.ndarray = 0.0,
    *,
    kernel: KernelLike = "nngp",
) -> Posterior: ...


@overload
def posterior(
    net: Layer | None,
    x: object,
    y: object,
    x_test: object,
    noise: float | np.ndarray = 0.0,
    *,
    kernel: KernelLike = "nngp",
) -> Predictive: ...


def posterior(
    net: Layer | None,
    x: object,
    y: object,
    x_test: object = None,
    noise: float | np.ndarray = 0.0,
    *,
    kernel: KernelLike = "nngp",
) -> Predictive | Posterior:
    r"""The posterior of a Gaussian process, its prior an infinitely wide network at initialisation.

    Mean $K(x,X)(K+\sigma^2I)^{-1}y$, covariance $K(x,x')-K(x,X)(K+\sigma^2I)^{-1}K(X,x')$.

    Args:
        net: The network; None where `kernel` needs none.
        x: Training points, shape (n, d); with kernel="precomputed" their kernel, shape (n, n) or
            (n, n, k, k).
        y: Targets, shape (n,) or (n, k).
        x_test: Where to predict, shape (m, d); None: the posterior itself, which is asked with
            `predict(x_test)`, as often as one likes. With kernel="precomputed" a pair: the kernel of
            the new points with the training points, and among themselves.
        noise: $\sigma^2$, the variance of the observation noise; 0 interpolates. An array gives every
            training point its own.
        kernel: "nngp", "ntk", "gaussian", "precomputed", or a function of (x1, x2) that gives the
            matrix, or blocks (n1, n2, k, k) for k correlated outputs.

    Returns:
        A record with `mean`, `variance`, `std`, `covariance`, `sample` and `log_prob`; or the
        conditioned process.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> p = wl.posterior(wl.mlp(1), [[1.0]], [2.0], [[1.0], [3.0]], noise=0.5)
        >>> p.mean, p.variance  # K(1, 1) = 1/2, so half of the target is noise
        (array([1., 3.]), array([0.25, 2.25]))
        >>> seen = wl.posterior(wl.mlp(1), [[1.0]], [2.0], noise=0.5)
        >>> seen.predict([[1.0]]).mean, seen.predict([[3.0]]).mean
        (array([1.]), array([3.]))

    Reference:
        Rasmussen and Williams (2006), algorithm 2.1; Lee et al. (2018).
    """
    problem, level, new = noisy(as_problem(net, x, y, kernel), noise)
    if x_test is not None:
        problem.points(x_test)  # checked before any work
    process = Posterior(reaching(fit(problem, level)), new)
    return process if x_test is None else process.predict(x_test)


def prior(net: Layer | None, x: object, *, kernel: KernelLike = "nngp") -> Predictive:
    """The Gaussian process before any data: mean 0, and the network's kernel as covariance.

    Args:
        net: The network; None where `kernel` needs none.
        x: Points, shape (m, d).
        kernel: "nngp", "ntk", "gaussian", or a function of (x1, x2).

    Returns:
        A record with `mean`, `variance`, `std`, `covariance`, `sample` and `log_prob`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> p = wl.prior(wl.mlp(2), np.eye(3))
        >>> p.sample(0, 5).shape, bool(np.allclose(p.covariance, wl.nngp(wl.mlp(2), np.eye(3))))
        ((5, 3), True)
    """
    problem = as_problem(net, x, np.zeros(len(np.asarray(x))), kernel)
    points = problem.inputs
    return Predictive(
        problem.answer(np.zeros((len(points), 1))),
        problem.per_point(problem.diagonal(points)),
        0.0,
        problem,
        functools.partial(problem.prior, points),
    )
