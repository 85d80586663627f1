r"""What Cauchy-Schwarz leaves at $\rho=1$ for unequal variances.

$\varphi(\sqrt{q_1}z)$ and $\varphi(\sqrt{q_2}z)$, divided by their norms, are two unit vectors; one minus their
correlation is half the squared distance. A squared distance has all the digits that the difference of
the variances has, so inputs that differ by their norm alone stay apart as they should in chaotic networks.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from widelimit._base.quadrature import half_line, log_line

from ._activation import Activation
from ._cov import Matrix

_PANELS, _NODES = 24, 12  # with break points: fronts down to a width of 1e-6
_STEP = 0.15  # of log z otherwise: 1e-14 of the gap

_SMALL = 1e-100  # variance; below, a function is its lowest power, and there is no gap


def unequal(q1: Matrix, q2: Matrix) -> Bool[Array, "..."]:
    """Whether variances differ by more than their rounding."""
    return jnp.abs(q1 - q2) > 4 * jnp.finfo(q1.dtype).eps * jnp.minimum(q1, q2)


def gap(act: Activation, q1: Matrix, q2: Matrix) -> Matrix:
    r"""$1-E[\varphi(\sqrt{q_1}z)\varphi(\sqrt{q_2}z)]/\sqrt{T_1T_2}$, right to a few roundings of $q_1-q_2$."""
    q1, q2 = jnp.maximum(q1, _SMALL), jnp.maximum(q2, _SMALL)
    if act.gap is not None:
        return act.gap(q1, q2)
    if act.hermite is not None:
        return _half_square(unit_coefficients(act, q1), unit_coefficients(act, q2))
    rule = half_line(_PANELS, _NODES) if any(act.breaks) else None
    return line_gap(act.fn, sides=1 if act.parity else 2, rule=rule)(q1, q2)


def line_gap(
    fn: Callable[[Any], Any], *, sides: int, rule: tuple[np.ndarray, np.ndarray] | None = None
) -> Callable[[Matrix, Matrix], Matrix]:
    """The gap of a function that is analytic on either side of 0, as a sum of squares over the line.

    Args:
        fn: The function.
        sides: 1 for even and odd functions, else 2.
        rule: Nodes and weights, where others are wanted than equal steps in log z.

    Returns:
        The gap as a function of the two variances.
    """
    z, weight = log_line(_STEP) if rule is None else rule

    def unit_vector(q: Matrix) -> Float[Array, "..."]:
        column = lambda a: jnp.asarray(a, q.dtype).reshape((-1,) + (1,) * q.ndim)
        parts = [column(weight**0.5) * fn(jnp.sqrt(q)[None] * column(s)) for s in (z, -z)[:sides]]
        return _normalised(jnp.concatenate(parts))

    return lambda q1, q2: _half_square(unit_vector(q1), unit_vector(q2))


def unit_coefficients(act: Activation, q: Matrix) -> Float[Array, "..."]:
    """The Hermite coefficients of a polynomial, as a unit vector."""
    assert act.hermite is not None
    return _normalised(act.hermite(q))


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
