"""A network of infinite width in training: any point, any time."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from widelimit._base.renamed import renamed_argument, warn_renamed
from widelimit._base.scalars import as_float
from widelimit._base.shown import shown
from widelimit.linalg import Eigen
from widelimit.regression import Problem, Spectral, descent, heavy_ball

from ._arguments import (
    as_descent,
    as_friction,
    as_outputs,
    as_times,
    check_descent,
    shaped_loss,
    warn_of_divergence,
)
from ._losses import Loss, as_loss
from ._ode import descend_by_steps, flow_by_solver

Initial = Callable[[np.ndarray], Any] | None


@shown("a network of infinite width in training")
@dataclasses.dataclass(frozen=True, eq=False)
class Trained:
    r"""A network of infinite width in training: ask it for any point at any time.

    Made by `train`. Under the squared loss $\frac12\sum(f(x_i)-y_i)^2$ everything is in closed form
    through one eigendecomposition of $\Theta(X,X)$; k steps of size $\eta$ take the time $t=k\eta$. The mean
    of squares over n points and k outputs (loss="mean") is the same at $t/(nk)$ and $\eta/(nk)$.

    Attributes:
        problem: The checked data and kernel.
        loss: The loss's name, or a function.
        initial: $f_0$ as a function of points, or None for zero.
        start: $f_0$ at the training points, shape (n, k).
        spectral: $\Theta(X,X)$ with its eigendecomposition and its inverse, made when needed.
        tolerance: Of the ODE solver, for losses other than the squared one.
    """

    problem: Problem
    loss: str | Loss
    initial: Initial
    start: np.ndarray
    spectral: Spectral
    tolerance: float

    def summary(self) -> dict[str, object]:
        """What is shown of a model; eigenvalues once they are known."""
        rows = {**self.problem.summary(), "loss": self.loss}
        if "eigen" not in vars(self.spectral):
            return rows
        span = f"{self.lambda_min:.4g} to {self.lambda_max:.4g}"
        return {**rows, "eigenvalues": span, "critical learning rate": self.critical_learning_rate}

    @property
    def closed(self) -> bool:
        """Whether the loss is the sum or the mean of squares, which have closed forms."""
        return isinstance(self.loss, str) and self.loss in ("squared", "mean")

    @property
    def pace(self) -> float:
        """The factor of times and learning rates: 1, or 1/(n k) for a mean of squares."""
        return 1 / self.problem.y.size if self.closed and self.loss == "mean" else 1.0

    @property
    def matrix(self) -> np.ndarray:
        r"""$\Theta(X,X)$."""
        return self.spectral.matrix

    @property
    def eigen(self) -> Eigen:
        """The eigendecomposition of the kernel matrix."""
        return self.spectral.eigen

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
    def critical_learning_rate(self) -> float:
        r"""$2/\lambda_{\max}$: gradient descent converges below, and diverges above."""
        return 2 / (self.pace * self.lambda_max) if self.lambda_max > 0 else math.inf

    @property
    def theorem5_learning_rate(self) -> float:
        r"""$2/(\lambda_{\min}+\lambda_{\max})$: below, the error shrinks by $1-\eta\lambda_{\min}$ a step."""
        total = self.lambda_min + self.lambda_max
        return 2 / (self.pace * total) if total > 0 else math.inf

    @property
    def lr_critical(self) -> float:
        """The old name of `critical_learning_rate`."""
        warn_renamed("lr_critical", "critical_learning_rate")
        return self.critical_learning_rate

    @property
    def lr_theorem5(self) -> float:
        """The old name of `theorem5_learning_rate`."""
        warn_renamed("lr_theorem5", "theorem5_learning_rate")
        return self.theorem5_learning_rate

    @property
    def time_scales(self) -> np.ndarray:
        r"""$1/\lambda_i$, fastest first: the time in which a direction's error falls by $e$."""
        values = self.eigen.values[::-1]
        with np.errstate(divide="ignore"):
            return np.where(values > self.eigen.noise, 1 / (self.pace * values), np.inf)

    def predict(
        self, x_test: Any = None, t: Any = None, *, friction: float | None = None, f0: Any = None
    ) -> Any:
        r"""The function after training for time t by gradient flow.

        $f_t(x)=f_0(x)+k(x)\,\Theta^{-1}(I-e^{-\Theta t})(y-f_0(X))$ for the squared loss.

        Args:
            x_test: Points, shape (m, d); None stands for the training points.
            t: A time, at least 0, or an array of times; None or infinity: trained for ever.
            friction: $\gamma\ge0$ of a flow with momentum, $\ddot\theta=-\gamma\dot\theta-\nabla L$ from rest: gradient
                descent with momentum $\mu$ and a small learning rate $\eta$ is at $f_t$ after
                $t/\sqrt\eta$ steps, $\gamma=(1-\mu)/\sqrt\eta$. None: the plain flow.
            f0: Initial values at `x_test`, where `train` was given values instead of a function.

        Returns:
            Shape (m,) or (m, k) for one time, with a leading axis for an array of times.
        """
        times = as_times(t)
        if friction is not None:
            friction = as_friction(friction, times)
        before, cross = self._place(x_test, f0)
        if self.closed:
            phis = [self._phi(float(s), friction) for s in times.ravel()]
            moves = self.spectral.moves(cross, phis, self.problem.y - self.start)
            out = np.stack([before + m for m in moves])
        else:
            duals = self._dual_by_solver(times.ravel(), friction)
            out = before + np.einsum("ij,tjk->tik", cross, duals, optimize=True)
        return self.problem.answer(out.reshape(times.shape + out.shape[1:]))

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
        r"""The function after a number of steps of gradient descent, exactly.

        $f_k(x)=f_0(x)+k(x)\,\Theta^{-1}(I-(I-\eta\Theta)^k)(y-f_0(X))$ for the squared loss; with
        momentum $v\leftarrow\mu v+\nabla L$, $\theta\leftarrow\theta-\eta v$ the power becomes
        that of a two-term recursion in each eigen-direction.

        Args:
            x_test: Points, shape (m, d); None stands for the training points.
            steps: The number of steps.
            learning_rate: Of the summed loss; it converges below `critical_learning_rate`, with
                momentum below (1 + momentum) times that.
            momentum: In [0, 1).
            f0: Initial values at `x_test`, where `train` was given values instead of a function.

        Returns:
            Shape (m,) or (m, k).
        """
        steps, rate, momentum = as_descent(steps, learning_rate, momentum)
        before, cross = self._place(x_test, f0)
        if self.closed:
            limit = self.critical_learning_rate * (1 + momentum)
            if rate > limit:
                warn_of_divergence(rate, limit)
            values = self.eigen.values
            size = self.pace * rate
            plain = descent(values, steps, size)
            phi = heavy_ball(values, steps, size, momentum) if momentum else plain
            (move,) = self.spectral.moves(cross, [phi], self.problem.y - self.start)
        else:
            fixed = (self.function, self.matrix, self.start, self.problem.y)
            move = cross @ descend_by_steps(*fixed, steps, rate, momentum)
        check_descent(move, rate, steps, self.critical_learning_rate * (1 + momentum))
        return self.problem.answer(before + move)

    def error(self, t: float) -> Any:
        r"""$f_t(X)-y=e^{-\Theta t}(f_0(X)-y)$ under gradient flow and the squared loss.

        Args:
            t: A time, at least 0.

        Returns:
            Errors at the training points, shape (n,) or (n, k), accurate however small.
        """
        self._only_squared("error")
        time = float(as_times(as_float(t, "t")))
        shrink = lambda v: np.where(v > self.eigen.noise, np.exp(-v * self.pace * time), 1.0)
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
        phi = self._phi(float(as_times(None if t is None else as_float(t, "t"))))
        (out,) = self.spectral.moves(cross, [phi], np.eye(len(self.matrix)))
        return self.problem.convert(out)

    def dual(self, t: float | None = None) -> np.ndarray:
        r"""$c_t=\Theta^{-1}(I-e^{-\Theta t})(y-f_0(X))$, so that $f_t(x)=f_0(x)+k(x)\,c_t$.

        Args:
            t: A time, at least 0; None: trained for ever.

        Returns:
            The coefficients of the kernels, shape (n, k).
        """
        self._only_squared("dual")
        phi = self._phi(float(as_times(None if t is None else as_float(t, "t"))))
        return self.spectral.dual(phi, self.problem.y - self.start)

    @property
    def function(self) -> Loss:
        """The loss as a function of outputs and targets in the shape in which they are solved for."""
        return shaped_loss(as_loss(self.loss), self.problem)

    def _phi(self, t: float, friction: float | None = None) -> Any:
        """Phi after the time t; with friction the mean of squares slows time by a square root."""
        if friction is None:
            return self.spectral.flow(self.pace * t)
        root = math.sqrt(self.pace)
        return self.spectral.flow(root * t, friction=friction / root)

    def _only_squared(self, name: str) -> None:
        if not self.closed:
            raise ValueError(f"{name} has a closed form for the squared loss only; use predict.")

    def _dual_by_solver(self, times: np.ndarray, friction: float | None) -> np.ndarray:
        if np.isinf(times).any():
            raise ValueError(
                f"With loss={self.loss!r} there is no closed form at t = infinity (cross-entropy "
                "never stops growing). Give a finite t."
            )
        order, back = np.unique(times, return_inverse=True)
        fixed = self.function, self.matrix, self.start, self.problem.y
        duals = flow_by_solver(*fixed, order, self.tolerance, friction)
        return duals[back]

    def _place(self, x_test: Any, f0: Any) -> tuple[np.ndarray, np.ndarray]:
        """Initial outputs and the kernel's rows at the points asked for."""
        if x_test is None:
            if f0 is not None:
                raise ValueError("f0 belongs to x_test; at the training points it is known.")
            return self.start, self.matrix
        x = self.problem.points(x_test)
        cross = self.problem.cross(x)
        return self._before(x, f0, len(cross)), cross

    def _before(self, x: np.ndarray, f0: Any, rows: int) -> np.ndarray:
        """Initial outputs at new points."""
        shape = rows, self.start.shape[1]
        if f0 is not None:
            return as_outputs(f0, shape, "f0")
        if self.initial is not None:
            return as_outputs(self.initial(x), shape, "f0(x_test)")
        if self.start.any():
            raise ValueError(
                "train was given the initial values at the training points only. Give those at "
                "x_test too: predict(x_test, f0=values), or give train a function."
            )
        return np.zeros(shape)
