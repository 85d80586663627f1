"""The estimators against scikit-learn's own contract, textbook formulas and brute force."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.linalg
import scipy.sparse
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

import widelimit as wl
from widelimit.estimators import NetworkKernel, NTKClassifier, NTKRegressor
from widelimit.infinite import prepare
from widelimit.regression import average_outer_product, input_gradients, laplace

RAW = {"standardise": False, "ridge": 0.1}


def table(seed, n=30, d=3, outputs=None):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d))
    y = np.sin(x[:, 0]) + x[:, 1] * x[:, 2]
    return x, y if outputs is None else np.stack([y, -2 * y + x[:, 0] ** 2], axis=1)[:, :outputs]


@pytest.mark.filterwarnings("ignore:alpha=0.01 has no meaning in an MLP")  # the checks set it
@parametrize_with_checks(
    [
        NTKRegressor(),
        NTKClassifier(),
        NTKRegressor(ridge=1e-2, solver="cg", kernel="nngp"),
        NTKClassifier(ridge="evidence", class_weight="balanced"),
    ]
)
def test_scikit_learn_contract(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # else the check of array types is left out
    check(estimator)


# The kernel: rows and features are filled up, biases become features; nothing may change.

NETWORKS = {
    "bias in the first layer": (
        wl.Dense(w_std=1.4, b_std=0.7) >> wl.Phi("relu") >> wl.Dense(),
        "ntk",
    ),
    "biases everywhere": (wl.mlp(2, "relu", w_std=1.5, b_std=0.3), "nngp"),
    "erf": (wl.mlp(2, "erf", w_std=1.5, b_std=0.3), "ntk"),
    "resnet": (wl.resnet(3, alpha=0.5), "nngp"),
}


@pytest.mark.parametrize(("net", "kernel"), NETWORKS.values(), ids=NETWORKS.keys())
def test_filled_tiles_are_the_kernel(net, kernel, seed):
    rng = np.random.default_rng(seed)
    x, x2 = rng.standard_normal((150, 3)), rng.standard_normal((9, 3))
    gram, direct = prepare(net, kernel), getattr(wl, kernel)
    np.testing.assert_allclose(gram(x), direct(net, x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(gram(x2, x), direct(net, x2, x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(gram.diagonal(x), np.diagonal(direct(net, x)), rtol=1e-13)


def test_small_tiles_of_a_regression_are_the_kernel(seed):
    x, y = table(seed, n=150)
    model = NTKRegressor(**RAW).fit(x, y)
    problem, new = model._fit.problem, x[:140] + 0.5
    direct = lambda a, b=None: wl.ntk(model.network_, a, b)
    np.testing.assert_allclose(problem.gram(), direct(x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(problem.cross(new), direct(new, x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(problem.combine(new, y[:, None]), direct(new, x) @ y[:, None])


# Regression


def test_mean_and_std_are_those_of_the_posterior(seed):
    x, y = table(seed)
    x_test = np.random.default_rng(1).standard_normal((5, 3))
    model = NTKRegressor(depth=2, **RAW).fit(x, y)
    scale, mean = y.std(), y.mean()
    known = wl.posterior(model.network_, x, (y - mean) / scale, x_test, noise=0.1, kernel="ntk")
    got, std, cov = model.predict(x_test, return_std=True, return_cov=True)
    np.testing.assert_allclose(got, mean + scale * known.mean, rtol=1e-10)
    np.testing.assert_allclose(std, np.sqrt(model.amplitude_ * known.variance), rtol=1e-9)
    np.testing.assert_allclose(cov, model.amplitude_ * known.covariance, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(model.predict(x_test), got, rtol=1e-14)


def test_amplitude_maximises_the_likelihood(seed):
    x, y = table(seed)
    model = NTKRegressor(**RAW).fit(x, y)
    matrix = wl.ntk(model.network_, x) + 0.1 * np.eye(len(x))
    z = y - y.mean()
    likelihood = lambda s: -(z @ np.linalg.solve(matrix, z)) / s - len(z) * np.log(s)
    best = likelihood(model.amplitude_)
    assert best > likelihood(1.001 * model.amplitude_)
    assert best > likelihood(0.999 * model.amplitude_)
    assert model.noise_variance_ == pytest.approx(0.1 * model.amplitude_)


def test_a_draw_from_the_prior_is_recognised(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (400, 2))
    net = NTKRegressor().fit(x[:9], x[:9, 0]).network_
    matrix = 4.0 * (wl.nngp(net, x) + 0.01 * np.eye(400))
    y = np.linalg.cholesky(matrix) @ rng.standard_normal(400)
    model = NTKRegressor(ridge="evidence", kernel="nngp", standardise=False).fit(x[:300], y[:300])
    assert 2 < model.amplitude_ < 8  # 4 was put in
    assert 0.03 < model.noise_variance_ < 0.055  # 0.04
    mean, std = model.predict(x[300:], return_std=True)
    inside = np.abs(y[300:] - mean) < 1.96 * np.sqrt(std**2 + model.noise_variance_)
    assert 0.88 <= inside.mean() <= 1


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_is_brute_force(weighted, seed):
    x, y = table(seed, n=12, outputs=2)
    w = np.random.default_rng(seed).uniform(0.5, 2, 12) if weighted else np.ones(12)
    model = NTKRegressor(**RAW).fit(x, y, sample_weight=w)
    matrix = wl.ntk(model.network_, x)
    mean = np.average(y, axis=0, weights=w)
    for i in range(12):
        k = np.arange(12) != i
        inner = matrix[np.ix_(k, k)] + np.diag(0.1 / w[k])
        without = mean + matrix[i, k] @ np.linalg.solve(inner, y[k] - mean)
        np.testing.assert_allclose(model.leave_one_out(x, y)[i], y[i] - without, rtol=1e-8)


def test_loo_takes_the_best_of_its_ridges(seed):
    x, y = table(seed, n=40)
    y = y + np.random.default_rng(seed).standard_normal(40)
    model = NTKRegressor(ridge="loo").fit(x, y)
    error = lambda r: np.square(NTKRegressor(ridge=r).fit(x, y).leave_one_out(x, y)).mean()
    own = np.square(model.leave_one_out(x, y)).mean()
    assert own == pytest.approx(error(model.ridge_), rel=1e-8)
    assert own < error(3 * model.ridge_)
    assert own < error(model.ridge_ / 3)


def test_evidence_is_maximal(seed):
    x, y = table(seed, n=40)
    y = y + 0.3 * np.random.default_rng(seed).standard_normal(40)
    model = NTKRegressor(ridge="evidence", standardise=False).fit(x, y)
    z = (y - y.mean()) / y.std()

    def likelihood(ridge):
        matrix = wl.ntk(model.network_, x) + ridge * np.eye(40)
        amplitude = z @ np.linalg.solve(matrix, z) / 40
        return -np.linalg.slogdet(amplitude * matrix)[1]

    assert likelihood(model.ridge_) > likelihood(1.05 * model.ridge_)
    assert likelihood(model.ridge_) > likelihood(model.ridge_ / 1.05)


@pytest.mark.parametrize("ridge", ["loo", "evidence", 0.05])
def test_a_weight_of_two_is_the_row_twice(ridge, seed):
    x, y = table(seed, n=20)
    weights = np.random.default_rng(seed).integers(0, 4, 20)
    a = NTKRegressor(ridge=ridge).fit(x, y, sample_weight=weights)
    b = NTKRegressor(ridge=ridge).fit(np.repeat(x, weights, 0), np.repeat(y, weights))
    assert a.ridge_ == pytest.approx(b.ridge_, rel=1e-6)
    for one, other in zip(
        a.predict(x, return_std=True), b.predict(x, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)


def test_repeated_rows_share_their_noise(seed):
    """Merged rows against the textbook formula on all rows: amplitude, mean and variance."""
    x, y = table(seed, n=10)
    x = np.concatenate([x, x[:4]])
    y = np.concatenate([y, y[:4] + 1])
    model = NTKRegressor(**RAW).fit(x, y)
    matrix = wl.ntk(model.network_, x) + 0.1 * np.eye(14)
    z = y - y.mean()
    assert model.amplitude_ == pytest.approx(z @ np.linalg.solve(matrix, z) / 14, rel=1e-9)
    cross = wl.ntk(model.network_, x[:3] + 0.1, x)
    prior = np.diagonal(wl.ntk(model.network_, x[:3] + 0.1))
    variance = prior - np.einsum("ij,ji->i", cross, np.linalg.solve(matrix, cross.T))
    mean, std = model.predict(x[:3] + 0.1, return_std=True)
    np.testing.assert_allclose(mean, y.mean() + cross @ np.linalg.solve(matrix, z), rtol=1e-9)
    np.testing.assert_allclose(std, np.sqrt(model.amplitude_ * variance), rtol=1e-8)


def test_time_is_gradient_flow(seed):
    x, y = table(seed)
    x_test = x[:4] + 0.3
    model = NTKRegressor(ridge=0.0, standardise=False, time=0.7).fit(x, y)
    z = (y - y.mean()) / y.std()
    flow = wl.train(model.network_, x, z).predict(x_test, t=0.7)
    np.testing.assert_allclose(model.predict(x_test), y.mean() + y.std() * flow, rtol=1e-9)


def test_time_with_a_ridge_is_flow_with_weight_decay(seed):
    x, y = table(seed, n=8)
    model = NTKRegressor(ridge=0.3, standardise=False, time=0.5).fit(x, y)
    matrix, z = wl.ntk(model.network_, x), (y - y.mean()) / y.std()
    # d alpha/dt = z - (K + r) alpha, as one linear system
    system = np.zeros((9, 9))
    system[:8, :8], system[:8, 8] = -(matrix + 0.3 * np.eye(8)), z
    alpha = scipy.linalg.expm(0.5 * system)[:8, 8]
    np.testing.assert_allclose(model.dual_coef_[:, 0], alpha, rtol=1e-9)


def test_a_long_time_is_for_ever(seed):
    x, y = table(seed, n=40)
    y = y + np.random.default_rng(seed).standard_normal(40)
    long, ever = NTKRegressor(time=1e7).fit(x, y), NTKRegressor().fit(x, y)
    assert long.ridge_ == ever.ridge_
    np.testing.assert_allclose(long.predict(x), ever.predict(x), rtol=1e-8)
    np.testing.assert_allclose(long.leave_one_out(x, y), ever.leave_one_out(x, y), rtol=1e-7)
    np.testing.assert_allclose(NTKRegressor(time=0.0).fit(x, y).predict(x), y.mean())


def test_conjugate_gradients_agree_with_cholesky(seed):
    x, y = table(seed, n=60, outputs=2)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 60)
    dense = NTKRegressor(ridge=0.05).fit(x, y, weights)
    cg = NTKRegressor(ridge=0.05, solver="cg").fit(x, y, weights)
    for one, other in zip(
        cg.predict(x[:7] + 1, return_std=True, return_cov=True),
        dense.predict(x[:7] + 1, return_std=True, return_cov=True),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert NTKRegressor(solver="cg").fit(x, y).ridge_ == NTKRegressor().fit(x, y).ridge_


def test_outputs_are_fitted_side_by_side(seed):
    x, y = table(seed, outputs=2)
    both = NTKRegressor(ridge=0.1).fit(x, y)
    mean, std, cov = both.predict(x[:5], return_std=True, return_cov=True)
    assert mean.shape == std.shape == (5, 2)
    assert cov.shape == (5, 5, 2)
    for j in range(2):
        one = NTKRegressor(ridge=0.1).fit(x, y[:, j]).predict(x[:5], return_std=True)
        np.testing.assert_allclose(mean[:, j], one[0], rtol=1e-10)
        np.testing.assert_allclose(std[:, j], one[1], rtol=1e-8)
        np.testing.assert_allclose(np.diagonal(cov[..., j]), std[:, j] ** 2, rtol=1e-12)


def test_many_points_are_predicted_in_strips(seed, monkeypatch):
    x, y = table(seed, outputs=2)
    model = NTKRegressor(ridge=0.1).fit(x, y)
    whole = model.predict(x, return_std=True)
    monkeypatch.setattr("widelimit.regression._kernel._ENTRIES", 7 * 30)
    for one, other in zip(model.predict(x, return_std=True), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)
    np.testing.assert_allclose(model.predict(x), whole[0], rtol=1e-12)


def test_sphere_forgets_lengths(seed):
    x, y = table(seed)
    model = NTKRegressor(normalise=True, standardise=False).fit(x, y)
    np.testing.assert_allclose(model.predict(3 * x), model.predict(x), rtol=1e-9)


# scikit-learn's ecosystem


def test_pandas_pipelines_grids_and_copies(seed):
    x, y = table(seed)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = NTKRegressor().fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[["b", "a", "c"]])
    copy = pickle.loads(pickle.dumps(model))
    for one, other in zip(
        copy.predict(frame, return_std=True), model.predict(frame, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), NTKRegressor(ridge=0.1)),
        {"ntkregressor__depth": [1, 2], "ntkregressor__kernel": ["ntk", "nngp"]},
        cv=3,
    ).fit(x, y)
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()


def test_a_network_or_its_text_can_be_given(seed):
    x, y = table(seed)
    net = wl.resnet(2, alpha=0.5)
    given = NTKRegressor(net, ridge=0.1).fit(x, y)
    assert given.network_ == net
    assert clone(given).get_params()["network"] == net
    text = NTKRegressor(wl.to_text(net), ridge=0.1).fit(x, y)
    np.testing.assert_allclose(text.predict(x), given.predict(x), rtol=1e-12)
    built = NTKRegressor(architecture="resnet", depth=2, alpha=0.5, b_std=0.0, w_std=1.0, ridge=0.1)
    np.testing.assert_allclose(built.fit(x, y).predict(x), given.predict(x), rtol=1e-12)


def test_old_spellings_are_understood_and_said(seed):
    with pytest.warns(DeprecationWarning, match="standardise"):
        model = NTKRegressor(standardize=False)
    assert model.get_params()["standardise"] is False
    with pytest.warns(DeprecationWarning, match="normalise"):
        assert NTKClassifier(normalize=True, class_weight="balanced").normalise
    assert NTKRegressor(wl.mlp(1)).normalise is False


# Classification


def test_classes_by_name_and_probabilities(seed):
    x, y = load_wine(return_X_y=True)
    names = np.array(["first", "second", "third"], dtype=object)[y]
    model = NTKClassifier().fit(x[::2], names[::2])
    assert model.score(x[1::2], names[1::2]) > 0.95
    chance = model.predict_proba(x[1::2])
    np.testing.assert_allclose(chance.sum(1), 1, rtol=1e-12)
    assert (model.classes_[chance.argmax(1)] == model.predict(x[1::2])).all()
    right = chance[np.arange(len(chance)), y[1::2]]
    assert -np.log(right).mean() < 0.2  # a coin would have log 3


def test_probabilities_are_calibrated(seed):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-3, 3, (600, 1))
    truth = 1 / (1 + np.exp(-2 * x[:, 0]))
    y = rng.uniform(size=600) < truth
    model = NTKClassifier().fit(x[:400], y[:400])
    assert np.abs(model.predict_proba(x[400:])[:, 1] - truth[400:]).mean() < 0.1


def test_two_classes_are_one_of_many(seed):
    """One output of ±1 gives what two outputs would: their codes are opposite."""
    x, y = table(seed)
    label = y > 0.3
    plain = NTKClassifier(ridge=0.1, squash=False, categories=0)
    score = plain.fit(x, label).decision_function(x + 0.5)
    regression = NTKRegressor(ridge=0.1).fit(x, 2.0 * label - 1).predict(x + 0.5)
    np.testing.assert_allclose(score, regression, rtol=1e-9)


def test_class_weights_multiply_sample_weights(seed):
    x, y = table(seed)
    label = (y > 0.3).astype(int)
    by_class = NTKClassifier(ridge=0.1, class_weight={0: 3.0, 1: 0.5}).fit(x, label)
    by_row = NTKClassifier(ridge=0.1).fit(x, label, np.where(label, 0.5, 3.0))
    np.testing.assert_allclose(by_class.decision_function(x), by_row.decision_function(x))


def test_columns_of_few_values_are_categories(seed):
    """Names in an order of no meaning: indicators tell them apart, one number does not."""
    rng = np.random.default_rng(seed)
    x = np.stack([rng.integers(0, 8, 300), rng.standard_normal(300)], axis=1)
    y = np.isin(x[:, 0], [1, 4, 6]) ^ (rng.uniform(size=300) < 0.1)
    model = NTKClassifier().fit(x[:120], y[:120])
    assert model.score(x[120:], y[120:]) > 0.8
    scaled = model._scaling(x[:120])
    assert scaled.shape == (120, 10)
    assert (scaled**2).mean() == pytest.approx(1)
    assert np.isfinite(model.predict_proba([[99.0, 0.0]])).all()  # a value that was never seen
    few = NTKClassifier().fit(x[:40], y[:40])
    assert few._scaling(x).shape == (300, 2)  # five rows for each value are not enough


def test_outliers_are_brought_in(seed):
    x, y = table(seed)
    x[0, 0] = 1e6
    scaled = NTKClassifier(ridge=0.1).fit(x, y > 0.3)._scaling(x)
    np.testing.assert_allclose(scaled.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(0), 1)
    inside = np.arcsinh((x - x.mean(0)) / x.std(0))
    np.testing.assert_allclose(scaled, (inside - inside.mean(0)) / inside.std(0), atol=1e-12)


def test_of_many_rows_some_choose_the_ridge(seed, monkeypatch, capsys):
    x, y = table(seed, n=60)
    for name in ("_fit.EXACT", "_fitted.EXACT", "_fit.SUBSET"):
        monkeypatch.setattr(f"widelimit.regression.{name}", 40)
    monkeypatch.setattr("widelimit.regression._fitted._JUDGES", 25)
    model = NTKRegressor(verbose=True).fit(x, y)
    assert "chosen on 40 of the points" in capsys.readouterr().err
    assert model.ridge_ == pytest.approx(NTKRegressor(solver="cg").fit(x, y).ridge_)
    rows, errors = model._fit.judged()
    assert len(rows) == 25
    np.testing.assert_allclose(errors, model._fit.leave_one_out()[rows], rtol=1e-9)
    all_rows = model._r2(np.arange(60), model._fit.leave_one_out())
    assert 0 < abs(model.loo_score_ - all_rows) < 4 * model.loo_score_std_ < 0.5
    monkeypatch.setattr("widelimit.regression._solvers._QUICK", 1)
    NTKRegressor(verbose=True, time=1.0).fit(x, y)
    assert "eigendecomposition of 60 points: about 0 s" in capsys.readouterr().err
    monkeypatch.setattr("widelimit.regression._solvers.DENSE", 50)
    NTKRegressor(verbose=True, ridge=0.1).fit(x, y)
    assert "conjugate gradients with 60 points: about" in capsys.readouterr().err
    classes = NTKClassifier(solver="cg", ridge=0.1, verbose=False).fit(x, y > 0.3)
    assert not capsys.readouterr().err
    rows, errors = classes._fit.judged()
    assert len(rows) == len(errors) == 60


def test_leave_one_out_without_the_matrix(seed, tmp_path):
    x, y = table(seed, n=200)
    y = y + 0.3 * np.random.default_rng(seed).standard_normal(200)
    w = np.random.default_rng(seed).integers(1, 4, 200)
    exact, cg = (NTKRegressor(ridge=0.1, solver=s).fit(x, y, w) for s in ("cholesky", "cg"))
    assert exact.loo_score_std_ == 0
    assert abs(cg.loo_score_ - exact.loo_score_) < 4 * cg.loo_score_std_ < 0.03
    errors, known = cg.leave_one_out(x, y), exact.leave_one_out(x, y)
    np.testing.assert_allclose(errors, known, atol=0.2 * np.abs(known).max())
    uncertain = cg._fit.errors_std > 0
    z = (cg._fit.errors - exact._fit.errors)[uncertain] / cg._fit.errors_std[uncertain]
    assert 0.7 < np.sqrt((z**2).mean()) < 1.5
    copy = _through_a_file(cg, tmp_path / "m.npz")
    assert copy.loo_score_ == pytest.approx(cg.loo_score_, abs=1e-6)
    # Two classes: the accuracy, and probabilities when they are asked for.
    labels = y > np.median(y)
    exact, cg = (NTKClassifier(ridge=0.1, solver=s).fit(x, labels, w) for s in ("cholesky", "cg"))
    assert "sharpness" not in vars(cg._head)
    unasked = _through_a_file(cg, tmp_path / "c.npz")
    assert cg._head.sharpness == pytest.approx(exact._head.sharpness, rel=0.03)
    np.testing.assert_allclose(unasked.predict_proba(x), cg.predict_proba(x), atol=1e-6)
    assert abs(cg.loo_score_ - exact.loo_score_) < 4 * max(cg.loo_score_std_, 1 / 200)


# What is chosen from the data


def test_gradients_are_those_of_the_function(seed):
    """Against difference quotients, and finite where points are equal, opposite, parallel or zero."""
    rng = np.random.default_rng(seed)
    known, dual = rng.standard_normal((30, 4)), rng.standard_normal((30, 2))
    known[1], known[2], known[3], known[4] = known[0], -known[0], 0, known[0] * (1 + 1e-12)
    kernel, x = (
        prepare(NTKRegressor().fit(known, dual).network_, "ntk"),
        rng.standard_normal((5, 4)),
    )
    found = input_gradients(kernel, x, known, dual)
    assert found.shape == (2, 5, 4)
    for j in range(4):
        step = 1e-5 * np.eye(4)[j]
        slope = (kernel(x + step, known) - kernel(x - step, known)) @ dual / 2e-5
        np.testing.assert_allclose(found[:, :, j], slope.T, rtol=1e-6, atol=1e-7)
    assert np.isfinite(input_gradients(kernel, known, known, dual)).all()
    flat = input_gradients(kernel, x, known, dual).reshape(10, 4)
    outer = average_outer_product(kernel, x, known, dual)
    np.testing.assert_allclose(outer, flat.T @ flat / 5, rtol=1e-12)


def test_columns_that_matter_are_found(seed, tmp_path):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((150, 6))
    y = np.sin(2 * x[:, 1]) * np.where(x[:, 4] > 0, 1.0, -1.0)
    plain = NTKRegressor().fit(x[:100], y[:100])
    model = NTKRegressor(feature_rounds=1, feature_form="diagonal").fit(x[:100], y[:100])
    assert model.feature_rounds_ > 0
    assert set(np.argsort(model.feature_importances_)[-2:]) == {1, 4}
    assert model.feature_importances_.sum() == pytest.approx(1)
    assert np.trace(model.feature_matrix_) == pytest.approx(6)
    assert model.score(x[100:], y[100:]) > plain.score(x[100:], y[100:]) + 0.1
    names = [label.get_text() for label in wl.plot.importance(model).axes[0].get_yticklabels()]
    assert set(names[-2:]) == {"column 1", "column 4"}
    wl.estimators.save(model, tmp_path / "model.npz")
    again = wl.estimators.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(again.predict(x), model.predict(x))
    np.testing.assert_array_equal(again.feature_matrix_, model.feature_matrix_)


def test_nothing_is_learnt_from_noise(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((60, 3)), rng.uniform(size=60) < 0.5
    model = NTKClassifier(search="auto", feature_form="full").fit(x, y)
    assert model.feature_rounds_ == 0
    np.testing.assert_array_equal(model.feature_matrix_, np.eye(3))
    assert [line["change"] for line in model.search_ if line["taken"]] == [{}]
    np.testing.assert_allclose(model.predict_proba(x), NTKClassifier().fit(x, y).predict_proba(x))


def test_a_search_finds_what_is_better_for_certain(seed):
    rng = np.random.default_rng(seed)
    x = np.stack([rng.integers(0, 8, 100), rng.standard_normal(100)], axis=1)
    y = np.isin(x[:, 0], [1, 4, 6])
    model = NTKClassifier(search="network", categories=0).fit(x, y)
    model.feature_matrix_ = np.array([[1.0, 0.5], [0.5, 1.0]])
    assert len(wl.plot.importance(model).axes) == 3  # bars, the matrix, its scale
    with pytest.raises(TypeError, match="Call its fit first"):
        wl.plot.importance(NTKClassifier())
    taken = next(line for line in model.search_ if line["taken"])
    assert taken["change"] == {"categories": 10}
    assert taken["gain"] > taken["margin"] > 0
    assert model._scaling(x).shape == (100, 10)
    with pytest.raises(ValueError, match="a network was given"):
        NTKClassifier(wl.mlp(1), search="auto").fit(x, y)


# The kernel object


@pytest.mark.parametrize(
    ("options", "free"),
    [
        ({"architecture": "resnet", "depth": 2, "alpha": 0.4}, ["alpha", "b_std", "w_std"]),
        ({"kernel": "nngp"}, ["b_std", "w_std"]),
    ],
)
def test_kernel_gradient_is_the_difference_quotient(options, free, seed):
    x, _ = table(seed, n=6)
    k = NetworkKernel(**options)
    assert [h.name for h in k.hyperparameters if not h.fixed] == free
    _, slopes = k(x, eval_gradient=True)
    for i in range(len(free)):
        step = 1e-5 * np.eye(len(free))[i]
        up, down = (k.clone_with_theta(k.theta + s)(x) for s in (step, -step))
        np.testing.assert_allclose(slopes[..., i], (up - down) / 2e-5, rtol=1e-7, atol=1e-8)


def test_kernel_in_a_gaussian_process(seed):
    x, y = table(seed)
    prior = ConstantKernel(1.0) * NetworkKernel(depth=2) + WhiteKernel(0.1)
    start = GaussianProcessRegressor(prior, optimizer=None).fit(x, y)
    kernel = NetworkKernel(depth=2, w_std_bounds="fixed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a number may end at its bound
        best = GaussianProcessRegressor(ConstantKernel(1.0) * kernel + WhiteKernel(0.1)).fit(x, y)
    assert best.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_
    theta = best.kernel_.theta
    _, slopes = best.log_marginal_likelihood(theta, eval_gradient=True)
    inside = (theta > best.kernel_.bounds[:, 0] + 1e-3) & (theta < best.kernel_.bounds[:, 1] - 1e-3)
    assert np.abs(slopes[inside]).max() < 0.1
    np.testing.assert_allclose(kernel.diag(x), np.diagonal(kernel(x)), rtol=1e-13)


def test_kernel_in_kernel_ridge_and_svc(seed):
    x, y = table(seed)
    kernel = NetworkKernel(b_std=0.5)
    ridge = KernelRidge(kernel=kernel, alpha=0.1).fit(x, y).predict(x)
    known = wl.ridge(NTKRegressor(b_std=0.5).fit(x, y).network_, x, y, 0.1).predict(x)
    np.testing.assert_allclose(ridge, known, rtol=1e-9)
    xw, yw = load_wine(return_X_y=True)
    svc = make_pipeline(StandardScaler(), SVC(kernel=NetworkKernel()))
    assert cross_val_score(svc, xw, yw, cv=3).mean() > 0.95
    assert clone(kernel) == kernel
    assert "Dense" in repr(kernel)


def test_kernel_of_a_given_network_is_fixed(seed):
    x, _ = table(seed, n=4)
    k = NetworkKernel(wl.mlp(2))
    assert k.theta.size == 0
    assert k(x, eval_gradient=True)[1].shape == (4, 4, 0)
    with pytest.raises(ValueError, match="leave Y out"):
        k(x, x, eval_gradient=True)


# Bad input


def test_contradictions_without_a_ridge_are_said():
    x, y = [[0.0], [0.0], [1.0]], [0.0, 2.0, 3.0]
    with pytest.warns(UserWarning, match="their mean is fitted"):
        model = NTKRegressor(ridge=0.0).fit(x, y)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [1.0, 3.0])
    assert np.isfinite(NTKRegressor().fit(x, y).predict(x, return_std=True)).all()


@pytest.mark.parametrize("ridge", ["loo", "evidence", 0.1])
def test_constant_targets_are_said(ridge, seed):
    x, _ = table(seed)
    with pytest.warns(UserWarning, match="All targets are equal"):
        model = NTKRegressor(ridge=ridge).fit(x, np.full(30, 7.0))
    mean, std = model.predict(x, return_std=True)
    np.testing.assert_allclose(mean, 7)
    assert (std == 0).all()


def test_one_point():
    with pytest.raises(ValueError, match="only one sample"):
        NTKRegressor().fit([[1.0]], [2.0])
    with pytest.raises(ValueError, match="only one sample"):
        NTKRegressor().fit([[1.0], [1.0]], [2.0, 3.0])
    with pytest.warns(UserWarning, match="only one distinct row"):
        model = NTKRegressor(ridge=0.1).fit([[1.0]], [2.0])
    mean, std = model.predict([[1.0], [5.0]], return_std=True)
    np.testing.assert_allclose(mean, 2)
    assert np.isfinite(std).all()


def test_one_class():
    with pytest.raises(ValueError, match="at least two classes"):
        NTKClassifier().fit([[1.0], [2.0]], ["a", "a"])


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"ridge": -1.0}, ValueError, "at least 0"),
        ({"ridge": "gcv"}, ValueError, "'loo' or 'evidence'"),
        ({"ridge": float("nan")}, ValueError, "finite"),
        ({"ridge": None}, TypeError, "'loo' or 'evidence'"),
        ({"kernel": "rbf"}, ValueError, "'ntk' or 'nngp'"),
        ({"architecture": "cnn"}, ValueError, "'mlp' or 'resnet'"),
        ({"network": 3}, TypeError, "its text or None"),
        ({"network": "Dense() >> Nothing()"}, ValueError, "Nothing"),
        ({"depth": 2.5}, TypeError, "integer"),
        ({"activation": "rleu"}, ValueError, "relu"),
        ({"solver": "lu"}, ValueError, "'cholesky' or 'cg'"),
        ({"time": -1.0}, ValueError, "at least 0"),
        ({"time": "long"}, TypeError, "None for ever"),
        ({"time": 1.0, "ridge": "evidence"}, ValueError, "posterior"),
        ({"time": 1.0, "solver": "cg"}, ValueError, "eigendecomposition"),
        ({"activation": "sign"}, ValueError, "tangent kernel"),
        ({"search": "grid"}, ValueError, "'network' or 'auto'"),
        ({"feature_form": "round"}, ValueError, "'diagonal', 'full' or 'auto'"),
        ({"feature_rounds": -1}, ValueError, "feature_rounds"),
        ({"categories": 2.5}, TypeError, "integer"),
    ],
)
def test_bad_options_are_refused(options, error, words, seed):
    x, y = table(seed)
    with pytest.raises(error, match=words):
        NTKRegressor(**options).fit(x, y)
    with pytest.raises(error, match=words):
        NTKClassifier(**options).fit(x, y > 0)


def test_bad_data_is_refused(seed):
    x, y = table(seed)
    with pytest.raises(ValueError, match="NaN"):
        NTKRegressor().fit(np.where(x > 1, np.nan, x), y)
    with pytest.raises(ValueError, match="inconsistent"):
        NTKRegressor().fit(x, y[:-1])
    wide = scipy.sparse.csr_array((30, 10**8))
    with pytest.raises(ValueError, match="GiB are filled at most"):
        NTKRegressor().fit(wide, y)
    with pytest.raises(ValueError, match="overflow"):
        NTKRegressor().fit(x * 1e200, y)
    with pytest.raises(ValueError, match="overflow"):
        NTKRegressor().fit(x, y).predict(x * 1e200)
    with pytest.raises(ValueError, match="at least 0"):
        NTKRegressor().fit(x, y, -np.ones(30))
    with pytest.raises(ValueError, match="one for each row"):
        NTKRegressor().fit(x, y, np.ones(29))
    model = NTKRegressor(ridge=0.1, time=1.0).fit(x, y)
    with pytest.raises(ValueError, match="finite time"):
        model.predict(x, return_std=True)
    with pytest.raises(ValueError, match="30 rows"):
        model.leave_one_out(x[:5], y[:5])


def test_a_singular_matrix_is_said():
    """Without a bias a ReLU network cannot tell points on one ray apart."""
    x = np.arange(1.0, 6)[:, None]
    with pytest.warns(UserWarning, match="singular to rounding"):
        model = NTKRegressor(ridge=0.0, b_std=0.0, standardise=False).fit(x, [1.0, 5, 2, 7, 3])
    assert np.isfinite(model.predict(x)).all()


NASTY = st.sampled_from([0.0, 1.0, -1.0, 1 + 1e-15, 1e-160, 1e8, -1e90])


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(NASTY, NASTY, NASTY), min_size=2, max_size=7),
    ridge=st.sampled_from(["loo", "evidence", 0.0, 1e-3]),
    standardise=st.booleans(),
    weight=st.sampled_from([1e-8, 1.0, 1e8]),
)
def test_nothing_is_nan(rows, ridge, standardise, weight):
    x, y = np.array(rows)[:, :2], np.array(rows)[:, 2]
    weights = np.where(np.arange(len(y)) % 2, weight, 1.0)
    model = NTKRegressor(ridge=ridge, standardise=standardise)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            model.fit(x, y, weights)
        except ValueError as error:
            if "only one sample" in str(error) or "squares underflow" in str(error):
                return
            raise
        mean, std = model.predict(x, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        try:
            assert np.isfinite(model.predict(x, return_cov=True)[1]).all()
        except OverflowError:
            assert np.sqrt(model.amplitude_) * std.max() > 1e100


def test_draws_have_the_posterior_s_mean_and_spread():
    x = np.linspace(-2, 2, 12)[:, None]
    y = np.stack([np.sin(x[:, 0]), x[:, 0]], 1) + 0.1 * np.cos(9 * x)
    model = NTKRegressor(ridge=0.1).fit(x, y)
    new = x[::4] + 0.1
    mean, std = model.predict(new, return_std=True)
    draws = model.sample_y(new, 4000, random_state=0)
    assert draws.shape == (3, 2, 4000)
    assert (abs(draws.mean(2) - mean) < 5 * std / 4000**0.5).all()
    np.testing.assert_allclose(draws.std(2), std, rtol=0.06)
    assert NTKRegressor(ridge=0.1).fit(x, y[:, 0]).sample_y(new).shape == (3, 1)


def test_an_alpha_that_means_nothing_is_told():
    x = np.linspace(-2, 2, 6)[:, None]
    with pytest.warns(UserWarning, match="no meaning in an MLP"):
        NTKRegressor(alpha=0.1, ridge=0.1).fit(x, x[:, 0])


def test_numbers_whose_squares_underflow_are_refused():
    x, y = np.random.default_rng(0).standard_normal((6, 2)), np.arange(6.0)
    with pytest.raises(ValueError, match="X contains nothing larger than"):
        NTKRegressor().fit(1e-200 * x, y)
    with pytest.raises(ValueError, match="y contains nothing larger than"):
        NTKRegressor().fit(x, 1e-200 * y)


# Heads, and tables as they come


@parametrize_with_checks([NTKClassifier(head="gp"), NTKClassifier(head="svc")])
def test_heads_keep_the_contract(estimator, check):
    check(estimator)


def three_classes(seed, n=45):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    return x, (x[:, 0] + 0.3 * rng.standard_normal(n) > 0) + 1 * (x[:, 1] > 0.5)


def test_laplace_is_scikit_learn_s(seed):
    x, y = three_classes(seed)
    y = y > 0
    model = NTKClassifier(head="gp").fit(x[:30], y[:30])
    z, amplitude = model._scaling(x), model._head.amplitude
    kernel = ConstantKernel(amplitude) * NetworkKernel()
    known = GaussianProcessClassifier(kernel, optimizer=None).fit(z[:30], y[:30])
    assert model.log_evidence_ == pytest.approx(known.log_marginal_likelihood_value_, rel=1e-6)
    for other in (amplitude * 10**0.5, amplitude / 10**0.5):
        prior = ConstantKernel(other) * NetworkKernel()
        worse = GaussianProcessClassifier(prior, optimizer=None).fit(z[:30], y[:30])
        assert worse.log_marginal_likelihood_value_ < model.log_evidence_
    latent = model._head.problem.combine(z[30:], model._head.dual)[:, 0]
    np.testing.assert_allclose(
        latent, known.base_estimator_.latent_mean_and_variance(z[30:])[0], atol=1e-4
    )
    np.testing.assert_allclose(
        model._head.variances(z[30:])[:, 0],
        known.base_estimator_.latent_mean_and_variance(z[30:])[1],
        rtol=1e-4,
    )


def test_laplace_without_a_row(seed):
    """The means of left-out rows against models that are fitted without them."""
    x, y = three_classes(seed, n=25)
    matrix, shares = wl.ntk(wl.mlp(1), x), (y > 0).astype(float)
    means, variances = laplace(matrix, shares, np.ones(25)).leave_one_out(matrix)
    for i in range(0, 25, 6):
        k = np.arange(25) != i
        part = laplace(matrix[np.ix_(k, k)], shares[k], np.ones(24))
        exact = matrix[i, k] @ part.slope
        assert abs(means[i] - exact) < 0.2 * np.sqrt(variances[i])


def test_support_vectors_are_scikit_learn_s(seed):
    x, y = three_classes(seed)
    names = np.array(["a", "b", "c"])[y]
    model = NTKClassifier(head="svc", C=3.0).fit(x[:30], names[:30])
    z = model._scaling(x)
    gram = wl.ntk(model.network_, z, z[:30])
    known = SVC(C=3.0, kernel="precomputed", tol=1e-6).fit(gram[:30], names[:30])
    np.testing.assert_allclose(model.decision_function(x), known.decision_function(gram), atol=1e-4)
    assert (model.predict(x) == known.predict(gram)).all()


@pytest.mark.parametrize("head", ["ridge", "gp", "svc"])
def test_every_head(head, seed, tmp_path):
    x, y = three_classes(seed, n=90)
    model = NTKClassifier(head=head).fit(x[:60], y[:60])
    chance = model.predict_proba(x)
    right = chance[np.arange(90), y]
    assert -np.log(right[60:]).mean() < 0.8  # a coin would have log 3
    assert abs(model.loo_score_ - model.score(x[60:], y[60:])) < 0.2
    assert model.feature_importances_.argmin() == 2
    for copy in (pickle.loads(pickle.dumps(model)), _through_a_file(model, tmp_path / "m.npz")):
        np.testing.assert_allclose(copy.predict_proba(x), chance, rtol=1e-9)
        assert copy.loo_score_ == pytest.approx(model.loo_score_)
    sparse = NTKClassifier(head=head).fit(scipy.sparse.csr_array(x[:60]), y[:60])
    np.testing.assert_allclose(sparse.predict_proba(scipy.sparse.csr_array(x)), chance)


def _through_a_file(model, path):
    wl.estimators.save(model, path)
    return wl.estimators.load(path)


def test_evidence_and_score_of_a_regression(seed):
    x, y = table(seed, n=25)
    x[20:] = x[:5]  # equal rows count as rows
    model = NTKRegressor(ridge=0.1).fit(x, y)
    z = (x - x.mean(0)) / x.std(0)
    matrix = model.amplitude_ * (wl.ntk(model.network_, z) + 0.1 * np.eye(25))
    known = scipy.stats.multivariate_normal(np.full(25, y.mean()), matrix).logpdf(y)
    assert model.log_evidence_ == pytest.approx(known, rel=1e-9)
    y = y + np.random.default_rng(seed).standard_normal(25)
    best = NTKRegressor(ridge="evidence").fit(x, y).log_evidence_
    assert NTKRegressor(ridge=0.01).fit(x, y).log_evidence_ < best
    x, y = table(seed)
    model = NTKRegressor().fit(x, y)
    errors = model.leave_one_out(x, y)
    assert model.loo_score_ == pytest.approx(1 - (errors**2).sum() / ((y - y.mean()) ** 2).sum())


def test_options_without_effect_are_told(seed):
    x, y = three_classes(seed)
    with pytest.warns(UserWarning, match="C=2.0 belongs to head='svc' and is ignored"):
        NTKClassifier(C=2.0, ridge=0.1).fit(x, y)
    with pytest.warns(UserWarning, match="ridge=0.1 belongs to head='ridge'"):
        NTKClassifier(head="svc", ridge=0.1).fit(x, y)
    with pytest.raises(ValueError, match="'ridge', 'gp' or 'svc'"):
        NTKClassifier(head="lda").fit(x, y)
    with pytest.raises(ValueError, match="holds the kernel matrix"):
        NTKClassifier(head="gp", solver="cg").fit(x, y)


def test_a_table_with_names_and_holes(seed):
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "green", "blue"], 80)
    size = np.where(rng.uniform(size=80) < 0.2, np.nan, rng.standard_normal(80))
    frame = pd.DataFrame({"size": size, "colour": colour})
    y = (colour == "red") ^ np.isnan(size)  # a hole tells something
    model = wl.estimators.table_pipeline().fit(frame[:60], y[:60])
    assert model.score(frame[60:], y[60:]) > 0.8
    new = pd.DataFrame({"size": [np.nan], "colour": ["violet"]})
    assert np.isfinite(model.predict_proba(new)).all()
    with pytest.raises(TypeError, match="must be an estimator"):
        wl.estimators.table_pipeline("ridge")
