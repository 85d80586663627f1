"""Training where the kernel matrix is not stored: for ever, or for a number of steps."""

import dataclasses
import functools
import math
from typing import Any

import jax
import numpy as np
import scipy.sparse.linalg

from widelimit._base.renamed import renamed_argument
from widelimit._base.shown import shown
from widelimit._base.watch import Watch
from widelimit.linalg import Eigen, Solution, System
from widelimit.regression import CG, Problem, Spectral

from ._arguments import as_descent, as_friction, as_times, check_descent, warn_of_divergence
from ._trained import Initial, Trained

_LARGEST = 1e-6  # relative error of the largest eigenvalue


class _Nothing(Spectral):
    """The place of a matrix that is not there."""

    @property
    def eigen(self) -> Eigen:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise _needs_matrix("This")


@shown("a network of infinite width in training")
@dataclasses.dataclass(frozen=True, eq=False)
class Unstored(Trained):
    r"""A network in training whose $\Theta(X,X)$ is known by its products.

    Trained for ever, $f_\infty=f_0+k(x)\,\Theta^{-1}(y-f_0(X))$, by conjugate gradients; after some steps of gradient
    descent by as many products. Other times need the eigendecomposition, which needs the matrix.

    Attributes:
        way: How systems are solved.
    """

    way: CG = dataclasses.field(default_factory=CG)

    @classmethod
    def of(
        cls, problem: Problem, loss: str, initial: Initial, start: np.ndarray, way: CG
    ) -> "Unstored":
        """Of a problem with the squared loss."""
        return cls(problem, loss, initial, start, _Nothing(np.zeros((0, 0))), way.tolerance, way)

    def summary(self) -> dict[str, object]:
        """What is shown of a model; nothing is computed for it."""
        done = vars(self).get("outcome")
        steps = None if done is None else f"{done.steps} steps, residual {done.residual:.1e}"
        rows = {**self.problem.summary(), "loss": self.loss}
        return {**rows, "conjugate gradients": steps}

    @functools.cached_property
    def outcome(self) -> Solution:
        r"""The solution of $\Theta c=y-f_0(X)$, found when it is first needed."""
        return self.way.solve(self.system, self.problem.y - self.start)

    @functools.cached_property
    def system(self) -> System:
        """The matrix by its products, with a preconditioner."""
        return self.way.system(self.problem, np.zeros(len(self.problem.x)))

    @property
    def matrix(self) -> np.ndarray:
        """Refused."""
        raise _needs_matrix("The matrix")

    @functools.cached_property
    def lambda_max(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The largest eigenvalue of the kernel matrix, by Lanczos' iteration, to 1e-6."""
        n = len(self.problem.x)
        apply = lambda v: np.asarray(self.system.gram @ np.asarray(v, np.float64).ravel())
        operator: Any = scipy.sparse.linalg.LinearOperator((n, n), matvec=apply, dtype=np.float64)  # pyright: ignore[reportCallIssue]
        start = np.random.default_rng(0).standard_normal(n)
        if n < 3:
            return float(np.linalg.eigvalsh(operator @ np.eye(n))[-1])
        largest: Any = scipy.sparse.linalg.eigsh  # whose types want an integer tolerance
        return float(largest(operator, 1, tol=_LARGEST, v0=start, return_eigenvectors=False)[0])

    def predict(
        self, x_test: Any = None, t: Any = None, *, friction: float | None = None, f0: Any = None
    ) -> Any:
        """The function after training for ever; arguments as in `Trained.predict`, t infinite."""
        times = as_times(t)
        if not np.isinf(times).all():
            raise _needs_matrix("A finite time")
        if friction is not None:
            as_friction(friction, times)
        out = self._moved(x_test, f0, self.outcome.x)
        out = np.broadcast_to(out, times.shape + out.shape)
        return self.problem.answer(out)

    @renamed_argument(lr="learning_rate")
    def descend(
        self,
        x_test: Any = None,
        *,
        steps: int,
        learning_rate: float,
        momentum: float = 0.0,
        f0: Any = None,
    ) -> Any:
        """The function after some steps of gradient descent, each a product; arguments as in `Trained.descend`."""
        steps, rate, momentum = as_descent(steps, learning_rate, momentum)
        limit = self.critical_learning_rate * (1 + momentum)
        if rate > limit:
            warn_of_divergence(rate, limit)
        gram, size = self.system.exact, self.pace * rate
        watch = Watch("steps of gradient descent", steps, self.way.verbose)
        with jax.enable_x64(True):
            error = gram.vector(self.problem.y - self.start)
            dual, speed = 0 * error, 0 * error
            for step in range(1, steps + 1):
                speed = momentum * speed + error - gram @ dual
                dual = dual + size * speed
                watch(step)
            found = np.asarray(dual)
        watch.close()
        check_descent(found, rate, steps, limit)
        return self.problem.answer(self._moved(x_test, f0, found))

    def dual(self, t: float | None = None) -> np.ndarray:
        r"""$c=\Theta^{-1}(y-f_0(X))$: the coefficients of the kernels after training for ever."""
        if t is not None and t < math.inf:
            raise _needs_matrix("A finite time")
        return self.outcome.x

    def influence(self, x_test: Any, t: float | None = None) -> Any:
        """Refused."""
        raise _needs_matrix("The influence of each target")

    def _moved(self, x_test: Any, f0: Any, dual: np.ndarray) -> np.ndarray:
        if x_test is None:
            if f0 is not None:
                raise ValueError("f0 belongs to x_test; at the training points it is known.")
            return self.start + np.asarray(self.system.exact @ dual)
        x = self.problem.points(x_test)
        moved = self.problem.combine(x, dual)
        return self._before(x, f0, len(moved)) + moved


def _needs_matrix(what: str) -> ValueError:
    return ValueError(
        f"{what} needs the kernel matrix and its eigendecomposition, which solver='cg' (that of more than "
        "20000 points) does not store. Ask for t=None (trained for ever) or for descend(steps=...), train on "
        "fewer points, or train with solver='cholesky' if 8 n^2 bytes fit into memory."
    )
