"""Measured learning curves: kernel regression on random points of a sphere."""

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from widelimit._base.keys import as_generator
from widelimit._base.renamed import renamed_argument
from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit._base.types import Seed
from widelimit.analysis.spectrum import sphere
from widelimit.infinite import prepare
from widelimit.layers import Layer
from widelimit.regression import Spectral

from ._eigenlearning import Prediction, predict
from ._target import Target


@shown("measured test errors")
class Measured(NamedTuple):
    """A measured learning curve.

    Attributes:
        sizes: Numbers of samples.
        mse: Squared error on fresh, equally noisy samples, averaged over the draws.
        error: The standard error of that average.
        draws: Each draw's curve, shape (draws, sizes).
    """

    sizes: np.ndarray
    mse: np.ndarray
    error: np.ndarray
    draws: np.ndarray


@shown("a learning curve, predicted and measured")
class Comparison(NamedTuple):
    """Theory beside measurement.

    Attributes:
        predicted: The prediction.
        measured: The measurement.
        deviation: predicted/measured - 1 at each size.
    """

    predicted: Prediction
    measured: Measured
    deviation: np.ndarray


@renamed_argument(seed="key")
def measure(
    net: Layer,
    target: Target,
    sizes: ArrayLike,
    *,
    kernel: str = "ntk",
    draws: int = 20,
    ridge: float = 0.0,
    noise: float = 0.0,
    test_points: int = 1000,
    key: Seed = 0,
) -> Measured:
    r"""Kernel regression on n random points of the unit sphere, for growing n, averaged over draws.

    Args:
        net: The network.
        target: The function to learn.
        sizes: Numbers of samples, integers.
        kernel: "ntk" or "nngp".
        draws: How many independent samples (and test sets).
        ridge: $\delta\ge0$, added to the diagonal of the Gram matrix.
        noise: The variance of Gaussian noise on the labels.
        test_points: Test points for each draw.
        key: An integer or a JAX key; decides the samples.

    Returns:
        The measurement.

    Example:
        >>> import widelimit as wl
        >>> f = wl.learning_curve.target(3, [0, 1.0])  # a linear function is learnt at once
        >>> m = wl.learning_curve.measure(wl.resnet(depth=2, alpha=0.1), f, [50], draws=2)
        >>> bool(m.mse[0] < 1e-2)
        True
    """
    n = _check(sizes, kernel, ridge, noise)
    draws = as_count(draws, "draws", minimum=1)
    test_points = as_count(test_points, "test_points", minimum=1)
    curves = np.empty((draws, len(n)))
    for i, child in enumerate(as_generator(key).spawn(draws)):
        curves[i] = _one_draw(net, target, n, kernel, ridge, noise, test_points, child)
    spread = curves.std(axis=0, ddof=1) / math.sqrt(draws) if draws > 1 else np.zeros(len(n))
    return Measured(n, curves.mean(axis=0), spread, curves)


def _check(sizes: ArrayLike, kernel: str, ridge: float, noise: float) -> np.ndarray:
    n = np.atleast_1d(np.asarray(sizes))
    if n.ndim != 1 or n.size == 0 or n.dtype.kind not in "iu" or np.any(n < 1):
        raise ValueError(f"sizes must be positive integers, got {sizes!r}.")
    if kernel not in ("ntk", "nngp"):
        raise ValueError(f'kernel must be "ntk" or "nngp", got {kernel!r}.')
    for name, value in (("ridge", ridge), ("noise", noise)):
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and not negative, got {value!r}.")
    return n


def _one_draw(
    net: Layer,
    target: Target,
    n: np.ndarray,
    kernel: str,
    ridge: float,
    noise: float,
    test_points: int,
    rng: np.random.Generator,
) -> np.ndarray:
    most = int(n.max())
    points = rng.normal(size=(most + test_points, target.dim))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    x, fresh = points[:most], points[most:]
    y = target(x) + math.sqrt(noise) * rng.normal(size=most)
    function = prepare(net, kernel)
    gram, cross, truth = function(x), function(fresh, x), target(fresh)
    gram[np.diag_indices(most)] += ridge
    factor = Spectral(gram).factor
    out = np.empty(len(n))
    for i, size in enumerate(n):
        # One factor serves all sizes; without it, the interpolants of smallest norm.
        part = factor and factor.leading(int(size))
        weights = part.solve(y[:size]) if part else _smallest(gram[:size, :size], y[:size])
        out[i] = np.mean((cross[:, :size] @ weights - truth) ** 2) + noise
    return out


def _smallest(gram: np.ndarray, y: np.ndarray) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that eigenvalues below rounding carry no signal
        spectral = Spectral(gram)
        return spectral.dual(spectral.flow(math.inf), y[:, None])[:, 0]


@renamed_argument(seed="key")
def compare(
    net: Layer,
    target: Target,
    sizes: ArrayLike,
    *,
    kernel: str = "ntk",
    degrees: int = 400,
    ridge: float = 0.0,
    noise: float = 0.0,
    draws: int = 20,
    key: Seed = 0,
) -> Comparison:
    """The predicted and the measured learning curve, side by side.

    Args:
        net: The network.
        target: The function to learn; its dimension decides the sphere.
        sizes: Numbers of samples, integers.
        kernel: "ntk" or "nngp".
        degrees: The largest degree of the spectrum; beyond it eigenvalues act as a ridge.
        ridge: Added to the diagonal of the Gram matrix.
        noise: The variance of the labels' noise.
        draws: How many samples are averaged.
        key: An integer or a JAX key; decides the samples.

    Returns:
        Both curves and their deviation.

    Example:
        >>> import widelimit as wl
        >>> f = wl.learning_curve.target(3, [0.0] + [1 / k for k in range(1, 40)])
        >>> c = wl.learning_curve.compare(wl.mlp(depth=2), f, [100], draws=4)
        >>> bool(abs(c.deviation[0]) < 0.2)
        True
    """
    spectrum = sphere(net, target.dim, degrees, kernel=kernel)
    predicted = predict(spectrum, target, sizes, ridge=ridge, noise=noise)
    measured = measure(
        net, target, sizes, kernel=kernel, draws=draws, ridge=ridge, noise=noise, key=key
    )
    return Comparison(predicted, measured, predicted.mse / measured.mse - 1)
