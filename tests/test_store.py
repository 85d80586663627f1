"""A kernel matrix on disk: whole tiles, any map, any number of runs, nothing lost."""

import multiprocessing
import os
import pickle
import signal
import time
import types
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import widelimit as wl
from widelimit import regression
from widelimit.estimators import NTKClassifier, NTKRegressor, load, save
from widelimit.linalg import StoredGram

NET = wl.mlp(1)
X = np.random.default_rng(0).standard_normal((23, 4))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "k"


def slow(a, b=None):
    """A dear kernel."""
    time.sleep(0.05)
    return np.asarray(a) @ np.asarray(a if b is None else b).T


def test_the_matrix_on_disk_is_the_matrix(folder):
    stored, matrix = wl.gram(NET, X, store=folder, tile=8), wl.ntk(NET, X)
    assert isinstance(stored, wl.linalg.KernelOperator)
    v = np.random.default_rng(1).standard_normal((23, 2))
    np.testing.assert_allclose(stored.dense(), matrix, rtol=1e-14)
    np.testing.assert_allclose(stored @ v, matrix @ v, rtol=1e-12)
    np.testing.assert_allclose(stored.columns([3, 20]), matrix[:, [3, 20]], rtol=1e-14)
    np.testing.assert_allclose(stored.diagonal(), np.diag(matrix), rtol=1e-14)
    solved = wl.linalg.conjugate_gradients(stored, v, 0.1, tolerance=1e-10)
    np.testing.assert_allclose(
        solved.x, np.linalg.solve(matrix + 0.1 * np.eye(23), v), rtol=1e-7, atol=1e-9
    )


def test_tiles_of_images_take_about_a_minute(folder, monkeypatch):
    images, net = X[:, :, None, None], wl.cnn(1, window=1)
    cost = lambda _, x1, x2: types.SimpleNamespace(seconds=0.4 * len(x1) * len(x2))
    monkeypatch.setattr("widelimit.regression._gram.cost", cost)
    stored = wl.gram(net, images, store=folder)
    assert stored.tile == 11  # half of 23
    assert "StoredGram(23 x 23 float64, 6 of 6 tiles" in repr(stored)
    np.testing.assert_allclose(stored.dense(), wl.ntk(net, images), rtol=1e-13)


def test_any_map_and_any_share_of_the_tiles(folder):
    with ThreadPoolExecutor(2) as pool:
        part = wl.gram(NET, X, store=folder, tile=8, share=(0, 2), map=pool.map)
    assert 0 < len(part.missing) < len(part.places)
    with pytest.raises(ValueError, match=r"tiles of .* are missing; call gram again"):
        part.dense()
    assert not wl.gram(NET, X, store=folder, share=(0, 1)).missing
    np.testing.assert_allclose(part.dense(), wl.ntk(NET, X), rtol=1e-14)


def test_tiles_travel_to_other_processes(folder):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        stored = wl.gram(None, X, kernel=slow, store=folder, tile=12, map=pool.map)
    np.testing.assert_allclose(stored.dense(), X @ X.T, rtol=1e-14)


def _fill(folder):
    wl.gram(None, X, kernel=slow, store=folder, tile=4)


def test_a_run_that_is_killed_loses_what_it_was_computing(folder):
    process = multiprocessing.get_context("spawn").Process(target=_fill, args=(folder,))
    process.start()
    while not list(folder.glob("c/*/*")):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    kept = {file: file.stat().st_mtime_ns for file in folder.glob("c/*/*") if file.suffix == ""}
    stored = wl.gram(None, X, kernel=slow, store=folder)
    assert all(file.stat().st_mtime_ns == when for file, when in kept.items())
    np.testing.assert_allclose(stored.dense(), X @ X.T, rtol=1e-14)


def test_damage_is_noticed_and_repaired(folder):
    stored = wl.gram(NET, X, store=folder, tile=8)
    tile = folder / "c/1/0"
    tile.write_bytes(tile.read_bytes()[:-9])
    with pytest.warns(UserWarning, match=r"Tile \(1, 0\) .* is damaged"):
        np.testing.assert_allclose(stored.dense(), wl.ntk(NET, X), rtol=1e-14)
    np.testing.assert_allclose(stored.dense(), wl.ntk(NET, X), rtol=1e-14)


def test_what_is_no_store_or_another_matrix_is_refused(folder, tmp_path):
    wl.gram(NET, X, store=folder, tile=8)
    for other in ({"net": wl.mlp(2), "x": X}, {"net": NET, "x": X + 1}, {"net": NET, "x": X[:9]}):
        with pytest.raises(ValueError, match="another kernel or of other points"):
            wl.gram(**other, store=folder)
    (tmp_path / "zarr.json").write_text("{}")
    with pytest.raises(ValueError, match="is no store of a kernel matrix"):
        wl.gram(NET, X, store=tmp_path)
    holed = X.copy()
    holed[7, 1] = np.nan
    with pytest.raises(ValueError, match="Row 7 of x contains NaN"):
        wl.gram(NET, holed, store=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with pytest.raises(ValueError, match=r"share is \(i, n\)"):
        wl.gram(NET, X, store=folder, share=(2, 2))


def test_a_matrix_on_disk_stands_for_points(folder, monkeypatch):
    stored, y = wl.gram(NET, X, store=folder, tile=8), np.sin(X[:, :2])
    new = X[:5] + 0.1
    for solver in ("cholesky", "cg"):
        model = wl.ridge(None, stored, y, 0.1, kernel="precomputed", solver=solver, tolerance=1e-10)
        right = wl.ridge(NET, X, y, 0.1).predict(new)
        for given in (new, wl.ntk(NET, new, X)):
            np.testing.assert_allclose(model.predict(given), right, rtol=1e-6)
    monkeypatch.setattr(regression._fit, "SUBSET", 15)
    for ridge in ("loo", [0.01, 0.1, 1.0]):  # on some of the points
        models = [
            wl.ridge(net, x, y, ridge, kernel=kernel, solver="cg")
            for net, x, kernel in ((None, stored, "precomputed"), (NET, X, "ntk"))
        ]
        assert abs(models[0].ridge / models[1].ridge - 1) < 1e-9
    with pytest.raises(ValueError, match="y has 3 rows; the stored kernel is that of 23"):
        wl.ridge(None, stored, y[:3], kernel="precomputed")
    (folder / "c/0/0").unlink()
    with pytest.raises(ValueError, match=r"1 tiles of .* are missing; call gram again"):
        wl.ridge(None, stored, y, kernel="precomputed")


def test_two_runs_fill_one_store(folder):
    """Each computes what it finds missing; a tile that both compute is the same."""
    with ThreadPoolExecutor(2) as pool:
        both = pool.map(lambda _: wl.gram(None, X, kernel=slow, store=folder, tile=6), range(2))
        stored = next(iter(both))
    np.testing.assert_allclose(stored.dense(), X @ X.T, rtol=1e-14)


def test_a_full_disk_is_named_and_what_was_written_stays(folder, monkeypatch):
    wl.gram(None, X, kernel=slow, store=folder, tile=12, share=(0, 2))
    files = lambda: {p for p in (folder / "c").rglob("*") if p.is_file()}
    before = files()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(os, "rename", full)
    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(ValueError, match=r"Tile \(\d, \d\) .* cannot be written: .*No space left"):
        wl.gram(None, X, kernel=slow, store=folder, tile=12)
    monkeypatch.undo()
    assert before <= files()
    assert not wl.gram(None, X, kernel=slow, store=folder, tile=12).missing


def test_a_bad_row_is_named_before_any_work(folder):
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"Row 7 of x"):
        wl.gram(NET, bad, store=folder)
    with pytest.raises(ValueError, match=r"x contains 1 NaN.* index \(7, 2\)"):
        wl.ridge(NET, bad, np.ones(23), solver="cg")


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_estimators_keep_their_matrix(solver, tmp_path, monkeypatch):
    images = np.random.default_rng(1).standard_normal((12, 3, 3, 1))
    y = images.sum((1, 2, 3))
    net, folder = wl.Conv((3, 3)) >> wl.Phi("relu") >> wl.Flatten() >> wl.Dense(), tmp_path / "k"
    options = {"network": net, "solver": solver, "store": folder}
    model = NTKRegressor(ridge=0.1, **options).fit(images, y)
    plain = NTKRegressor(net, ridge=0.1).fit(images, y)
    np.testing.assert_allclose(model.predict(images), plain.predict(images), atol=1e-5)
    assert len(list(folder.iterdir())) == 1
    # What is there is not computed again, also by another ridge, or a copy.
    monkeypatch.setattr(StoredGram, "compute", None)
    again = NTKRegressor(ridge="loo", **options).fit(images, y)
    assert again.ridge_ == pytest.approx(NTKRegressor(net).fit(images, y).ridge_)
    copy = pickle.loads(pickle.dumps(model))
    assert copy.loo_score_ == pytest.approx(plain.loo_score_, abs=1e-5)
    monkeypatch.undo()
    save(model, tmp_path / "m.npz")
    assert load(tmp_path / "m.npz").store == str(folder)
    # Other rows have a folder of their own: cross-validation works.
    NTKClassifier(**options).fit(images[:9], y[:9] > 0)
    assert len(list(folder.iterdir())) == 2
