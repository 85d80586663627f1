"""What regression and classification share: the options, and the fit of an infinite network."""

import dataclasses
import math
import numbers
import warnings
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from widelimit._base.renamed import renamed_argument
from widelimit._base.scalars import as_count, as_float
from widelimit.regression import Data, KeptProblem, Problem, fit

from ._features import FORMS, importances, learn_features
from ._network import kernel_of
from ._search import check_search, search
from ._trial import Options, Trial

_MOST_BYTES = 2**31  # of a sparse table that is filled
_CHOSEN = ("search_", "feature_matrix_", "feature_rounds_", "log_evidence_", "ridge_", "_fit")
_ROUNDS = 3  # of features, where a search may learn some
T = TypeVar("T", bound=type)


def old_spelling(cls: T) -> T:
    """The class, its options accepted in their old spelling too."""
    names = {"standardize": "standardise", "normalize": "normalise"}
    cls.__init__ = renamed_argument(**names)(cls.__init__)
    return cls


@old_spelling
@dataclasses.dataclass(eq=False, repr=False)
class NetworkEstimator(BaseEstimator):
    """Kernel regression with a network's kernel; its subclasses explain the options."""

    network: Any = None
    _: dataclasses.KW_ONLY
    depth: int = 2
    activation: Any = "relu"
    alpha: float = 1.0
    w_std: float = 2**0.5
    b_std: float = 1.0
    architecture: str = "mlp"
    kernel: str = "ntk"
    ridge: Any = "loo"
    standardise: bool = True
    normalise: bool = False
    squash: bool = False
    categories: int = 0
    time: float | None = None
    solver: Any = "auto"
    rank: int | None = None
    precision: str = "float64"
    checkpoint: Any = None
    verbose: bool | None = None
    mesh: Any = None
    store: Any = None
    search: str | None = None
    feature_rounds: int = 0
    feature_form: str = "auto"

    def _fit_network(self, X: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        """Scale the columns, merge equal rows, and solve for targets of mean 0."""
        problem, t = self._pose(X, targets, weights)
        names = ("rank", "precision", "checkpoint", "verbose", "mesh")
        more = {name: getattr(self, name) for name in names}
        self._fit = fit(problem, self.ridge, t=t, solver=self.solver, **more)

    def _pose(
        self, X: np.ndarray, targets: np.ndarray, weights: np.ndarray
    ) -> tuple[Problem, float]:
        """The regression that is to be solved, with all that is chosen before, and the training time."""
        for name in _CHOSEN:
            vars(self).pop(name, None)  # of an earlier fit
        options, t = Options(**self.get_params(deep=False)), _check_time(self.time)
        kernel_of(options)  # refuses before any work
        warn_of_unused(options)
        rounds = _check_features(options, self._layout)
        trial = Trial(X, targets, weights, self._layout)
        problem, scaling = trial.problem(options)
        _check_ridge(self.ridge, problem.data, t)
        if check_search(options):
            options, self.search_ = search(options, trial, t)
            problem, scaling = trial.problem(options)
        self.network_ = problem.kernel.net  # pyright: ignore[reportAttributeAccessIssue]
        if rounds:
            found = learn_features(problem, self.ridge, t, rounds, self.feature_form, self.verbose)
            self.feature_matrix_, self.feature_rounds_ = found.matrix, found.rounds
            if found.rounds:
                data = dataclasses.replace(problem.data, points=problem.x @ found.root)
                problem = dataclasses.replace(problem, data=data)
                scaling = dataclasses.replace(scaling, features=found.root)
        self._scaling = scaling
        if self.store is not None:
            problem = KeptProblem.of(problem, self.store, self.verbose)
        return problem, t

    @property
    def feature_importances_(self) -> np.ndarray:
        r"""How much the fitted function reacts to each column, shape (d,), of sum 1.

        The mean square of its derivative in the standardised column, from exact gradients at (at most 1500 of)
        the rows; a column's indicators count for it.
        """
        check_is_fitted(self)
        if self._layout is not None:
            raise AttributeError("feature_importances_ belongs to tables; inputs had pixels.")
        problem, dual = self._function()
        width = problem.x.shape[1]
        root = self._scaling.features if len(self._scaling.features) else np.eye(width)
        shares = self._scaling.by_column(importances(problem, dual, root))
        return shares / (shares.sum() or 1.0)

    def _function(self) -> tuple[Problem, np.ndarray]:
        """The points of the fitted function, and their coefficients."""
        return self._fit.problem, self._fit.dual

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    _layout: ClassVar[tuple[int, ...] | None] = None

    def _rows(self, X: Any, *, fitting: bool = False) -> Any:
        """Inputs with pixels as rows; their shape is remembered when fitting. Sparse ones are filled."""
        if scipy.sparse.issparse(X):
            X = _filled(X)
        X = X if hasattr(X, "ndim") else np.asarray(X)
        layout = tuple(X.shape[1:]) if X.ndim > 2 else None
        if fitting and layout != self._layout:
            vars(self)["_layout"] = layout  # the class says: none
        if layout is None:
            return X
        if layout != self._layout:
            raise ValueError(
                f"Inputs of shape {layout} came; fitted were inputs of {self._layout}."
            )
        return np.asarray(X).reshape(len(X), -1)

    def _publish(self) -> None:
        self.ridge_ = self._fit.ridge
        self.dual_coef_ = self._fit.dual


def _filled(X: Any) -> np.ndarray:
    """A sparse table as an array, where that is not too large."""
    size = X.shape[0] * X.shape[1] * 8
    if size > _MOST_BYTES:
        raise ValueError(
            f"X is sparse, of shape {X.shape}; kernels need all its numbers, {size / 2**30:.1f} GiB, and "
            f"{_MOST_BYTES / 2**30:.0f} GiB are filled at most. Reduce its columns first, for example with "
            "sklearn.decomposition.TruncatedSVD."
        )
    return X.toarray()


def warn_of_unused(options: Options) -> None:
    """Say which options were set and change nothing."""
    if options.network is None and options.architecture == "mlp" and options.alpha != 1.0:
        warnings.warn(
            f"alpha={options.alpha} has no meaning in an MLP, and is ignored: it attenuates residual "
            "branches. Set architecture='resnet', or leave it out.",
            UserWarning,
            stacklevel=5,
        )


def _check_features(options: Options, layout: tuple[int, ...] | None) -> int:
    rounds = as_count(options.feature_rounds, "feature_rounds")
    if options.search == "auto":
        rounds = rounds or _ROUNDS
    if options.feature_form not in (*FORMS, "auto"):
        raise ValueError(
            f"feature_form must be 'diagonal', 'full' or 'auto', got {options.feature_form!r}."
        )
    if rounds and layout is not None:
        raise ValueError(
            f"feature_rounds={rounds} re-weights columns of a table; the inputs have pixels, of shape "
            f"{layout}. Set feature_rounds=0."
        )
    return rounds


def _check_time(time: Any) -> float:
    if time is None:
        return math.inf
    if not isinstance(time, numbers.Real):
        raise TypeError(f"time must be a number, or None for ever; got {time!r}.")
    if not 0 <= as_float(time, "time") < math.inf:
        raise ValueError(f"time must be finite and at least 0, or None for ever; got {time}.")
    return float(time)


def _check_ridge(ridge: Any, data: Data, t: float) -> None:
    if isinstance(ridge, str):
        _check_choice(ridge, data, t)
    elif not isinstance(ridge, numbers.Real):
        raise TypeError(f"ridge must be a number, 'loo' or 'evidence', got {ridge!r}.")
    elif not 0 <= as_float(ridge, "ridge") < math.inf:
        raise ValueError(f"ridge must be finite and at least 0, got {ridge}.")
    elif len(data.points) < 2:
        warnings.warn(
            "There is only one distinct row to fit (n_samples = 1, or all rows of X are equal), so "
            "the model is a constant. Give more points.",
            UserWarning,
            stacklevel=4,
        )
    elif ridge == 0 and data.spread.any():
        warnings.warn(
            "Some rows of X are equal but their targets differ; without a ridge no function fits "
            "both, and their mean is fitted. Give ridge > 0, or ridge='loo', to treat the "
            "difference as noise.",
            UserWarning,
            stacklevel=4,
        )


def _check_choice(ridge: str, data: Data, t: float) -> None:
    if ridge not in ("loo", "evidence"):
        raise ValueError(f"ridge must be a number, 'loo' or 'evidence', got {ridge!r}.")
    if ridge == "evidence" and t < math.inf:
        raise ValueError(
            "ridge='evidence' belongs to the posterior, which training for a finite time does not "
            "reach. Set time=None, or ridge='loo'."
        )
    if len(data.points) < 2:
        raise ValueError(
            f"ridge={ridge!r} compares points, but there is only one sample (n_samples = 1, or all "
            "rows of X are equal). Give more points, or a number as the ridge."
        )
