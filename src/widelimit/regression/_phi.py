r"""How much of each eigen-direction has been learnt: the dual weights $\phi(\lambda)$.

The trained function is $f(x)=f_0(x)+k(x)\,\phi(\Theta)\,(y-f_0(X))$. Every formula here is finite at
$\lambda=0$ and keeps its digits near it.
"""

import math

import numpy as np
from jaxtyping import Float

Spectrum = Float[np.ndarray, " n"]

_NOTHING = 1e-20  # below this 1 - exp(-z) is z to rounding, and z may be subnormal


def flow(values: Spectrum, t: float = math.inf, ridge: float = 0.0) -> Spectrum:
    r"""Gradient flow with weight decay r: $\phi=(1-e^{-(\lambda+r)t})/(\lambda+r)$, $t$ at $\lambda+r=0$.

    For ever this is ridge regression, $\phi=1/(\lambda+r)$.

    Args:
        values: Eigenvalues, at least 0.
        t: Time, at least 0; infinity needs $\lambda+r>0$.
        ridge: $r$, at least 0.

    Returns:
        The weights, of the shape of `values`.

    Example:
        >>> flow(np.array([0.0, 1e-300, 1.0]), 2.0).round(4)
        array([2.    , 2.    , 0.8647])
        >>> flow(np.array([0.0, 1.0]), ridge=1.0)
        array([1. , 0.5])
    """
    total = values + ridge
    if t == math.inf:
        return 1 / total
    safe = np.where(total > 0, total, 1.0)
    return np.where(total * t > _NOTHING, -np.expm1(-total * t) / safe, t)


def damped(values: Spectrum, t: float, friction: float) -> Spectrum:
    r"""The flow of a heavy ball, $\ddot\theta=-\gamma\dot\theta-\nabla L$, from rest.

    $\ddot\phi+\gamma\dot\phi=1-\lambda\phi$, $\phi=\dot\phi=0$ at the start. It is the limit of gradient descent
    with momentum $\mu$ and small $\eta$: $\gamma=(1-\mu)/\sqrt\eta$, $t$ the number of steps times $\sqrt\eta$.

    Args:
        values: Eigenvalues, at least 0.
        t: Time, at least 0 and finite.
        friction: $\gamma$, at least 0.

    Returns:
        The weights, of the shape of `values`.

    Example:
        >>> damped(np.array([0.0, 1.0]), np.pi, 0.0).round(4)  # t^2/2; 1 - cos(t)
        array([4.9348, 2.    ])
        >>> steps = heavy_ball(np.array([0.3, 2.0]), 3000, 1e-6, 1 - 0.8e-3)
        >>> bool(np.allclose(damped(np.array([0.3, 2.0]), 3.0, 0.8), steps, rtol=2e-3))
        True
    """
    half = friction / 2
    apart = half * half - values
    over = apart > 0
    root = np.sqrt(np.abs(apart))
    fast = half + np.where(over, root, 0)
    slow = np.where(over, values / np.where(fast > 0, fast, 1), half)
    width = np.where(over, 2 * root, 1)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        parted = (flow(slow, t) - flow(fast, t)) / width
        # 1 - phi lambda: how much of the error is left.
        even = np.where(over, np.cosh(np.minimum(root * t, 1)), np.cos(root * t))
        odd = np.where(over, np.sinh(np.minimum(root * t, 1)), np.sin(root * t))
        odd = np.where(root * t > 1e-9, odd / np.where(root > 0, root, 1), t)
        left = math.exp(-half * t) * (even + half * odd)
        settled = (1 - left) / np.where(values > 0, values, 1)
    # Early, where 1 - left would lose digits: the integral of the response to a push.
    x, weight = np.polynomial.legendre.leggauss(20)
    tau = np.minimum(t, 1e150) * (x[:, None] + 1) / 2
    turn = np.minimum(root * tau, 2)
    wave = np.where(over, np.sinh(turn), np.sin(turn))
    push = np.exp(-half * tau) * tau * np.where(turn > 1e-9, wave / np.where(turn > 0, turn, 1), 1)
    early = (weight[:, None] * push).sum(0) * min(t, 1e150) / 2
    return np.where(over & (root * t > 0.5), parted, np.where(values * t * t > 1, settled, early))


def descent(values: Spectrum, steps: int, learning_rate: float) -> Spectrum:
    r"""Gradient descent: $\phi=(1-(1-\eta\lambda)^k)/\lambda$, $k\eta$ at $\lambda=0$.

    Args:
        values: Eigenvalues, at least 0.
        steps: $k$.
        learning_rate: $\eta$.

    Returns:
        The weights, of the shape of `values`.

    Example:
        >>> descent(np.array([0.0, 0.5, 1.0, 3.0]), 2, 1.0)  # 3 diverges
        array([ 2. ,  1.5,  1. , -1. ])
    """
    rate = learning_rate * values
    safe = np.where(values > 0, values, 1.0)
    slow = rate < 1
    # Below 1 the power is near 1 where it matters, and expm1 keeps the difference.
    gentle = -np.expm1(steps * np.log1p(-np.where(slow, rate, 0.0)))
    with np.errstate(over="ignore"):
        steep = 1 - (1 - np.where(slow, 1.0, rate)) ** steps
    learnt = np.where(slow, gentle, steep)
    return np.where(rate * steps > _NOTHING, learnt / safe, float(steps) * learning_rate)


def heavy_ball(values: Spectrum, steps: int, learning_rate: float, momentum: float) -> Spectrum:
    r"""Gradient descent with momentum, exactly, by powers of one 3x3 matrix for each eigenvalue.

    $v\leftarrow\mu v+(\lambda\phi-1)$, $\phi\leftarrow\phi-\eta v$ from $\phi=v=0$: the weights
    $\theta\leftarrow\theta-\eta v$ with $v\leftarrow\mu v+\nabla L$, seen from one eigen-direction.

    Args:
        values: Eigenvalues, at least 0.
        steps: $k$.
        learning_rate: $\eta$.
        momentum: $\mu$.

    Returns:
        The weights, of the shape of `values`.

    Example:
        >>> v = np.array([0.0, 0.5, 1.0])
        >>> bool(np.allclose(heavy_ball(v, 7, 0.3, 0.0), descent(v, 7, 0.3)))
        True
    """
    rate = learning_rate
    one, zero = np.ones_like(values), np.zeros_like(values)
    rows = [
        [1 - rate * values, -rate * momentum * one, rate * one],
        [values, momentum * one, -one],
        [zero, zero, one],
    ]
    step = np.moveaxis(np.array(rows), 2, 0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.linalg.matrix_power(step, steps)[:, 0, 2]
