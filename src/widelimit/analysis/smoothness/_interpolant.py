"""Kernel interpolants that know their kernel: exact Fourier coefficients, exact gradients."""

import functools
import math
import warnings
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from scipy import linalg, special

from widelimit._base.arrays import as_array, is_jax
from widelimit._base.names import unknown
from widelimit._base.quadrature import gauss_legendre
from widelimit._base.scalars import as_count
from widelimit.infinite import nngp, ntk, profile
from widelimit.layers import Layer

from ._sampling import circle_points

_KERNELS = ("ntk", "nngp", "gaussian")
_BLOCK = 2**16  # kernel entries from which a profile is compiled


def _gaussian(x1: Any, x2: Any) -> Any:
    np_ = jnp if is_jax(x1) or is_jax(x2) else np
    difference = x1[:, None, :] - x2[None, :, :]
    return np_.exp(-np_.sum(difference**2, axis=-1) / 2)


class Interpolant:
    r"""$f(x)=\sum_i c_i\,\Theta(x,x_i)$: what the infinitely wide network has learned at the end.

    Attributes:
        net: The network, or None for other kernels.
        kernel: "ntk", "nngp", "gaussian", or a function of (x1, x2).
        x: The training inputs, shape (n, d).
        weights: The coefficients c, shape (n,).
        condition: The condition number of the Gram matrix that was solved.
    """

    def __init__(self, net: Layer | None, kernel: Any, x: Any, weights: Any, condition: float):
        self.net, self.kernel, self.x, self.weights = net, kernel, x, weights
        self.condition = condition

    def gram(self, x1: Any, x2: Any) -> Any:
        """The kernel matrix between two sets of points."""
        if callable(self.kernel):
            return self.kernel(x1, x2)
        if self.net is None:
            return _gaussian(x1, x2)
        return (ntk if self.kernel == "ntk" else nngp)(self.net, x1, x2)

    def predict(self, x: Any) -> Any:
        """The interpolant at the rows of x, shape (m,); NumPy in, NumPy out, traceable with JAX."""
        if is_jax(x):
            inputs = jnp.asarray(self.x, dtype=x.dtype)
            return self.gram(x, inputs) @ jnp.asarray(self.weights, dtype=x.dtype)
        x = as_array(x, "x", rank=2, layout="(points, features)")
        rows = len(x)
        if rows * len(self.x) <= 8 * _BLOCK:
            # Blocks too small for a compiled profile: the layers themselves are a digit more exact,
            # and a second derivative multiplies their errors by the square of the wave number.
            rows = 2 ** (((_BLOCK - 1) // len(self.x)).bit_length() - 1)
        parts = [self.gram(x[i : i + rows], self.x) for i in range(0, len(x), rows)]
        return np.concatenate(parts) @ self.weights

    def fourier(self, k_max: int) -> np.ndarray:
        r"""Exact Fourier coefficients on the unit circle, $k=-k_{max},\dots,k_{max}$.

        $f_k=\theta_k\sum_ic_ie^{-ikb_i}$ with $\theta_k=\frac1\pi\int_0^\pi\Theta(t)\cos kt\,dt$ by Gauss-Legendre:
        the kernel is analytic between its kinks at 0 and $\pi$, so no aliasing as in a transform.
        """
        k_max = as_count(k_max, "k_max")
        if callable(self.kernel):
            raise TypeError(
                "Exact Fourier coefficients need a kernel that is known to depend on the angle "
                "alone: use interpolate(net, x, y)."
            )
        if self.x.shape[1] != 2 or np.abs(np.hypot(*self.x.T) - 1).max() > 1e-9:
            raise ValueError(
                "Fourier coefficients need training inputs on the unit circle, points (cos b, sin b); "
                f"got shape {self.x.shape} with norms from {np.linalg.norm(self.x, axis=1).min():.6g} "
                f"to {np.linalg.norm(self.x, axis=1).max():.6g}. Divide each by its norm."
            )
        k = np.arange(k_max + 1)
        angles = np.arctan2(self.x[:, 1], self.x[:, 0])
        half = _kernel_coefficients(self.net, self.kernel, k_max) * (
            np.exp(-1j * k[:, None] * angles[None, :]) @ self.weights
        )
        return np.concatenate([np.conj(half[:0:-1]), half])


@functools.lru_cache(maxsize=64)
def _kernel_coefficients(net: Layer | None, kernel: str, k_max: int) -> np.ndarray:
    k = np.arange(k_max + 1)
    if net is None:  # exactly: they fall below the rounding of any quadrature
        return special.ive(k.astype(np.float64), 1.0)
    nodes, weights = gauss_legendre(max(256, 4 * k_max))
    angles = math.pi * nodes
    compiled = profile(net, variance=0.5)
    values = (compiled.ntk_at_angle if kernel == "ntk" else compiled.nngp_at_angle)(angles)
    return np.cos(k[:, None] * angles[None, :]) @ (weights * values)


def interpolate(
    net: Any, x: Any, y: Any, *, kernel: str | None = None, jitter: float = 0.0
) -> Interpolant:
    r"""Interpolate samples with the kernel of a network: $f(x)=\Theta(x,X)\,(\Theta(X,X)+\epsilon I)^{-1}y$.

    This is the network of infinite width after training for ever from a zero initial function.

    Args:
        net: The network, or "gaussian" for $\exp(-|x-x'|^2/2)$.
        x: Training inputs, shape (n, d); an array of rank one is read as angles on the unit circle.
        y: Labels, shape (n,).
        kernel: "ntk" (default) or "nngp".
        jitter: $\epsilon$, added to the diagonal.

    Returns:
        The interpolant, with `predict` and `fourier`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> b = np.array([-2.0, 0.0, 1.0])
        >>> f = interpolate(wl.mlp(depth=3), b, np.sin(b))
        >>> np.allclose(f.predict(circle_points(b)), np.sin(b))
        True
    """
    kernel = _check_kernel(net, kernel)
    x = circle_points(x) if np.ndim(x) == 1 else as_array(x, "x", rank=2, layout="(n, d)")
    x = np.asarray(x, dtype=np.float64)
    y = np.asarray(as_array(y, "y", rank=1, layout="(n,)"), dtype=np.float64)
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} points and y has {len(y)} labels; one label each.")
    if not (math.isfinite(jitter) and jitter >= 0):
        raise ValueError(f"jitter must be at least 0, got {jitter!r}.")
    blank = Interpolant(None if kernel == "gaussian" else net, kernel, x, np.zeros(len(y)), np.inf)
    gram = blank.gram(x, x if kernel == "gaussian" else None)
    weights, condition = _solve(gram, y, jitter)
    return Interpolant(blank.net, kernel, x, weights, condition)


@runtime_checkable
class _TrainedModel(Protocol):
    """The infinitely wide network in training, as `widelimit.train` returns it."""

    problem: Any
    loss: Any
    start: Any
    matrix: Any


def is_trained_model(f: Any) -> bool:
    """Whether f is what `widelimit.train` returns."""
    return isinstance(f, _TrainedModel)


def as_interpolant(model: Any, t: float | None = None) -> Interpolant:
    r"""A trained model as the sum $\sum_ic_i\Theta(x,x_i)$ that it is, so that it can be differentiated.

    Args:
        model: What `widelimit.train` returns, with the squared loss and a zero initial function.
        t: The training time; None: trained for ever.

    Returns:
        The model at that time.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x, y = np.eye(3), np.array([1.0, 2.0, 3.0])
        >>> model = wl.train(wl.mlp(depth=2), x, y)
        >>> np.allclose(as_interpolant(model, t=5.0).predict(x), model.predict(x, t=5.0))
        True
    """
    if not is_trained_model(model):
        raise TypeError(f"A model made by widelimit.train was expected, got {model!r}.")
    if model.loss != "squared" or np.any(model.start) or model.problem.y.shape[1] != 1:
        raise ValueError(
            "Only a model with one output, the squared loss and a zero initial function is a sum of "
            f"kernels with known coefficients; this one has loss={model.loss!r} and "
            f"{model.problem.y.shape[1]} outputs."
        )
    weights, condition = _coefficients(model.matrix, model.problem.y[:, 0], t)
    return Interpolant(None, model.problem.kernel, model.problem.x, weights, condition)


def _coefficients(gram: np.ndarray, y: np.ndarray, t: float | None) -> tuple[np.ndarray, float]:
    r"""$\Theta^{-1}(I-e^{-\Theta t})y$, finite where $\Theta$ is singular and t is not."""
    if t is None or math.isinf(t):
        return _solve(gram, y, 0.0)
    if not t >= 0:
        raise ValueError(f"t is a time and must be at least 0, got {t!r}.")
    values, vectors = linalg.eigh(gram)
    positive = np.where(values > 0, values, 1.0)
    shrink = np.where(values > 0, -np.expm1(-positive * t) / positive, t)
    condition = float(values[-1] / values[0]) if values[0] > 0 else math.inf
    return vectors @ (shrink * (vectors.T @ y)), condition


def _check_kernel(net: Any, kernel: str | None) -> str:
    if isinstance(net, str) and net == "gaussian":
        if kernel not in (None, "gaussian"):
            raise ValueError(f"The Gaussian kernel belongs to no network; kernel={kernel!r} does.")
        return "gaussian"
    if not isinstance(net, Layer):
        raise TypeError(f"A network or 'gaussian' was expected, got {net!r}.")
    kernel = kernel or "ntk"
    if kernel not in _KERNELS[:2]:
        raise ValueError(unknown("kernel", kernel, _KERNELS[:2]))
    return kernel


def _solve(gram: np.ndarray, y: np.ndarray, jitter: float) -> tuple[np.ndarray, float]:
    gram = gram + jitter * np.eye(len(y))
    values = linalg.eigvalsh(gram)
    smallest = 0.0 if jitter else len(y) * np.finfo(np.float64).eps * values[-1] / 4
    if values[0] <= smallest:
        raise ValueError(
            f"The Gram matrix is singular (eigenvalues from {values[0]:.3g} to {values[-1]:.3g}): a "
            "point occurs twice, or (without bias) two points lie on one ray. Remove one, or add "
            f"a larger jitter (it is {jitter:g}; 1e-10 of the largest eigenvalue is a start)."
        )
    condition = float(values[-1] / values[0])
    if condition > 1e13 and not jitter:
        warnings.warn(
            f"The Gram matrix has condition number {condition:.2g}; the weights keep few digits. "
            "Add a jitter, or remove points that nearly coincide.",
            stacklevel=3,
        )
    return linalg.cho_solve(linalg.cho_factor(gram, lower=True), y), condition
