"""Regression with a network of infinite width."""

import warnings
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from widelimit._base.scalars import as_count
from widelimit.linalg import eigh
from widelimit.regression import as_weights

from ._estimator import NetworkEstimator
from ._scaling import check_size, moments


class NTKRegressor(MultiOutputMixin, RegressorMixin, NetworkEstimator):
    r"""Regression by an infinitely wide network, trained for ever or for a while.

    $f(x)=\bar y+k(x)\,(K+rI)^{-1}(y-\bar y)$, $k$ the network's tangent kernel: what gradient
    descent on a very wide network with weight decay $r$ converges to. Columns and targets are
    standardised inside; equal rows are merged; the ridge is chosen by the leave-one-out error.

    Args:
        network: A network or its text; None builds one from the next six options.
        depth: Hidden layers, or residual blocks.
        activation: A name, an `Activation`, or a function.
        alpha: The attenuation of residual branches (`architecture="resnet"`).
        w_std: The weights' scale.
        b_std: The scale of the first layer's bias; the others have none.
        architecture: "mlp" or "resnet".
        kernel: "ntk": all layers are trained; "nngp": the last one only, which is the posterior
            mean of a Bayesian network.
        ridge: A number, in units of the kernel; "loo": the least leave-one-out error of 20 values;
            "evidence": the largest marginal likelihood; of more than 2000 rows, on 1500 of them.
        standardise: Whether columns are brought to mean 0 and variance 1; False leaves them as they are.
        normalise: Whether rows are then put on a sphere.
        squash: Whether standardised columns pass through asinh, so that outliers do not outweigh the rest.
        categories: Standardised columns with 3 to this many different values, ten rows for each, also enter
            as indicators of these values, since such numbers often are names; 0: none.
        time: Training time under gradient flow, $\phi(\lambda)=(1-e^{-(\lambda+r)t})/(\lambda+r)$
            in place of $1/(\lambda+r)$; None for ever.
        solver: "cholesky"; "cg", which never stores the matrix; "auto": the first up to 20000
            rows.
        rank: Columns of the preconditioner of "cg"; None: about 5 sqrt(n), 10 on a GPU.
        precision: Of "cg": "float64" refines products in float32 until a residual in float64 is small;
            "float32" does not.
        checkpoint: A file from which "cg" goes on if it was stopped.
        verbose: Whether progress is shown; None: where it takes longer than a minute.
        mesh: The devices that share the work of "cg" (`wl.processes`); None: all of this process.
        store: A folder in which the kernel matrix of the rows is kept (`wl.gram`), for networks that read pixels: it
            is computed once, a run that was killed goes on, and the same fit with another ridge reads it.
        search: None; "network": depth, activation, kernel and treatment of columns are varied one at a time, and
            a change is taken if it lowers the leave-one-out error for certain (2.5 standard errors of
            the difference, row by row, on at most 1500 rows); "auto": features are learnt after that.
        feature_rounds: The most rounds in which the average outer product of the gradients of the fitted
            function re-weights the columns (recursive feature machines); as many are taken as help on folds
            in which the features are learnt anew, none if none does for certain. On at most 1500 rows.
        feature_form: "diagonal": columns are weighted; "full": they are mixed too; "auto": the better one.

    Attributes:
        network_: The network.
        ridge_: The ridge.
        dual_coef_: $\alpha$ for distinct rows and standardised targets, shape (n, k).
        loo_score_: $R^2$ of the leave-one-out predictions; computed when it is asked for.
        loo_score_std_: Its standard error, where not all rows are predicted exactly.
        log_evidence_: The log probability density of y; computed when it is asked for.
        amplitude_: $s^2$ of the Gaussian process $s^2k$, by maximal likelihood, in units of the
            targets squared; a number, or one for each output.
        noise_variance_: $s^2r$, the variance of the noise.
        search_: What a search has tried, and what it took.
        feature_rounds_: How many rounds of features were taken.
        feature_matrix_: The matrix $M$ by the root of which points were multiplied, of trace d; points are the
            standardised columns with their indicators behind them.
        feature_importances_: How much the function reacts to each column, of sum 1.
        n_features_in_: The number of columns.
        feature_names_in_: Their names, where X had some.

    Example:
        >>> import numpy as np
        >>> from widelimit.estimators import NTKRegressor
        >>> x = np.linspace(-3, 3, 40)[:, None]
        >>> model = NTKRegressor(depth=3).fit(x, np.sin(x[:, 0]))
        >>> mean, std = model.predict([[0.5], [9.0]], return_std=True)
        >>> bool(abs(mean[0] - np.sin(0.5)) < 0.01), bool(std[1] > 10 * std[0])
        (True, True)

    Reference:
        Jacot, Gabriel and Hongler (2018); Lee et al. (2018); Rasmussen and Williams (2006); Radhakrishnan et
        al. (2024).
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "NTKRegressor":
        """Fit the network.

        Args:
            X: Shape (n, d), or (n, *spatial, channels) for a `network` that reads pixels.
            y: Shape (n,) or (n, k).
            sample_weight: Shape (n,), at least 0; a weight of 2 is the row twice.

        Returns:
            Itself.
        """
        X, y = validate_data(
            self,
            self._rows(X, fitting=True),
            y,
            dtype=np.float64,
            multi_output=True,
            y_numeric=True,
        )
        weights = as_weights(sample_weight, len(X))
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        check_size(targets, "y", fitted=True)
        self._flat = np.ndim(y) == 1
        self._fit_targets(targets, weights)
        self._fit_network(X, (targets - self._mean) / self._scale, weights)
        self._publish()
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        r"""The fitted function, and how far the Gaussian process is from knowing it.

        Args:
            X: Shape (m, d).
            return_std: Whether the standard deviation of the function (without noise) is wanted.
            return_cov: Whether its covariance is wanted.

        Returns:
            The mean, shape (m,) or (m, k); after it the standard deviation, of the same shape, and
            the covariance, shape (m, m) or (m, m, k), where they were asked for.
        """
        check_is_fitted(self)
        X = validate_data(self, self._rows(X), dtype=np.float64, reset=False)
        points = self._scaling(X)
        if not (return_std or return_cov):
            return self._answer(self._mean + self._scale * self._fit.mean(points))
        if self.time is not None:
            raise ValueError(
                "The standard deviation is that of the posterior, which training for a finite time "
                "does not reach. Set time=None, or use widelimit.ensemble."
            )
        amplitude = np.atleast_1d(self.amplitude_)
        if return_cov:
            mean, spread = self._fit.mean(points), self._fit.covariance(points)
            variance = np.maximum(np.diagonal(spread), 0)
        else:
            mean, variance = self._fit.moments(points)
            spread = None
        out = [self._answer(self._mean + self._scale * mean)]
        if return_std:
            out.append(self._answer(np.sqrt(variance)[:, None] * np.sqrt(amplitude)))
        if spread is not None:
            out.append(self._answer(_covariance(spread, amplitude)))
        return tuple(out)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw functions from the posterior, as scikit-learn's Gaussian processes do.

        Args:
            X: Shape (m, d).
            n_samples: How many.
            random_state: An integer, a generator, or None.

        Returns:
            Shape (m, n_samples) or (m, k, n_samples).
        """
        count = as_count(n_samples, "n_samples", minimum=1)
        mean, spread = self.predict(X, return_cov=True)
        mean, spread = (a[..., None] if self._flat else a for a in (mean, spread))
        normal = check_random_state(random_state).standard_normal((*mean.shape, count))
        out = np.empty_like(normal)
        for i, variance in enumerate(np.atleast_1d(self.amplitude_)):
            eigen = eigh(spread[..., i], scale=float(variance) * self._prior)
            root = eigen.vectors * np.sqrt(eigen.values)
            out[:, i] = mean[:, i, None] + root @ normal[:, i]
        return out[:, 0] if self._flat else out

    @property
    def _prior(self) -> float:
        """The largest prior variance: what rounding is measured against."""
        problem = self._fit.problem
        return float(np.max(problem.diagonal(problem.x)))

    def leave_one_out(self, X: Any, y: Any) -> np.ndarray:
        """Errors at the rows that were fitted, each predicted by the model without it.

        Equal rows are left out together, and the scaling and the ridge are those of all rows. After "cg" the
        errors are estimates, each to some per cent (`wl.ridge` gives `errors_std`).

        Args:
            X: The rows that were given to `fit`, shape (n, d).
            y: Their targets, shape (n,) or (n, k).

        Returns:
            y minus the predictions, of the shape of y.
        """
        check_is_fitted(self)
        X, y = validate_data(
            self, self._rows(X), y, dtype=np.float64, multi_output=True, y_numeric=True, reset=False
        )
        group = self._fit.problem.data.group
        if len(X) != len(group):
            raise ValueError(f"fit was given {len(group)} rows, leave_one_out {len(X)}.")
        without = self._fit.problem.data.targets - self._fit.leave_one_out()
        out = without[group]
        unused = group < 0
        if unused.any():
            out[unused] = self._fit.mean(self._scaling(X[unused]))
        targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return self._answer(targets - self._mean - self._scale * out)

    @property
    def loo_score_(self) -> float:
        """$R^2$ of the leave-one-out predictions of the rows.

        Of more than 2000 rows, 1000 are predicted; "cg" estimates it from all, by a second, shorter iteration.
        """
        check_is_fitted(self)
        return self._fit.score(self._r2).value

    @property
    def loo_score_std_(self) -> float:
        """The standard error of `loo_score_` as an estimate of the $R^2$ of all rows; 0 where it is that."""
        check_is_fitted(self)
        return self._fit.score(self._r2).std

    def _r2(self, rows: np.ndarray, errors: np.ndarray) -> float:
        data = self._fit.problem.data
        weights = data.weights[rows]
        around = data.targets[rows] - np.average(data.targets[rows], axis=0, weights=weights)
        total = weights @ around**2
        return float(np.mean(1 - weights @ errors**2 / np.where(total > 0, total, 1)))

    @property
    def log_evidence_(self) -> float:
        r"""The log probability density of y, outputs independent, $y\sim N(\bar y,s^2(K+rW^{-1}))$."""
        check_is_fitted(self)
        if self.time is not None or self._fit.ridge == 0:
            raise AttributeError("log_evidence_ belongs to a fit with a ridge and time=None.")
        data, rows = self._fit.problem.data, self._fit.problem.data.total
        volume = self._fit.log_det() + (rows - len(data.points)) * np.log(self._fit.ridge)
        variances = np.atleast_1d(self.amplitude_)
        with np.errstate(divide="ignore"):
            each = rows * (1 + np.log(2 * np.pi * variances)) + volume
        return -float(each.sum()) / 2

    def _fit_targets(self, targets: np.ndarray, weights: np.ndarray) -> None:
        self._mean, self._scale = moments(targets, weights)
        used = targets[weights > 0]
        if len(used) > 1 and (used == used[0]).all():
            warnings.warn(
                f"All targets are equal ({used[0].tolist()}), so the model is that constant. Check "
                "that y is the right column.",
                UserWarning,
                stacklevel=3,
            )

    def _publish(self) -> None:
        super()._publish()
        amplitude = self._fit.amplitude * self._scale**2
        self.amplitude_ = float(amplitude[0]) if self._flat else amplitude
        self.noise_variance_ = self.amplitude_ * self.ridge_

    def _answer(self, value: np.ndarray) -> np.ndarray:
        return value[..., 0] if self._flat else value


def _covariance(spread: np.ndarray, amplitude: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        out = ((spread + spread.T) / 2)[:, :, None] * amplitude
    if not np.isfinite(out).all():
        raise OverflowError(
            f"The covariance, about {spread.max():.1g} times {amplitude.max():.1g}, exceeds the largest "
            "float64. Bring X and y to sizes near 1 (standardise=True does so for X), or ask for the "
            "standard deviation only."
        )
    return out
