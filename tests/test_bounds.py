"""Jacobian bounds against golden values, brute force and drawn matrices."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widelimit as wl
from widelimit import bounds, plot


def test_golden_bounds(golden):
    for case in golden["jacobian_bounds"]:
        phi = wl.Activation("phi", jnp.tanh, lipschitz=case["C_phi"])
        depth, w, v = case["L"], case["sigma_w"], case["sigma_v"]
        mlp = wl.mlp(depth=depth, activation=phi, w_std=w)
        resnet = wl.resnet(depth=depth, alpha=case["alpha"], activation=phi, w_std=w, v_std=v)
        size = {"width": case["n"], "input_dim": case["d"]}
        tolerance = {"rel": 1e-14, "abs": 0}
        assert float(bounds.jacobian(mlp, **size)) == pytest.approx(case["B_MLP"], **tolerance)
        assert float(bounds.jacobian(resnet, **size)) == pytest.approx(
            case["B_ResNet"], **tolerance
        )
        assert bounds.ratio(resnet, mlp, **size) == pytest.approx(case["ratio"], **tolerance)
        threshold = bounds.alpha_threshold(depth, activation=phi, w_std=w, v_std=v)
        assert threshold == pytest.approx(case["alpha_threshold"], rel=1e-14, abs=1e-16)


def test_which_depths_qualify():
    """alpha = 0.1 from depth 3 on, alpha = 1 never; the ratio falls with depth below 2/9 only."""
    size = {"width": 100, "input_dim": 2}
    of = lambda alpha, depth: bounds.ratio(
        wl.resnet(depth=depth, alpha=alpha), wl.mlp(depth=depth), **size
    )
    assert [of(0.1, depth) <= 1 for depth in (1, 2, 3, 4, 15)] == [False, False, True, True, True]
    assert all(of(1.0, depth) > 1 for depth in (1, 3, 15))
    assert of(0.21, 10) > of(0.21, 11)
    assert of(0.23, 10) < of(0.23, 11)
    assert of(bounds.alpha_threshold(7), 7) == pytest.approx(1, rel=1e-13)


def test_a_negative_threshold_says_never():
    assert bounds.alpha_threshold(1, w_std=0.5) < 0


@settings(max_examples=25, deadline=None)
@given(
    depth=st.integers(0, 6),
    alpha=st.floats(-2, 2),
    w=st.floats(0.1, 3),
    n=st.integers(2, 500),
    d=st.integers(1, 50),
)
def test_repeat_equals_the_unrolled_network(depth, alpha, w, n, d):
    block = wl.Residual(wl.Dense(w_std=w) >> wl.Phi("erf") >> wl.Dense(), alpha=alpha)
    unrolled = wl.Serial(wl.Dense(), *[block] * depth, wl.Dense())
    folded = wl.Dense() >> wl.Repeat(block, depth) >> wl.Dense()
    a, b = (bounds.jacobian(net, width=n, input_dim=d) for net in (unrolled, folded))
    assert float(a) == pytest.approx(float(b), rel=1e-13)
    assert a.log10 == pytest.approx(math.log10(float(a)), abs=1e-12)
    assert a.failure == pytest.approx(b.failure, rel=1e-12)
    assert math.prod(f.value for f in b.factors) == pytest.approx(float(b), rel=1e-13)


def test_general_networks():
    size = {"width": 400, "input_dim": 4}
    one = wl.Dense() >> wl.Phi("relu") >> wl.Dense()
    assert float(bounds.jacobian(one + one, **size)) == pytest.approx(
        2 * float(bounds.jacobian(one, **size))
    )
    scaled = one >> wl.Scale(-3.0)
    assert float(bounds.jacobian(scaled, **size)) == pytest.approx(
        3 * float(bounds.jacobian(one, **size))
    )
    with_identity = one >> wl.Identity()
    assert float(bounds.jacobian(with_identity, **size)) == float(bounds.jacobian(one, **size))
    # A stated width: 100 -> 400 hidden, norm at most sqrt(400) + sqrt(100) + sqrt(400).
    stated = wl.Dense(width=100) >> wl.Phi("relu") >> wl.Dense() >> wl.Phi("relu") >> wl.Dense()
    first = (math.sqrt(100) + math.sqrt(4) + 20) / 2
    assert float(bounds.jacobian(stated, **size)) == pytest.approx(first * 50 / 10 * 2)
    assert bounds.jacobian(wl.mlp(depth=5), **size).failure == pytest.approx(
        5 * 2 * math.exp(-200) + 2 * math.exp(-(19**2) / 2), rel=1e-12, abs=0
    )


def test_deep_bounds_do_not_overflow():
    bound = bounds.jacobian(wl.mlp(depth=2000), width=100, input_dim=2)
    assert float(bound) == math.inf
    assert bound.log10 == pytest.approx(1999 * math.log10(3) + math.log10(2 + 4 * math.sqrt(50)))
    size = {"width": 100, "input_dim": 2}
    deep = bounds.ratio(wl.resnet(depth=2000, alpha=0.2), wl.mlp(depth=2000), **size)
    assert deep == pytest.approx(3 * math.exp(2000 * math.log(2.8 / 3)), rel=1e-9)


def test_the_lemma_against_drawn_matrices():
    check = bounds.check_singular_values(120, 40, t=1.0, draws=60, key=1)
    assert check.inside >= check.lemma.probability
    assert check.smallest.min() > 0.5 * check.lemma.low
    # It is sharp to first order: the extremes sit at sqrt(m) -+ sqrt(n).
    assert check.largest.mean() == pytest.approx(math.sqrt(120) + math.sqrt(40), rel=0.03)
    assert check.smallest.mean() == pytest.approx(math.sqrt(120) - math.sqrt(40), rel=0.08)


def test_lemma_by_probability():
    lemma = bounds.singular_values(100, 25, probability=0.99)
    assert 1 - 2 * math.exp(-(lemma.t**2) / 2) == pytest.approx(0.99)
    assert lemma.high == pytest.approx(15 + lemma.t)
    assert lemma.low == pytest.approx(5 - lemma.t)
    assert bounds.singular_values(25, 100, probability=0.99) == lemma
    assert bounds.singular_values(4, 4, t=1.0).low == 0.0


def small_resnet(params, x):
    """A residual network written out, as an independent finite model."""
    n = params["U"].shape[0]
    h = x @ params["U"].T / math.sqrt(x.shape[1])
    for w, v in params["blocks"]:
        h = h + 0.1 * jax.nn.relu(h @ w.T / math.sqrt(n)) @ v.T / math.sqrt(n)
    return h @ params["w"] / math.sqrt(n)


def small_params(key, n, d, depth):
    keys = iter(jax.random.split(key, 2 * depth + 2))
    draw = lambda *shape: jax.random.normal(next(keys), shape)
    blocks = [(draw(n, n), draw(n, n)) for _ in range(depth)]
    return {"U": draw(n, d), "blocks": blocks, "w": draw(n)}


def test_measured_jacobians_stay_below_the_bound_before_and_after_training(key):
    n, depth = 128, 3
    net = wl.resnet(depth=depth, alpha=0.1)
    finite = wl.finite(net, width=n)
    params, f = finite.init(key, 2), lambda p, x: finite.apply(p, x).reshape(-1)
    b = np.linspace(-3, 3, 12)
    x = np.stack([np.cos(b), np.sin(b)], axis=1)
    bound = bounds.jacobian(net, width=n, input_dim=2)
    before = bounds.jacobian_norms(finite.apply, params, x)
    x32, y = jnp.asarray(x[::3], jnp.float32), jnp.asarray(np.sin(b[::3]), jnp.float32)
    loss = lambda p: jnp.sum((f(p, x32) - y) ** 2) / 2
    start = float(loss(params))
    step = jax.jit(lambda p: jax.tree.map(lambda a, g: a - 0.3 * g, p, jax.grad(loss)(p)))
    for _ in range(200):
        params = step(params)
    assert float(loss(params)) < 0.3 * start
    after = bounds.jacobian_norms(finite.apply, params, x)
    for measured in (before, after):
        assert 0 < measured.maximum < float(bound)
        assert measured.looseness(bound) == pytest.approx(float(bound) / measured.norms.max())


def test_measured_jacobian_of_a_linear_map_is_its_largest_singular_value():
    w = np.random.default_rng(0).standard_normal((3, 4))
    out = bounds.jacobian_norms(lambda p, x: x @ p, w, np.ones((2, 3)))
    assert out.norms == pytest.approx([np.linalg.svd(w)[1][0]] * 2, rel=1e-14)


def test_measured_jacobian_against_finite_differences(key):
    params = small_params(key, 32, 3, 2)
    x = np.random.default_rng(1).standard_normal((4, 3))
    out = bounds.jacobian_norms(small_resnet, params, x)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), params)
        f = lambda z: np.asarray(small_resnet(wide, jnp.asarray(z)))
        columns = [(f(x + 1e-6 * e) - f(x - 1e-6 * e)) / 2e-6 for e in np.eye(3)]
    assert out.norms == pytest.approx(np.linalg.norm(columns, axis=0), rel=1e-4)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: bounds.jacobian(
                wl.mlp(depth=1, activation="relu_power(2)"), width=9, input_dim=2
            ),
            ValueError,
            "Lipschitz",
        ),
        (lambda: bounds.jacobian("mlp", width=9, input_dim=2), TypeError, "network was expected"),
        (lambda: bounds.jacobian(wl.mlp(depth=1), width=0, input_dim=2), ValueError, "width"),
        (lambda: bounds.jacobian(wl.mlp(depth=1), width=9.5, input_dim=2), TypeError, "integer"),
        (lambda: bounds.alpha_threshold(0), ValueError, "depth"),
        (lambda: bounds.alpha_threshold(3, w_std=0.0), ValueError, "positive"),
        (lambda: bounds.singular_values(3, 3, t=-1.0), ValueError, "at least 0"),
        (lambda: bounds.singular_values(3, 3, t=1.0, probability=0.5), ValueError, "not both"),
        (lambda: bounds.singular_values(3, 3, probability=1.0), ValueError, "probability"),
        (lambda: bounds.jacobian_norms(None, {}, [[1.0]]), TypeError, "function of"),
        (
            lambda: bounds.ratio(wl.mlp(depth=1), wl.mlp(depth=1, w_std=0.0), width=9, input_dim=2),
            ValueError,
            "zero",
        ),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_traced_numbers_are_refused():
    with pytest.raises(TypeError, match="traced"):
        jax.jit(lambda w: bounds.jacobian(wl.mlp(depth=1, w_std=w), width=9, input_dim=2).value)(
            1.0
        )


def test_plots():
    fig = plot.jacobian_bounds(depths=(1, 3, 5), alphas=(1.0, 0.1), width=100, input_dim=2)
    line = fig.axes[0].lines[0].get_ydata()
    assert line[1] == float(bounds.jacobian(wl.mlp(depth=3), width=100, input_dim=2))
    fig = plot.alpha_threshold(depths=range(1, 8))
    assert fig.axes[0].lines[0].get_ydata()[4] == bounds.alpha_threshold(5)
    fig = plot.singular_values(bounds.check_singular_values(30, 10, draws=20))
    assert len(fig.axes[0].lines) >= 2
