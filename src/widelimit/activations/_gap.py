r"""What Cauchy-Schwarz leaves at $\rho=1$ for unequal variances.

$\varphi(\sqrt{q_1}z)$ and $\varphi(\sqrt{q_2}z)$, divided by their norms, are two unit vectors; one minus their
correlation is half the squared distance. A squared distance has all the digits that the difference of
the variances has, so inputs that differ by their norm alone stay apart as they should in chaotic networks.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from widelimit._base.quadrature import half_line, log_line

from ._activation import Activation
from ._cov import Matrix

_PANELS, _NODES = 24, 12  # with break points: fronts down to a width of 1e-6
_STEP = 0.2  # otherwise: 1e-10 of the gap

_SMALL = 1e-100  # variance; below, a function is its lowest power, and there is no gap


def unequal(q1: Matrix, q2: Matrix) -> Bool[Array, "..."]:
    """Whether variances differ by more than their rounding."""
    return jnp.abs(q1 - q2) > 4 * jnp.finfo(q1.dtype).eps * jnp.minimum(q1, q2)


def gap(act: Activation, q1: Matrix, q2: Matrix) -> Matrix:
    r"""$1-E[\varphi(\sqrt{q_1}z)\varphi(\sqrt{q_2}z)]/\sqrt{T_1T_2}$, right to a few roundings of $q_1-q_2$."""
    q1, q2 = jnp.maximum(q1, _SMALL), jnp.maximum(q2, _SMALL)
    if act.gap is not None:
        return act.gap(q1, q2)
    return _half_square(_unit_vector(act, q1), _unit_vector(act, q2))


def unit_coefficients(act: Activation, q: Matrix) -> Float[Array, "..."]:
    """The Hermite coefficients of a polynomial, as a unit vector."""
    assert act.hermite is not None
    return _normalised(act.hermite(q))


def _unit_vector(act: Activation, q: Matrix) -> Float[Array, "..."]:
    if act.hermite is not None:
        return unit_coefficients(act, q)
    z, weight = half_line(_PANELS, _NODES) if any(act.breaks) else log_line(_STEP)
    sides = [z] if act.parity is not None else [z, -z]
    shape = (-1,) + (1,) * q.ndim
    at = lambda z: act.fn(jnp.sqrt(q)[None] * jnp.asarray(z, q.dtype).reshape(shape))
    root = jnp.asarray(weight**0.5, q.dtype).reshape(shape)
    return _normalised(jnp.concatenate([root * at(z) for z in sides]))


def _normalised(vector: Float[Array, "..."]) -> Float[Array, "..."]:
    largest = jnp.max(jnp.abs(vector), axis=0, keepdims=True)
    vector = vector / jnp.where(largest > 0, largest, 1)
    size = jnp.sum(vector**2, axis=0, keepdims=True)
    return vector / jnp.sqrt(jnp.where(size > 0, size, 1))


def _half_square(a: Float[Array, "..."], b: Float[Array, "..."]) -> Matrix:
    """Half the squared distance, one component after the other: no array of all of them."""
    shape = jnp.broadcast_shapes(a.shape[1:], b.shape[1:])
    add = lambda i, total: total + (a[i] - b[i]) ** 2
    return jax.lax.fori_loop(0, a.shape[0], add, jnp.zeros(shape, a.dtype)) / 2
