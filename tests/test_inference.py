"""Posterior, ensembles, ridge regression and evidence against textbook formulas."""

import pickle

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
import scipy.linalg
from scipy.stats import multivariate_normal

import widelimit as wl
from widelimit.estimators import NTKRegressor
from widelimit.regression import CG, Cholesky


def circle(angles):
    return np.stack([np.cos(angles), np.sin(angles)], 1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(5)
    return rng.standard_normal((6, 3)), rng.standard_normal((6, 2)), rng.standard_normal((4, 3))


@pytest.fixture(scope="module")
def net():
    return wl.mlp(2, w_std=1.4, b_std=0.3)


def matrix(a):
    return mpmath.matrix(np.atleast_2d(a).tolist())


def array(m):
    return np.array(m.tolist(), dtype=float)


# posterior and ensembles


@pytest.mark.parametrize("index", [0, 1])
def test_golden_posterior_and_ensemble(golden, index):
    case = golden["dynamics"][index]
    betas = -np.pi + 2 * np.pi * np.arange(6) / 6
    x, y = circle(betas), np.cos(betas) / 2 + np.sin(4 * betas)
    grid = circle(np.array(case["grid"]))
    net = wl.mlp(5) if case["model"] == "mlp" else wl.resnet(5, alpha=case["alpha"])
    for row in case["nngp_posterior"]:
        p = wl.posterior(net, x, y, grid, noise=row["noise_variance"])
        np.testing.assert_allclose(p.mean, row["mean"], atol=1e-11)
        np.testing.assert_allclose(p.variance, row["variance_latent"], atol=1e-13)
        np.testing.assert_allclose(p.observed_variance, row["variance_observed"], atol=1e-13)
        np.testing.assert_allclose(np.diag(p.covariance), p.variance, atol=1e-13)
    e = wl.ensemble(net, x, y, grid)
    np.testing.assert_allclose(e.mean, case["ensemble_t_infinity"]["mean"], atol=1e-11)
    np.testing.assert_allclose(e.variance, case["ensemble_t_infinity"]["variance"], atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_posterior_is_the_textbook_formula_in_fifty_digits(noise, data, net):
    x, y, x_test = data
    p = wl.posterior(net, x, y, x_test, noise=noise)
    with mpmath.workdps(50):
        a = matrix(wl.nngp(net, x) + 0.0) + noise * mpmath.eye(6)
        cross = matrix(wl.nngp(net, x_test, x))
        gain = cross * a**-1
        mean = array(gain * matrix(y))
        covariance = array(matrix(wl.nngp(net, x_test)) - gain * cross.T)
    np.testing.assert_allclose(p.mean, mean, atol=1e-12)
    np.testing.assert_allclose(p.covariance, covariance, atol=1e-12)
    np.testing.assert_allclose(p.std, np.sqrt(np.diag(covariance)), atol=1e-11)


@pytest.mark.parametrize("t", [0.0, 0.7, 20.0])
def test_ensembles_at_any_time_by_matrix_exponentials(t, data, net):
    x, y, x_test = data
    theta, cross = wl.ntk(net, x), wl.ntk(net, x_test, x)
    a = cross @ np.linalg.solve(theta, np.eye(6) - scipy.linalg.expm(-theta * t))
    k = wl.nngp(net, np.concatenate([x, x_test]))
    move = np.concatenate([-a, np.eye(4)], axis=1)  # f_t(x) = f_0(x) - A f_0(X) + A y
    e = wl.ensemble(net, x, y, x_test, t=t)
    np.testing.assert_allclose(e.mean, a @ y, atol=1e-12)
    np.testing.assert_allclose(e.covariance, move @ k @ move.T, atol=1e-12)
    np.testing.assert_allclose(e.variance, np.diag(e.covariance), atol=1e-12)


def test_training_the_last_layer_only_is_bayesian(data, net):
    x, y, x_test = data
    e = wl.ensemble(net, x, y, x_test, kernel="nngp")
    p = wl.posterior(net, x, y, x_test)
    np.testing.assert_allclose(e.mean, p.mean, atol=1e-10)
    np.testing.assert_allclose(e.covariance, p.covariance, atol=1e-10)


@pytest.mark.parametrize("key", [7, "jax"])
def test_samples_have_the_mean_and_covariance(key, data, net):
    x, y, x_test = data
    key = jax.random.key(1) if key == "jax" else key
    p = wl.posterior(net, x, y, x_test, noise=0.5)
    draws = p.sample(key, 4000)
    assert draws.shape == (4000, 4, 2)
    np.testing.assert_array_equal(draws, p.sample(key, 4000))
    errors = (draws.mean(0) - p.mean) / np.sqrt(p.variance[:, None] / 4000)
    assert np.abs(errors).max() < 4.5
    centred = draws - p.mean
    empirical = np.einsum("sik,sjk->ij", centred, centred) / 8000
    scale = np.sqrt((np.outer(p.variance, p.variance) + p.covariance**2) / 8000)
    assert np.abs((empirical - p.covariance) / scale).max() < 4.5


def test_posterior_speaks_jax(data, net):
    x, y, x_test = map(jnp.asarray, data)
    p = wl.posterior(net, x, y, x_test, noise=0.1)
    exact = wl.posterior(net, *data, noise=0.1)
    for name in ("mean", "variance", "std", "covariance"):
        assert isinstance(getattr(p, name), jax.Array)
        np.testing.assert_allclose(getattr(p, name), getattr(exact, name), atol=1e-4)


def test_what_is_returned_survives_a_pickle(data, net):
    x, y, x_test = data
    for made in (wl.posterior(net, x, y, x_test), wl.ensemble(net, x, y, x_test)):
        again = pickle.loads(pickle.dumps(made))
        np.testing.assert_array_equal(again.covariance, made.covariance)
    model = pickle.loads(pickle.dumps(wl.train(net, x, y)))
    np.testing.assert_array_equal(model.predict(x_test), wl.train(net, x, y).predict(x_test))


# ridge


@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_ridge_and_its_leave_one_out_errors(kernel, data, net):
    x, y, x_test = data
    function = getattr(wl, kernel)
    model = wl.ridge(net, x, y, 0.2, kernel=kernel)
    for i in range(6):
        rest = np.delete(np.arange(6), i)
        a = function(net, x[rest]) + 0.2 * np.eye(5)
        f = function(net, x[i : i + 1], x[rest]) @ np.linalg.solve(a, y[rest])
        np.testing.assert_allclose(model.errors[i], y[i] - f[0], atol=1e-12)
    p = wl.posterior(net, x, y, x_test, noise=0.2, kernel=kernel)
    np.testing.assert_allclose(model.predict(x_test), p.mean, atol=1e-12)


def test_a_path_of_ridges_is_as_many_single_fits(data, net):
    x, y, x_test = data
    ridges = np.logspace(-4, 2, 9)
    model = wl.ridge(net, x, y, ridges)
    singles = [wl.ridge(net, x, y, r) for r in ridges]
    scores = [(s.errors**2).mean() for s in singles]
    np.testing.assert_allclose(model.path.mean_squares, scores, rtol=1e-10)
    best = singles[int(np.argmin(scores))]
    assert model.ridge == best.ridge
    np.testing.assert_allclose(model.predict(x_test), best.predict(x_test), atol=1e-10)
    np.testing.assert_allclose(model.errors, best.errors, atol=1e-10)


@pytest.mark.parametrize("choice", ["loo", "evidence"])
def test_ridges_chosen_by_name_are_those_of_the_estimator(choice, data, net):
    x, y, x_test = data
    y = (y - y.mean(0)) / y.std(0)
    model = wl.ridge(net, x, y, choice)
    estimator = NTKRegressor(net, ridge=choice, standardise=False).fit(x, y)
    assert model.ridge == pytest.approx(estimator.ridge_, rel=1e-6)
    np.testing.assert_allclose(model.predict(x_test), estimator.predict(x_test), atol=1e-6)
    with pytest.raises(ValueError, match="'loo' or 'evidence'"):
        wl.ridge(net, x, y, "gcv")


def test_ridge_by_cg_is_ridge_by_cholesky():
    rng = np.random.default_rng(0)
    x, y, x_test = rng.standard_normal((200, 3)), rng.standard_normal(200), np.ones((2, 3))
    dense = wl.ridge(None, x, y, 0.1, kernel="gaussian")
    iterated = wl.ridge(None, x, y, 0.1, kernel="gaussian", solver="cg", tolerance=1e-11)
    assert iterated.outcome.converged
    np.testing.assert_allclose(iterated.predict(x_test), dense.predict(x_test), atol=1e-8)
    y = np.sin(x[:, 0]) + 0.3 * y
    estimated, exact = (
        wl.ridge(None, x, y, [0.01, 0.1, 1.0, 9.0], kernel="gaussian", solver=solver)
        for solver in ("cg", "cholesky")
    )
    assert estimated.ridge == exact.ridge == 1.0
    # All points were compared, with errors of some per cent, and the best one's are those of the fit.
    np.testing.assert_allclose(estimated.path.mean_squares, exact.path.mean_squares, rtol=0.1)
    np.testing.assert_allclose(estimated.path.errors[2][:, 0], estimated.errors, atol=1e-3)
    np.testing.assert_allclose(estimated.predict(x_test), exact.predict(x_test), atol=1e-5)
    with pytest.raises(ValueError, match="positive"):
        wl.ridge(None, x, y, [0.0, 1.0], kernel="gaussian", solver="cg")


# evidence


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_estimated_leave_one_out_errors_do_not_know_the_units(size):
    """Of a homogeneous network, for inputs in other units and a ridge in their square."""
    rng = np.random.default_rng(7)
    x, y, net = rng.standard_normal((60, 3)), rng.standard_normal(60), wl.mlp(2)
    fits = [wl.ridge(net, s * x, y, 0.1 * s**2, solver=CG(probes=4)) for s in (1.0, size)]
    np.testing.assert_allclose(fits[1].errors, fits[0].errors, rtol=1e-3)
    np.testing.assert_allclose(fits[1].errors_std, fits[0].errors_std, rtol=1e-2, atol=1e-12)


@pytest.mark.parametrize("solver", ["cholesky", Cholesky(), CG(rank=4)])
def test_options_without_effect_are_told(solver, data, net):
    with pytest.warns(UserWarning, match="rank= and precision=: without effect beside solver="):
        wl.ridge(net, data[0], data[1], 0.1, solver=solver, rank=3, precision="float32")
    wl.ridge(net, data[0], data[1], 0.1, solver=solver)


def test_evidence_is_the_density_of_a_normal(data, net):
    x, y, _ = data
    a = wl.nngp(net, x) + 0.1 * np.eye(6)
    exact = sum(multivariate_normal.logpdf(c, cov=a) for c in y.T)
    assert abs(wl.log_marginal_likelihood(net, x, y, 0.1) - exact) < 1e-11
    tangent = multivariate_normal.logpdf(y[:, 0], cov=wl.ntk(net, x) + 0.1 * np.eye(6))
    got = wl.log_marginal_likelihood(net, x, y[:, 0], 0.1, kernel="ntk")
    assert abs(got - tangent) < 1e-11
    value = wl.log_marginal_likelihood(net, jnp.asarray(x), jnp.asarray(y), 0.1)
    assert isinstance(value, jax.Array)
    assert abs(float(value) - exact) < 1e-3


def test_evidence_has_gradients_in_every_number(data):
    x, y, _ = data
    build = lambda w, b, a: (
        wl.Dense(w_std=w, b_std=b)
        >> wl.Residual(wl.Dense(w_std=w) >> wl.Phi("relu") >> wl.Dense(), alpha=a)
        >> wl.Dense(w_std=w)
    )
    value = lambda p: wl.log_marginal_likelihood(build(*p[:3]), x, y, p[3])
    start = np.array([1.2, 0.4, 0.7, 0.1])
    with jax.enable_x64(True):
        traced = lambda p: wl.log_marginal_likelihood(
            build(p[0], p[1], p[2]), jnp.asarray(x), jnp.asarray(y), p[3]
        )
        got = np.asarray(jax.grad(traced)(jnp.asarray(start)))
    steps = 1e-5 * np.eye(4)
    differences = [(value(start + s) - value(start - s)) / 2e-5 for s in steps]
    np.testing.assert_allclose(got, differences, rtol=1e-7, atol=1e-7)


def sample(n=25):
    rng = np.random.default_rng(2)
    x = rng.uniform(-1, 1, (n, 1))
    return x, np.sin(4 * x[:, 0]) + 0.1 * rng.standard_normal(n)


def test_a_fit_stops_where_the_evidence_is_flat():
    x, y = sample()
    build = lambda w, b: wl.mlp(1, "erf", w_std=w, b_std=b)
    start = {"w": 1.0, "b": 0.5}
    with pytest.warns(UserWarning, match="b = "):  # the data are odd: no bias
        fit = wl.fit_evidence(build, x, y, start=start, noise=0.5)
    assert fit.converged
    assert fit.at_bound == ("b",)
    assert fit.log_likelihood > wl.log_marginal_likelihood(build(1.0, 0.5), x, y, 0.5) + 5
    assert fit.net == build(**fit.parameters)
    here = lambda w, n: wl.log_marginal_likelihood(
        build(w * fit.parameters["w"], fit.parameters["b"]), x, y, n * fit.noise
    )
    assert abs(here(1.0, 1.0) - fit.log_likelihood) < 1e-10
    for w, n in ((1.02, 1.0), (0.98, 1.0), (1.0, 1.05), (1.0, 0.95)):
        assert here(w, n) < fit.log_likelihood
    assert 0.003 < fit.noise < 0.03  # 0.1^2 was put in


def test_the_gradient_by_tiles_does_not_depend_on_them(monkeypatch):
    x, y = sample(12)
    net = wl.Dense(w_std=1.5, b_std=0.3) >> wl.Phi("erf") >> wl.Dense()
    whole = wl.fit_evidence(net, x, y, max_steps=3)
    monkeypatch.setattr("widelimit.regression._family._TILE", 5)
    tiled = wl.fit_evidence(net, x, y, max_steps=3)
    np.testing.assert_allclose(
        list(tiled.parameters.values()), list(whole.parameters.values()), rtol=1e-5
    )
    assert len(whole.parameters) == 3
    assert whole.net != net


def test_numbers_that_are_zero_and_a_fixed_noise_stay():
    x, y = sample(12)
    fit = wl.fit_evidence(wl.mlp(1), x, y, noise=0.25, fit_noise=False, max_steps=20)
    assert fit.noise == 0.25
    assert fit.net.layers[1].b_std == 0
    assert len(fit.parameters) == 2


# bad input


@pytest.mark.parametrize("ask", ["posterior", "ridge", "log_marginal_likelihood"])
def test_contradictions_without_noise_are_refused(ask):
    x, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1.0, 5.0, 2.0]
    net = wl.mlp(2)
    questions = {
        "posterior": lambda noise: wl.posterior(net, x, y, x, noise=noise).mean,
        "ridge": lambda noise: wl.ridge(net, x, y, noise).predict(x),
        "log_marginal_likelihood": lambda noise: wl.log_marginal_likelihood(net, x, y, noise),
    }
    with pytest.raises(ValueError, match=r"Rows 0 and 2 .* noise > 0"):
        questions[ask](0.0)
    assert np.isfinite(questions[ask](0.1)).all()
    for bad in (-1.0, np.nan):
        with pytest.raises(ValueError, match="at least 0"):
            questions[ask](bad)


def test_equal_points_without_noise_get_a_reported_jitter():
    x, y = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [1.0, 5.0, 1.0]
    with pytest.warns(UserWarning, match="singular to rounding"):
        p = wl.posterior(wl.mlp(2), x, y, x)
    np.testing.assert_allclose(p.mean, y, atol=1e-2)
    assert (p.variance >= 0).all()
    with pytest.warns(UserWarning, match="singular to rounding"):
        assert wl.ridge(wl.mlp(2), x, y, 0.0).jitter > 0


def test_targets_outside_the_range_of_a_singular_kernel_are_refused():
    x = circle(-np.pi + 2 * np.pi * np.arange(6) / 6)  # rank 5 for one hidden layer without bias
    net, inside = wl.mlp(1), x[:, 0]
    for ask in (
        lambda y: wl.posterior(net, x, y, x).mean,
        lambda y: wl.ridge(net, x, y, 0.0).predict(x),
    ):
        with (
            pytest.warns(UserWarning, match="singular to rounding"),
            pytest.raises(ValueError, match="outside its range"),
        ):
            ask(np.arange(6.0))
        with pytest.warns(UserWarning, match="singular to rounding"):
            np.testing.assert_allclose(ask(inside), inside, atol=1e-3)
    with (
        pytest.warns(UserWarning, match="singular to rounding"),
        pytest.raises(ValueError, match="outside its range"),
    ):
        wl.log_marginal_likelihood(net, x, np.arange(6.0))


def test_one_point_and_constant_targets():
    p = wl.posterior(wl.mlp(1), [[2.0]], [3.0], [[2.0], [0.0]])
    np.testing.assert_allclose(p.mean, [3, 0], atol=1e-12)
    np.testing.assert_allclose(p.variance, [0, 0], atol=1e-12)
    model = wl.ridge(wl.mlp(2), circle(np.arange(4.0)), np.ones(4), [1e-3, 1e-1])
    assert np.isfinite(model.errors).all()


def test_fits_that_cannot_succeed_are_refused():
    x, y = sample(5)
    with pytest.raises(ValueError, match="All targets are 0"):
        wl.fit_evidence(wl.mlp(1), x, np.zeros(5))
    with pytest.raises(ValueError, match="above 0"):
        wl.fit_evidence(wl.mlp(1), x, y, noise=0.0)
    with pytest.raises(ValueError, match="not 0"):
        wl.fit_evidence(lambda b: wl.mlp(1, b_std=b), x, y, start={"b": 0.0})
    with pytest.raises(TypeError, match="start="):
        wl.fit_evidence(lambda b: wl.mlp(1, b_std=b), x, y)
    with pytest.raises(ValueError, match="solver"):
        wl.ridge(wl.mlp(1), x, y, solver="lu")


# --- conditioned once; noise of each point; given matrices; correlated outputs


def some(n, d=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d))


SMALL = wl.mlp(2, "erf", b_std=0.4)


def test_a_posterior_is_conditioned_once_and_asked_often():
    x, y, new = some(6), np.sin(some(6)[:, 0]), some(4, seed=1)
    process = wl.posterior(SMALL, x, y, noise=0.1)
    once = wl.posterior(SMALL, x, y, new, noise=0.1)
    for part in (new, new[:2]):
        p = process.predict(part)
        np.testing.assert_allclose(p.mean, once.mean[: len(part)], rtol=1e-12)
        np.testing.assert_allclose(
            p.covariance, once.covariance[: len(part), : len(part)], atol=1e-13
        )
    assert process.model.factor is process.model.factor
    want = wl.log_marginal_likelihood(SMALL, x, y, noise=0.1)
    assert process.log_marginal_likelihood == pytest.approx(want, rel=1e-12)


def test_the_chain_rule_of_probabilities():
    """log p(y, y') = log p(y) + log p(y' | y): evidence, prior and posterior are one Gaussian."""
    x, new = some(5), some(3, seed=1)
    y, later = some(5, 2, seed=2), some(3, 2, seed=3)
    process = wl.posterior(SMALL, x, y, noise=0.2)
    both = wl.log_marginal_likelihood(
        SMALL, np.concatenate([x, new]), np.concatenate([y, later]), noise=0.2
    )
    found = process.log_marginal_likelihood + process(new).log_prob(later)
    assert found == pytest.approx(both, rel=1e-10)
    bare = wl.prior(SMALL, x)
    assert bare.log_prob(y[:, 0]) == pytest.approx(
        wl.log_marginal_likelihood(SMALL, x, y[:, 0]), rel=1e-8
    )


def test_evidence_of_images(seed, monkeypatch):
    monkeypatch.setattr("widelimit.regression._family._PIXEL_PAIRS", 4**2 * 9**2)  # several tiles
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((6, 3, 3, 1)), rng.standard_normal(6)
    build = lambda w: wl.cnn(1, window=2, w_std=w)
    fit = wl.fit_evidence(build, x, y, start={"w": 3.0}, noise=0.3, fit_noise=False)
    value = lambda w: wl.log_marginal_likelihood(build(w), x, y, 0.3)
    w = fit.parameters["w"]
    assert fit.log_likelihood == pytest.approx(value(w))
    assert value(w) >= max(value(w * 1.01), value(w / 1.01)) - 1e-12  # the slopes are right


def test_noise_of_each_point():
    x, y, new = some(6), some(6, 2, seed=2), some(3, seed=1)
    noise = np.linspace(0.05, 0.9, 6)
    p = wl.posterior(SMALL, x, y, new, noise=noise)
    k, cross = wl.nngp(SMALL, x) + np.diag(noise), wl.nngp(SMALL, new, x)
    np.testing.assert_allclose(p.mean, cross @ np.linalg.solve(k, y), rtol=1e-10)
    want = wl.nngp(SMALL, new) - cross @ np.linalg.solve(k, cross.T)
    np.testing.assert_allclose(p.covariance, want, atol=1e-12)
    found = wl.log_marginal_likelihood(SMALL, x, y[:, 0], noise=noise)
    want = multivariate_normal(np.zeros(6), k).logpdf(y[:, 0])
    assert found == pytest.approx(want, rel=1e-10)
    with pytest.raises(ValueError, match="for each of the 6"):
        wl.posterior(SMALL, x, y, new, noise=noise[:3])
    with pytest.raises(ValueError, match="above 0"):
        wl.posterior(SMALL, x, y, new, noise=0 * noise)


def test_a_given_matrix_is_the_kernel_of_points():
    x, y, new = some(6), np.sin(some(6)[:, 0]), some(4, seed=1)
    k, cross, own = wl.ntk(SMALL, x), wl.ntk(SMALL, new, x), wl.ntk(SMALL, new)
    same = lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    given = {"kernel": "precomputed"}
    same(
        wl.train(None, k, y, **given).predict(cross, [0.5, 3.0]),
        wl.train(SMALL, x, y).predict(new, [0.5, 3.0]),
    )
    same(wl.ridge(None, k, y, 0.1, **given).predict(cross), wl.ridge(SMALL, x, y, 0.1).predict(new))
    p = wl.posterior(None, k, y, (cross, own), noise=0.1, **given)
    want = wl.posterior(SMALL, x, y, new, noise=0.1, kernel="ntk")
    same(p.mean, want.mean)
    same(p.variance, want.variance)
    same(p.sample(0, 2), want.sample(0, 2))
    for call, message in (
        (lambda: wl.posterior(None, k, y, cross, **given), "a pair"),
        (lambda: wl.train(SMALL, x, y, kernel=k), "kernel='precomputed'"),
        (lambda: wl.train(None, x, y, **given), "shape \\(n, n\\)"),
        (lambda: wl.train(None, k, y, **given).predict(own), "6 training points"),
        (lambda: wl.ridge(None, k, y, 0.1, solver="cg", **given), "cholesky"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_correlated_outputs():
    """Blocks k x k against the formulas on the flattened matrix; as a matrix and as a function."""
    w = np.random.default_rng(0).standard_normal((3, 2))
    apply = lambda p, x: jnp.sin(x @ p)
    function = lambda a, b: wl.empirical_ntk(apply, w, a, b)
    x, y, new = some(4), some(4, 2, seed=2), some(3, seed=1)
    flat = lambda b: b.transpose(0, 2, 1, 3).reshape(b.shape[0] * 2, -1)
    k, cross, own = function(x, None), function(new, x), function(new, None)
    noisy = flat(k) + 0.3 * np.eye(8)
    mean = (flat(cross) @ np.linalg.solve(noisy, y.reshape(-1))).reshape(3, 2)
    cov = flat(own) - flat(cross) @ np.linalg.solve(noisy, flat(cross).T)
    for args, points, kind in ((x, new, function), (k, (cross, own), "precomputed")):
        p = wl.posterior(None, args, y, points, noise=0.3, kernel=kind)
        np.testing.assert_allclose(p.mean, mean, rtol=1e-9)
        np.testing.assert_allclose(p.variance, np.diagonal(cov).reshape(3, 2), rtol=1e-9)
        np.testing.assert_allclose(flat(p.covariance), cov, atol=1e-12)
        assert p.sample(0, 5).shape == (5, 3, 2)
        test = points[0] if kind == "precomputed" else points
        np.testing.assert_allclose(
            wl.ridge(None, args, y, 0.3, kernel=kind).predict(test), mean, rtol=1e-9
        )
        model = wl.train(None, args, y, kernel=kind, f0=0.1 * y)
        values, vectors = np.linalg.eigh(flat(k))
        left = vectors @ (np.exp(-0.7 * values) * (vectors.T @ (-0.9 * y.reshape(-1))))
        np.testing.assert_allclose(model.predict(t=0.7), y + left.reshape(4, 2), rtol=1e-9)
    huber = wl.train(None, k, y, kernel="precomputed", loss=lambda f, y: ((f - y) ** 2).sum() / 2)
    np.testing.assert_allclose(
        huber.predict(t=0.7), wl.train(None, k, y, kernel="precomputed").predict(t=0.7), atol=1e-7
    )


def test_ensembles_with_noise_and_several_times():
    x, y, new = some(5), np.sin(some(5)[:, 0]), some(3, seed=1)
    several = wl.ensemble(SMALL, x, y, new, t=[0.0, 2.0], noise=0.3)
    one = wl.ensemble(SMALL, x, y, new, t=2.0, noise=0.3)
    np.testing.assert_allclose(several.mean[1], one.mean, rtol=1e-12)
    np.testing.assert_allclose(several.covariance[1], one.covariance, atol=1e-14)
    assert several.std.shape == (2, 3)
    assert several.sample(0, 4).shape == (4, 2, 3)
    # The posterior's covariance is that of networks trained on targets with noise of their own.
    last, p = (
        wl.ensemble(SMALL, x, y, new, kernel="nngp", noise=0.3),
        wl.posterior(SMALL, x, y, new, 0.3),
    )
    a = wl.nngp(SMALL, new, x) @ np.linalg.inv(wl.nngp(SMALL, x) + 0.3 * np.eye(5))
    np.testing.assert_allclose(last.mean, p.mean, rtol=1e-12)
    np.testing.assert_allclose(last.covariance + 0.3 * a @ a.T, p.covariance, atol=1e-14)
    mean = wl.ensemble(SMALL, x, y, new, t=10.0, loss="mean")
    np.testing.assert_allclose(mean.mean, wl.ensemble(SMALL, x, y, new, t=2.0).mean, rtol=1e-12)


def test_a_number_at_its_bound_is_named():
    x = some(9)
    with pytest.warns(UserWarning, match="no longer changes: alpha = "):
        fit = wl.fit_evidence(
            lambda alpha: wl.resnet(1, alpha), x, x[:, 0], start={"alpha": 1.0}, fit_noise=False
        )
    assert fit.at_bound == ("alpha",)
    fit = wl.fit_evidence(
        wl.Dense() >> wl.Phi("erf") >> wl.Dense(), x, np.sin(x[:, 0]), max_steps=3
    )
    assert list(fit.parameters) == ["layers[0].w_std", "layers[2].w_std"]
