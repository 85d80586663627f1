"""The names of `neural_tangents.predict`: predictions of trained infinite networks.

Example:
    >>> import numpy as np
    >>> from widelimit.compat import predict, stax
    >>> _, _, kernel_fn = stax.serial(stax.Dense(512), stax.Relu(), stax.Dense(1))
    >>> x, y = np.eye(3), np.array([[1.0], [0.0], [-1.0]])
    >>> predict_fn = predict.gradient_descent_mse_ensemble(kernel_fn, x, y)
    >>> np.abs(predict_fn(x_test=x, get="ntk") - y).max() < 1e-12  # trained for ever
    np.True_
"""

from ._ensemble import gradient_descent_mse_ensemble as gradient_descent_mse_ensemble
from ._gp import Gaussian as Gaussian
from ._gp import gp_inference as gp_inference
from ._predict import ODEState as ODEState
from ._predict import gradient_descent as gradient_descent
from ._predict import gradient_descent_mse as gradient_descent_mse
from ._predict import max_learning_rate as max_learning_rate
