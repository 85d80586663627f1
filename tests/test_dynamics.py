"""Training in closed form against 50-digit values, ODE integration and explicit iteration."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp
from scipy.special import softmax

import widelimit as wl
from widelimit import plot as wl_plot
from widelimit.regression import descent, flow, heavy_ball


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], 1)


def network(case):
    if case["model"] == "mlp":
        return wl.mlp(case["L"])
    return wl.resnet(case["L"], alpha=case["alpha"])


def target(angles):
    return np.cos(angles) / 2 + np.sin(4 * angles)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(3)
    return rng.standard_normal((7, 3)), rng.standard_normal((7, 2)), rng.standard_normal((4, 3))


@pytest.fixture(scope="module")
def net():
    return wl.mlp(2, w_std=1.4, b_std=0.3)


# 50-digit values


@pytest.mark.parametrize("index", [0, 1])
def test_golden_dynamics(golden, index):
    case = golden["dynamics"][index]
    betas = -np.pi + 2 * np.pi * np.arange(6) / 6
    x, y, grid = circle(betas), target(betas), circle(np.array(case["grid"]))
    f0 = lambda x: 0.3 * (x[:, 0] ** 2 - x[:, 1] ** 2)  # 0.3 cos(2 b)
    model = wl.train(network(case), x, y, f0=f0)
    zero = wl.train(network(case), x, y)
    for row in case["flow"]:
        np.testing.assert_allclose(model.predict(grid, row["t"]), row["f"], atol=1e-11)
        np.testing.assert_allclose(zero.predict(grid, row["t"]), row["f_zero_init"], atol=1e-11)
        size = np.linalg.norm(model.error(row["t"]))
        np.testing.assert_allclose(size, row["train_error_norm"], rtol=1e-11, atol=1e-14)
    for row in case["gd"]:
        f = model.descend(grid, steps=row["steps"], learning_rate=row["lr"])
        np.testing.assert_allclose(f, row["f"], atol=1e-11)
        error = np.linalg.norm(model.descend(steps=row["steps"], learning_rate=row["lr"]) - y)
        np.testing.assert_allclose(error, row["train_error_norm"], atol=1e-11)
    np.testing.assert_allclose(model.predict(grid), case["f_infinity"], atol=1e-11)


def test_golden_regression(golden):
    sets = {s["name"]: s for s in golden["regression"]["sets"]}
    grid = circle(np.array(golden["regression"]["grid"]))
    cases = golden["regression"]["results"]
    assert len(cases) == 96
    for case in cases:
        points = sets[case["set"]]
        model = wl.train(network(case), circle(np.array(points["betas"])), points["y"])
        low, high = case["lambda_min"], case["lambda_max"]
        assert abs(model.lambda_max / high - 1) < 1e-12
        assert abs(model.lambda_min / low - 1) < 1e-12 * high / low
        assert abs(model.theorem5_learning_rate / case["lr_theorem5"] - 1) < 1e-11
        assert abs(model.critical_learning_rate / case["lr_critical"] - 1) < 1e-12
        assert abs(model.condition / case["cond"] - 1) < 1e-3
        tolerance = max(1e-10, 100 * 2.2e-16 * high / low)
        f = model.predict(grid)
        assert np.abs(f - case["f"]).max() < tolerance * np.abs(case["f"]).max()


def test_golden_gaussian_kernel_and_interpolants(golden):
    for case in golden["gauss_kernel"]:
        k = wl.gaussian_kernel([case["x"]], [case["y"]])[0, 0]
        assert abs(k - case["k"]) < 1e-14
    grid = circle(np.array(golden["regression"]["grid"]))
    for points in golden["regression"]["sets"]:
        x = circle(np.array(points["betas"]))
        f = wl.train(None, x, points["y"], kernel="gaussian").predict(grid)
        exact = np.array(points["gauss_interpolant"])
        # Rounding the matrix of the worst case, of condition 3.5e14, moves its interpolant by 1e-8.
        tolerance = 1e-7 if points["gauss_gram_cond"] > 1e12 else 1e-10
        assert np.abs(f - exact).max() < tolerance * np.abs(exact).max()


# the formulas of one eigenvalue


@settings(deadline=None, max_examples=60)
@given(st.floats(0, 50), st.floats(0, 1e6), st.sampled_from([0.0, 1e-300, 1e-17, 1e-9, 1.0]))
def test_flow_weights_keep_their_digits(value, t, scale):
    value *= scale
    got = flow(np.array([value]), t)[0]
    with mpmath.workdps(60):
        v, s = mpmath.mpf(value), mpmath.mpf(t)
        exact = s if v == 0 else -mpmath.expm1(-v * s) / v
        assert abs(got - exact) <= 1e-15 * abs(exact) + 1e-300


@settings(deadline=None, max_examples=60)
@given(st.floats(0, 1.99), st.integers(0, 3000), st.sampled_from([0.0, 1e-300, 1e-12, 0.4, 1.0]))
def test_descent_weights_keep_their_digits(rate, steps, scale):
    value = rate * scale / 0.7
    got = descent(np.array([value]), steps, 0.7)[0]
    with mpmath.workdps(60):
        v, lr = mpmath.mpf(value), mpmath.mpf(0.7)
        exact = steps * lr
        if lr * v >= 1:
            exact = (1 - (1 - lr * v) ** steps) / v
        elif v > 0:
            exact = -mpmath.expm1(steps * mpmath.log1p(-lr * v)) / v
        # Above rate 1 the power itself is conditioned like steps * eps.
        assert abs(got - exact) <= (1e-15 + 4e-16 * steps) * abs(exact) + 1e-15


@settings(deadline=None, max_examples=30)
@given(st.floats(0, 0.99), st.floats(0, 1.9), st.integers(0, 400))
def test_momentum_weights_are_those_of_the_iteration(momentum, rate, steps):
    phi = v = 0.0
    for _ in range(steps):
        v = momentum * v + rate * phi - 1
        phi -= v
    got = heavy_ball(np.array([rate]), steps, 1.0, momentum)[0]
    assert abs(got - phi) <= 1e-11 * max(1.0, abs(phi))


# independent integrations


def test_flow_is_the_solution_of_its_equation(data, net):
    x, y, x_test = data
    f0 = lambda x: np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], 1)
    model = wl.train(net, x, y, f0=f0)
    everywhere = np.concatenate([x, x_test])
    k = wl.ntk(net, everywhere, x)
    slope = lambda t, f: -(k @ (f.reshape(-1, 2)[:7] - y)).ravel()
    times = np.array([0.0, 0.3, 2.0, 9.0])
    exact = solve_ivp(
        slope, (0, 9), f0(everywhere).ravel(), "DOP853", times, rtol=1e-12, atol=1e-12
    ).y.T.reshape(4, 11, 2)
    np.testing.assert_allclose(model.predict(x, times), exact[:, :7], atol=1e-8)
    np.testing.assert_allclose(model.predict(None, times), exact[:, :7], atol=1e-8)
    np.testing.assert_allclose(model.predict(x_test, times), exact[:, 7:], atol=1e-8)
    np.testing.assert_array_equal(model.predict(x_test, 0.0), f0(x_test))


def test_trained_for_ever_is_the_linear_solve(data, net):
    x, y, x_test = data
    exact = wl.ntk(net, x_test, x) @ np.linalg.solve(wl.ntk(net, x), y)
    model = wl.train(net, x, y)
    for t in (None, np.inf, 1e9):
        np.testing.assert_allclose(model.predict(x_test, t), exact, rtol=1e-10, atol=1e-10)
    one = wl.train(net, x, y[:, 1])
    np.testing.assert_allclose(one.predict(x_test), exact[:, 1], rtol=1e-10, atol=1e-10)
    assert one.predict(x_test, [0.0, 1.0]).shape == (2, 4)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_descent_is_the_explicit_iteration(momentum, data, net):
    x, y, x_test = data
    f0 = lambda x: np.stack([np.sin(x[:, 0]), x[:, 1] * x[:, 2]], 1)
    model = wl.train(net, x, y, f0=f0)
    lr = 0.9 * model.critical_learning_rate
    k, k_test = wl.ntk(net, x), wl.ntk(net, x_test, x)
    f, f_test, v, v_test = f0(x), f0(x_test), 0.0, 0.0
    for _ in range(40):
        error = f - y
        v, v_test = momentum * v + k @ error, momentum * v_test + k_test @ error
        f, f_test = f - lr * v, f_test - lr * v_test
    options = {"steps": 40, "learning_rate": lr, "momentum": momentum}
    np.testing.assert_allclose(model.descend(**options), f, atol=1e-12)
    np.testing.assert_allclose(model.descend(x_test, **options), f_test, atol=1e-12)


def test_the_critical_rate_separates_convergence_from_divergence(data, net):
    x, y, _ = data
    model = wl.train(net, x, y)
    size = lambda steps, lr: np.linalg.norm(model.descend(steps=steps, learning_rate=lr) - y)
    assert (
        size(4000, 0.99 * model.critical_learning_rate)
        < size(100, 0.99 * model.critical_learning_rate)
        < size(1, 1e-9)
    )
    with pytest.warns(UserWarning, match="diverges"):
        assert size(4000, 1.01 * model.critical_learning_rate) > 1e3 * np.linalg.norm(y)
    with (
        pytest.warns(UserWarning, match="diverges"),
        pytest.raises(ValueError, match="overflowed"),
    ):
        size(100_000, 3 * model.critical_learning_rate)
    assert model.theorem5_learning_rate < model.critical_learning_rate
    np.testing.assert_allclose(1 / model.time_scales, np.linalg.eigvalsh(model.matrix)[::-1])


def huber_slope(f, y):
    return np.clip(f - y, -1, 1)


def quartic(f, y):
    return ((f - y) ** 4).sum() / 4


ONE_HOT = np.eye(2)[[0, 1, 1, 0, 0, 1, 0]]
SIGNS = np.array([[1, -1, 1, 1, -1, -1, 1.0], [-1, -1, 1, -1, 1, 1, 1]]).T
LOSSES = {
    "huber": ("huber", None, huber_slope),
    "logistic": ("logistic", SIGNS, lambda f, y: -y / (1 + np.exp(y * f))),
    "cross-entropy": ("cross-entropy", ONE_HOT, lambda f, y: softmax(f, axis=1) - y),
    "custom": (quartic, None, lambda f, y: (f - y) ** 3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_other_losses_follow_their_equation(name, data, net):
    loss, targets, slope = LOSSES[name]
    x, y, x_test = data
    y = y if targets is None else targets
    model = wl.train(net, x, y, loss=loss)
    k = wl.ntk(net, np.concatenate([x, x_test]), x)
    field = lambda t, f: -(k @ slope(f.reshape(-1, 2)[:7], y)).ravel()
    times = np.array([0.5, 3.0])
    exact = solve_ivp(
        field, (0, 3), np.zeros(22), "DOP853", times, rtol=1e-12, atol=1e-12
    ).y.T.reshape(2, 11, 2)
    np.testing.assert_allclose(model.predict(x_test, times[::-1]), exact[::-1, 7:], atol=1e-8)
    np.testing.assert_allclose(model.predict(None, times), exact[:, :7], atol=1e-8)
    f, v = np.zeros((7, 2)), 0.0
    for _ in range(25):
        v = 0.5 * v + k[:7] @ slope(f, y)
        f = f - 0.02 * v
    np.testing.assert_allclose(
        model.descend(steps=25, learning_rate=0.02, momentum=0.5), f, atol=1e-12
    )
    with pytest.raises(ValueError, match="finite t"):
        model.predict(x_test)


def test_the_solver_agrees_with_the_closed_form_also_when_stiff(data, net):
    x, y, x_test = data
    mine = lambda f, y: ((f - y) ** 2).sum() / 2
    by_solver = wl.train(net, x, y, loss=mine)
    exact = wl.train(net, x, y)
    for t in (1.0, 300 / exact.lambda_max * 5):
        got = by_solver.predict(x_test, t)
        np.testing.assert_allclose(got, exact.predict(x_test, t), atol=1e-8)


# initial functions, kernels, conventions


def test_initial_values_functions_and_finite_networks_agree(data, net):
    x, y, x_test = data
    finite = wl.finite(net, width=32)
    params = finite.init(0, 3)
    y = y[:, :1]
    by_pair = wl.train(net, x, y, f0=(finite, params))
    values = np.asarray(finite.apply(params, x), float).reshape(7, 1)
    test_values = np.asarray(finite.apply(params, x_test), float).reshape(4, 1)
    by_values = wl.train(net, x, y, f0=values)
    got = by_values.predict(x_test, 1.0, f0=test_values)
    np.testing.assert_allclose(by_pair.predict(x_test, 1.0), got, atol=1e-12)
    np.testing.assert_allclose(by_pair.predict(x_test, 0.0), test_values, atol=1e-12)
    with pytest.raises(ValueError, match="initial values at the training points only"):
        by_values.predict(x_test, 1.0)


def test_kernels_by_name_and_by_function_agree(data, net):
    x, y, x_test = data
    mine = lambda a, b=None: wl.nngp(net, a, b)
    np.testing.assert_array_equal(
        wl.train(None, x, y, kernel=mine).predict(x_test, 2.0),
        wl.train(net, x, y, kernel="nngp").predict(x_test, 2.0),
    )


def test_jax_in_jax_out_and_float32_stays(data, net):
    x, y, x_test = data
    exact = wl.train(net, x, y).predict(x_test, 1.0)
    got = wl.train(net, jnp.asarray(x), jnp.asarray(y)).predict(jnp.asarray(x_test), 1.0)
    assert isinstance(got, jax.Array)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, exact, atol=1e-5)
    single = wl.train(net, x.astype(np.float32), y).predict(x_test.astype(np.float32), 1.0)
    assert single.dtype == np.float32
    assert exact.dtype == np.float64
    with pytest.raises(TypeError, match="traced"):
        jax.jit(lambda x: wl.train(net, x, y).predict(x))(jnp.asarray(x))


def test_figures_show_the_numbers(data, net):
    x, y, x_test = data
    pyplot = wl_plot.pyplot()
    model = wl.train(net, x, y[:, 0])
    fig = wl_plot.training(model, np.arange(4.0), x_test, [0.5, 2.0], points=np.zeros(7))
    left, right = fig.axes
    np.testing.assert_array_equal(left.lines[1].get_ydata(), model.predict(x_test, 2.0))
    assert len(right.lines) == 7 + 1
    p = wl.posterior(net, x, y[:, 0], x_test, noise=0.1)
    fig_band = wl_plot.band(np.arange(4.0), p, np.zeros(7), y[:, 0], samples=3)
    assert len(fig_band.axes[0].lines) == 1 + 3 + 1
    np.testing.assert_array_equal(fig_band.axes[0].lines[0].get_ydata(), p.mean)
    pyplot.close(fig)
    pyplot.close(fig_band)


# what cannot be fitted


def test_a_singular_matrix_stays_finite_and_is_reported(golden):
    case = golden["degenerate_grams"][0]
    betas = -np.pi + 2 * np.pi * np.arange(6) / 6
    x, y, grid = circle(betas), np.arange(6.0), circle(np.linspace(0, 6, 5))
    model = wl.train(wl.mlp(case["L"]), x, y)
    assert model.condition == np.inf
    assert np.isinf(model.time_scales[-1])
    k, cross = wl.ntk(wl.mlp(1), x), wl.ntk(wl.mlp(1), grid, x)
    exact = cross @ np.linalg.pinv(k, rcond=1e-12, hermitian=True) @ y
    with pytest.warns(UserWarning, match="rank 5 of 6"):
        np.testing.assert_allclose(model.predict(grid), exact, atol=1e-12)
    np.testing.assert_allclose(model.predict(grid, 1e6), exact, atol=1e-12)
    for t in (1e10, 1e13, 1e15, 1e300):
        with pytest.warns(UserWarning, match="rank 5 of 6"):
            np.testing.assert_allclose(model.predict(grid, t), exact, atol=1e-12)


def test_contradicting_targets_are_reported_and_averaged():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.warns(UserWarning, match="Rows 0 and 2"):
        model = wl.train(wl.mlp(2), x, [1.0, 5.0, 2.0])
    with pytest.warns(UserWarning, match="rank 2 of 3"):
        np.testing.assert_allclose(model.predict(x), [1.5, 5, 1.5], atol=1e-12)


def test_repeated_points_with_one_target_are_fitted():
    x = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    model = wl.train(wl.mlp(2), x, [1.0, 5.0, 1.0])
    with pytest.warns(UserWarning, match="rank 2 of 3"):
        np.testing.assert_allclose(model.predict(x), [1, 5, 1], atol=1e-12)


def test_a_kernel_that_vanishes_learns_nothing():
    model = wl.train(wl.mlp(2), np.zeros((2, 3)), [1.0, 1.0])
    assert model.lambda_max == 0
    assert model.critical_learning_rate == np.inf
    assert not model.predict(np.ones((1, 3)), 5.0).any()
    with pytest.warns(UserWarning, match="rank 0 of 2"):
        assert not model.predict(np.ones((1, 3))).any()
    assert not model.descend(steps=3, learning_rate=0.1).any()


@pytest.mark.parametrize("n", [1, 4])
def test_one_point_and_constant_targets(n):
    x = circle(np.arange(n, dtype=float))
    model = wl.train(wl.mlp(2), x, np.full(n, 3.0))
    np.testing.assert_allclose(model.predict(x), np.full(n, 3.0), atol=1e-11)
    assert np.isfinite(model.predict(-x, [0.0, 1.0, 1e5])).all()


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(2, 6))
def test_the_loss_never_rises(seed, n):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((n, 2)), rng.standard_normal(n)
    quadratic = lambda a, b=None: (a @ (a if b is None else b).T) ** 2  # of rank 3
    model = wl.train(None, x, y, kernel=quadratic)
    times = np.array([0, 0.01, 0.1, 1, 10, 1e3, 1e5])
    losses = ((model.predict(None, times) - y) ** 2).sum(1)
    assert (np.diff(losses) <= 1e-12 * losses[0]).all()


BAD = {
    "lengths": ({"y": [1.0]}, "one target for each point"),
    "nan target": ({"y": [1.0, np.nan]}, "NaN"),
    "nan point": ({"x": [[1.0, np.inf], [0.0, 1.0]]}, "NaN or infinite"),
    "kernel": ({"kernel": "ntkk"}, "Did you mean 'ntk'"),
    "loss": ({"loss": "squares"}, "Did you mean 'squared'"),
    "labels": ({"loss": "cross-entropy"}, "np.eye"),
    "signs": ({"loss": "logistic", "y": [0.0, 1.0]}, "-1 and 1"),
    "unsummed": ({"loss": lambda f, y: (f - y) ** 2}, "sum"),
    "f0": ({"f0": np.ones(3)}, "f0 must have shape"),
    "kernel shape": ({"kernel": lambda a, b=None: np.ones(2)}, "shape"),
    "kernel nan": ({"kernel": lambda a, b=None: np.full((2, 2), np.nan)}, "NaN"),
    "tolerance": ({"tolerance": 0.0}, "tolerance"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments_are_refused(name):
    change, message = BAD[name]
    good = {"x": [[1.0, 0.0], [0.0, 1.0]], "y": [1.0, 2.0]}
    with pytest.raises(ValueError, match=message):
        wl.train(wl.mlp(1), **{**good, **change})


def test_bad_questions_are_refused():
    model = wl.train(wl.mlp(1), [[1.0, 0.0], [0.0, 1.0]], [1.0, 2.0])
    for bad in (-1.0, np.nan, [1.0, -1.0], []):
        with pytest.raises(ValueError, match="t "):
            model.predict(t=bad)
    with pytest.raises(ValueError, match="features"):
        model.predict([[1.0]])
    with pytest.raises(ValueError, match="learning_rate"):
        model.descend(steps=1, learning_rate=-1.0)
    with pytest.raises(ValueError, match="momentum"):
        model.descend(steps=1, learning_rate=1.0, momentum=1.0)
    with pytest.raises(TypeError, match="steps"):
        model.descend(steps=1.5, learning_rate=1.0)
    with pytest.raises(TypeError, match="a network was expected"):
        wl.train(None, [[1.0]], [1.0])


# old names


def test_old_names_still_work_and_say_the_new_ones(data, net):
    x, y, x_test = data
    model = wl.train(net, x, y)
    with pytest.warns(DeprecationWarning, match="critical_learning_rate"):
        assert model.lr_critical == model.critical_learning_rate
    with pytest.warns(DeprecationWarning, match="theorem5_learning_rate"):
        assert model.lr_theorem5 == model.theorem5_learning_rate
    new = model.descend(x_test, steps=3, learning_rate=0.01)
    with pytest.warns(DeprecationWarning, match="learning_rate"):
        np.testing.assert_array_equal(model.descend(x_test, steps=3, lr=0.01), new)
    with pytest.raises(TypeError, match="old name"):
        model.descend(x_test, steps=3, lr=0.01, learning_rate=0.01)
    with pytest.warns(DeprecationWarning, match="linearise"):
        model = wl.linearize(lambda p, x: p * x, jnp.ones(()))
    assert model(jnp.full((), 2.0), 3.0) == 6.0


def test_the_mean_of_squares_is_the_sum_at_another_pace():
    x, y = np.random.default_rng(0).standard_normal((2, 5, 2))
    summed, mean = (wl.train(wl.mlp(2), x, y, loss=loss) for loss in ("squared", "mean"))
    np.testing.assert_allclose(mean.predict(x, 30.0), summed.predict(x, 3.0), rtol=1e-12)
    rate = summed.critical_learning_rate / 3
    assert mean.critical_learning_rate == pytest.approx(30 * rate)
    step = lambda model, rate: model.descend(x, steps=7, learning_rate=rate)
    np.testing.assert_allclose(step(mean, 10 * rate), step(summed, rate), rtol=1e-12)
    np.testing.assert_allclose(mean.error(30.0), summed.error(3.0), rtol=1e-12)
    np.testing.assert_allclose(mean.time_scales, 10 * summed.time_scales, rtol=1e-12)


def test_a_flow_with_friction():
    """Against 40 digits at all kinds of damping; against descent with momentum; against the solver."""
    import mpmath as mp

    from widelimit.regression import damped

    def exact(rate, t, friction):
        with mp.workdps(40):
            rate, t, half = mp.mpf(rate), mp.mpf(t), mp.mpf(friction) / 2
            if rate == 0:
                return (t + mp.expm1(-2 * half * t) / (2 * half)) / (2 * half)
            root = mp.sqrt(mp.mpc(half**2 - rate))
            wave = mp.sinh(root * t) / root if root else t
            return float(mp.re((1 - mp.exp(-half * t) * (mp.cosh(root * t) + half * wave)) / rate))

    values = np.array([0.0, 1e-12, 1e-3, 0.25, 0.2500001, 1.0, 1e4])
    for t in (1e-6, 0.3, 3.0, 1e3):
        for friction in (1e-3, 0.5, 1.0, 30.0):
            want = [float(exact(v, t, friction)) for v in values]
            np.testing.assert_allclose(damped(values, t, friction), want, rtol=1e-9)

    x, y = np.random.default_rng(0).standard_normal((2, 5, 2))
    model = wl.train(wl.mlp(2), x, y)
    flow = model.predict(x, 2.0, friction=0.8)
    errors = []
    for rate in (1e-4, 1e-6):
        root = rate**0.5
        near = model.descend(x, steps=round(2 / root), learning_rate=rate, momentum=1 - 0.8 * root)
        errors.append(np.abs(near - flow).max())
    assert errors[1] < 0.15 * errors[0] < 0.01
    solver = wl.train(wl.mlp(2), x, y, loss=lambda f, y: ((f - y) ** 2).sum() / 2)
    np.testing.assert_allclose(solver.predict(x, 2.0, friction=0.8), flow, atol=1e-7)
    np.testing.assert_allclose(model.predict(x, friction=0.8), model.predict(x), rtol=1e-9)
    with pytest.raises(ValueError, match="never comes to rest"):
        model.predict(x, friction=0.0)


# without the matrix


def test_training_without_the_matrix_is_training(seed, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(seed)
    x, y, x_test = rng.standard_normal((40, 3)), rng.standard_normal((40, 2)), np.ones((3, 3))
    f0 = lambda x: x[:, :2] / 3
    for loss in ("squared", "mean"):
        same = {"kernel": "gaussian", "f0": f0, "loss": loss}  # nothing to compile
        held = wl.train(None, x, y, solver="cholesky", **same)
        loose = wl.train(None, x, y, solver="cg", checkpoint=tmp_path / "state.npz", **same)
        assert "conjugate" not in str(loose)  # nothing is solved before it is asked for
        assert loose.lambda_max == pytest.approx(held.lambda_max, rel=1e-5)
        for where in (None, x_test):
            np.testing.assert_allclose(loose.predict(where), held.predict(where), atol=1e-7)
            rate = held.critical_learning_rate / 2
            for momentum in (0.0, 0.7):
                go = {"steps": 15, "learning_rate": rate, "momentum": momentum}
                found, known = (m.descend(where, **go) for m in (loose, held))
                np.testing.assert_allclose(found, known, atol=1e-10)
    assert loose.outcome.residual < 1e-10
    assert "residual" in str(loose)
    np.testing.assert_allclose(loose.dual(), held.dual(), atol=1e-6)
    assert loose.predict(x_test, [np.inf, np.inf], friction=1.0).shape == (2, 3, 2)
    with pytest.warns(UserWarning, match="diverges"):
        loose.descend(x_test, steps=2, learning_rate=3 * held.critical_learning_rate)
    for ask in (
        lambda: loose.predict(x_test, 1.0),
        lambda: loose.dual(1.0),
        lambda: loose.error(1.0),
        lambda: loose.influence(x_test),
        lambda: loose.matrix,
        lambda: loose.lambda_min,
    ):
        with pytest.raises(ValueError, match="solver='cholesky' if 8 n"):
            ask()
    smooth = {"kernel": "gaussian"}
    with pytest.raises(ValueError, match="loss='huber' is followed"):
        wl.train(None, x, y, loss="huber", solver="cg", **smooth)
    # Beyond a number of points it is the default, unless the matrix is there anyway.
    monkeypatch.setattr("widelimit.regression._solvers.DENSE", 30)
    given = wl.train(None, wl.gaussian_kernel(x), y, kernel="precomputed")
    assert not hasattr(given, "outcome")
    many = wl.train(None, x, y, verbose=True, rank=10, **smooth)
    np.testing.assert_allclose(many.predict(), y, atol=1e-6)
    assert many.outcome.rank == 10
    assert "conjugate gradients with 40 points: about" in capsys.readouterr().err
    with pytest.raises(ValueError, match="precision must be"):
        wl.train(None, x, y, precision="float16", **smooth)
