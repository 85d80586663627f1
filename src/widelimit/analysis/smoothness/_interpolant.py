"""Kernel interpolants that know their kernel: exact Fourier coefficients, exact gradients."""

import functools
import math
import warnings
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import special

from widelimit._base.arrays import as_array, is_jax
from widelimit._base.names import unknown
from widelimit._base.quadrature import gauss_legendre
from widelimit._base.scalars import as_count
from widelimit.dynamics import Trained
from widelimit.infinite import PreparedKernel, profile
from widelimit.layers import Layer
from widelimit.regression import FunctionKernel, Kernel, Spectral, as_problem, gaussian_kernel

from ._sampling import circle_points

_KERNELS = ("ntk", "nngp")


class Interpolant:
    r"""$f(x)=\sum_i c_i\,\Theta(x,x_i)$: what the infinitely wide network has learned at the end.

    Attributes:
        kernel: $\Theta$, a function of (x1, x2).
        x: The training inputs, shape (n, d).
        weights: The coefficients c, shape (n,).
        condition: The condition number of the Gram matrix that was solved.
    """

    def __init__(self, kernel: Kernel, x: np.ndarray, weights: np.ndarray, condition: float):
        # Weights of size 1e6 may cancel to a function of size 1: a profile's 1e-14 would be seen.
        self.kernel = kernel.by("layers") if isinstance(kernel, PreparedKernel) else kernel
        self.x, self.weights, self.condition = x, weights, condition

    def predict(self, x: Any) -> Any:
        """The interpolant at the rows of x, shape (m,); NumPy in, NumPy out, traceable with JAX."""
        if is_jax(x):
            inputs = jnp.asarray(self.x, dtype=x.dtype)
            return self.kernel(x, inputs) @ jnp.asarray(self.weights, dtype=x.dtype)
        x = as_array(x, "x", rank=2, layout="(points, features)")
        return self.kernel.matvec(x, self.x, self.weights)

    def fourier(self, k_max: int) -> np.ndarray:
        r"""Exact Fourier coefficients on the unit circle, $k=-k_{max},\dots,k_{max}$.

        $f_k=\theta_k\sum_ic_ie^{-ikb_i}$ with $\theta_k=\frac1\pi\int_0^\pi\Theta(t)\cos kt\,dt$ by Gauss-Legendre:
        the kernel is analytic between its kinks at 0 and $\pi$, so no aliasing as in a transform.
        """
        k_max = as_count(k_max, "k_max")
        kernel = self.kernel
        gaussian = isinstance(kernel, FunctionKernel) and kernel.function is gaussian_kernel
        if not (gaussian or isinstance(kernel, PreparedKernel)):
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
        if isinstance(kernel, PreparedKernel):
            coefficients = _kernel_coefficients(kernel.net, kernel.kind, k_max)
        else:  # exactly: they fall below the rounding of any quadrature
            coefficients = special.ive(k.astype(np.float64), 1.0)
        half = coefficients * (np.exp(-1j * k[:, None] * angles[None, :]) @ self.weights)
        return np.concatenate([np.conj(half[:0:-1]), half])


@functools.lru_cache(maxsize=64)
def _kernel_coefficients(net: Layer, kind: str, k_max: int) -> np.ndarray:
    k = np.arange(k_max + 1)
    nodes, weights = gauss_legendre(max(256, 4 * k_max))
    angles = math.pi * nodes
    compiled = profile(net, variance=0.5)
    values = (compiled.ntk_at_angle if kind == "ntk" else compiled.nngp_at_angle)(angles)
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
    y = as_array(y, "y", rank=1, layout="(n,)")
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} points and y has {len(y)} labels; one label each.")
    if not (math.isfinite(jitter) and jitter >= 0):
        raise ValueError(f"jitter must be at least 0, got {jitter!r}.")
    problem = as_problem(net if isinstance(net, Layer) else None, x, y, kernel)
    spectral = Spectral(problem.gram() + jitter * np.eye(len(x)))
    return _solved(problem.kernel, problem.x, problem.y, spectral, jitter)


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
    if not isinstance(model, Trained):
        raise TypeError(f"A model made by widelimit.train was expected, got {model!r}.")
    problem = model.problem
    if model.loss != "squared" or np.any(model.start) or problem.y.shape[1] != 1:
        raise ValueError(
            "Only a model with one output, the squared loss and a zero initial function is a sum of "
            f"kernels with known coefficients; this one has loss={model.loss!r} and "
            f"{problem.y.shape[1]} outputs."
        )
    if t is None or math.isinf(t):
        return _solved(problem.kernel, problem.x, problem.y, model.spectral, 0.0)
    return Interpolant(problem.kernel, problem.x, model.dual(t)[:, 0], model.condition)


def _check_kernel(net: Any, kernel: str | None) -> str:
    if isinstance(net, str) and net == "gaussian":
        if kernel not in (None, "gaussian"):
            raise ValueError(f"The Gaussian kernel belongs to no network; kernel={kernel!r} does.")
        return "gaussian"
    if not isinstance(net, Layer):
        raise TypeError(f"A network or 'gaussian' was expected, got {net!r}.")
    kernel = kernel or "ntk"
    if kernel not in _KERNELS:
        raise ValueError(unknown("kernel", kernel, _KERNELS))
    return kernel


def _solved(
    kernel: Kernel, x: np.ndarray, y: np.ndarray, spectral: Spectral, jitter: float
) -> Interpolant:
    """The interpolant, where the matrix determines it."""
    values = spectral.eigen.values
    smallest = 0.0 if jitter else spectral.eigen.noise / 4
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
    phi = None if spectral.factor is not None else 1 / values
    return Interpolant(kernel, x, spectral.dual(phi, y)[:, 0], condition)
