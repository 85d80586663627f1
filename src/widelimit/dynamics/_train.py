"""Training a network of infinite width."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from widelimit._base.scalars import as_count
from widelimit.layers import Layer
from widelimit.linalg import Cholesky, Eigen, cholesky, eigh

from ._losses import Loss, as_loss, check_targets
from ._ode import check_loss, descend_by_steps, flow_by_solver
from ._problem import Problem, as_problem, contradiction
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
        times = _times(t)
        if self.loss == "squared":
            error = self.problem.y - self.start
            duals = np.stack([self._apply(float(s), error) for s in times.ravel()])
        else:
            duals = self._dual_by_solver(times.ravel())
        out = self._evaluate(x_test, f0, duals)
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
        if self.loss == "squared":
            self._warn_if_unstable(lr, momentum)
            values = self.eigen.values
            weights = (
                heavy_ball(values, steps, lr, momentum) if momentum else descent(values, steps, lr)
            )
            dual = self.eigen.apply(lambda _: weights, self.problem.y - self.start)
        else:
            dual = descend_by_steps(
                as_loss(self.loss), self.matrix, self.start, self.problem.y, steps, lr, momentum
            )
        out = self._evaluate(x_test, f0, dual[None])[0]
        if not np.isfinite(out).all():
            raise ValueError(
                f"Gradient descent with lr = {lr:g} has overflowed after {steps} steps. It "
                f"converges for lr < {self.lr_critical * (1 + momentum):g} (squared loss)."
            )
        return self.problem.answer(out)

    def error(self, t: float) -> Any:
        r"""$f_t(X)-y=e^{-\Theta t}(f_0(X)-y)$ under gradient flow and the squared loss.

        Args:
            t: A time, at least 0.

        Returns:
            Errors at the training points, shape (n,) or (n, k), accurate however small.
        """
        if self.loss != "squared":
            raise ValueError("error has a closed form for the squared loss only; use predict.")
        t = float(_times(float(t)))
        shrink = lambda v: np.where(v > self.eigen.noise, np.exp(-v * t), 1.0)
        return self.problem.answer(self.eigen.apply(shrink, self.start - self.problem.y))

    def dual_operator(self, t: float | None = None) -> np.ndarray:
        r"""$\Theta^{-1}(I-e^{-\Theta t})$, shape (n, n): what maps errors to dual weights.

        Args:
            t: A time, at least 0; None: trained for ever.

        Returns:
            The matrix, also where $\Theta$ is singular.
        """
        times = float(_times(None if t is None else float(t)))
        return self._apply(times, np.eye(len(self.matrix)))

    @functools.cached_property
    def _factor(self) -> Cholesky | None:
        """A factorisation, if the matrix has one without help."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a jitter is not used here
            factor: Cholesky = cholesky(self.matrix)
        if factor.jitter == 0:
            return factor
        self._warn_of_rank()
        return None

    def _warn_of_rank(self) -> None:
        n, rank = len(self.matrix), self.eigen.rank
        warnings.warn(
            f"The kernel matrix has rank {rank} of {n} to rounding (largest eigenvalue "
            f"{self.lambda_max:.2e}, rounding {self.eigen.noise:.0e}). The part of the targets in "
            "the other directions is not learnt. Stop at a finite t, use a ridge (wl.ridge), give "
            "the network biases, or remove points that it cannot tell apart.",
            UserWarning,
            stacklevel=5,
        )

    def _apply(self, t: float, error: np.ndarray) -> np.ndarray:
        """phi(Theta) error."""
        if t == math.inf:
            if self._factor is not None:
                return self._factor.solve(error)
            keep = self.eigen.values > self.eigen.noise
            return self.eigen.apply(lambda v: np.where(keep, 1 / np.where(keep, v, 1), 0), error)
        # A direction whose eigenvalue is rounding has phi = t; so long as t is far from 1/noise
        # that is right, beyond it multiplies rounding errors, and the limit is the answer.
        weights = flow(self.eigen.values, t)
        if self.eigen.rank < len(self.matrix) and t * self.eigen.noise > 1:
            weights = np.where(self.eigen.values > self.eigen.noise, weights, 0)
        return self.eigen.apply(lambda _: weights, error)

    def _dual_by_solver(self, times: np.ndarray) -> np.ndarray:
        if np.isinf(times).any():
            raise ValueError(
                f"With loss={self.loss!r} there is no closed form at t = infinity (cross-entropy "
                "never stops growing). Give a finite t."
            )
        order, back = np.unique(times, return_inverse=True)
        loss = as_loss(self.loss)
        duals = flow_by_solver(loss, self.matrix, self.start, self.problem.y, order, self.tolerance)
        return duals[back]

    def _evaluate(self, x_test: Any, f0: Any, duals: np.ndarray) -> np.ndarray:
        """f0 + k c for each dual vector, shape (times, m, k)."""
        if x_test is None:
            if f0 is not None:
                raise ValueError("f0 belongs to x_test; at the training points it is known.")
            return self.start + np.einsum("ij,tjk->tik", self.matrix, duals, optimize=True)
        x = self.problem.points(x_test)
        before = self._before(x, f0)
        return before + np.einsum("ij,tjk->tik", self.problem.cross(x), duals, optimize=True)

    def _before(self, x: np.ndarray, f0: Any) -> np.ndarray:
        if f0 is not None:
            return _outputs(f0, (len(x), self.start.shape[1]), "f0")
        if self.initial is not None:
            return _outputs(self.initial(x), (len(x), self.start.shape[1]), "f0(x_test)")
        if self.start.any():
            raise ValueError(
                "train was given the initial values at the training points only. Give those at "
                "x_test too: predict(x_test, f0=values), or give train a function."
            )
        return np.zeros((len(x), self.start.shape[1]))

    def _warn_if_unstable(self, lr: float, momentum: float) -> None:
        limit = self.lr_critical * (1 + momentum)
        if lr > limit:
            warnings.warn(
                f"lr = {lr:g} is above {limit:g}, so gradient descent diverges; the answer is "
                "exact for this number of steps. Take a smaller lr.",
                UserWarning,
                stacklevel=4,
            )


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
        x: Training points, shape (n, d).
        y: Targets, shape (n,) or (n, k) for k outputs.
        kernel: "ntk"; "nngp" (only the last layer is trained); "gaussian"; or a function of
            (x1, x2) that gives the matrix, x2=None standing for x1.
        f0: The initial function: None for zero; a function of points; a pair (finite network,
            parameters); or its values at the training points.
        loss: "squared" (half the sum of squares), "huber", "logistic" (targets ±1),
            "cross-entropy" (rows of probabilities), or a differentiable function of (f, y), each of
            shape (n, k), that sums over the points.
        tolerance: Of the ODE solver that serves the other losses.

    Returns:
        A model with `predict(x_test, t)` and `descend(x_test, steps=, lr=)`.

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
    check_targets(loss, problem.y)
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}.")
    initial, start = _initial(f0, problem)
    if loss != "squared":
        check_loss(function, start, problem.y)
    else:
        _warn_of_contradiction(problem)
    return Trained(problem, loss, initial, start, problem.gram(), float(tolerance))


def _warn_of_contradiction(problem: Problem) -> None:
    pair = contradiction(problem)
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
        return f0, _outputs(f0(problem.x), shape, "f0(x)")
    return None, _outputs(f0, shape, "f0")


def _outputs(values: Any, shape: tuple[int, int], name: str) -> np.ndarray:
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


def _times(t: Any) -> np.ndarray:
    if t is None:
        return np.asarray(math.inf)
    times = np.asarray(t, dtype=np.float64)
    if times.ndim > 1 or times.size == 0:
        raise ValueError(f"t must be a number or a list of numbers, got shape {times.shape}.")
    if np.isnan(times).any() or (times < 0).any():
        raise ValueError(f"t is a time, at least 0; got {t}.")
    return times
