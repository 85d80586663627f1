r"""What tables are made of: slopes and gaps of an activation at nodes, on the host."""

import functools
import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.compile import quick_jit
from widelimit._base.quadrature import log_line, tanh_sinh

from ._activation import Activation, derivative

STEP = 0.12  # in log r, and twice that in log q
AROUND = 20  # points of an interpolation

Nodes = Float[np.ndarray, "..."]


def chebyshev_nodes(count: int) -> Nodes:
    return np.cos(np.pi * (np.arange(count) + 0.5) / count)


@functools.cache
def to_coefficients(count: int) -> Nodes:
    matrix = 2 / count * np.cos(np.outer(np.arange(count), np.arange(count) + 0.5) * np.pi / count)
    matrix[0] /= 2
    return matrix


def slopes_at(
    act: Activation, start: float, count: int, angles: Nodes, nodes: int = 76, step: float = STEP
) -> Nodes:
    r"""$E[\varphi'(\sqrt{q_i}z_1)\,\varphi'(\sqrt{q_j}z_2)]$ at each angle, $\log q_i=$ start $+2i$ step.

    In polar coordinates, $z_1=r\cos t$ and $z_2=r\cos(t-\theta)$, sectors of equal signs are cut out. Each has
    a double-exponential rule, and log r equal steps: fronts at 0 of any width are resolved, and all
    variances need the function on one line.
    """
    near, _, weights = tanh_sinh(nodes)
    first = math.log(1e-8)
    r = np.exp(np.arange(first, math.log(9.5), step))
    radial = step * r**2 * np.exp(-(r**2) / 2) / (2 * math.pi)
    line = np.exp(start / 2 + first + step * np.arange(len(r) + count - 1))
    prime = lambda z: _derivatives(act, z[:, None] * line)
    weight = lambda width: width * weights[:, None] * radial
    product = lambda one, two, width: np.asarray(_product(count, one, two, weight(width)))
    found = []
    for theta in angles:
        wide, narrow = math.pi - theta, theta
        z, small = np.sin(wide * near), np.sin(narrow * near)
        up, down = prime(z), prime(-z)
        across = product(prime(small), prime(-small), narrow)
        found.append(product(up, up, wide) + product(down, down, wide) + across + across.T)
    return np.stack(found)


def interpolation(start: float, points: int, at: Nodes) -> Nodes:
    """From values at equal steps of log q to others, by the polynomial through the nearest points."""
    place = (at - start) / (2 * STEP)
    left = np.clip(np.round(place).astype(int) - AROUND // 2, 0, points - AROUND)
    near = left[:, None] + np.arange(AROUND)
    apart = np.arange(AROUND)[:, None] - np.arange(AROUND) + np.eye(AROUND)
    factors = (place[:, None, None] - near[:, None, :]) / apart
    factors[:, np.arange(AROUND), np.arange(AROUND)] = 1
    matrix = np.zeros((len(at), points))
    np.put_along_axis(matrix, near, factors.prod(axis=2), axis=1)
    return matrix


def _vectors(act: Activation, logs: Nodes) -> Nodes:
    r"""$\varphi(\sqrt q\,\cdot)$ on the line, for each variance, as vectors with the Gaussian inner product."""
    z, weight = log_line(0.15)
    values = np.asarray(_values(act, np.exp(logs / 2)[:, None] * np.concatenate([z, -z])))
    return values * np.sqrt(np.tile(weight, 2))


def sizes_at(act: Activation, logs: Nodes) -> Nodes:
    r"""$\sqrt{q/E[\varphi(\sqrt qz)^2]}$."""
    return np.exp(logs / 2) / np.linalg.norm(_vectors(act, logs), axis=1)


def gaps_at(act: Activation, logs: Nodes) -> Nodes:
    """G at all pairs of Chebyshev nodes: half squared distances of unit vectors."""
    unit = _vectors(act, logs)
    unit = unit / np.linalg.norm(unit, axis=1, keepdims=True)
    apart = logs[:, None] - logs
    np.fill_diagonal(apart, 1)
    found = ((unit[:, None] - unit) ** 2).sum(axis=2) / (2 * apart**2)
    x = chebyshev_nodes(len(logs))
    slope = np.polynomial.chebyshev.chebder(to_coefficients(len(logs)) @ unit)
    change = np.polynomial.chebyshev.chebval(x, slope).T * (x[0] - x[1]) / (logs[0] - logs[1])
    np.fill_diagonal(found, (change**2).sum(axis=1) / 2)
    return found


@quick_jit
def _product(
    count: int,
    one: Float[Array, "nodes line"],
    two: Float[Array, "nodes line"],
    weight: Float[Array, "nodes radii"],
) -> Float[Array, "count count"]:
    """A sector's contribution; exchanging the inputs turns its rule around."""
    radii = weight.shape[1]
    windows = lambda a: jnp.stack([a[:, i : i + radii] for i in range(count)])
    flat = lambda a: a.reshape(count, -1)
    first, second = flat(windows(one) * weight[None]), flat(windows(two[::-1]))
    return jnp.matmul(first, second.T, precision="highest")


# Compiled cheaply: they run on a few thousand points.
_values = quick_jit(lambda act, x: act.fn(x))
_derivatives = quick_jit(lambda act, x: derivative(act)(x))
