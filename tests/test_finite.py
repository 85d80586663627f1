"""Finite networks: against their limit, and against dense automatic differentiation."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widelimit as wl
from widelimit.finite import _blocks, _network

NETS = {
    "mlp": wl.mlp(depth=2, activation="erf", w_std=1.3, b_std=0.4),
    "resnet": wl.resnet(depth=3, alpha=0.6, w_std=1.2, v_std=0.7),
    "sum": wl.Dense(w_std=0.9) >> (wl.Scale(0.5) + (wl.Phi("relu") >> wl.Dense())) >> wl.Dense(),
    "deep": wl.mlp(depth=20, w_std=2**0.5, b_std=0.1),
    "widths": wl.Dense(7)
    >> wl.Phi("gelu")
    >> wl.Dense(5, b_std=0.3)
    >> wl.Phi("sin")
    >> wl.Dense(),
    "no_limit": wl.Dense() >> wl.Residual(wl.Dense() >> wl.Phi("relu")) >> wl.Dense(),
    "ends_in_residual": wl.Dense(3) >> wl.Residual(wl.Dense(9) >> wl.Phi("relu") >> wl.Dense()),
}
SCHEMES = ("ntk", "standard", "xavier", "torch")


def points(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def dense_ntk(network, params, x1, x2):
    """The obvious oracle: full Jacobians, float64."""
    with jax.enable_x64(True):
        rows = []
        for x in (x1, x2):
            jac = jax.jit(jax.jacrev(lambda p, x=x: network.apply(p, jnp.asarray(x))))(params)
            leaves = [leaf.reshape(*leaf.shape[:2], -1) for leaf in jax.tree.leaves(jac)]
            rows.append(np.concatenate(leaves, axis=2))
        return np.einsum("pic,qjc->pqij", *rows)


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        *((name, "ntk") for name in NETS),
        ("mlp", "standard"),
        ("resnet", "xavier"),
        ("sum", "torch"),
    ],
)
def test_the_structured_kernel_is_the_dense_one(name, scheme):
    network = wl.finite(NETS[name], width=6, parameterisation=scheme)
    params = network.init(1, 4, 3 if name in ("mlp", "widths") else None, dtype=np.float64)
    x1, x2 = points(4, 4), points(3, 4, 1)
    expected = dense_ntk(network, params, x1, x2)
    found = network.ntk(params, x1, x2)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found.reshape(expected.shape), expected, rtol=1e-12, atol=1e-13)


def test_several_outputs_in_three_forms():
    network = wl.finite(NETS["mlp"], width=6)
    params, x = network.init(1, 4, 3, dtype=np.float64), points(4, 4)
    full = network.ntk(params, x)
    assert full.shape == (4, 4, 3, 3)
    np.testing.assert_allclose(full, dense_ntk(network, params, x, x), rtol=1e-12, atol=1e-13)
    diagonal = np.diagonal(full, axis1=2, axis2=3)
    np.testing.assert_allclose(network.ntk(params, x, outputs="diagonal"), diagonal, rtol=1e-13)
    trace = network.ntk(params, x, outputs="trace")
    np.testing.assert_allclose(trace, diagonal.sum(2), rtol=1e-13, atol=1e-14)


def test_blocks_of_points_give_the_same_kernel(monkeypatch):
    network = wl.finite(NETS["mlp"], width=8)
    params = network.init(0, 3, 2)
    x1, x2 = jnp.asarray(points(11, 3), jnp.float32), jnp.asarray(points(5, 3, 1), jnp.float32)
    whole, own = network.ntk(params, x1, x2), network.ntk(params, x1)
    monkeypatch.setattr(_blocks, "_MEMORY", 2000)
    np.testing.assert_allclose(network.ntk(params, x1, x2), whole, rtol=2e-6, atol=1e-6)
    np.testing.assert_allclose(network.ntk(params, x1), own, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_last_layer_kernel_is_the_covariance_over_the_last_layer(scheme):
    """Redraw the read-out many times with the features held fixed."""
    net = wl.Dense(8) >> wl.Phi("relu") >> wl.Dense(4000, w_std=1.4, b_std=0.5)
    network = wl.finite(net, parameterisation=scheme)
    params = network.init(3, 2)
    x = np.float32(points(3, 2))
    y = network.apply(params, x)
    sampled = y @ y.T / y.shape[1]
    kernel = network.nngp(params, x)
    spread = np.sqrt((np.outer(np.diag(kernel), np.diag(kernel)) + kernel**2) / y.shape[1])
    assert (abs(sampled - kernel) < 4.5 * spread).all()


@settings(deadline=None, max_examples=2, derandomize=True)
@given(st.floats(0.5, 1.6), st.floats(0.3, 1.5), st.floats(0.1, 1.2), st.integers(0, 10**6))
def test_sampled_kernels_agree_with_the_limit(w_std, b_std, alpha, seed):
    """All scales different from 1, unequal norms, three features."""
    body = wl.Dense(w_std=w_std) >> wl.Phi("relu") >> wl.Dense(w_std=0.8)
    net = (
        wl.Dense(b_std=b_std)
        >> wl.Repeat(wl.Residual(body, alpha=alpha), 2)
        >> wl.Dense(w_std=w_std)
    )
    x = np.float32(points(4, 3, seed) * [[0.3], [1], [2], [1]])
    width = 512
    found = wl.monte_carlo_kernels(net, x, width=width, samples=24, key=seed)
    limit = wl.kernels(net, np.float64(x))
    for estimate, exact in ((found.nngp, limit.nngp), (found.ntk, limit.ntk)):
        scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (abs(estimate.mean - exact) <= 4.5 * estimate.stderr + 8 / width * scale).all()


@pytest.mark.parametrize("act", wl.activations.examples(), ids=lambda act: act.name)
def test_every_activation_converges_to_its_limit(act):
    net = wl.Dense(w_std=0.8, b_std=0.3) >> wl.Phi(act) >> wl.Dense(w_std=1.2, b_std=0.4)
    x = np.float32(points(3, 5, 7) * [[0.4], [1], [1.5]])
    found = wl.monte_carlo_kernels(net, x, width=512, samples=24, key=5)
    for name in ("nngp", "ntk") if act.has_ntk else ("nngp",):
        estimate, exact = getattr(found, name), getattr(wl, name)(net, np.float64(x))
        scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (abs(estimate.mean - exact) <= 4 * estimate.stderr + 2 / 512 * scale).all()
        assert (estimate.stderr < 0.2 * scale).all()


def test_all_products_are_precise_on_a_gpu():
    """TF32, the default there, would cost four digits, forwards and backwards."""
    network = wl.finite(wl.resnet(depth=2, alpha=0.5), 8)
    params, x = network.init(0, 3), jnp.ones((2, 3), jnp.float32)
    loss = lambda p: jnp.sum(network.apply(p, x) ** 2)
    for program in (jax.make_jaxpr(jax.grad(loss))(params), jax.make_jaxpr(network.ntk)(params, x)):
        products = str(program).split("dot_general[")[1:]
        assert len(products) > 4
        assert all("HIGHEST" in p.split("] ")[0] for p in products)


def test_the_error_falls_like_the_inverse_root_of_the_width():
    x = np.float32(points(4, 3, 2))
    seen = []
    found = wl.width_convergence(
        wl.resnet(depth=3, alpha=0.7),
        x,
        (64, 128, 256, 512),
        samples=20,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert abs(found.rate + 0.5) < 0.1
    assert abs(found.rate + 0.5) < 4 * found.rate_stderr + 0.03
    assert seen[-1] == (80, 80)


def test_the_two_parameterisations_are_one_distribution():
    """standard = ntk with the factors moved into the weights: same function, other gradients."""
    net = wl.mlp(depth=2, w_std=1.3, b_std=0.2)
    ntk, standard = wl.finite(net, 16), wl.finite(net, 16, "standard")
    p, q = ntk.init(0, 3), standard.init(0, 3)
    x = jnp.asarray(points(5, 3), jnp.float32)
    np.testing.assert_allclose(ntk.apply(p, x), standard.apply(q, x), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(ntk.nngp(p, x), standard.nngp(q, x), rtol=2e-5)
    assert float(standard.ntk(q, x)[0, 0]) > 2 * float(ntk.ntk(p, x)[0, 0])


def test_initial_distributions():
    net = wl.mlp(depth=1, w_std=1.5)
    w = lambda scheme, **o: wl.finite(net, 3000, scheme, **o).init(0, 200)[0][0][0]
    assert float(w("ntk")["w"].std()) == pytest.approx(1, rel=0.01)
    assert float(w("standard")["w"].std()) == pytest.approx(1.5 / 200**0.5, rel=0.01)
    assert float(w("xavier")["w"].std()) == pytest.approx(1.5 * (2 / 3200) ** 0.5, rel=0.01)
    torch = w("torch")
    assert float(abs(torch["w"]).max()) == pytest.approx(1.5 / 200**0.5, rel=0.001)
    assert float(torch["w"].std()) == pytest.approx(1.5 / 600**0.5, rel=0.01)
    assert float(abs(torch["b"]).max()) == pytest.approx(1 / 200**0.5, rel=0.01)
    assert "b" not in w("torch", bias=False)
    assert "b" not in w("xavier")
    assert (np.asarray(w("xavier", bias=True)["b"]) == 0).all()


def test_the_bias_of_a_branch_is_attenuated_with_it():
    net = wl.Dense(1) >> wl.Residual(wl.Dense(1), alpha=0.5)
    network = wl.finite(net, parameterisation="torch")
    params = network.init(0, 1)
    u, v = jax.tree.map(np.asarray, params)
    h = 2.0 * u["w"] + u["b"]
    expected = h + 0.5 * (h * v["w"] + v["b"])
    np.testing.assert_allclose(network.apply(params, [[2.0]]), expected, rtol=1e-6)


def test_counts_and_widths():
    n, d, k, depth = 40, 3, 2, 4
    assert wl.finite(wl.resnet(depth=depth), n).num_params(d, k) == n * k + 2 * depth * n**2 + n * d
    count = n * (d + 1) + (depth - 1) * n * (n + 1) + k * (n + 1)
    assert wl.finite(wl.mlp(depth=depth, b_std=0.1), n).num_params(d, k) == count
    assert wl.finite(NETS["widths"], 99).num_params(2) == 2 * 7 + 7 * 5 + 5 + 5
    assert wl.finite(wl.Dense(4) >> wl.Phi("relu") >> wl.Dense(10)).num_params(3) == 12 + 40


def test_many_seeds_by_vmap_equal_one_at_a_time(key):
    network = wl.finite(NETS["resnet"], 16)
    keys = jax.random.split(key, 3)
    params = jax.vmap(lambda k: network.init(k, 2))(keys)
    x = jnp.asarray(points(4, 2), jnp.float32)
    outputs = jax.vmap(network.apply, (0, None))(params, x)
    kernels = jax.vmap(network.ntk, (0, None))(params, x)
    for i in range(3):
        one = network.init(keys[i], 2)
        np.testing.assert_allclose(outputs[i], network.apply(one, x), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(kernels[i], network.ntk(one, x), rtol=1e-4, atol=1e-5)


def test_keys_and_dtypes(key):
    network = wl.finite(NETS["mlp"], 8)
    same = jax.tree.map(
        lambda a, b: bool((a == b).all()), network.init(3, 2), network.init(jax.random.key(3), 2)
    )
    assert all(jax.tree.leaves(same))
    p32, p64 = network.init(3, 2), network.init(3, 2, dtype=np.float64)
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves(p64))
    x = points(3, 2)
    assert network.apply(p64, x).dtype == np.float64
    assert network.apply(p32, x).dtype == np.float32
    assert isinstance(network.apply(p32, jnp.ones((1, 2))), jax.Array)
    assert network.apply(p64, jnp.ones((1, 2))).dtype == jnp.float32
    with pytest.raises(ValueError, match="inside jit or vmap"):
        jax.vmap(lambda k: network.init(k, 2, dtype=np.float64))(jax.random.split(key, 2))


def test_a_sweep_over_numbers_compiles_once():
    x = jnp.ones((2, 2))
    start = _network._apply._cache_size()
    for alpha in (0.1, 0.2, 0.7):
        network = wl.finite(wl.resnet(depth=2, alpha=alpha), 11)
        network.apply(network.init(0, 2), x)
    assert _network._apply._cache_size() == start + 1


def test_depth_does_not_cost_compile_time():
    network = wl.finite(wl.mlp(depth=150, w_std=2**0.5), 8)
    params = network.init(0, 2)
    start = time.perf_counter()
    kernel = network.ntk(params, jnp.ones((2, 2)))
    assert time.perf_counter() - start < 15
    assert bool(jnp.isfinite(kernel).all())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wl.finite("relu"), "A network was expected"),
        (lambda: wl.finite(wl.mlp(1), width=0), "width must be at least 1"),
        (lambda: wl.finite(wl.mlp(1), width=2.5), "width must be an integer"),
        (lambda: wl.finite(wl.mlp(1), parameterisation="nkt"), "Did you mean 'ntk'"),
        (lambda: wl.finite(wl.mlp(1), bias=True), "multiplies the bias by b_std"),
        (lambda: wl.finite(wl.mlp(1)).init("seed", 2), "key must be an integer"),
        (lambda: wl.finite(wl.mlp(1)).init(jax.random.split(jax.random.key(0), 3), 2), "One key"),
        (lambda: wl.finite(wl.mlp(1)).init(0, 2, dtype=int), "floating point"),
        (lambda: wl.finite(wl.mlp(1) >> wl.Dense(3)).init(0, 2, 2), "states the width 3"),
        (
            lambda: wl.finite(wl.Dense(4) >> wl.Residual(wl.Dense(5))).init(0, 2),
            "states the width 5",
        ),
        (lambda: wl.finite(wl.Dense(4) + wl.Dense(5)).init(0, 2), "states the width"),
        (lambda: _small().apply(_small().init(0, 2), np.ones((3, 5))), "drawn for 2 features"),
        (lambda: _small().apply(_small().init(0, 2), np.ones(2)), "must have shape"),
        (lambda: _small().ntk(_small().init(0, 2), np.ones((3, 2)), outputs="all"), "Unknown"),
        (lambda: _small().apply(_small().init(0, 2), [[np.nan, 1.0]]), "NaN"),
        (lambda: _ends_in_phi(), "End the network with a Dense"),
        (lambda: wl.monte_carlo_kernels(wl.mlp(1), np.eye(2), samples=1), "at least 2"),
        (lambda: wl.width_convergence(wl.mlp(1), np.eye(2), widths=(8, 8)), "two different"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def _small():
    return wl.finite(wl.mlp(1), width=4)


def _ends_in_phi():
    network = wl.finite(wl.Dense() >> wl.Phi("relu"), 4)
    network.nngp(network.init(0, 2), np.eye(2))


def test_signals_of_thousands_of_points_fit():
    """A kernel in needless blocks costs a factor of eighty."""
    network = wl.finite(wl.resnet(depth=5), 500)
    assert _blocks.block_size(network.init(0, 2)) > 10_000


def test_numpy_points_under_differentiation():
    """Weights are traced, points are not: the loop of every user."""
    network, x = wl.finite(NETS["mlp"], 8), points(3, 2)
    params = network.init(0, 2)
    gradient = jax.grad(lambda p: network.apply(p, x).sum())(params)
    step = jax.tree.map(lambda p, g: p + 1e-3 * g, params, gradient)
    norm = sum(float((g**2).sum()) for g in jax.tree.leaves(gradient))
    rise = float(network.apply(step, x).sum() - network.apply(params, x).sum())
    assert rise == pytest.approx(1e-3 * norm, rel=0.05)
    value = wl.linearise(network.apply, params)(step, x)
    assert isinstance(value, np.ndarray)
    np.testing.assert_allclose(value, network.apply(step, x), atol=1e-3)
