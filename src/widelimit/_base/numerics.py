"""Elementwise functions that keep their digits, and whose derivatives stay finite."""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from .polynomials import economise, evaluate_polynomial, horner

# Minus and plus stand for 1 - rho and 1 + rho throughout: near rho = 1 the first keeps the digits
# that rho has lost, near rho = -1 the second.
Half = Float[Array, "..."]


def at_least_zero(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """max(x, 0) whose derivative at 0 is 1, where `jnp.maximum` has 1/2."""
    return jnp.where(x < 0, jnp.zeros_like(x), x)


def safe_sqrt(x: Float[Array, "..."]) -> Float[Array, "..."]:
    """sqrt(max(x, 0)), with derivative 0 at 0."""
    positive = x > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1)), jnp.zeros_like(x))


def safe_divide(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
    """A / b, and 0 where b = 0."""
    return jnp.where(b == 0, jnp.zeros_like(a * b), a / jnp.where(b == 0, 1, b))


@jax.custom_jvp
def steer(value: Float[Array, "..."], twin: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `value` with the derivative of `twin`.

    The two are equal in exact arithmetic; `value` is evaluated without cancellation, `twin` is the
    form whose derivative is regular. Without differentiation `twin` costs nothing.
    """
    del twin
    return value


@steer.defjvp
def _steer_jvp(primals, tangents):
    return primals[0], tangents[1]


def _series_in_h(terms: int) -> tuple[list[Fraction], list[Fraction]]:
    r"""Taylor coefficients in $h=r^2$, exactly, of $2\arcsin(r)/r$ and $(\sin a-a\cos a)/r^3$.

    With $a=2\arcsin r$ the second is $(2\sqrt{1-h}-(1-2h)P(h))/h$, $P$ being the first.
    """
    first, root = [], []
    for n in range(terms + 1):
        central = Fraction(math.comb(2 * n, n), 4**n)
        first.append(2 * central / (2 * n + 1))
        root.append(-2 * central / (2 * n - 1))  # of 2 sqrt(1 - h)
    second = [root[n] - first[n] + 2 * first[n - 1] for n in range(1, terms + 1)]
    return first[:terms], second


@functools.cache
def _angle_coefficients(double: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    degree, terms = (18, 60) if double else (8, 30)  # errors of 2e-17 and 2e-9
    first, second = _series_in_h(terms)
    return economise(first, degree), economise(second, degree)


@functools.cache
def _sine_gap_coefficients(double: bool) -> tuple[float, ...]:
    r"""Of $(\sin a-a\cos a)/a^3$, an entire function, in $y=\frac45a^2-1$: $a^2$ is at most 2.47, less than 5/2."""
    sign = lambda k: 1 if k % 2 == 0 else -1
    series = [sign(k) * Fraction(5**k * (2 * k + 2), math.factorial(2 * k + 3)) for k in range(16)]
    return economise(series, 8 if double else 4)  # errors of 1e-17 and 2e-9


def sine_gap(phi: Half) -> Half:
    r"""$\sin\varphi-\varphi\cos\varphi$ of an angle up to $\pi/2$, with full relative accuracy and without a root."""
    square = phi * phi
    coefficients = _sine_gap_coefficients(phi.dtype == jnp.float64)
    return phi * square * evaluate_polynomial(coefficients, 0.8 * square - 1)


def short_angle(minus: Half, plus: Half | None) -> tuple[Half, Half, Half]:
    r"""The angle to the nearer end, without a transcendental function.

    With $\theta=\arccos\rho$ and $\varphi=\min(\theta,\pi-\theta)$, $h=\sin^2(\varphi/2)$.

    Args:
        minus: $1-\rho$.
        plus: $1+\rho$; None where $\rho\ge0$ is known.

    Returns:
        $h$, $\varphi$ and $w=\sin\varphi-\varphi\cos\varphi$, each with full relative accuracy.
    """
    h = minus / 2 if plus is None else jnp.minimum(jnp.minimum(minus, plus) / 2, 0.5)
    r = jnp.sqrt(h)
    first, second = _angle_coefficients(h.dtype == jnp.float64)
    y = 4 * h - 1
    return h, r * evaluate_polynomial(first, y), r * h * evaluate_polynomial(second, y)


@functools.cache
def _arctan_coefficients(double: bool) -> tuple[float, ...]:
    r"""Of $\arctan(t)/t$ in powers of $y=2t^2-1$, from $2\sum_k(-1)^kr^{2k+1}/(2k+1)\,T_{2k+1}(t)$.

    $r=\sqrt2-1$, so the terms fall by 5.8; $T_{2k+1}(t)/t$ obeys Chebyshev's recursion in $y$.
    """
    degree = 21 if double else 9
    digits = 10**60
    r = Fraction(math.isqrt(2 * digits) - math.isqrt(digits), math.isqrt(digits))
    before, basis = [Fraction(1)], [Fraction(1)]  # T_(-1)(t)/t and T_1(t)/t
    total = [Fraction(0)] * (degree + 1)
    for k in range(degree + 1):
        weight = 2 * (-1) ** k * r ** (2 * k + 1) / (2 * k + 1)
        for i, b in enumerate(basis):
            total[i] += weight * b
        twice = [Fraction(0), *(2 * b for b in basis)]
        padded = before + [Fraction(0)] * (len(twice) - len(before))
        before, basis = basis, [a - b for a, b in zip(twice, padded, strict=True)]
    return tuple(map(float, total))


@jax.custom_jvp
def arctan2(y: Float[Array, "..."], x: Float[Array, "..."]) -> Float[Array, "..."]:
    """The angle of (x, y) for x >= 0, by one division and one polynomial."""
    size = jnp.abs(y)
    low, high = jnp.minimum(size, x), jnp.maximum(size, x)
    t = low / jnp.where(high == 0, 1, high)
    small = t * evaluate_polynomial(_arctan_coefficients(t.dtype == jnp.float64), 2 * t * t - 1)
    return jnp.sign(y) * jnp.where(size > x, jnp.pi / 2 - small, small)


@arctan2.defjvp
def _arctan2_jvp(primals, tangents):
    (y, x), (dy, dx) = primals, tangents
    square = x * x + y * y
    return arctan2(y, x), (x * dy - y * dx) / jnp.where(square == 0, 1, square)


def over_sine(d_rho: Half, minus: Half, plus: Half) -> Half:
    r"""$d\rho/\sin\theta$, and 0 where the sine is below rounding.

    At $x=x'$ both vanish, and both are rounding errors when computed; their quotient would be noise.
    """
    sine = safe_sqrt(minus * plus)
    coincide = sine < (1e-11 if sine.dtype == jnp.float64 else 1e-5)
    return jnp.where(coincide, 0, d_rho / jnp.where(coincide, 1, sine))


@jax.custom_jvp
def angle(minus: Half, plus: Half) -> Half:
    r"""$\theta=\arccos\rho$ from $1-\rho$ and $1+\rho$; at $\theta=0,\pi$ its derivative is 0.

    There the derivative does not exist: a kernel that depends on $\theta$ has a cusp at $x=x'$,
    and 0 is the mean of its one-sided slopes, which is what a central difference gives.
    """
    _, phi, _ = short_angle(minus, plus)
    return jnp.where(minus > plus, jnp.pi - phi, phi)


@angle.defjvp
def _angle_jvp(primals, tangents):
    minus, plus = primals
    d_rho = (tangents[1] - tangents[0]) / 2
    return angle(minus, plus), -over_sine(d_rho, minus, plus)


def chebyshev_sum(
    coefficients: Float[Array, " size"], y: Float[Array, "..."], terms: int | None = None
) -> Float[Array, "..."]:
    """A Chebyshev series at y in [-1, 1].

    Args:
        coefficients: Float64, lowest degree first; the size is a multiple of 16.
        y: Where to evaluate.
        terms: How many coefficients to use, those beyond being below rounding; the sum is then one
            expression, which fuses with what surrounds it. None: a loop that stops at the last
            non-zero coefficient, found at run time.

    Returns:
        The values, of the shape and dtype of y.
    """
    if terms is None:
        return _clenshaw(coefficients.astype(y.dtype), y)
    # Chains so short that the coefficients fall, to rounding at their end, faster than powers grow.
    longest = 24 if y.dtype == jnp.float64 else 16
    stages = max(2, math.ceil(math.log2(terms / longest)))
    parts = 2**stages
    terms = -(-terms // parts) * parts
    table = jnp.matmul(_by_parts(terms, parts), coefficients[:terms], precision="highest")
    table = table.astype(y.dtype).reshape(parts, -1)
    basis = [jnp.ones_like(y), y]
    for n in range(2, parts):
        low, high = basis[n // 2], basis[n - n // 2]
        basis.append(2 * low * high - (y if n % 2 else 1))
    z = y
    for _ in range(stages):
        z = 2 * z * z - 1
    total = jnp.zeros_like(y)
    for t, c in zip(basis, table, strict=True):
        total = total + t * horner(tuple(c), z)
    return total


@functools.cache
def _by_parts(terms: int, parts: int) -> np.ndarray:
    r"""From Chebyshev coefficients to those of $\sum_{j<s}T_j(y)\sum_kg_{jk}T_s(y)^k$, s = parts.

    One multiplication for each coefficient, half of Clenshaw's rule, and s independent chains. The
    coefficients of powers grow by 2.4 for each k, those of an analytic function fall by more: the
    s-th power of its rate in y. The entries are integers, and exact.
    """
    powers = np.zeros((terms // parts + 1, terms // parts))  # second kind: U_k(z), k from -1
    powers[1, 0] = 1
    for k in range(2, len(powers)):
        powers[k] = 2 * np.roll(powers[k - 1], 1) - powers[k - 2]
    out = np.zeros((parts, terms // parts, terms))
    for n in range(terms):  # T_(sk+j) = U_k(z) T_j - U_(k-1)(z) T_(s-j), and T_k(z) for j = 0
        k, j = divmod(n, parts)
        if j:
            out[j, :, n] += powers[k + 1]
            out[parts - j, :, n] -= powers[k]
        else:  # T_k = U_k - z U_(k-1)
            out[0, :, n] = powers[k + 1] - np.roll(powers[k], 1)
    return out.reshape(terms, terms)


def _clenshaw(coefficients: Float[Array, " size"], y: Float[Array, "..."]) -> Float[Array, "..."]:
    twice = 2 * y
    index = jnp.arange(coefficients.size, dtype=jnp.int32)
    blocks = (jnp.max(jnp.where(coefficients != 0, index + 1, 0)) + 15) // 16

    def block(i, carry):
        b1, b2 = carry
        part = jax.lax.dynamic_slice_in_dim(coefficients, 16 * (blocks - 1 - i), 16)
        for j in range(15, -1, -1):
            b1, b2 = twice * b1 - b2 + part[j], b1
        return b1, b2

    zero = jnp.zeros_like(y)
    b1, b2 = jax.lax.fori_loop(jnp.int32(0), blocks, block, (zero, zero))
    return b1 - y * b2
