"""The distribution of trained networks, over their random initial weights."""

import functools
from typing import Any

import numpy as np

from widelimit.layers import Layer
from widelimit.regression import Predictive, Problem, as_problem

from ._train import train


def ensemble(
    net: Layer, x: Any, y: Any, x_test: Any, t: float | None = None, *, kernel: str = "ntk"
) -> Predictive:
    r"""The distribution of networks trained from random initial weights, for time t.

    Before training a network is a draw from the Gaussian process with kernel $K$; training maps it
    linearly, $f_t(x)=f_0(x)+A_x(y-f_0(X))$ with $A_x=\Theta(x,X)\Theta^{-1}(I-e^{-\Theta t})$, so
    the mean is $A_xy$ and the covariance
    $K(x,x')-A_xK(X,x')-K(x,X)A_{x'}^\top+A_xK(X,X)A_{x'}^\top$.

    Args:
        net: The network.
        x: Training points, shape (n, d).
        y: Targets, shape (n,) or (n, k).
        x_test: Where to predict, shape (m, d).
        t: Training time; None: for ever.
        kernel: "ntk": all layers are trained; "nngp": the last one only.

    Returns:
        A record with `mean`, `variance`, `std`, `covariance` and `sample`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> net, x = wl.mlp(2), np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> e = wl.ensemble(net, x, [1.0, -1.0], x)  # all networks agree where they were trained
        >>> bool(np.allclose(e.mean, [1, -1]) and e.variance.max() < 1e-12)
        True
        >>> before = wl.ensemble(net, x, [1.0, -1.0], x, t=0.0)
        >>> bool(np.allclose(before.covariance, wl.nngp(net, x)))
        True

    Reference:
        Lee et al. (2019), Wide neural networks of any depth evolve as linear models.
    """
    model = train(net, x, y, kernel=kernel)
    prior = as_problem(net, x, y, "nngp")
    points = prior.points(x_test)
    operator = np.asarray(model.influence(points, t), np.float64)
    shift, inner = prior.cross(points), prior.gram()
    moved = operator @ inner - 2 * shift
    diagonal = np.asarray(prior.kernel.diagonal(points))
    variance = np.maximum(diagonal + np.einsum("ij,ij->i", moved, operator), 0)
    return Predictive(
        prior.answer(operator @ prior.y),
        prior.convert(variance),
        0.0,
        prior,
        functools.partial(_moved, prior, points, operator, shift, inner),
    )


def _moved(
    prior: Problem, points: np.ndarray, operator: np.ndarray, shift: np.ndarray, inner: np.ndarray
) -> np.ndarray:
    mixed = operator @ shift.T
    return prior.prior(points) - mixed - mixed.T + operator @ inner @ operator.T
