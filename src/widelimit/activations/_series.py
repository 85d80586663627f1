r"""Hermite series: $E[\varphi(u)\varphi(v)]=\sum_na_n(q_1)a_n(q_2)\rho^n$ for functions without break points."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.quadrature import hermite_basis

from ._activation import Activation
from ._cov import Matrix


def hermite_coefficients(
    act: Activation, q: Float[Array, "..."], terms: int
) -> Float[Array, "..."]:
    r"""$a_n(q)=E[\varphi(\sqrt q z)h_n(z)]$, $n<$ terms, for an activation without break points."""
    nodes = 160 + terms // 2
    z, basis = hermite_basis(terms, nodes)
    if act.parity is not None:  # half of the coefficients are 0, the others come from half the line
        odd = int(act.parity == "odd")
        z, basis = z[nodes:], 2 * basis[odd::2, nodes:]
    points = jnp.sqrt(q)[None] * jnp.asarray(z, q.dtype).reshape((-1,) + (1,) * q.ndim)
    found = jnp.tensordot(jnp.asarray(basis, q.dtype), act.fn(points), axes=1, precision="highest")
    if act.parity is None:
        return found
    zero = jnp.zeros_like(found)
    pairs = (zero, found) if act.parity == "odd" else (found, zero)
    return jnp.stack(pairs, axis=1).reshape((terms, *q.shape))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def series(order: int, a1: Array, a2: Array, rho: Matrix) -> Matrix:
    r"""The derivative of the given order of $\sum_n a_n b_n\rho^n$."""
    return _horner_sum(order, a1, a2, rho)


def _horner_sum(order: int, a1: Array, a2: Array, rho: Matrix) -> Matrix:
    n = np.arange(a1.shape[0], dtype=float)
    falling = np.prod([n - j for j in range(order)], axis=0) if order else np.ones(n.size)
    b1 = jnp.asarray(falling, rho.dtype).reshape((-1,) + (1,) * (a1.ndim - 1)) * a1
    # Several terms in a step: the partial sum stays in a register meanwhile.
    step = math.gcd(8, n.size)
    shift = lambda a: jnp.concatenate([a[order:], jnp.zeros_like(a[: min(order, n.size)])])
    b1, b2 = shift(b1), shift(a2)

    def add(i, total):
        first = n.size - step * (i + 1)
        c1, c2 = (jax.lax.dynamic_slice_in_dim(b, first, step) for b in (b1, b2))
        for j in range(step - 1, -1, -1):
            total = total * rho + c1[j] * c2[j]
        return total

    start = jnp.zeros(jnp.broadcast_shapes(a1.shape[1:], a2.shape[1:], rho.shape), rho.dtype)
    return jax.lax.fori_loop(0, n.size // step, add, start)


@series.defjvp
def _series_jvp(order, primals, tangents):
    a1, a2, rho = primals
    d1, d2, d_rho = tangents
    change = series(order + 1, a1, a2, rho) * d_rho
    change = change + _horner_sum(order, d1, a2, rho) + _horner_sum(order, a1, d2, rho)
    return series(order, a1, a2, rho), change
