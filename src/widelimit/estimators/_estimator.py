"""What regression and classification share: the options, and the fit of an infinite network."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ._data import merge
from ._fit import fit
from ._gram import NetworkGram
from ._network import network_of
from ._scaling import fit_scaling


class NetworkEstimator(BaseEstimator):
    """Kernel regression with a network's kernel; its subclasses explain the options."""

    def __init__(
        self,
        network: Any = None,
        *,
        depth: int = 1,
        activation: Any = "relu",
        alpha: float = 1.0,
        w_std: float = 2**0.5,
        b_std: float = 2**0.5,
        architecture: str = "mlp",
        kernel: str = "ntk",
        ridge: Any = "loo",
        standardize: bool = True,
        normalize: bool = False,
        time: float | None = None,
        solver: str = "auto",
    ):
        self.network = network
        self.depth = depth
        self.activation = activation
        self.alpha = alpha
        self.w_std = w_std
        self.b_std = b_std
        self.architecture = architecture
        self.kernel = kernel
        self.ridge = ridge
        self.standardize = standardize
        self.normalize = normalize
        self.time = time
        self.solver = solver

    def _fit_network(self, X: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> None:
        """Scale the columns, merge equal rows, and solve for targets of mean 0."""
        self.network_ = network_of(self)
        gram = NetworkGram(self.network_, self.kernel)
        self._scaling = fit_scaling(X, weights, standardize=self.standardize, sphere=self.normalize)
        data = merge(self._scaling(X), targets, weights)
        self._fit = fit(gram, data, ridge=self.ridge, time=self.time, solver=self.solver)

    def _publish(self) -> None:
        self.ridge_ = self._fit.ridge
        self.dual_coef_ = self._fit.dual
