"""A network of infinite width in training: any point, any time."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from widelimit._base.scalars import as_count
from widelimit.linalg import Cholesky, Eigen, cholesky, eigh

from ._losses import Loss, as_loss
from ._ode import descend_by_steps, flow_by_solver
from ._problem import Problem
from ._shrink import descent, flow, heavy_ball

Initial = Callable[[np.ndarray], Any] | None


@dataclasses.dataclass(frozen=True)
class Trained:
    r"""A network of infinite width in training: ask it for any point at any time.

    Made by `train`. Under the squared loss $\frac12\sum(f(x_i)-y_i)^2$ everything is in closed form
    through one eigendecomposition of $\Theta(X,X)$; time is $t=\mathrm{steps}\cdot\mathrm{lr}$.

    Attributes:
        problem: The checked data and kernel.
        loss: The loss's name, or a function.
        initial: $f_0$ as a function of points, or None for zero.
        start: $f_0$ at the training points, shape (n, k).
        matrix: $\Theta(X,X)$.
        tolerance: Of the ODE solver, for losses other than the squared one.
    """

    problem: Problem
    loss: str | Loss
    initial: Initial
    start: np.ndarray
    matrix: np.ndarray
    tolerance: float

    @functools.cached_property
    def eigen(self) -> Eigen:
        """The eigendecomposition of the kernel matrix."""
        return eigh(self.matrix)

    @property
    def lambda_min(self) -> float:
        """The smallest eigenvalue of the kernel matrix; 0 where rounding hides it."""
        return float(self.eigen.values[0])

    @property
    def lambda_max(self) -> float:
        """The largest eigenvalue of the kernel matrix."""
        return float(self.eigen.values[-1])

    @property
    def condition(self) -> float:
        """lambda_max / lambda_min; infinite where lambda_min is below rounding."""
        return self.eigen.condition

    @property
    def lr_critical(self) -> float:
        r"""$2/\lambda_{\max}$: gradient descent converges below, and diverges above."""
        return 2 / self.lambda_max if self.lambda_max > 0 else math.inf

    @property
    def lr_theorem5(self) -> float:
        r"""$2/(\lambda_{\min}+\lambda_{\max})$: below, the error shrinks by $1-\eta\lambda_{\min}$ a step."""
        total = self.lambda_min + self.lambda_max
        return 2 / total if total > 0 else math.inf

    @property
    def time_scales(self) -> np.ndarray:
        r"""$1/\lambda_i$, fastest first: the time in which a direction's error falls by $e$."""
        values = self.eigen.values[::-1]
        with np.errstate(divide="ignore"):
            return np.where(values > self.eigen.noise, 1 / values, np.inf)

    def predict(self, x_test: Any = None, t: Any = None, *, f0: Any = None) -> Any:
        r"""The function after training for time t by gradient flow.

        $f_t(x)=f_0(x)+k(x)\,\Theta^{-1}(I-e^{-\Theta t})(y-f_0(X))$ for the squared loss.

        Args:
            x_test: Points, shape (m, d); None stands for the training points.
            t: A time, at least 0, or an array of times; None or infinity: trained for ever.
            f0: Initial values at `x_test`, where `train` was given values instead of a function.

        Returns:
            Shape (m,) or (m, k) for one time, with a leading axis for an array of times.
        """
        times = as_times(t)
        before, cross = self._place(x_test, f0)
        if self.loss == "squared":
            weights = [self._weights(float(s)) for s in times.ravel()]
            out = np.stack([before + m for m in self._moves(cross, weights)])
        else:
            duals = self._dual_by_solver(times.ravel())
            out = before + np.einsum("ij,tjk->tik", cross, duals, optimize=True)
        return self.problem.answer(out.reshape(times.shape + out.shape[1:]))

    def descend(
        self,
        x_test: Any = None,
        *,
        steps: int,
        lr: float,
        momentum: float = 0.0,
        f0: Any = None,
    ) -> Any:
        r"""The function after a number of steps of gradient descent, exactly.

        $f_k(x)=f_0(x)+k(x)\,\Theta^{-1}(I-(I-\eta\Theta)^k)(y-f_0(X))$ for the squared loss; with
        momentum $v\leftarrow\mu v+\nabla L$, $\theta\leftarrow\theta-\eta v$ the power becomes
        that of a two-term recursion in each eigen-direction.

        Args:
            x_test: Points, shape (m, d); None stands for the training points.
            steps: The number of steps.
            lr: The learning rate of the summed loss; it converges below `lr_critical`, with
                momentum below (1 + momentum) times that.
            momentum: In [0, 1).
            f0: Initial values at `x_test`, where `train` was given values instead of a function.

        Returns:
            Shape (m,) or (m, k).
        """
        steps = as_count(steps, "steps")
        lr, momentum = float(lr), float(momentum)
        if not (math.isfinite(lr) and lr > 0):
            raise ValueError(f"lr must be positive and finite, got {lr}.")
        if not 0 <= momentum < 1:
            raise ValueError(f"momentum must lie in [0, 1), got {momentum}.")
        before, cross = self._place(x_test, f0)
        if self.loss == "squared":
            limit = self.lr_critical * (1 + momentum)
            if lr > limit:
                _warn_of_divergence(lr, limit)
            values = self.eigen.values
            plain = descent(values, steps, lr)
            weights = heavy_ball(values, steps, lr, momentum) if momentum else plain
            (move,) = self._moves(cross, [weights])
        else:
            function = as_loss(self.loss)
            problem = self.problem
            move = cross @ descend_by_steps(
                function, self.matrix, self.start, problem.y, steps, lr, momentum
            )
        if not np.isfinite(move).all():
            raise ValueError(
                f"Gradient descent with lr = {lr:g} has overflowed after {steps} steps. Under the "
                f"squared loss it converges for lr < {self.lr_critical * (1 + momentum):g}."
            )
        return self.problem.answer(before + move)

    def error(self, t: float) -> Any:
        r"""$f_t(X)-y=e^{-\Theta t}(f_0(X)-y)$ under gradient flow and the squared loss.

        Args:
            t: A time, at least 0.

        Returns:
            Errors at the training points, shape (n,) or (n, k), accurate however small.
        """
        self._only_squared("error")
        time = float(as_times(float(t)))
        shrink = lambda v: np.where(v > self.eigen.noise, np.exp(-v * time), 1.0)
        return self.problem.answer(self.eigen.apply(shrink, self.start - self.problem.y))

    def influence(self, x_test: Any, t: float | None = None) -> Any:
        r"""$A_x=k(x)\,\Theta^{-1}(I-e^{-\Theta t})$: how each target moves each prediction.

        Args:
            x_test: Points, shape (m, d).
            t: A time, at least 0; None: trained for ever.

        Returns:
            Shape (m, n); $f_t=f_0+A(y-f_0(X))$.
        """
        self._only_squared("influence")
        cross = self.problem.cross(self.problem.points(x_test))
        weights = self._weights(float(as_times(None if t is None else float(t))))
        (out,) = self._moves(cross, [weights], np.eye(len(self.matrix)))
        return self.problem.convert(out)

    def _only_squared(self, name: str) -> None:
        if self.loss != "squared":
            raise ValueError(f"{name} has a closed form for the squared loss only; use predict.")

    @functools.cached_property
    def _factor(self) -> Cholesky | None:
        """A factorisation, if the matrix has one without help."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a jitter is not used here
            factor = cholesky(self.matrix)
        return factor if factor.jitter == 0 else None

    def _weights(self, t: float) -> np.ndarray | None:
        """Phi for each eigenvalue; None stands for the inverse by a factorisation."""
        if t == math.inf and self._factor is not None:
            return None
        values, noise = self.eigen.values, self.eigen.noise
        if self.eigen.rank < len(values) and (t == math.inf or t * noise > 1e-6):
            self._warn_of_rank()
        known = values > noise
        if t == math.inf:
            return np.where(known, 1 / np.where(known, values, 1), 0)
        # A direction whose eigenvalue is rounding has phi = t, until that would multiply rounding
        # errors up to the size of the answer; what is known then is that it is not learnt.
        return np.where(known | (t * noise < 1), flow(values, t), 0)

    def _moves(
        self, cross: np.ndarray, weights: list[Any], error: np.ndarray | None = None
    ) -> list[np.ndarray]:
        """k(x) phi(Theta) (y - f0) for each phi."""
        error = self.problem.y - self.start if error is None else error
        out = []
        projected = inner = None
        for phi in weights:
            if phi is None:
                assert self._factor is not None
                out.append(cross @ self._factor.solve(error))
                continue
            if projected is None or inner is None:
                projected, inner = self._project(cross), self.eigen.vectors.T @ error
            with np.errstate(over="ignore", invalid="ignore"):
                out.append(projected @ (phi[:, None] * inner))
        return out

    def _project(self, cross: np.ndarray) -> np.ndarray:
        r"""$k(x)Q$, with rounding removed where an eigenvalue vanishes.

        $\Theta q=0$ implies $k(x)q=0$ for every x; a rounding error there would grow with t.
        """
        out = cross @ self.eigen.vectors
        null = self.eigen.values <= self.eigen.noise
        if null.any():
            # Rounding of the product, and of the eigenvectors themselves.
            size = np.abs(cross).sum(1, keepdims=True) + self.lambda_max
            level = 16 * np.finfo(float).eps * size
            out[:, null] = np.where(np.abs(out[:, null]) <= level, 0, out[:, null])
        return out

    def _warn_of_rank(self) -> None:
        warnings.warn(
            f"The kernel matrix has rank {self.eigen.rank} of {len(self.matrix)} to rounding "
            f"(largest eigenvalue {self.lambda_max:.2e}, rounding {self.eigen.noise:.0e}). The part "
            "of the targets in the other directions is not learnt. Stop at a smaller t, use a ridge "
            "(wl.ridge), give the network biases, or remove points that it cannot tell apart.",
            UserWarning,
            stacklevel=4,
        )

    def _dual_by_solver(self, times: np.ndarray) -> np.ndarray:
        if np.isinf(times).any():
            raise ValueError(
                f"With loss={self.loss!r} there is no closed form at t = infinity (cross-entropy "
                "never stops growing). Give a finite t."
            )
        order, back = np.unique(times, return_inverse=True)
        function = as_loss(self.loss)
        duals = flow_by_solver(
            function, self.matrix, self.start, self.problem.y, order, self.tolerance
        )
        return duals[back]

    def _place(self, x_test: Any, f0: Any) -> tuple[np.ndarray, np.ndarray]:
        """Initial outputs and the kernel's rows at the points asked for."""
        if x_test is None:
            if f0 is not None:
                raise ValueError("f0 belongs to x_test; at the training points it is known.")
            return self.start, self.matrix
        x = self.problem.points(x_test)
        shape = len(x), self.start.shape[1]
        if f0 is not None:
            return as_outputs(f0, shape, "f0"), self.problem.cross(x)
        if self.initial is not None:
            return as_outputs(self.initial(x), shape, "f0(x_test)"), self.problem.cross(x)
        if self.start.any():
            raise ValueError(
                "train was given the initial values at the training points only. Give those at "
                "x_test too: predict(x_test, f0=values), or give train a function."
            )
        return np.zeros(shape), self.problem.cross(x)


def _warn_of_divergence(lr: float, limit: float) -> None:
    warnings.warn(
        f"lr = {lr:g} is above {limit:g}, so gradient descent diverges; the answer is exact for "
        "this number of steps. Take a smaller lr.",
        UserWarning,
        stacklevel=3,
    )


def as_outputs(values: Any, shape: tuple[int, int], name: str) -> np.ndarray:
    """Initial values as a checked array of shape (points, outputs)."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(shape, float(values))
    if values.shape == shape[:1] and shape[1] == 1:
        values = values[:, None]
    if values.shape != shape:
        raise ValueError(f"{name} must have shape {shape} (points, outputs), got {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} contains NaN or infinite values.")
    return values


def as_times(t: Any) -> np.ndarray:
    """A time or several, infinity included."""
    if t is None:
        return np.asarray(math.inf)
    times = np.asarray(t, dtype=np.float64)
    if times.ndim > 1 or times.size == 0:
        raise ValueError(f"t must be a number or a list of numbers, got shape {times.shape}.")
    if np.isnan(times).any() or (times < 0).any():
        raise ValueError(f"t is a time, at least 0; got {t}.")
    return times
