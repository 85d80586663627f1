"""Laws of activations: what `fn`, `dual` and `dual_dot` owe one another."""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.compile import quick_jit
from widelimit._base.keys import as_generator
from widelimit._base.renamed import renamed_argument
from widelimit._base.scalars import Scalar
from widelimit._base.types import Seed
from widelimit.activations import (
    Activation,
    Cov,
    How,
    derivative,
    fourth_moments,
    second_moment,
    terms_needed,
    transform,
)
from widelimit.activations import get as get_activation

Law = Callable[[Activation, np.random.Generator], None]
_SIZE, _LARGEST = 24, 144


def _output(
    act: Activation, q1: float, q2: float, rho: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """E[phi phi] and E[phi' phi'] at correlations rho, as the kernels use them."""
    rho = np.asarray(rho, dtype=float)
    # One size for nearly all laws, so that they share a program; for all, where entries cost nothing.
    size = _LARGEST if act.closed_form else _SIZE
    padded = np.pad(rho, (0, max(size - rho.size, 0)))
    with jax.enable_x64(True):
        how = How(terms_needed(act, [q1, q2], 1e-12))
        value, dot = _moments(act, how, q1, q2, 1 - padded, 1 + padded)
        return np.asarray(value)[: rho.size], np.asarray(dot)[: rho.size]


@functools.partial(quick_jit, static_argnums=(0, 1))
def _moments(
    act: Activation, how: How, q1: Scalar, q2: Scalar, minus: jax.Array, plus: jax.Array
) -> tuple[jax.Array, jax.Array]:
    cov = Cov(jnp.full_like(minus, q1), jnp.full_like(minus, q2), minus, plus)
    t1, t2 = second_moment(act, cov.q1), second_moment(act, cov.q2)
    minus, above, slope = transform(act, cov, t1, t2, how)
    size = jnp.sqrt(t1) * jnp.sqrt(t2)
    rho = 1 - minus if above is None else (above - minus) / 2
    return rho * size, slope * size / cov.scale


def matches_monte_carlo(act: Activation, rng: np.random.Generator) -> None:
    """E[phi(u) phi(v)] agrees with a sample mean within five standard errors."""
    q1, q2, rho = 0.8, 1.7, 0.6
    z = rng.standard_normal((2, 200_000))
    u = math.sqrt(q1) * z[0]
    v = math.sqrt(q2) * (rho * z[0] + math.sqrt(1 - rho**2) * z[1])
    exact = _output(act, q1, q2, np.array([rho]))
    functions = [act.fn, derivative(act)] if act.has_ntk else [act.fn]
    for value, f in zip(exact, functions, strict=False):
        with jax.enable_x64(True):
            sample = np.asarray(f(jnp.asarray(u)) * f(jnp.asarray(v)))
        error = abs(sample.mean() - float(value[0]))
        assert error < 5 * sample.std() / math.sqrt(sample.size) + 1e-14, (
            f"{act.name}: the sample mean differs by {error:.2g} from {float(value[0]):.6g}"
        )


def dual_is_symmetric(act: Activation, rng: np.random.Generator) -> None:
    """Exchanging the two inputs changes nothing."""
    rho = np.linspace(-1, 1, 9)
    for a, b in zip(_output(act, 0.5, 2.0, rho), _output(act, 2.0, 0.5, rho), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)


def dot_is_the_slope(act: Activation, rng: np.random.Generator) -> None:
    """dE[phi phi]/dk = E[phi' phi']: central differences agree."""
    if not act.has_ntk:
        return
    q1, q2, h = 0.7, 1.3, 1e-5
    rho = np.array([-0.8, -0.2, 0.3, 0.9])
    up, down = _output(act, q1, q2, rho + h)[0], _output(act, q1, q2, rho - h)[0]
    slope = (up - down) / (2 * h * math.sqrt(q1 * q2))
    np.testing.assert_allclose(slope, _output(act, q1, q2, rho)[1], rtol=2e-7, atol=1e-8)


def gram_is_positive(act: Activation, rng: np.random.Generator) -> None:
    """The matrix of E[phi(u_i) phi(u_j)] has no negative eigenvalue beyond rounding."""
    x = rng.standard_normal((12, 4))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    rho = np.clip(x @ x.T, -1, 1)
    np.fill_diagonal(rho, 1.0)
    value, dot = _output(act, 1.2, 1.2, rho.ravel())
    for matrix in (value, dot) if act.has_ntk else (value,):
        eigenvalues = np.linalg.eigvalsh(matrix.reshape(12, 12))
        assert eigenvalues[0] > -1e-11 * eigenvalues[-1], f"{act.name}: {eigenvalues[0]:.2g}"


def finite_at_the_ends(act: Activation, rng: np.random.Generator) -> None:
    """At rho = 1 the second moment comes out, at rho = -1 something finite and no larger."""
    for q in (1e-6, 1.0, 25.0):
        value, dot = _output(act, q, q, np.array([1.0, -1.0]))
        with jax.enable_x64(True):
            moment = float(second_moment(act, jnp.asarray([q]))[0])
        assert np.isfinite(value).all()
        np.testing.assert_allclose(value[0], moment, rtol=1e-9)
        assert abs(value[1]) <= moment * (1 + 1e-9)
        assert np.isfinite(dot).all() or not act.has_ntk


def near_one_agrees_with_the_dual(act: Activation, rng: np.random.Generator) -> None:
    """Where 1 - rho is carried with extra care, it is still the dual's own value."""
    if act.dual is None:
        return
    for q in (0.3, 2.0):
        rho = 1 - np.geomspace(1e-9, 1e-1, 17)
        with jax.enable_x64(True):
            full = jnp.full(rho.shape, q)
            cov = Cov(full, full, jnp.asarray(1 - rho), jnp.asarray(1 + rho))
            want = np.asarray(act.dual(cov))
        np.testing.assert_allclose(_output(act, q, q, rho)[0], want, rtol=2e-13)


@functools.partial(quick_jit, static_argnums=(0, 1))
def _transformed(
    act: Activation, how: How, cov: Cov
) -> tuple[jax.Array, jax.Array, jax.Array | None, jax.Array]:
    t1, t2 = second_moment(act, cov.q1), second_moment(act, cov.q2)
    return t1, *transform(act, cov, t1, t2, how)


def small_gaps_keep_their_digits(act: Activation, rng: np.random.Generator) -> None:
    """Variances that differ by little: 1 - rho' at rho = 1 is of second order in the difference."""
    if not act.has_ntk:
        return
    with jax.enable_x64(True):
        relative = np.array([1e-6, 1e-4, 1e-2])
        q1 = jnp.full(relative.shape, 1.5)
        q2 = q1 * (1 + jnp.asarray(relative))
        zero = jnp.zeros_like(q1)
        how = How(terms_needed(act, [1.5, 1.52], 1e-12))
        minus = np.asarray(_transformed(act, how, Cov(q1, q2, zero, zero + 2))[1])
    scaled = minus / relative**2
    assert (scaled >= 0).all()
    np.testing.assert_allclose(scaled[:2], scaled[1], rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(scaled, scaled[1], rtol=5e-2, atol=1e-9)


def extremes_are_numbers(act: Activation, rng: np.random.Generator) -> None:
    """Variances of 0 and of any size: correlations are correlations, an input equals itself."""
    rho = np.array([1.0, 1 - 1e-9, 0.4, -1.0])
    # Without a formula a quadrature is compiled, which takes its time.
    for dtype in (jnp.float64, jnp.float32) if act.closed_form else (jnp.float64,):
        with jax.enable_x64(True):
            minus, plus = jnp.asarray(1 - rho, dtype), jnp.asarray(1 + rho, dtype)
            for q in (0.0, 1e-290, 1e-30, 1e4, 1e30, 1e290) if act.closed_form else (0.0,):
                full = jnp.full(rho.shape, q, jnp.float64)
                cov = Cov(full, full, minus, plus)
                t, below, above, slope = _transformed(act, How(), cov)
                assert not np.isnan(np.asarray(t)).any(), f"{act.name}: a moment at q = {q}"
                assert not np.isnan(np.asarray(slope)).any() or not act.has_ntk
                below = np.asarray(below)
                assert below[0] == 0, f"{act.name}: an input differs from itself at q = {q}"
                assert ((below >= 0) & (below <= 2 + 1e-6)).all(), f"{act.name}: at q = {q}"
                assert above is None or (np.asarray(above) >= 0).all()


def parity_is_true(act: Activation, rng: np.random.Generator) -> None:
    """An odd or even function is one, and its dual is odd or even in rho."""
    if act.parity is None:
        return
    sign = -1 if act.parity == "odd" else 1
    x = jnp.asarray(rng.standard_normal(20), jnp.float32)
    np.testing.assert_allclose(act.fn(-x), sign * act.fn(x), rtol=1e-5, atol=1e-6)
    value, _ = _output(act, 0.9, 0.9, np.array([0.4, -0.4]))
    np.testing.assert_allclose(value[1], sign * value[0], rtol=1e-11, atol=1e-14)


def degree_is_true(act: Activation, rng: np.random.Generator) -> None:
    """A homogeneous function scales as it says."""
    if act.degree is None:
        return
    x = jnp.asarray(rng.standard_normal(20), jnp.float32)
    np.testing.assert_allclose(act.fn(3 * x), 3**act.degree * act.fn(x), rtol=1e-5, atol=1e-6)


def lipschitz_is_true(act: Activation, rng: np.random.Generator) -> None:
    """The stated constant bounds the derivative, and is nearly reached."""
    if act.lipschitz is None:
        return
    with jax.enable_x64(True):
        x = jnp.asarray(np.linspace(-12, 12, 200_001))
        largest = float(jnp.max(jnp.abs(derivative(act)(x))))
    assert 0.995 * act.lipschitz <= largest <= act.lipschitz * (1 + 1e-6), (
        f"{act.name}: stated {act.lipschitz}, found {largest}"
    )


def fourth_moments_are_true(act: Activation, rng: np.random.Generator) -> None:
    """Stated fourth moments agree with sample means, and the slope with that of the dual."""
    if act.fourth is None:
        return
    q1, q2, rho = 0.8, 1.7, 0.6
    z = rng.standard_normal((2, 100_000))
    u, v = math.sqrt(q1) * z[0], math.sqrt(q2) * (rho * z[0] + math.sqrt(1 - rho**2) * z[1])
    with jax.enable_x64(True):
        at = lambda value: jnp.full((1, 1), value)
        cov = Cov(at(q1), at(q2), at(1 - rho), at(1 + rho))
        found = fourth_moments(act, cov, How())
        size = [math.sqrt(float(second_moment(act, at(q))[0, 0])) for q in (q1, q2)]
        prime = derivative(act)
        p, r = (np.asarray(act.fn(jnp.asarray(w))) / s for w, s in zip((u, v), size, strict=True))
        d = math.sqrt(q1) * np.asarray(prime(jnp.asarray(u))) / size[0]
        e = math.sqrt(q2) * np.asarray(prime(jnp.asarray(v))) / size[1]
    pairs = [(found.x[k - 1], p ** (4 - k) * r**k) for k in (1, 2, 3)]
    pairs += [(found.z[k - 1], d ** (4 - k) * e**k) for k in (1, 2, 3)]
    pairs += [
        (found.y[i][j], p ** (2 - i) * r**i * d ** (2 - j) * e**j)
        for i in range(3)
        for j in range(3)
    ]
    pairs += [(found.first.x, p**4), (found.second.z, e**4), (found.slopes.s11, d * e)]
    for value, sample in pairs:
        error = abs(sample.mean() - float(value[0, 0]))
        assert error < 5 * sample.std() / math.sqrt(sample.size) + 1e-13, f"{act.name}: {error:.2g}"


ACTIVATION_LAWS: tuple[Law, ...] = (
    matches_monte_carlo,
    dual_is_symmetric,
    dot_is_the_slope,
    gram_is_positive,
    finite_at_the_ends,
    near_one_agrees_with_the_dual,
    small_gaps_keep_their_digits,
    extremes_are_numbers,
    parity_is_true,
    degree_is_true,
    lipschitz_is_true,
    fourth_moments_are_true,
)


@renamed_argument(seed="key")
def check_activation(activation: object, key: Seed = 0) -> None:
    """Run every law on an activation; raises `AssertionError` at the first that fails.

    Args:
        activation: A name, an `Activation`, or a function.
        key: For the laws that sample.
    """
    act = get_activation(activation)
    for law in ACTIVATION_LAWS:
        law(act, as_generator(key))
