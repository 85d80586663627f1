"""Kernels where formulas are under strain: huge, tiny and zero inputs, near-duplicates, overflow."""

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

import widelimit as wl
from widelimit import testing
from widelimit.activations import Cov
from widelimit.activations._shares import Shares, gate_mean_dot, ramp_mean_dot

PAIR = np.array([[1.0, 2.0], [2.0, 1.0]])


def test_gelu_keeps_its_diagonal_at_large_norms():
    x = np.array([[60.0, 80.0], [80.0, -60.0]])
    got = wl.nngp(wl.mlp(20, "gelu", w_std=2**0.5), x)
    np.testing.assert_allclose(np.diag(got), 9999.924983178, rtol=1e-12)


@pytest.mark.parametrize(
    "activation", ["monomial(2)", "monomial(4)", "relu_power(3)", "hermite(2)"]
)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_zero_vector_is_an_input(activation, depth):
    net = wl.mlp(depth, activation)
    x = np.array([[0.5, 0.2], [0.0, 0.0]])
    got = wl.ntk(net, x)
    assert np.isfinite(got).all()
    assert (got[1] == 0).all() or activation == "hermite(2)"
    slope = jax.grad(lambda x: wl.ntk(net, x).sum())(jnp.asarray(x))
    assert np.isfinite(slope).all()


def test_chaos_pulls_apart_inputs_that_differ_in_norm():
    x = np.array([[1.0, 2.0], [1 + 1e-7, 2 + 2e-7]])
    found = wl.kernels(wl.mlp(50, "erf", w_std=3.0), x)
    # An ulp of the norm is 1e-9 of the distance, so no more digits than these can be asked for.
    assert found.nngp[0, 1] / found.nngp[0, 0] == pytest.approx(0.51394967, abs=1e-8)
    assert found.ntk[0, 1] / found.ntk[0, 0] == pytest.approx(0.04435849, abs=1e-8)


@pytest.mark.parametrize(
    "net",
    [
        wl.mlp(100, w_std=1e3, b_std=1.0),
        wl.resnet(100, 1e5),
        wl.mlp(2, b_std=1e160),
        wl.resnet(2, 1e160),
        wl.mlp(9, "monomial(3)", w_std=30.0),
    ],
)
def test_overflow_is_infinite(net):
    assert np.isposinf(wl.kernels(net, PAIR).nngp).all()
    assert np.isposinf(wl.kernels(net, PAIR).ntk).all()


def test_overflow_of_a_moment_is_infinite():
    assert np.isposinf(wl.nngp(wl.mlp(1, "exp"), [[1e10, 0.0]])).all()


def test_underflow_is_zero():
    x = np.array([[2.0, 0.3], [0.0, 0.0]])
    assert (wl.ntk(wl.mlp(100, "sin", w_std=0.016), x) == 0).all()
    assert (wl.nngp(wl.mlp(1, "relu_power(2)"), [[1e-150, 0.0]]) == 0).all()


@pytest.mark.parametrize("activation", ["relu", "erf", "gelu", "monomial(2)"])
def test_slope_at_weights_of_zero(activation):
    total = lambda w: wl.ntk(wl.mlp(2, activation, w_std=w), jnp.eye(2)).sum()
    assert float(jax.grad(total)(0.0)) == 0


@pytest.mark.parametrize("d", [64, 1500])
def test_matrix_products_keep_digits_at_depth_100(d):
    """Just outside of where pairs are computed again from differences."""
    n, angles = 128, np.geomspace(1e-3, 0.2, 64)
    rng = np.random.default_rng(0)
    u, v = np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    x = np.concatenate([np.cos(angles)[:, None] * u + np.sin(angles)[:, None] * v, [u] * 64])
    x *= np.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)
    assert n * n * d > 2**19
    flat = np.sqrt(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    net = wl.mlp(100, w_std=2**0.5)
    want = wl.ntk(net, flat, np.sqrt(2) * np.array([[1.0, 0.0]]))[:, 0]
    got = wl.ntk(net, x)[:64, 64]
    assert (np.abs(got - want) / 101).max() < 1e-12


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_an_input_equals_itself_in_deep_chaos(activation):
    """Rounding of a bias's share is no distance, which 150 layers would multiply to O(1)."""
    net = wl.mlp(150, activation, w_std=6.0, b_std=0.3)
    act, q = wl.activations.get(activation), 36 * 2.5 + 0.09
    with jax.enable_x64(True):
        for _ in range(150):
            q = 36 * float(wl.activations.second_moment_now(act, jnp.asarray(q))) + 0.09
    np.testing.assert_allclose(np.diag(wl.nngp(net, PAIR)), q, rtol=1e-13)
    np.testing.assert_allclose(wl.prepare(net, "nngp").diagonal(PAIR), q, rtol=1e-13)


def _points(radius):
    """An input, one of nearly its norm, one at a small angle, both; its opposite, and one across."""
    a, b = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    near = a + 1e-5 * b
    return radius * np.stack([a, a * (1 + 2**-17), near, near * (1 + 1e-5), -a, 2 * b])


@pytest.mark.parametrize(
    ("activation", "w_std", "radii"),
    [
        ("relu", 1.4, (1e-150, 1.0, 1e150)),
        ("two_slopes(-0.5, 2)", 0.7, (1e-150, 1.0, 1e150)),
        ("leaky_relu(0.1)", 1.4, (1.0,)),
        ("erf", 2.0, (1e-150, 1e-3, 1.0, 1e3, 1e8)),
        ("gelu", 1.4, (1e-150, 1e-3, 1.0, 30.0, 1e3, 1e8)),
        ("gaussian", 2.0, (1e-150, 1.0, 30.0)),
        ("sin", 1.5, (1e-150, 1.0, 30.0)),
        ("cos", 1.5, (1e-150, 1.0, 30.0)),
        ("exp", 0.4, (1e-150, 1.0)),
        ("relu_power(2)", 1.0, (1.0, 1e3)),
        ("monomial(3)", 0.5, (1e-3, 1.0, 30.0)),
        ("hermite(3)", 1.0, (1e-3, 1.0, 30.0)),
        ("polynomial(0.5, 1, -0.3, 0.2)", 0.3, (1e-3, 1.0, 30.0)),
    ],
)
def test_against_many_digits(activation, w_std, radii):
    """Norms of any size, near-duplicates in angle, in norm and in both, against the recursion."""
    depth = 3
    for radius in radii:
        x = _points(radius)
        got = wl.kernels(wl.mlp(depth, activation, w_std=w_std), x)
        digits = 60 if 1e-20 < radius < 1e20 else 700
        setting = {"depth": depth, "activation": activation, "w_std": w_std, "digits": digits}
        want = np.array([[testing.mpmath_ntk(a, b, **setting) for b in x] for a in x])
        for name, values in zip(("nngp", "ntk"), np.moveaxis(want, 2, 0), strict=True):
            root = np.sqrt(np.diag(values))
            error = np.abs(getattr(got, name) - values) / root / root[:, None]
            assert error.max() < 1e-12, (radius, name, error.max())


def _few(radius):
    a, b = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    near = (a + 1e-5 * b) * (1 + 1e-5)
    return radius * np.stack([a, near, -a, 2 * b, 4 * a])


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "softplus", "silu"])
def test_logistic_functions_against_many_digits(activation):
    """Values of `testing.mpmath_ntk`, which takes minutes for them: depth 2, b_std 0.25, 25 digits or more."""
    cases = json.loads((Path(__file__).parent / "logistic.json").read_text())
    for case in (c for c in cases if c["activation"] == activation):
        x = _few(case["radius"])
        got = wl.kernels(wl.mlp(2, activation, w_std=case["w_std"], b_std=0.25), x)
        upper = np.array([value for row in case["values"] for value in row])
        for name, values in zip(("nngp", "ntk"), upper.T, strict=True):
            want = np.zeros((5, 5))
            want[np.triu_indices(5)] = values
            root = np.sqrt(np.diag(want))
            error = np.abs(np.triu(getattr(got, name) - want)) / root / root[:, None]
            assert error.max() < 1e-13, (case["radius"], name, error)


def test_beyond_all_numbers_beside_below_them():
    x = np.array([[1.0, 2, 3], [0.5, 0.1, 0.2]])
    found = wl.kernels(wl.mlp(30, "monomial(2)"), x)
    for matrix in found:
        np.testing.assert_array_equal(matrix, [[np.inf, 0], [0, 0]])


def test_numbers_that_the_other_argument_cannot_hold():
    with pytest.raises(ValueError, match="float32 cannot hold"):
        wl.ntk(wl.mlp(1), np.array([[1e100, 1.0]]), jnp.ones((2, 2), jnp.float32))


@pytest.mark.parametrize("norm", [1e3, 1e9, 1e12, 1e14])
def test_saturated_networks_are_right_up_to_their_conditioning(norm):
    """Rounding turns a vector by eps; the tangent kernel of multiples then moves by q eps^2 of itself."""
    v = norm * np.array([0.3, 0.7, -0.648])
    x = np.stack([v, 1.7 * v])
    exact = testing.mpmath_ntk(*x, depth=1, activation="erf")
    found = wl.kernels(wl.mlp(1, "erf"), x)
    bound = 1e-12 + norm**2 / 3 * np.finfo(float).eps ** 2
    np.testing.assert_allclose([found.nngp[0, 1], found.ntk[0, 1]], exact, rtol=bound)


@pytest.mark.parametrize(
    ("name", "lean", "second"),
    [
        ("erf", 2 / math.sqrt(3 * math.pi), 2 / math.pi * math.asin(2 / 3)),
        ("sin", math.exp(-0.5), -math.expm1(-2) / 2),
    ],
)
def test_very_unequal_norms(name, lean, second):
    """Beside a tiny input, where the function is linear: the correlation is E[phi'(z)]/sqrt(E[phi(z)^2])."""
    for tiny in (1e-6, 1e-30, 1e-150):
        k = wl.nngp(wl.mlp(1, name), np.array([[1.0], [tiny]]))
        found = k[0, 1] / math.sqrt(k[0, 0]) / math.sqrt(k[1, 1])
        assert found == pytest.approx(lean / math.sqrt(second), rel=1e-10), tiny


@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize("norm", [1e20, 1e60, 1e140])
def test_multiples_of_large_inputs_with_a_bias(activation, norm):
    """There both are x times a step, so the kernel of x and 2 x is twice that of x; a bias moves them apart by 1/q."""
    x = norm * np.ones((1, 4))
    found = wl.ntk(wl.mlp(10, activation, b_std=0.1), np.concatenate([x, 2 * x]))
    np.testing.assert_allclose(found / found[0, 0], [[1, 2], [2, 4]], rtol=1e-6)


@pytest.mark.parametrize("q", [1e-3, 1.0, 1e4, 1e10, 1e60, 1e120])
@pytest.mark.parametrize("minus", [1e-40, 1e-20, 1e-10, 1e-3, 0.3])
def test_means_of_slopes_against_many_digits(q, minus):
    """From the antiderivatives, whose differences 200 digits leave something of."""
    q1, q2 = q, 4 * q
    with jax.enable_x64(True):
        one = lambda value: jnp.asarray([[value]])
        shares = Shares.of(Cov(one(q1), one(q2), one(minus), one(2 - minus)), 1.0)
        found = [float(f(shares)[0, 0]) for f in (gate_mean_dot, ramp_mean_dot)]
    with mpmath.workdps(200):
        a, b, low = mpmath.mpf(q1), mpmath.mpf(q2), 1 - mpmath.mpf(minus)
        noise, y = 1 / (1 + a) + 1 / (1 + b), mpmath.sqrt(a / (1 + a) * b / (1 + b))
        cosine = lambda r: mpmath.sqrt(1 - (y * r) ** 2)
        angle = lambda r: mpmath.pi / 2 + mpmath.asin(y * r)
        gate = lambda r: r * angle(r) + y * ((1 - r) * (1 + r) + r**2 * noise) / cosine(r)
        ramp = lambda r: r * angle(r) + cosine(r) / y
        for value, whole in zip(found, (gate, ramp), strict=True):
            mean = (whole(mpmath.mpf(1)) - whole(low)) / (2 * mpmath.pi * (1 - low))
            assert abs(value / mean - 1) < 1e-14
