"""Training of finite networks: against plain loops, the linear theory, and itself interrupted."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import widelimit as wl


def circle(n, seed=0):
    b = np.random.default_rng(seed).uniform(-np.pi, np.pi, n)
    return np.stack([np.cos(b), np.sin(b)], 1), np.cos(b) / 2 + np.sin(4 * b)


NET = wl.mlp(depth=2, activation="erf", w_std=1.3, b_std=0.2)


def same(a, b):
    return all(
        jax.tree.leaves(
            jax.tree.map(lambda u, v: bool((np.asarray(u) == np.asarray(v)).all()), a, b)
        )
    )


def test_gradient_descent_is_the_plain_loop():
    network, (x, y) = wl.finite(NET, 16), circle(5)
    start = network.init(3, 2, dtype=np.float64)
    rate, probe = 0.05, circle(3, 1)[0]
    run = wl.optimise(
        network,
        x,
        y,
        params=start,
        learning_rate=rate,
        steps=7,
        record=range(8),
        probe=probe,
        path=True,
        drift=True,
    )
    with jax.enable_x64(True):
        params = jax.tree.map(jnp.asarray, start)
        loss = lambda p: 0.5 * jnp.sum((network.apply(p, jnp.asarray(x))[:, 0] - y) ** 2)
        path = 0.0
        for t in range(8):
            assert run.loss[t] == pytest.approx(float(loss(params)), rel=1e-11)
            np.testing.assert_allclose(
                run.outputs[t], network.apply(params, probe)[:, 0], rtol=1e-10
            )
            move = jax.tree.leaves(jax.tree.map(lambda a, b: a - b, params, start))
            distance = np.sqrt(sum(float((m**2).sum()) for m in move))
            assert run.distance[t] == pytest.approx(distance, rel=1e-9, abs=1e-12)
            assert run.path[t] == pytest.approx(path, rel=1e-9, abs=1e-12)
            drift = np.linalg.norm(network.ntk(params, x) - network.ntk(start, x))
            assert run.drift[t] == pytest.approx(drift, rel=1e-8, abs=1e-11)
            gradient = jax.grad(loss)(params)
            path += rate * float(optax.tree.norm(gradient))
            params = jax.tree.map(lambda p, g: p - rate * g, params, gradient)
    assert run.params[0][0][0]["w"].dtype == np.float64


def test_batches_of_one_in_order_and_adam():
    network, (x, y) = wl.finite(NET, 12, "xavier"), circle(4)
    start = network.init(3, 2, dtype=np.float64)
    run = wl.optimise(
        network,
        x,
        y,
        params=start,
        optimiser="adam",
        learning_rate=1e-2,
        epochs=3,
        batch_size=1,
        shuffle=False,
    )
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):
        params, adam = jax.tree.map(jnp.asarray, start), optax.adam(1e-2)
        state = adam.init(params)
        for s in range(12):
            i = s % 4
            loss = lambda p, i=i: (
                0.5 * jnp.sum((network.apply(p, jnp.asarray(x[i : i + 1]))[:, 0] - y[i]) ** 2)
            )
            updates, state = adam.update(jax.grad(loss)(params), state, params)
            params = optax.apply_updates(params, updates)
        params = jax.tree.map(np.asarray, params)
    np.testing.assert_allclose(network.apply(run.params, x), network.apply(params, x), rtol=1e-9)
    assert run.last_step == 12


@pytest.mark.parametrize("loss", ["squared", "mean"])
def test_the_last_batch_of_a_pass_sees_what_is_left(loss):
    x, y = np.random.default_rng(0).standard_normal((5, 3)), np.arange(5.0)
    model, w = lambda p, x: (x @ p)[:, None], np.zeros(3)
    start = w.copy()
    options = {"learning_rate": 0.1, "epochs": 3, "batch_size": 2, "shuffle": False, "loss": loss}
    found = wl.optimise(model, x, y, params=start, **options)
    for _ in range(3):
        for rows in (slice(0, 2), slice(2, 4), slice(4, 5)):
            scale = 1.0 if loss == "squared" else 1 / len(y[rows])
            w = w - 0.1 * scale * x[rows].T @ (x[rows] @ w - y[rows])
    assert found.last_step == 9
    np.testing.assert_allclose(found.params, w, rtol=1e-12)


def test_an_equinox_module_trains_and_keeps_its_static_parts(tmp_path):
    model = eqx.nn.MLP(2, 1, 8, 1, activation=jnp.tanh, key=jax.random.key(0))
    x, y = circle(6)
    options = {"steps": 20, "learning_rate": 0.02, "record": 2, "keep_best": True}
    run = wl.optimise(model, x, y, checkpoint=tmp_path / "c.npz", **options)
    assert isinstance(run.params, eqx.nn.MLP)
    assert run.params.activation is jnp.tanh
    assert run.loss[-1] < 0.8 * run.loss[0]
    given = wl.optimise(lambda m, x: jax.vmap(m)(x), x, y, params=model, **options)
    assert same(given.params.layers, run.params.layers)
    assert same(given.best_params.layers, run.best_params.layers)
    live, rest = eqx.partition(model, eqx.is_inexact_array)
    plain = lambda p, x: jax.vmap(eqx.combine(p, rest))(x)
    assert same(
        wl.optimise(plain, x, y, params=live, **options).params,
        eqx.filter(given.params, eqx.is_inexact_array),
    )


def test_every_pass_sees_every_point_once():
    """With a linear model and one-hot points, the sum of a pass's gradients shows the order."""
    x, y = np.eye(6, dtype=np.float32), np.arange(1.0, 7.0, dtype=np.float32)
    model = lambda p, x: (x @ p)[:, None]
    run = lambda steps, key: (
        wl.optimise(
            model, x, y, params=jnp.zeros(6), key=key, learning_rate=1.0, steps=steps, batch_size=1
        ).params
    )
    np.testing.assert_allclose(run(6, 0), y)
    first = {int(np.flatnonzero(run(1, key))[0]) for key in range(8)}
    assert len(first) > 2


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_wide_networks_follow_the_linear_dynamics(activation):
    """The error against the closed form with the network's own f0 and kernel falls like n^(-1/2)."""
    x, y = circle(4)
    net = wl.mlp(depth=1, activation=activation, w_std=1.5, b_std=0.5)
    widths, errors = (256, 8192), []
    for n in widths:
        network = wl.finite(net, n)
        runs = wl.optimise_many(
            network,
            x,
            y,
            16,
            side_by_side=True,
            learning_rate=0.1,
            steps=60,
            probe=x,
            record=3,
            drift=True,
        )
        for run in runs:
            values, vectors = np.linalg.eigh(run.kernels[0].astype(float))
            decay = [vectors @ np.diag((1 - 0.1 * values) ** t) @ vectors.T for t in run.steps]
            linear = [y + d @ (run.outputs[0] - y) for d in decay]
            errors.append(np.linalg.norm(run.outputs - linear, axis=1).max())
    log = np.log(np.reshape(errors, (2, 16)))
    rate = np.diff(log.mean(1))[0] / np.log(32)
    stderr = np.sqrt((log.var(1, ddof=1) / 16).sum()) / np.log(32)
    assert rate < -0.5 + 2 * stderr
    assert stderr < 0.1


def test_an_interrupted_run_resumes_bit_for_bit(tmp_path):
    network, (x, y) = wl.finite(NET, 16), circle(6)
    options = {
        "optimiser": "adam",
        "epochs": 10,
        "batch_size": 1,
        "record": 6,
        "probe": x,
        "path": True,
        "drift": True,
        "keep_best": True,
        "key": 5,
    }
    whole = wl.optimise(network, x, y, **options)

    def interrupt(done, total):
        if done >= 30:
            raise InterruptedError

    file = tmp_path / "run.npz"
    with pytest.raises(InterruptedError):
        wl.optimise(network, x, y, **options, checkpoint=file, progress=interrupt)
    seen = []
    resumed = wl.optimise(
        network, x, y, **options, checkpoint=file, progress=lambda d, t: seen.append(d)
    )
    assert seen[0] == 30  # the step whose record was interrupted before it was saved
    for name in ("params", "best_params", "steps", "loss", "outputs", "distance", "path", "drift"):
        assert same(getattr(whole, name), getattr(resumed, name)), name
    assert whole.best_loss == resumed.best_loss
    assert whole.best_step == resumed.best_step
    again = wl.optimise(network, x, y, **options, checkpoint=file)
    assert same(whole.params, again.params)
    with pytest.raises(ValueError, match="belongs to another run"):
        wl.optimise(network, x, y, **options, learning_rate=2e-3, checkpoint=file)
    with pytest.raises(ValueError, match="belongs to another run"):
        wl.optimise(network, x, 2 * y, **options, checkpoint=file)
    file.write_bytes(b"no checkpoint")
    with pytest.raises(ValueError, match="not a checkpoint"):
        wl.optimise(network, x, y, **options, checkpoint=file)


def test_the_best_model_and_the_tolerance():
    network, (x, y) = wl.finite(NET, 64), circle(5)
    run = wl.optimise(network, x, y, steps=5000, tolerance=1e-3, record=3)
    assert run.outcome == "tolerance"
    assert run.last_step < 5000
    assert run.loss[-1] <= 1e-3
    noisy = wl.optimise(
        network,
        x,
        y,
        optimiser="adam",
        learning_rate=0.05,
        epochs=40,
        batch_size=1,
        keep_best=True,
        record=range(0, 201, 5),
    )
    assert noisy.best_loss == pytest.approx(noisy.loss.min(), rel=1e-5)
    assert noisy.steps[noisy.loss.argmin()] == noisy.best_step
    left = network.apply(noisy.best_params, np.float32(x))[:, 0] - y
    assert 0.5 * np.sum(left**2) == pytest.approx(noisy.best_loss, rel=1e-3)
    stopped = wl.optimise(
        network,
        x,
        y,
        optimiser="adam",
        learning_rate=0.01,
        epochs=2000,
        batch_size=1,
        tolerance=0.05,
    )
    assert stopped.outcome == "tolerance"
    assert stopped.loss[-1] <= 0.05


def test_many_networks_side_by_side_are_the_networks_one_by_one():
    network, (x, y) = wl.finite(NET, 16), circle(4)
    options = {
        "epochs": 5,
        "batch_size": 1,
        "learning_rate": 0.02,
        "record": 4,
        "probe": x,
        "drift": True,
        "keep_best": True,
        "path": True,
    }
    together = wl.optimise_many(network, x, y, 3, side_by_side=True, **options)
    apart = wl.optimise_many(network, x, y, 3, side_by_side=False, **options)
    for a, b in zip(together, apart, strict=True):
        for name in ("steps", "loss", "outputs", "distance", "path", "best_loss"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(a.drift, b.drift, rtol=0.05, atol=1e-3)
        assert a.best_step == b.best_step
    assert not same(together[0].params, together[1].params)


def test_a_rate_over_the_bound_warns_and_divergence_names_its_step():
    network, (x, y) = wl.finite(wl.resnet(depth=2), 64), circle(5)
    params = network.init(0, 2)
    bound = 2 / np.linalg.eigvalsh(network.ntk(params, x).astype(float))[-1]
    with pytest.warns(UserWarning, match="diverge") as caught:
        run = wl.optimise(
            network, x, y, params=params, learning_rate=40 * bound, steps=300, record=300
        )
    text = str(caught[0].message)
    assert f"{bound:.4g}" in text
    assert "2/lambda_max" in text
    assert f"step {run.last_step}" in str(caught[1].message)
    assert run.outcome == "diverged"
    assert 0 < run.last_step < 300
    assert np.isfinite(run.loss).all()
    assert run.steps[-1] <= run.last_step
    fine = wl.optimise(network, x, y, params=params, learning_rate=0.9 * bound, steps=20)
    assert fine.outcome == "finished"


def test_any_function_any_optimiser_any_loss():
    x, y = circle(6)
    params = {"a": jnp.zeros(2), "b": jnp.zeros(())}
    model = lambda p, x: x @ p["a"] + p["b"]
    run = wl.optimise(
        model, x, np.sign(y), params=params, optimiser=optax.lion(1e-2), loss="logistic", steps=30
    )
    assert run.loss[-1] < run.loss[0]
    cubic = lambda f, y: jnp.sum(jnp.abs(f - y) ** 3)
    assert np.diff(wl.optimise(model, x, y, params=params, loss=cubic, steps=30).loss)[0] < 0


NETWORK = wl.finite(NET, 8)
X, Y = circle(6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wl.optimise(NETWORK, X, Y), "either steps"),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, epochs=1), "either steps"),
        (lambda: wl.optimise(NETWORK, X, Y[:3], steps=1), "must agree"),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, batch_size=0), "at least 1"),
        (
            lambda: wl.optimise(lambda p, x: x, X, Y, params={}, steps=1),
            "holds no floating point",
        ),
        (
            lambda: wl.optimise(lambda p, x: p @ x, X, Y, params=jnp.ones((2, 2)), steps=1),
            "wrap a model of single points",
        ),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, optimiser="adan"), "Did you mean 'adam'"),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, optimiser=3), "an Optax optimiser"),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, learning_rate=-1.0), "positive"),
        (
            lambda: wl.optimise(NETWORK, X, Y, steps=1, optimiser=optax.sgd(1), learning_rate=1),
            "leave it",
        ),
        (lambda: wl.optimise(NETWORK, X, Y, steps=9, record=[3, 12]), "between 0 and 9"),
        (
            lambda: wl.optimise(NETWORK, X, Y, steps=10**6, record=10**6, probe=np.ones((9999, 2))),
            "GiB",
        ),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, probe=np.ones((2, 3))), "3 features"),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, loss="square"), "Did you mean 'squared'"),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, tolerance=-1), "non-negative"),
        (lambda: wl.optimise(lambda p, x: x, X, Y, steps=1), "pass its parameters"),
        (lambda: wl.optimise(NETWORK, X, Y, steps=1, params=NETWORK.init(0, 2, 3)), "output_dim=1"),
        (lambda: wl.optimise_many(NETWORK, X, Y, 2, steps=1, key=3), "takes no key"),
        (lambda: wl.optimise_many(lambda p, x: x, X, Y, 2, steps=1), "needs a FiniteNetwork"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
