"""What regression and classification share: the options, and the fit of an infinite network."""

import dataclasses
import math
import numbers
import warnings
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from widelimit._base.renamed import renamed_argument
from widelimit._base.scalars import as_count, as_float
from widelimit.regression import Data, Problem, fit, merge

from ._network import kernel_of
from ._scaling import fit_scaling

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

    def _fit_network(self, X: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        """Scale the columns, merge equal rows, and solve for targets of mean 0."""
        kernel = kernel_of(self)
        if self.network is None and self.architecture == "mlp" and self.alpha != 1.0:
            warnings.warn(
                f"alpha={self.alpha} has no meaning in an MLP, and is ignored: it attenuates residual "
                "branches. Set architecture='resnet', or leave it out.",
                UserWarning,
                stacklevel=3,
            )
        self.network_ = kernel.net
        channels = None
        if self._layout is not None:
            kernel, channels = kernel.of_rows(self._layout), self._layout[-1]
        self._scaling = fit_scaling(
            X,
            weights,
            standardise=self.standardise,
            sphere=self.normalise,
            channels=channels,
            squash=self.squash,
            categories=as_count(self.categories, "categories"),
        )
        data = merge(self._scaling(X), targets, weights)
        t = _check_time(self.time)
        _check_ridge(self.ridge, data, t)
        names = ("rank", "precision", "checkpoint", "verbose", "mesh")
        options = {name: getattr(self, name) for name in names}
        self._fit = fit(Problem(kernel, data), self.ridge, t=t, solver=self.solver, **options)

    _layout: ClassVar[tuple[int, ...] | None] = None

    def _rows(self, X: Any, *, fitting: bool = False) -> Any:
        """Inputs with pixels as rows; their shape is remembered when fitting."""
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
