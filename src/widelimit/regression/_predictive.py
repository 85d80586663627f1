"""A Gaussian over functions at some points: what posteriors and ensembles return."""

import dataclasses
import functools
from collections.abc import Callable

import jax
import numpy as np

from widelimit._base.keys import as_generator
from widelimit._base.scalars import as_count
from widelimit.linalg import eigh

from ._kernel import Answer
from ._problem import Problem


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
        eigen = eigh(self._covariance())
        draws = as_generator(key).standard_normal((count, *columns.shape))
        root = eigen.vectors * np.sqrt(eigen.values)
        out = columns + np.einsum("ij,cjk->cik", root, draws)
        return self._problem.convert(out.reshape((count, *mean.shape)))
