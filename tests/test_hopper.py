"""The kernel for Hopper GPUs, as far as a machine without one can tell."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl
from widelimit.infinite import _fused, _hopper
from widelimit.infinite._hopper_tile import BLOCK, Polynomial, Shape
from widelimit.infinite._powers import folded, powers_of

plgpu = pytest.importorskip("jax.experimental.pallas.mosaic_gpu")
RISING = Polynomial(0.2, (0.3, -0.5, 0.2, 0.1))


def sphere(n, d):
    x = np.random.default_rng(0).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(("d", "stages"), [(17, 4), (128, 2)])
def test_it_is_lowered_for_a_gpu(d, stages):
    parts = jax.eval_shape(_hopper.halves, jax.ShapeDtypeStruct((700, d), jnp.float32))
    assert parts.shape == (2, 7 * BLOCK, -(-d // 16) * 16)
    with jax.enable_x64(True):
        sizes = jax.ShapeDtypeStruct((7 * BLOCK,), jnp.float64)
        v = jax.ShapeDtypeStruct((700, 2), jnp.float64)
        diagonal = jax.ShapeDtypeStruct((700,), jnp.float64)
        given = parts, sizes, diagonal, v
        traced = _fused._multiply.jit.trace(RISING, Shape(stages=stages), None, *given)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert "mosaic_gpu" in text


@pytest.mark.skipif(
    not hasattr(plgpu, "InterpretGPUParams"), reason="kernels of GPUs are interpreted by JAX 0.11"
)
def test_its_product_is_that_of_the_matrix():
    n = 600
    u = sphere(n, 20).astype(np.float32)
    v = np.random.default_rng(1).standard_normal(n).astype(np.float32)
    parts = _hopper.halves(jnp.asarray(u))
    wide = jnp.zeros(parts.shape[1], jnp.float32).at[:n].set(v)
    shape = Shape(strip=2, interpret=plgpu.InterpretGPUParams())
    rho = u.astype(np.float64) @ u.T.astype(np.float64)
    y = np.sqrt(np.maximum(1 - rho, 0) / 2) - np.sqrt(np.maximum(1 + rho, 0) / 2)
    y = (y + RISING.shift) / (1 + RISING.shift * y)
    matrix = np.polynomial.polynomial.polyval(y, RISING.coefficients)
    np.fill_diagonal(matrix, 0)
    product = jax.jit(
        lambda i, n: _hopper.product(parts, wide, RISING, shape, (i, n)), static_argnums=1
    )
    whole, shares = product(0, 1), [product(i, 2) for i in range(2)]
    for out in (whole, shares[0] + shares[1]):
        assert (
            np.abs(np.asarray(out)[:n] - matrix @ v).max()
            < 3e-7 * (np.abs(matrix) @ np.abs(v)).max()
        )


def test_halves_hold_22_bits_also_in_a_compiled_program():
    u = jnp.asarray(sphere(100, 5), jnp.float32)
    high, low = np.asarray(jax.jit(_hopper.halves)(u), np.float64)
    assert np.abs((high + low)[:100, :5] / 2**11 - np.asarray(u)).max() < 2.0**-23
    assert np.abs(low).max() > 0


@pytest.mark.parametrize(("depth", "dtype"), [(3, "float32"), (3, "float64"), (50, "float32")])
def test_profiles_are_powers_where_the_arithmetic_holds_them(depth, dtype):
    profile = wl.profile(wl.mlp(depth))  # of 16 digits: its powers may be too large
    powers = powers_of(profile.series.ntk, dtype)
    assert (powers is None) == (depth == 50)
    if powers is not None:
        rho = np.linspace(-1, 1, 500).astype(dtype)
        with jax.enable_x64(True):
            values = (
                np.asarray(powers.at(jnp.asarray(1 - rho), jnp.asarray(1 + rho))) * profile.scale
            )
        exact = profile.ntk(rho.astype(np.float64))
        assert np.abs(values - exact).max() < 3 * np.finfo(dtype).eps * profile.ntk(1.0)


@pytest.mark.parametrize("activation", ["relu", "erf", "gelu", "abs", "sin", "tanh"])
def test_one_root_is_enough_for_a_profile_that_is_not_shifted(activation):
    profile = wl.profile(wl.mlp(2, activation))
    angle = np.linspace(0, np.pi, 501)
    minus, plus = 2 * np.sin(angle / 2) ** 2, 2 * np.cos(angle / 2) ** 2
    for kind in ("nngp", "ntk"):
        series, exact = getattr(profile.series, kind), getattr(profile, kind + "_at_angle")(angle)
        found = folded(series)
        assert found is not None or float(series.shift) != 0 or int(series.degree) > 40
        if found is not None:
            with jax.enable_x64(True):
                values = np.asarray(found.at(jnp.asarray(minus), jnp.asarray(plus)))
            assert np.abs(values * profile.scale - exact).max() < 3e-15 * np.abs(exact).max()


def by_numpy(error):
    """A stand-in for the kernel on the GPU: right up to an error."""

    def product(parts, v, polynomial, shape, share):
        u = (parts[0].astype(jnp.float32) + parts[1].astype(jnp.float32)) / 2**11
        rho = u @ u.T
        y = jnp.sqrt(jnp.maximum(1 - rho, 0) / 2) - jnp.sqrt(jnp.maximum(1 + rho, 0) / 2)
        matrix = sum(c * y**k for k, c in enumerate(polynomial.coefficients))
        matrix = matrix - jnp.diag(jnp.diagonal(matrix))
        return (matrix @ v).astype(jnp.float64) * (1 + error)

    return product


def broken(*_):
    raise NotImplementedError("no such instruction")


@pytest.mark.parametrize(
    ("kernel", "word"),
    [
        (by_numpy(0.0), None),
        (by_numpy(1e-3), "an error of"),
        (broken, "no such instruction"),
    ],
)
def test_it_is_tried_before_it_is_used(monkeypatch, kernel, word):
    monkeypatch.setattr(_hopper, "served", lambda: True)
    monkeypatch.setattr(_fused, "FUSED_POINTS", 100)
    monkeypatch.setattr(_fused, "_TRIED", {})
    monkeypatch.setattr(_hopper, "product", kernel)
    _fused._multiply.clear_cache()
    x = sphere(300, 12)
    matrix, v = wl.ntk(wl.mlp(3), x), np.cos(np.arange(300.0))
    operator = wl.prepare(wl.mlp(3)).operator(x, "float32")
    if word is not None:
        with pytest.warns(RuntimeWarning, match=f"tried and gave.*{word}.*computed by XLA"):
            first = operator @ v
    else:
        first = operator @ v
    for out in (first, operator @ v):  # said once
        assert np.abs(out - matrix @ v).max() < 1e-6 * (matrix @ np.abs(v)).max()
    assert operator._fused.tried is (word is None)
    _fused._multiply.clear_cache()
