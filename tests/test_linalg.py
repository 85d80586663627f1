"""Factorisations, tiles and iterations against dense NumPy, mpmath and brute force."""

import warnings

import jax
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widelimit as wl
from widelimit._base import mesh
from widelimit.linalg import (
    Preconditioner,
    System,
    TiledGram,
    cholesky,
    conjugate_gradients,
    eigh,
    inverse_diagonal,
    leave_one_out,
    partial_cholesky,
    ridge_path,
)
from widelimit.linalg._nystrom import usual_rank


def laplace(a, b=None):
    b = a if b is None else b
    return np.exp(-np.abs(a[:, None, :] - b[None, :, :]).sum(2))


def points(seed, n, d=2):
    return np.random.default_rng(seed).standard_normal((n, d))


def matrix_with_spectrum(values, seed):
    q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((len(values),) * 2))
    a = (q * values) @ q.T
    return (a + a.T) / 2


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 23), st.integers(1, 9), st.integers(0, 99))
def test_tiles_of_any_size_make_the_same_product(n, tile, seed):
    x = points(seed, n)
    gram = TiledGram(laplace, x, tile=tile)
    v = np.random.default_rng(seed).standard_normal((n, 3))
    np.testing.assert_allclose(gram @ v, laplace(x) @ v, atol=1e-13)
    np.testing.assert_allclose(gram @ v[:, 0], laplace(x) @ v[:, 0], atol=1e-13)
    np.testing.assert_array_equal(gram.dense(), laplace(x))
    np.testing.assert_array_equal(gram.columns([0, n - 1]), laplace(x)[:, [0, n - 1]])
    np.testing.assert_allclose(gram.diagonal(), np.ones(n))


def test_half_of_the_tiles_are_computed_and_stored_ones_only_once(tmp_path):
    calls = []

    def counting(a, b=None):
        calls.append(b is None)
        return laplace(a, b)

    x = points(0, 50)
    gram = TiledGram(counting, x, tile=10)
    gram @ np.ones(50)
    assert len(calls) == gram.tiles == 15
    assert sum(calls) == 5
    kept = TiledGram(counting, x, tile=12, store=str(tmp_path))
    calls.clear()
    v = np.linspace(-1, 1, 50)
    np.testing.assert_allclose(kept @ v, laplace(x) @ v, atol=1e-13)
    np.testing.assert_array_equal(kept.dense(), laplace(x))
    assert not calls
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ValueError, match="existing folder"):
        TiledGram(laplace, points(0, 3), store=str(tmp_path / "no"))


def test_cholesky_solves_to_the_accuracy_of_fifty_digits(seed):
    a = laplace(points(seed, 12))
    b = points(seed + 1, 12, 3)
    ridge = np.linspace(0.01, 0.5, 12)
    factor = cholesky(a, ridge)
    with mpmath.workdps(50):
        exact = mpmath.matrix((a + np.diag(ridge)).tolist())
        inverse = exact**-1
        x = np.array((inverse * mpmath.matrix(b.tolist())).tolist(), dtype=float)
        diagonal = np.array([float(inverse[i, i]) for i in range(12)])
        log_det = float(mpmath.log(mpmath.det(exact)))
    np.testing.assert_allclose(factor.solve(b), x, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(factor.solve(b[:, 0]), x[:, 0], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose((factor.half_solve(b) ** 2).sum(0), (b * x).sum(0), rtol=1e-12)
    np.testing.assert_allclose(factor.inverse_diagonal(), diagonal, rtol=1e-12)
    assert abs(factor.log_det() - log_det) < 1e-12
    assert factor.jitter == 0


@pytest.mark.parametrize("order", ["C", "F"])
def test_overwriting_factors_in_place_and_the_default_does_not(order, seed):
    a = np.array(laplace(points(seed, 40)), order=order)
    before = a.copy()
    factor = cholesky(a, 0.1)
    np.testing.assert_array_equal(a, before)
    in_place = cholesky(a, 0.1, overwrite=True)
    assert np.shares_memory(in_place.lower, a)
    np.testing.assert_array_equal(np.tril(in_place.lower), np.tril(factor.lower))


@pytest.mark.parametrize("n", [7, 700])
def test_a_singular_matrix_gets_the_smallest_jitter_and_a_warning(n, seed):
    x = points(seed, n)
    x[3] = x[5]
    a = laplace(x)
    with pytest.warns(UserWarning, match="singular to rounding"):
        factor = cholesky(a)
    assert 0 < factor.jitter < 1e-11
    lower = np.tril(factor.lower)
    np.testing.assert_allclose(lower @ lower.T, a + factor.jitter * np.eye(n), atol=1e-13)
    smaller = factor.jitter / 10
    if smaller > 1e-16:
        with pytest.warns(UserWarning, match="singular"):
            assert cholesky(a, smaller * 0.99).jitter > 0


def test_a_matrix_of_condition_1e14_needs_no_jitter(seed):
    a = matrix_with_spectrum(np.logspace(-14, 0, 15), seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        factor = cholesky(a)
    assert factor.jitter == 0
    assert factor.rcond < 1e-12


def test_panels_make_the_same_factor(seed, monkeypatch):
    monkeypatch.setattr("widelimit.linalg._panels._LARGE", 10)
    monkeypatch.setattr("widelimit.linalg._panels._PANEL", 8)
    a = matrix_with_spectrum(np.logspace(-3, 0, 29), seed)
    given = np.asfortranarray(a)
    factor = cholesky(given, overwrite=True)
    np.testing.assert_allclose(np.tril(factor.lower), np.linalg.cholesky(a), atol=1e-13)
    np.testing.assert_array_equal(np.triu(factor.lower, 1), np.triu(a, 1))
    rows = np.array([3, 20])
    inverse = np.diagonal(np.linalg.inv(a))
    np.testing.assert_allclose(factor.inverse_diagonal(), inverse, rtol=1e-9)
    np.testing.assert_allclose(factor.inverse_diagonal(rows), inverse[rows], rtol=1e-9)
    singular = np.ones((29, 29))
    with pytest.warns(UserWarning, match="singular to rounding"):
        assert cholesky(singular).jitter > 0
    with pytest.raises(ValueError, match="not positive semidefinite"):
        cholesky(-np.eye(29))


def test_an_indefinite_matrix_is_refused():
    with pytest.raises(ValueError, match="not positive semidefinite"):
        cholesky(np.diag([1.0, -1.0]))
    with pytest.raises(ValueError, match="not positive"):
        eigh(np.diag([1.0, -1.0]))


@pytest.mark.parametrize("bad", [np.ones((2, 3)), np.ones(3), np.full((2, 2), np.nan)])
def test_what_is_no_matrix_is_refused(bad):
    with pytest.raises(ValueError, match="matrix"):
        cholesky(bad)


@pytest.mark.parametrize("ridge", [-1.0, [1.0, 2.0], np.nan])
def test_bad_ridges_are_refused(ridge):
    with pytest.raises(ValueError, match="ridge"):
        cholesky(np.eye(3), ridge)


def test_right_hand_sides_of_the_wrong_length_are_refused():
    with pytest.raises(ValueError, match="3 rows"):
        cholesky(np.eye(3)).solve([1.0, 2.0])
    with pytest.raises(ValueError, match="3 rows"):
        conjugate_gradients(TiledGram(laplace, points(0, 3)), [1.0, 2.0])


def test_exact_ranks_are_found(golden):
    angles = -np.pi + 2 * np.pi * np.arange(6) / 6
    x = np.stack([np.cos(angles), np.sin(angles)], 1)
    for case in golden["degenerate_grams"]:
        depth, act = case["L"], case["act"]
        net = wl.mlp(depth, act) if case["model"] == "mlp" else wl.resnet(depth, case["alpha"], act)
        e = eigh(wl.ntk(net, x))
        assert e.rank == case["exact_rank"]
        assert e.condition == np.inf
        assert abs(e.values[-1] / case["lambda_max"] - 1) < 1e-12
        assert abs(e.values[6 - e.rank] / case["smallest_nonzero"] - 1) < 1e-12


def test_functions_of_a_matrix(seed):
    a = matrix_with_spectrum(np.linspace(0.1, 3, 9), seed)
    b = points(seed, 9, 2)
    e = eigh(a)
    np.testing.assert_allclose(e.apply(np.sqrt, e.apply(np.sqrt, b)), a @ b, atol=1e-13)
    np.testing.assert_allclose(e.apply(lambda v: 1 / v, a @ b[:, 0]), b[:, 0], atol=1e-12)
    assert abs(e.condition - 30) < 1e-11


@pytest.mark.parametrize("outputs", [None, 2])
def test_leave_one_out_is_what_refitting_gives(outputs, seed):
    n, ridge = 9, 0.3
    k = laplace(points(seed, n))
    y = points(seed + 1, n, outputs or 1)
    y = y if outputs else y[:, 0]
    brute = np.empty_like(y)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        a = k[np.ix_(rest, rest)] + ridge * np.eye(n - 1)
        brute[i] = y[i] - k[i, rest] @ np.linalg.solve(a, y[rest])
    factor = cholesky(k, ridge)
    np.testing.assert_allclose(leave_one_out(factor, factor.solve(y)), brute, atol=1e-12)
    path = ridge_path(eigh(k), y, [0.1, ridge, 7.0])
    np.testing.assert_allclose(path.errors[1], brute, atol=1e-12)
    np.testing.assert_allclose(path.mean_squares[1], (brute**2).mean(), rtol=1e-12)
    assert path.ridge == path.ridges[np.argmin(path.mean_squares)]


def test_a_path_needs_positive_ridges():
    with pytest.raises(ValueError, match="positive"):
        ridge_path(eigh(np.eye(2)), [1.0, 2.0], [0.0, 1.0])


def test_partial_cholesky_is_below_the_matrix_and_near_the_best(seed):
    x = points(seed, 150, 1)
    kernel = lambda a, b=None: np.exp(-((a - (a if b is None else b).T) ** 2))
    k = kernel(x)
    low = partial_cholesky(TiledGram(kernel, x, tile=40), 12, block=4)
    left = np.linalg.eigvalsh(k - low.factor @ low.factor.T)
    assert left[0] > -1e-12
    assert abs(low.error - left.sum() / np.trace(k)) < 1e-12
    best = np.linalg.eigvalsh(k)[: -low.factor.shape[1]].sum() / np.trace(k)
    assert low.error < 100 * best
    full = partial_cholesky(TiledGram(kernel, x[:20]), 20)
    np.testing.assert_allclose(full.factor @ full.factor.T, k[:20, :20], atol=1e-12)


def test_the_preconditioner_is_an_inverse(seed):
    x = points(seed, 30)
    low = partial_cholesky(TiledGram(laplace, x), 10)
    s = np.linspace(0.1, 1, 30)
    v = points(seed, 30, 2)
    dense = low.factor @ low.factor.T + np.diag(s)
    apply = Preconditioner(low, s, 0.0)
    np.testing.assert_allclose(apply(dense @ v), v, atol=1e-12)
    np.testing.assert_allclose(apply(dense @ v[:, 0]), v[:, 0], atol=1e-12)


def smooth(a, b=None):
    b = a if b is None else b
    return np.exp(-((a[:, None, :] - b[None, :, :]) ** 2).sum(2) / 8)


def test_cg_solves_and_the_preconditioner_pays(seed):
    x = points(seed, 400, 5)
    y = points(seed + 1, 400, 2)
    gram = TiledGram(smooth, x, tile=150)
    exact = np.linalg.solve(smooth(x) + 0.01 * np.eye(400), y)
    plain = conjugate_gradients(gram, y, 0.01, rank=0, tolerance=1e-10)
    helped = conjugate_gradients(gram, y, 0.01, rank=200, tolerance=1e-10)
    for s in (plain, helped):
        assert s.converged
        assert s.residual < 1e-10
        np.testing.assert_allclose(s.x, exact, atol=1e-6 * np.abs(exact).max())
    assert helped.steps < plain.steps / 2
    np.testing.assert_allclose(
        conjugate_gradients(gram, y[:, 0], 0.01, tolerance=1e-10).x,
        exact[:, 0],
        atol=1e-6 * np.abs(exact).max(),
    )


@pytest.mark.parametrize("rank", [0, 60])
def test_leave_one_out_from_few_solutions(rank, seed):
    n, rng = 300, np.random.default_rng(seed)
    x = rng.standard_t(2, (n, 2))  # some points are far from all others
    ridge = rng.uniform(0.05, 0.2, n)
    entries, index = laplace(x), lambda a: a[:, 0].astype(int)
    kernel = lambda a, b=None: entries[np.ix_(index(a), index(a if b is None else b))]
    gram, matrix = TiledGram(kernel, np.arange(n)[:, None]), entries + np.diag(ridge)
    inverse = np.linalg.inv(matrix)
    dual = inverse @ (np.sin(x[:, :1]) + 0.3 * rng.standard_normal((n, 1)))
    known = dual / np.diag(inverse)[:, None]
    system, spread = System(gram, ridge, rank=rank), []
    if rank:
        apply = system.preconditioner
        np.testing.assert_allclose(apply.diagonal(), np.diag(apply(np.eye(n))), rtol=1e-10)
    for probes in (8, 64):
        found = inverse_diagonal(system, probes, tolerance=1e-4, key=seed)
        mean, variance = found.moments()
        assert (np.isfinite(mean) & (found.least <= mean) & (mean <= found.most)).all()
        far = np.argsort(np.diag(matrix))[-probes:]  # solved for by themselves
        np.testing.assert_allclose(mean[far], np.diag(inverse)[far], rtol=1e-4)
        z = (mean / np.diag(inverse) - 1)[variance > 0] / np.sqrt(variance[variance > 0])
        assert 0.8 < np.sqrt((z**2).mean()) < 1.6
        square = lambda errors: float((errors**2).mean())
        left = np.array([square(found.leave_one_out(dual, k)) for k in range(probes)])
        std = np.sqrt((probes - 1) * left.var())
        assert abs(square(found.leave_one_out(dual)) - square(known)) < 4 * std
        spread.append(std / square(known))
    assert spread[1] < spread[0] / 2
    assert spread[1] < 0.02


def test_few_rows_are_solved_for_exactly(seed):
    x = points(seed, 20)
    found = inverse_diagonal(System(TiledGram(laplace, x), 0.1), tolerance=1e-10)
    exact = np.diag(np.linalg.inv(laplace(x) + 0.1 * np.eye(20)))
    np.testing.assert_allclose(found.moments()[0], exact, rtol=1e-9)
    assert not any(found.moments(skip)[1].any() for skip in (None, 0))
    with pytest.raises(ValueError, match="at least 3"):
        inverse_diagonal(System(TiledGram(laplace, x), 0.1), 2)


def test_a_system_of_another_ridge_is_that_system(seed):
    x, y = points(seed, 80), points(seed + 1, 80, 1)
    first = System(TiledGram(laplace, x), 0.1, rank=20)
    first.solve(y)
    other = first.shifted(np.linspace(0.01, 3, 80))
    exact = np.linalg.solve(laplace(x) + np.diag(np.linspace(0.01, 3, 80)), y)
    np.testing.assert_allclose(other.solve(y, tolerance=1e-10).x, exact, atol=1e-8)
    fresh = System(first.gram, np.linspace(0.01, 3, 80), rank=20)
    np.testing.assert_allclose(other.inverse(y), fresh.inverse(y), atol=1e-12)


def test_cg_that_gives_up_says_so(seed):
    gram = TiledGram(laplace, points(seed, 100))
    s = conjugate_gradients(gram, np.ones(100), 1e-6, rank=0, max_steps=2)
    assert not s.converged
    assert s.steps == 2
    assert s.residual > 1e-6
    nothing = conjugate_gradients(gram, np.zeros(100))
    assert nothing.converged
    assert not nothing.x.any()


def test_a_preconditioner_fits_into_the_memory_of_the_device(monkeypatch):
    monkeypatch.setattr(mesh, "memory", lambda mesh: 1e9)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert usual_rank(None, 10_000, host=False) == 1000  # 40 MB
    assert (
        usual_rank(None, 1_000_000, host=False) == 200
    )  # instead of 10,000, which would take 40 GB
    assert usual_rank(None, 1_000_000, host=False, bytes_each=8) == 100
    assert usual_rank(3000, 1_000_000, host=False) == 3000  # as one was told
