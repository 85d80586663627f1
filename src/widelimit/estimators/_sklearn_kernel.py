"""A network's kernel as an object of scikit-learn."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Hyperparameter, Kernel

from widelimit.activations import get as get_activation
from widelimit.layers import Layer
from widelimit.regression import Family

from ._network import build_network, kernel_of, network_of

_NUMBERS = ("alpha", "b_std", "w_std")  # in the order in which scikit-learn lists them


@dataclasses.dataclass(eq=False, repr=False)
class NetworkKernel(Kernel):
    r"""The kernel of an infinitely wide network for scikit-learn's own estimators.

    `SVC`, `KernelRidge` and `GaussianProcessRegressor` take it as `kernel`; the last one fits
    `w_std`, `b_std` and (for a ResNet) `alpha` by the gradient of the marginal likelihood. It
    combines with other kernels by `+`, `*` and `**`.

    Args:
        network: A network or its text, whose numbers then are fixed; None builds one.
        depth: Hidden layers, or residual blocks.
        activation: A name, an `Activation`, or a function.
        alpha: The attenuation of residual branches (`architecture="resnet"`).
        w_std: The weights' scale.
        b_std: The scale of the first layer's bias; 0 stays 0.
        architecture: "mlp" or "resnet".
        kernel: "ntk" or "nngp".
        alpha_bounds: Where `alpha` may move, or "fixed".
        w_std_bounds: Where `w_std` may move, or "fixed".
        b_std_bounds: Where `b_std` may move, or "fixed".

    Example:
        >>> import numpy as np
        >>> from sklearn.svm import SVC
        >>> from widelimit.estimators import NetworkKernel
        >>> x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> SVC(kernel=NetworkKernel(depth=2), C=100.0).fit(x, [0, 1, 1, 0]).predict(x)
        array([0, 1, 1, 0])

    Reference:
        Rasmussen and Williams (2006), section 5.4.1; Jacot, Gabriel and Hongler (2018).
    """

    network: Any = None
    _: dataclasses.KW_ONLY
    depth: int = 2
    activation: Any = "relu"
    alpha: float = 1.0
    w_std: float = 2**0.5
    b_std: float = 1.0
    architecture: str = "mlp"
    kernel: str = "ntk"
    alpha_bounds: Any = (1e-3, 1e2)
    w_std_bounds: Any = (1e-2, 1e2)
    b_std_bounds: Any = (1e-3, 1e2)

    @property
    def hyperparameter_alpha(self) -> Hyperparameter:
        """The attenuation, where there is a branch to attenuate."""
        return self._number("alpha", self.architecture == "resnet")

    @property
    def hyperparameter_b_std(self) -> Hyperparameter:
        """The first layer's bias."""
        return self._number("b_std")

    @property
    def hyperparameter_w_std(self) -> Hyperparameter:
        """The weights' scale."""
        return self._number("w_std")

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """The kernel matrix, and its derivatives in the logarithms of the free numbers.

        Args:
            X: Shape (n, d).
            Y: Shape (m, d); None stands for X.
            eval_gradient: Whether derivatives are wanted; Y must be None then.

        Returns:
            Shape (n, m); with derivatives also (n, n, free numbers).
        """
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        if Y is not None:
            Y = np.atleast_2d(np.asarray(Y, dtype=np.float64))
        matrix = kernel_of(self)(X, Y)
        if not eval_gradient:
            return matrix
        if Y is not None:
            raise ValueError("Gradients are defined for the kernel of X with itself; leave Y out.")
        numbers = np.exp(self.theta)  # scikit-learn varies logarithms
        return matrix, numbers * self._family().slopes(self.kernel, numbers, X)

    def diag(self, X: Any) -> Any:
        """The diagonal of the kernel matrix.

        Args:
            X: Shape (n, d).

        Returns:
            Shape (n,).
        """
        return kernel_of(self).diagonal(np.atleast_2d(np.asarray(X, dtype=np.float64)))

    def is_stationary(self) -> Any:
        """False: the kernel depends on more than x - x'."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({network_of(self)!r}, kernel={self.kernel!r})"

    def _number(self, name: str, used: bool = True) -> Hyperparameter:
        free = used and self.network is None and getattr(self, name) > 0
        bounds = getattr(self, f"{name}_bounds") if free else "fixed"
        return Hyperparameter(name, "numeric", bounds)

    def _family(self) -> Family:
        free = tuple(h.name for h in self.hyperparameters if not h.fixed)
        fixed = tuple((n, float(getattr(self, n))) for n in _NUMBERS if n not in free)
        activation = get_activation(self.activation)
        build = _Builder(self.depth, activation, self.architecture, fixed)
        return Family(build, free)


@dataclasses.dataclass(frozen=True)
class _Builder:
    """The network as a function of its free numbers, hashable by value."""

    depth: int
    activation: Any
    architecture: str
    fixed: tuple[tuple[str, float], ...]

    def __call__(self, **free: Any) -> Layer:
        return build_network(
            None,
            self.depth,
            self.activation,
            architecture=self.architecture,
            **free,
            **dict(self.fixed),
        )
