"""neural-tangents' scripts after a change of the import: its numbers, its names, its conventions."""

import json
import os
import warnings

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import compat_networks as scripts
import widelimit as wl
import widelimit.compat as nt
from widelimit.compat import predict, stax

ALL = bool(os.environ.get("WIDELIMIT_ALL"))  # `make test-bridges`
GOLDEN = json.loads(scripts.STORE.read_text())
# Both integrate here.
LOOSE = {"Gabor": 1e-11}


def worst(found, wanted, diagonal=True):
    """The largest error of each entry, relative to the largest number of its matrix."""
    errors = {}
    for name, value in found.items():
        want = np.array(wanted[name])
        assert np.shape(value) == want.shape, (name, np.shape(value), want.shape)
        error = np.abs(np.asarray(value) - want) / max(np.abs(want).max(), 1e-3)
        own = np.eye(*want.shape[:2], dtype=bool)
        errors[name] = error.max() if diagonal else error[~own].max()
    return errors


@pytest.fixture
def lightly():
    """Without run-time checks of annotations, which take longer than these kernels."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("lightly")
def test_kernels_are_those_of_neural_tangents():
    """Where x = x' its own values carry an error of 1e-8 for activations with a kink; ours are exact there."""
    found = scripts.kernels(stax, everyday=not ALL)
    assert ALL is (found.keys() == GOLDEN["kernels"].keys())
    errors = worst(found, GOLDEN["kernels"], diagonal=False)
    wrong = {n: e for n, e in errors.items() if e > LOOSE.get(n.partition(",")[0], 1e-12)}
    assert not wrong
    errors = worst(found, GOLDEN["kernels"])
    assert max(errors.values()) < 2e-8, max(errors, key=errors.get)


def test_the_network_that_is_offered_instead_of_a_kernel_without_one():
    with pytest.raises(NotImplementedError, match="without a network") as info:
        stax.ExpNormalized(0.8, -0.5)
    x = scripts.inputs()["points"][0]
    body = eval(str(info.value).split(" is ")[-1].rstrip("."), {"widelimit": wl})
    before = wl.nngp(wl.Dense(w_std=1.3, b_std=0.4), x)
    size = np.sqrt(np.diag(before))
    found = wl.nngp(wl.Dense(w_std=1.3, b_std=0.4) >> body, x)
    assert np.allclose(found, np.exp(0.8 * (before / np.outer(size, size) - 0.5)), rtol=1e-5)


@pytest.mark.usefixtures("lightly")
def test_predictions_are_those_of_neural_tangents():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nt.ConventionWarning)
        found = scripts.predictions(stax, predict)
        assert found.keys() == GOLDEN["predictions"].keys()
        errors = worst(found, GOLDEN["predictions"])
        assert max(errors.values()) < 1e-11, max(errors, key=errors.get)
        if not ALL:
            return
        # Its solver has a tolerance of 1.4e-8.
        errors = worst(scripts.by_solver(stax, predict), GOLDEN["by solver"])
        assert max(errors.values()) < 1e-6


def test_every_name_is_there():
    """Those that are refused say so when they are used, with what to do instead."""
    assert set(GOLDEN["names"]["nt"]) - {"experimental"} <= set(dir(nt))
    assert set(GOLDEN["names"]["predict"]) <= set(dir(predict))
    assert set(GOLDEN["names"]["stax"]) <= set(dir(stax))
    for name in [
        "DotGeneral",
        "Index",
        "layer",
        "supports_masking",
        "requires",
        "Bool",
        "Diagonal",
        "unmask_fn",
    ]:
        with pytest.raises(NotImplementedError, match=f"stax.{name} is not part of"):
            getattr(stax, name)()
    with pytest.raises(NotImplementedError, match="Cut the data"):
        stax.Slice[:, 1:]
    with pytest.raises(AttributeError, match="TensorFlow"):
        nt.experimental  # noqa: B018


REFUSED = [
    (lambda: stax.Dense(3, channel_axis=1), "numpy.moveaxis"),
    (lambda: stax.Dense(3, parameterization="standard", s=(2, 1)), "Leave s out"),
    (lambda: stax.Dense(3, parameterization="mup"), "'ntk' or 'standard'"),
    (lambda: stax.Conv(3, (3, 3), dimension_numbers=("NCHW", "OIHW", "NCHW")), "channels come last"),
    (lambda: stax.LayerNorm(axis=1), "without the channels"),
    (lambda: stax.ImageResize((-1, -1, 4, -1), "linear"), "give all sizes"),
    (lambda: stax.Aggregate(implementation="SPARSE"), "dense before"),
    (lambda: stax.GlobalSelfAttention(4, 4, 4, 1, pos_emb_type="CONCAT"), "positions are added"),
    (lambda: stax.FanInConcat(axis=1), "along their channels"),
    (lambda: stax.Gelu(approximate=True), "5e-4"),
    (lambda: stax.Gaussian(1.0, 1.0), "b < 0"),
    (lambda: stax.Elementwise(nngp_fn=lambda c, a, b: c), "Give fn"),
    (lambda: stax.serial(stax.Relu), "Layers are calls"),
    (lambda: stax.serial(stax.Dense(2), stax.FanOut(2)).kernel_fn(np.eye(2)), "ends in 2 streams"),
    (lambda: net(stax.parallel(stax.Relu(), stax.Relu())).kernel_fn(np.eye(2)), r"Put FanOut\(2\)"),
    (lambda: net(stax.FanInSum()).kernel_fn(np.eye(2)), "needs FanOut"),
    (lambda: net(stax.FanOut(2), stax.Relu()).kernel_fn(np.eye(2)), "between FanOut and FanIn"),
    (lambda: net().kernel_fn(np.eye(2), None, "covariance"), "is not known"),
    (lambda: net().kernel_fn(np.eye(2), None, "ntk", diagonal_batch=True), "diagonal"),
    (lambda: predict.gradient_descent_mse(np.eye(2), np.ones(2)), r"y\[:, None\]"),
    (lambda: predict.gradient_descent_mse(np.eye(2), np.ones((2, 1)))(1.0, 0.0, 0.0), "k_test_train"),
    (lambda: predict.gp_inference(np.eye(2), np.ones((2, 1)))("both"), "'ntkgp'"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_is_refused(call, message):
    with pytest.raises((NotImplementedError, ValueError, TypeError), match=message):
        call()


def net(*layers):
    return stax.serial(stax.Dense(8), *layers, stax.Dense(1))


def test_the_first_lines_of_the_introduction():
    """Triples, `get`, composition, jit, and a Kernel that goes through further layers."""
    init_fn, apply_fn, kernel_fn = scripts.five_minutes(stax)
    key1, key2 = jax.random.split(jax.random.key(1))
    x1, x2 = jax.random.normal(key1, (4, 10)), jax.random.normal(key2, (3, 10))
    nngp, ntk = kernel_fn(x1, x2, ("nngp", "ntk"))
    whole = kernel_fn(x1, x2)
    assert isinstance(nngp, jax.Array)
    assert (whole.nngp == nngp).all()
    assert (whole.ntk == ntk).all()
    assert (jax.jit(kernel_fn, static_argnames="get")(x1, x2, "ntk") - ntk).max() < 1e-5
    assert np.allclose(whole.cov1, jnp.diag(kernel_fn(x1, None, "nngp")))
    assert not whole.x1_is_x2
    with pytest.raises(AttributeError, match="inside of neural-tangents"):
        _ = whole.is_gaussian
    again = kernel_fn(whole)
    assert np.allclose(again.ntk, wl.ntk(wl.Serial(*[kernel_fn.network.net] * 2), x1, x2))
    shape, params = init_fn(key1, x1.shape)
    y = apply_fn(params, x1)
    assert shape == y.shape == (4, 1)
    nested = stax.serial((init_fn, apply_fn, kernel_fn), stax.Relu(), stax.Dense(1))
    assert nested.kernel_fn(x1, x2, "ntk").shape == (4, 3)


def test_finite_networks(key):
    init_fn, apply_fn, kernel_fn = stax.serial(
        stax.Dense(256, 1.2, 0.3), stax.Relu(), stax.Dense(2)
    )
    x = jax.random.normal(key, (3, 4))
    _, params = init_fn(key, (-1, 4))
    theta = nt.empirical_ntk_fn(apply_fn)(x, None, params)
    by_hand = lambda p, x: apply_fn(p, x)
    full = nt.empirical_ntk_fn(by_hand, trace_axes=())(x, None, params)
    assert np.allclose(jnp.trace(full, axis1=2, axis2=3) / 2, theta, rtol=1e-5)
    kept = nt.empirical_ntk_fn(by_hand, trace_axes=(), diagonal_axes=(-1,))(x, x[:2], params)
    assert np.allclose(kept, jnp.diagonal(full, axis1=2, axis2=3)[:, :2], rtol=1e-5)
    both = nt.empirical_kernel_fn(by_hand)(x, None, None, params)
    f = apply_fn(params, x)
    assert np.allclose(both.nngp, f @ f.T / 2, rtol=1e-5)
    product = nt.empirical_ntk_vp_fn(by_hand, x, None, params)(f)
    assert np.allclose(product, jnp.einsum("ijkl,jl->ik", full, f), rtol=1e-4, atol=1e-4)
    sampled = nt.monte_carlo_kernel_fn(init_fn, apply_fn, key, [2, 4])(x, None, "ntk")
    first, second = sampled
    limit = kernel_fn(x, None, "ntk")
    assert jnp.abs(second - limit).max() < 0.4 * limit.max()
    assert not np.allclose(first, second)
    batched = nt.batch(lambda a, b, get: kernel_fn(a, b, get), batch_size=2)
    assert np.allclose(batched(x, None, "ntk"), limit, rtol=1e-5)
    assert nt.batch(kernel_fn, 2) is kernel_fn
    moved = jax.tree.map(lambda w: w + 0.1, params)
    line, parabola = nt.linearize(apply_fn, params), nt.taylor_expand(apply_fn, params, 2)
    exact = apply_fn(moved, x)
    assert jnp.abs(parabola(moved, x) - exact).max() < jnp.abs(line(moved, x) - exact).max()
    assert np.allclose(nt.taylor_expand(apply_fn, params, 0)(moved, x), f)


def test_standard_parameterisation_has_the_same_nngp_and_no_ntk(key):
    layers = lambda how: stax.serial(
        stax.Dense(8, 1.3, 0.2, parameterization=how),
        stax.Relu(),
        stax.Dense(1, parameterization=how),
    )
    standard, ours = layers("standard"), layers("ntk")
    assert (
        standard.kernel_fn(np.eye(3), None, "nngp") == ours.kernel_fn(np.eye(3), None, "nngp")
    ).all()
    with pytest.raises(NotImplementedError, match="grows with the widths"):
        standard.kernel_fn(np.eye(3), None, "ntk")
    _, params = standard.init_fn(key, (-1, 3))
    assert np.std(params[0]["w"]) < 1.3
    mixed = stax.serial(stax.Dense(3), stax.Relu(), stax.Dense(1, parameterization="standard"))
    with pytest.raises(ValueError, match="are mixed"):
        mixed.kernel_fn(np.eye(3), None, "nngp")


def test_the_warning_of_times_names_the_factor():
    """A time of neural-tangents is n k times one of wl.train."""
    kernel_fn = scripts.cook_book(stax)[2]
    x, y = np.eye(3), np.arange(6.0).reshape(3, 2)
    predict_fn = predict.gradient_descent_mse_ensemble(kernel_fn, x, y)
    with pytest.warns(nt.ConventionWarning, match="t / 6 "):
        mean = predict_fn(t=12.0, x_test=x + 1, get="ntk")
    ours = wl.train(kernel_fn.network.net, x, y).predict(x + 1, t=12.0 / 6)
    assert np.allclose(mean, ours, rtol=1e-12)
    assert isinstance(predict_fn(x_test=x, get="ntk"), np.ndarray)  # for ever: nothing to warn of
    limit = wl.train(kernel_fn.network.net, x, y, loss="mean").critical_learning_rate
    assert np.isclose(predict.max_learning_rate(kernel_fn(x, None, "ntk"), y.size), limit)


@pytest.mark.skipif(not ALL, reason="compiles a solver; `make test-bridges` runs it")
def test_a_state_in_a_state_out():
    loss = lambda f, y: ((f - y) ** 2).sum() / 2
    k, y = np.diag([1.0, 2.0]), np.ones((2, 1))
    flow = predict.gradient_descent(loss, k, y)
    state = flow(1.0, predict.ODEState(np.zeros((2, 1)), None))
    assert np.allclose(state.fx_train[:, 0], 1 - np.exp([-1.0, -2.0]), atol=1e-6)
    assert state.fx_test is None
    with pytest.raises(NotImplementedError, match="Velocities"):
        predict.gradient_descent(loss, k, y, momentum=0.9)(1.0, state)


def test_the_table_of_names_is_up_to_date():
    import compat_table

    page = compat_table.page()
    assert compat_table.PAGE.read_text() == page, "run `python tests/compat_table.py`"
    rows = [row for row in page.splitlines() if row.startswith("| `")]
    assert len(rows) > 70
    assert all(len(row.split(" | ")[1]) > 8 for row in rows), "a name without a word about it"
