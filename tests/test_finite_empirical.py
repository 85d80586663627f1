"""The tangent kernel and the Taylor models of any function, against dense derivatives."""

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl


def points(n, *shape, seed=0):
    return np.random.default_rng(seed).normal(size=(n, *shape)).astype(np.float32)


def dense(apply, params, x1, x2):
    rows = []
    for x in (x1, x2):
        jac = jax.tree.leaves(jax.jit(jax.jacrev(lambda p, x=x: apply(p, x)))(params))
        rows.append(np.concatenate([np.reshape(j, (*j.shape[:2], -1)) for j in jac], 2))
    return np.einsum("pic,qjc->pqij", *rows)


class Mixed(nn.Module):
    """Convolution, pooling, normalisation of single points: nothing that widelimit knows."""

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(4, (3, 3))(x))
        x = nn.LayerNorm()(x.mean((1, 2)))
        return nn.Dense(3)(x)


@pytest.mark.parametrize(("method", "batch_size"), [("jacobian", 2), ("products", None)])
def test_flax(method, batch_size):
    model, x1, x2 = (
        Mixed(),
        jnp.asarray(points(4, 5, 5, 1)),
        jnp.asarray(points(3, 5, 5, 1, seed=1)),
    )
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"):
        params = jax.jit(model.init)(jax.random.key(0), x1)
        expected = dense(model.apply, params, x1, x2)
        found = wl.empirical_ntk(model.apply, params, x1, x2, method=method, batch_size=batch_size)
    np.testing.assert_allclose(found, expected, atol=3e-5 * abs(expected).max())


@pytest.mark.parametrize("method", ["jacobian", "products", None])
@pytest.mark.parametrize("batch_size", [2, None])
def test_the_three_forms_of_several_outputs(method, batch_size):
    w = points(3, 4)
    apply = lambda p, x: jnp.sin(x @ p)
    x1, x2 = points(5, 3, seed=1), points(3, 3, seed=2)
    expected = dense(apply, w, x1, x2)
    form = lambda *x, **o: wl.empirical_ntk(apply, w, *x, method=method, batch_size=batch_size, **o)
    np.testing.assert_allclose(form(x1, x2), expected, atol=1e-5)
    diagonal = np.diagonal(expected, axis1=2, axis2=3)
    np.testing.assert_allclose(form(x1, x2, outputs="diagonal"), diagonal, atol=1e-5)
    np.testing.assert_allclose(form(x1, x2, outputs="trace"), diagonal.sum(2), atol=1e-5)
    np.testing.assert_allclose(form(x1), dense(apply, w, x1, x1), atol=1e-5)
    np.testing.assert_allclose(form(x1, outputs="trace"), form(x1, x1, outputs="trace"), atol=1e-5)


def test_equinox_model_with_static_parts():
    model = eqx.nn.MLP(3, 2, 8, 2, activation=jnp.tanh, key=jax.random.key(0))
    apply = lambda m, x: jax.vmap(m)(x)
    x = points(4, 3)
    live, frozen = eqx.partition(model, eqx.is_inexact_array)
    expected = dense(lambda p, x: apply(eqx.combine(p, frozen), x), live, x, x)
    found = wl.empirical_ntk(apply, model, x)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-5)


def test_a_jacobian_in_pieces(monkeypatch):
    """With little memory the Jacobian is contracted in pieces of arrays; the kernel stays the same."""
    from widelimit.finite import _jacobians

    w = {"a": points(7, 5), "b": points(5, 3), "c": np.asarray(0.3, np.float32)}
    apply = lambda p, x: jnp.tanh(x @ p["a"]) @ p["b"] + p["c"]
    x1, x2 = points(6, 7, seed=1), points(4, 7, seed=2)
    expected = dense(apply, w, x1, x2)
    whole = wl.empirical_ntk(apply, w, x1, x2, method="jacobian")
    calls, real = [], _jacobians.pieces
    monkeypatch.setattr(_jacobians, "MEMORY", 2000)
    monkeypatch.setattr(_jacobians, "pieces", lambda *a: calls.append(1) or real(*a))
    found = wl.empirical_ntk(apply, w, x1, x2, method="jacobian")
    square = wl.empirical_ntk(apply, w, x1, method="jacobian", outputs="trace")
    assert len(calls) > 1
    np.testing.assert_allclose(found, whole, atol=1e-5 * abs(whole).max())
    np.testing.assert_allclose(found, expected, atol=1e-5 * abs(expected).max())
    np.testing.assert_allclose(square, np.einsum("pqaa->pq", dense(apply, w, x1, x1)), rtol=1e-4)


def test_outputs_of_any_rank_and_products_with_vectors():
    w = points(3, 4)
    apply = lambda p, x: jnp.sin(x @ p).reshape(len(x), 2, 2)
    x1, x2, v = points(5, 3, seed=1), points(3, 3, seed=2), points(3, 2, 2, seed=3)
    flat = wl.empirical_ntk(lambda p, x: jnp.sin(x @ p), w, x1, x2)
    for method in ("jacobian", "products"):
        full = wl.empirical_ntk(apply, w, x1, x2, method=method)
        np.testing.assert_allclose(full, flat.reshape(5, 3, 2, 2, 2, 2), atol=1e-5)
    diagonal = wl.empirical_ntk(apply, w, x1, x2, outputs="diagonal")
    np.testing.assert_allclose(diagonal, np.einsum("pqabab->pqab", full), atol=1e-5)
    assert wl.empirical_ntk(apply, w, x1, x2, outputs="trace").shape == (5, 3)
    found = wl.empirical_ntk_matvec(apply, w, x1, x2, v)
    np.testing.assert_allclose(found, np.einsum("pqabcd,qcd->pab", full, v), atol=1e-5)
    assert isinstance(found, np.ndarray)
    with pytest.raises(ValueError, match=r"v has shape \(3,\)"):
        wl.empirical_ntk_matvec(apply, w, x1, x2, v[:, 0, 0])


def test_the_kernel_of_one_layer():
    """The layers' kernels add up; that of the last is the finite network's own NNGP kernel."""
    network = wl.finite(wl.mlp(depth=2, w_std=1.4), 16)
    params, x = network.init(0, 4), points(5, 4)
    total = wl.empirical_ntk(network.apply, params, x)
    last = wl.empirical_ntk(network.apply, params, x, where=lambda p: p[-1])
    rest = wl.empirical_ntk(network.apply, params, x, where=lambda p: p[:-1])
    np.testing.assert_allclose(last + rest, total, rtol=1e-5, atol=1e-5 * total.max())
    np.testing.assert_allclose(last, network.nngp(params, x), rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="where must pick"):
        wl.empirical_ntk(network.apply, params, x, where=lambda p: p["dense"])


def test_an_equinox_module_needs_no_parameters():
    model = eqx.nn.MLP(3, 2, 8, 1, activation=jnp.tanh, key=jax.random.key(0))
    x = points(4, 3)
    apply = lambda m, x: jax.vmap(m)(x)
    np.testing.assert_allclose(
        wl.empirical_ntk(model, None, x), wl.empirical_ntk(apply, model, x), rtol=1e-6
    )
    with pytest.raises(ValueError, match="Wrap a model of single points"):
        wl.empirical_ntk(lambda m, x: m(x), model, x)


def test_it_agrees_with_the_structured_kernel():
    network = wl.finite(wl.resnet(depth=3, alpha=0.5), 32)
    params, x1, x2 = network.init(0, 4), points(5, 4), points(3, 4, seed=1)
    found = wl.empirical_ntk(network.apply, params, x1, x2)
    expected = network.ntk(params, x1, x2)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * abs(expected).max())


def test_float64_in_a_32_bit_session():
    params, x = {"w": np.random.default_rng(0).normal(size=(3,))}, points(4, 3).astype(np.float64)
    found = wl.empirical_ntk(lambda p, x: jnp.sin(x @ p["w"]), params, x)
    slopes = np.cos(x @ params["w"])[:, None] * x
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, slopes @ slopes.T, rtol=1e-14)


def test_the_cheaper_method_is_chosen():
    """Many outputs of a dense model: products; many uses of few weights: Jacobians."""
    from widelimit.finite import _empirical, _jacobians

    def choice(apply, params, x, k):
        inputs = _empirical._settle(params, x, None)
        return _jacobians.cheaper(_jacobians.Task(apply, None, "full", k), params, inputs)

    w = jnp.ones((50, 40))
    assert choice(lambda p, x: x @ p, w, jnp.ones((8, 50)), 40) == "products"
    assert choice(lambda p, x: x @ p, w[:, :1], jnp.ones((8, 50)), 1) == "jacobian"

    def shared(p, x):
        for _ in range(200):
            x = jnp.tanh(x @ p)
        return x

    assert choice(shared, jnp.eye(3), jnp.ones((8, 3)), 3) == "jacobian"


@pytest.mark.parametrize("order", [1, 2, 4])
def test_taylor_models_have_the_right_order(order):
    """Halving the step divides the error by 2^(order + 1)."""
    network = wl.finite(wl.mlp(depth=2, activation="tanh", w_std=1.5), 16)
    start = network.init(0, 3, dtype=np.float64)
    direction, x = network.init(1, 3, dtype=np.float64), points(4, 3).astype(np.float64)
    with jax.enable_x64(True):
        model = wl.taylor(network.apply, start, order=order)
        errors = []
        for h in (0.08, 0.04) if order > 2 else (0.02, 0.01):
            moved = jax.tree.map(lambda a, d, h=h: jnp.asarray(a + h * d), start, direction)
            error = network.apply(moved, jnp.asarray(x)) - model(moved, jnp.asarray(x))
            errors.append(float(jnp.linalg.norm(error)))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order + 1, abs=0.15)


def test_the_linear_model_keeps_its_kernel_and_trains_by_the_closed_form():
    network = wl.finite(wl.resnet(depth=2, alpha=0.8), 24)
    params, other, x = network.init(0, 2), network.init(1, 2), points(4, 2)
    y = np.array([1.0, -1.0, 0.5, 0.0], np.float32)
    linear = wl.linearise(network.apply, params)
    theta = network.ntk(params, x)
    at_other = wl.empirical_ntk(linear, other, x)
    np.testing.assert_allclose(at_other, theta, rtol=1e-4, atol=1e-4 * theta.max())
    values, vectors = np.linalg.eigh(theta.astype(float))
    rate = 1 / values[-1]
    run = wl.optimise(linear, x, y, params=params, learning_rate=rate, steps=30, probe=x)
    decay = vectors @ np.diag((1 - rate * values) ** 30) @ vectors.T
    expected = y + decay @ (network.apply(params, x)[:, 0] - y)
    np.testing.assert_allclose(run.outputs[-1], expected, atol=2e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: wl.empirical_ntk(lambda p, x: x.sum(), jnp.ones(2), jnp.ones((2, 2))),
            "one array",
        ),
        (lambda: wl.empirical_ntk(lambda p, x: x[0], jnp.ones(2), jnp.ones((2, 3))), "jax.vmap"),
        (
            lambda: wl.empirical_ntk(
                lambda p, x: x @ p, jnp.ones(2), jnp.ones((2, 2)), outputs="all"
            ),
            "Unknown",
        ),
        (
            lambda: wl.empirical_ntk(
                lambda p, x: x @ p, jnp.ones(2), jnp.ones((2, 2)), method="jac"
            ),
            "Did you mean",
        ),
        (
            lambda: wl.empirical_ntk(
                lambda p, x: x @ p, jnp.ones(2), jnp.ones((2, 2)), jnp.ones((2, 3))
            ),
            "agree",
        ),
        (lambda: wl.empirical_ntk(lambda p, x: x @ p, jnp.ones(2), []), "non-empty"),
        (lambda: wl.taylor(lambda p, x: x, 1.0, order=9), "between 1 and 8"),
        (lambda: wl.linearise(3, 1.0), "must be a function"),
        (lambda: wl.linearise(lambda p, x: x, jnp.ones(2))({"a": jnp.ones(2)}, 1.0), "structure"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
