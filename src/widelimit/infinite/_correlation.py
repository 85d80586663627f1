"""From data to correlations, without losing the digits of nearly parallel inputs."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.thresholds import CHEAP_DIFFERENCES, FEW_FEATURES, NEARLY_PARALLEL, PICKS

Diagonal = int | Int[Array, ""] | None


class Points(NamedTuple):
    """Inputs split into size and direction.

    Attributes:
        q: The second moment |x|^2/d in float64, a tiny positive number for zero vectors.
        unit: x/|x|, in the dtype of the data, 0 for zero vectors.
        zero: Which inputs are zero vectors.
    """

    q: Float[Array, " n"]
    unit: Float[Array, "n d"]
    zero: Bool[Array, " n"]


def as_points(x: Float[Array, "n d"]) -> Points:
    """Split inputs; a zero vector gets a tiny size, so that derivatives there are right."""
    tiny = 1e-60 if x.dtype == jnp.float64 else 1e-15  # its fourth power must not underflow
    with jax.enable_x64(True):
        square = jnp.sum(x.astype(jnp.float64) ** 2, axis=1)
        zero = square == 0
        norm = jnp.where(zero, tiny, jnp.sqrt(jnp.where(zero, 1, square)))
        unit = x / norm.astype(x.dtype)[:, None]
        q = jnp.where(zero, tiny**2, square) / x.shape[1]
        return Points(q, unit, zero)


@jax.custom_jvp
def correlation(
    u1: Float[Array, "n1 d"], u2: Float[Array, "n2 d"]
) -> tuple[Float[Array, "n1 n2"], Float[Array, "n1 n2"]]:
    r"""$1-\rho$ and $1+\rho$ for all pairs of unit vectors, differentiable everywhere."""
    return map_correlation(lambda minus, plus: (minus, plus), u1, u2)


@correlation.defjvp
def _correlation_jvp(primals, tangents):
    (u1, u2), (d1, d2) = primals, tangents
    d_rho = _product(d1, u2) + _product(u1, d2)
    return correlation(u1, u2), (-d_rho, d_rho)


def _product(a: Float[Array, "n1 d"], b: Float[Array, "n2 d"]) -> Float[Array, "n1 n2"]:
    # On GPUs the default product of float32 matrices keeps 10 bits, which ruins angles.
    return jnp.matmul(a, b.T, precision=jax.lax.Precision.HIGHEST)


def cosines(u1: Float[Array, "n1 d"], u2: Float[Array, "n2 d"]) -> Float[Array, "n1 n2"]:
    """Inner products of unit vectors, right to rounding.

    A GPU multiplies float16 eight times faster than float32. Entries of unit vectors are at most 1, so
    two halves hold 22 bits of them: one product of three times the length, small terms interleaved so
    that (i, j) and (j, i) are summed in one order.
    """
    if u1.dtype != jnp.float32 or jax.default_backend() != "gpu":
        return _product(u1, u2)
    (high1, low1), (high2, low2) = _halves(u1), _halves(u2)
    mix = lambda a, b: jnp.stack([a, b], axis=2).reshape(a.shape[0], -1)
    left = jnp.concatenate([mix(low1, high1), high1], axis=1)
    right = jnp.concatenate([mix(high2, low2), high2], axis=1)
    sums = jax.lax.dot_general(
        left, right, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32
    )
    return sums * jnp.float32(2.0**-22)


def _halves(u: Float[Array, "n d"]) -> tuple[Array, Array]:
    """2^11 u as a sum of two float16; the compiler would remove a round trip by `astype`."""
    scaled = u * jnp.float32(2.0**11)
    high = jax.lax.reduce_precision(scaled, 5, 10)
    return high.astype(jnp.float16), (scaled - high).astype(jnp.float16)


def map_correlation(
    then: Callable[..., Any],
    u1: Float[Array, "n1 d"],
    u2: Float[Array, "n2 d"],
    diagonal: Diagonal = None,
    pairs: int = 0,
) -> Any:
    r"""Apply `then` to $1-\rho$ and $1+\rho$ of all pairs of unit vectors.

    $|u-v|^2/2$ and $|u+v|^2/2$ keep full relative accuracy where an inner product has none left.
    With few features or few points they are computed as such; otherwise by one matrix product, and
    only if some entries are nearly parallel or antiparallel, those again from differences. `then`
    is compiled into both cases, so that in the usual one nothing but the product is stored.

    Args:
        then: A function of (1 - rho, 1 + rho).
        u1: Unit vectors.
        u2: Unit vectors.
        diagonal: If given, entry (i, i + diagonal) compares an input with itself; such entries are
            left as they come, for the caller to set.
        pairs: How many pairs of vectors there are in all, if these are a part of them.

    Returns:
        What `then` returns.
    """
    (n1, d), n2 = u1.shape, u2.shape[0]
    if d <= FEW_FEATURES or max(n1 * n2, pairs) * d <= CHEAP_DIFFERENCES:
        return then(*_from_differences(u1, u2))
    rho = cosines(u1, u2)
    both = lambda rho: (jnp.maximum(1 - rho, 0), jnp.maximum(1 + rho, 0))
    near = jnp.abs(rho) > 1 - NEARLY_PARALLEL[str(u1.dtype)]
    if diagonal is not None:
        rows, columns = (jax.lax.broadcasted_iota(jnp.int32, (n1, n2), i) for i in (0, 1))
        near = near & (columns != rows + diagonal)
    plain = lambda rho: then(*both(rho))
    careful = lambda rho: then(*_refine(*both(rho), near, u1, u2))
    return jax.lax.cond(jnp.any(near), careful, plain, rho)


def _from_differences(u1, u2):
    if u1.shape[1] <= FEW_FEATURES:
        minus = plus = jnp.zeros((u1.shape[0], u2.shape[0]), u1.dtype)
        for i in range(u1.shape[1]):
            a, b = u1[:, None, i], u2[None, :, i]
            minus, plus = minus + (a - b) ** 2, plus + (a + b) ** 2
    else:
        minus = jnp.sum((u1[:, None, :] - u2[None, :, :]) ** 2, axis=-1)
        plus = jnp.sum((u1[:, None, :] + u2[None, :, :]) ** 2, axis=-1)
    # A zero vector has no direction; its correlation is 0 by convention.
    nothing = ~jnp.any(u1 != 0, axis=1)[:, None] | ~jnp.any(u2 != 0, axis=1)[None, :]
    return jnp.where(nothing, 1, _settled(minus)), jnp.where(nothing, 1, _settled(plus))


def _settled(square: Float[Array, "..."]) -> Float[Array, "..."]:
    """Half a squared distance, and 0 where it is but the rounding of unit vectors."""
    noise = (4 * jnp.finfo(square.dtype).eps) ** 2
    return jnp.where(square < noise, 0, square / 2)


def _refine(minus, plus, near, u1, u2):
    """Replace the marked entries: a few in each row one by one, many by a sweep over features."""
    # Explicit 32-bit numbers: the program may be lowered outside of a 64-bit context.
    rows = jnp.arange(u1.shape[0], dtype=jnp.int32)

    def pick(carry):
        minus, plus, near, picks = carry
        column = jax.lax.argmax(near, 1, jnp.int32)
        marked, other = near[rows, column], u2[column]
        exact_minus = _settled(jnp.sum((u1 - other) ** 2, axis=1))
        exact_plus = _settled(jnp.sum((u1 + other) ** 2, axis=1))
        put = lambda old, new: old.at[rows, column].set(jnp.where(marked, new, old[rows, column]))
        near = near.at[rows, column].set(False)
        return put(minus, exact_minus), put(plus, exact_plus), near, picks + 1

    more = lambda carry: jnp.any(carry[2]) & (carry[3] < PICKS)
    minus, plus, near, _ = jax.lax.while_loop(more, pick, (minus, plus, near, jnp.int32(0)))

    def sweep(minus, plus, near):
        def add(i, sums):
            a, b = u1[:, i][:, None], u2[:, i][None, :]
            return sums[0] + (a - b) ** 2, sums[1] + (a + b) ** 2

        zero = jnp.zeros_like(minus)
        low, high = jax.lax.fori_loop(jnp.int32(0), jnp.int32(u1.shape[1]), add, (zero, zero))
        return jnp.where(near, _settled(low), minus), jnp.where(near, _settled(high), plus)

    return jax.lax.cond(jnp.any(near), sweep, lambda m, p, n: (m, p), minus, plus, near)
