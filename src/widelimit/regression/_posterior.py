"""Bayesian inference with a network of infinite width as the prior."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np

from widelimit._base.keys import as_generator
from widelimit._base.scalars import as_count
from widelimit.layers import Layer
from widelimit.linalg import eigh

from ._fit import fit
from ._kernel import Answer, KernelLike
from ._problem import Problem, as_problem
from ._ridge import check_noise, reaching


@dataclasses.dataclass(frozen=True, eq=False)
class Predictive:
    """Mean and covariance of the outputs at some points; outputs are independent and alike.

    Attributes:
        mean: Shape (m,) or (m, k).
        variance: Of each point, shape (m,), without observation noise.
        noise: The variance of the observation noise.
    """

    mean: Answer
    variance: Answer
    noise: float
    _problem: Problem = dataclasses.field(repr=False)
    _covariance: Callable[[], np.ndarray] = dataclasses.field(repr=False)

    @property
    def std(self) -> Answer:
        """The square root of the variance, shape (m,)."""
        return self._problem.convert(np.sqrt(np.asarray(self.variance, np.float64)))

    @property
    def observed_variance(self) -> Answer:
        """The variance of a noisy observation at each point, shape (m,)."""
        return self._problem.convert(np.asarray(self.variance, np.float64) + self.noise)

    @functools.cached_property
    def covariance(self) -> Answer:
        """The full covariance, shape (m, m), computed when first asked for."""
        matrix = self._covariance()
        return self._problem.convert((matrix + matrix.T) / 2)

    def sample(self, key: int | jax.Array, count: int = 1) -> Answer:
        """Draw functions at the points.

        Args:
            key: An integer or a JAX key.
            count: How many.

        Returns:
            Shape (count, m) or (count, m, k).
        """
        count = as_count(count, "count", minimum=1)
        mean = np.asarray(self.mean, np.float64)
        columns = mean.reshape(len(mean), -1)
        # A posterior is what is left of the prior: rounding is measured against that.
        prior = float(np.max(np.asarray(self._problem.kernel.diagonal(self._problem.x))))
        eigen = eigh(self._covariance(), scale=prior)
        draws = as_generator(key).standard_normal((count, *columns.shape))
        root = eigen.vectors * np.sqrt(eigen.values)
        out = columns + np.einsum("ij,cjk->cik", root, draws)
        return self._problem.convert(out.reshape((count, *mean.shape)))


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
