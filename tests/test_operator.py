"""Products without the matrix, and iterations that keep what they promise."""

import numpy as np
import pytest

import widelimit as wl
from widelimit import linalg
from widelimit._base.watch import Watch
from widelimit.linalg import KernelOperator, TiledGram, conjugate_gradients

NETWORKS = {
    "by its profile": wl.mlp(3),
    "layer by layer": wl.mlp(2, b_std=0.3),
    "erf": wl.mlp(1, "erf", b_std=0.3),
}
TOLERANCE = {"float32": 5e-7, "float64": 1e-14}


def points(n, d, seed=0):
    return np.random.default_rng(seed).standard_normal((n, d))


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("name", NETWORKS)
def test_products_are_those_of_the_matrix(name, precision):
    kernel, x = wl.prepare(NETWORKS[name]), points(700, 12)
    x[5] = x[3]  # a duplicate, a near one, one that differs by its norm, and nothing at all
    x[600] = x[3] + 1e-5 * x[4]
    x[601], x[602] = 2 * x[3], 0
    operator, matrix = kernel.operator(x, precision), kernel(x)
    assert isinstance(operator, KernelOperator)
    assert operator.shape == matrix.shape
    v = np.random.default_rng(1).standard_normal((700, 3))
    for given in (v, v[:, 0]):
        size = np.abs(matrix) @ np.abs(given)
        assert (np.abs(operator @ given - matrix @ given) <= TOLERANCE[precision] * size).all()
    picked = np.asarray(operator.columns([3, 602]))
    assert np.abs(picked - matrix[:, [3, 602]]).max() < TOLERANCE[precision] * matrix.max()
    np.testing.assert_allclose(operator.diagonal(), np.diag(matrix), rtol=1e-13)


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e60])
def test_single_precision_gives_way_to_sizes_that_it_cannot_hold(size):
    kernel, x = wl.prepare(wl.mlp(3)), size * points(40, 12)
    operator, matrix = kernel.operator(x, "float32"), kernel(x)
    assert operator.precision == "float64"
    np.testing.assert_allclose(operator @ np.ones(40), matrix.sum(1), rtol=1e-12)


def test_few_features_come_from_differences():
    kernel, x = wl.prepare(wl.mlp(3)), points(600, 2)
    matrix, v = kernel(x), np.ones(600)
    assert np.abs(kernel.operator(x) @ v - matrix @ v).max() < 1e-13 * (matrix @ v).max()


def test_single_precision_is_refined_to_a_residual_in_double_precision():
    kernel, x = wl.prepare(wl.mlp(3)), points(600, 12)
    y = np.sin(x[:, :2])
    y[:, 1] = 0  # a column without anything to do
    solve = lambda tolerance: conjugate_gradients(
        kernel.operator(x, "float32"), y, 1e-3, exact=kernel.operator(x), tolerance=tolerance
    )
    outcome, system = solve(1e-11), kernel(x) + 1e-3 * np.eye(600)
    assert outcome.converged
    assert outcome.rounds > 1
    assert outcome.rank == 122
    true = np.linalg.norm(y[:, 0] - system @ outcome.x[:, 0]) / np.linalg.norm(y[:, 0])
    assert true < 1e-11
    assert abs(true - outcome.residual) < 1e-13
    assert not outcome.x[:, 1].any()
    hopeless = solve(1e-18)  # more than the arithmetic gives: said, and not for ever
    assert not hopeless.converged
    assert hopeless.residual < 1e-13


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-9])
def test_the_last_residual_of_many_points_is_judged_by_some_rows(monkeypatch, near, tolerance):
    monkeypatch.setattr(linalg._judged, "_ALL_ROWS", 500)
    monkeypatch.setattr(linalg._judged, "_SOME_ROWS", 64)
    x = points(600, 12)
    x[1] = x[0] * 3 if near else x[1] * 1e4  # nearly parallel, or one row that outweighs all others
    kernel, y = wl.prepare(wl.mlp(3)), np.stack([np.sin(x[:, 0]), x[:, 1] ** 2], axis=1)
    gram = kernel.operator(x, "float32").roughly()
    careful, products = gram.careful(), []
    product = type(careful).__matmul__
    count = lambda self, v: products.append(self.precision) or product(self, v)
    monkeypatch.setattr(type(careful), "__matmul__", count)
    found = conjugate_gradients(gram, y, 1e-3, exact=careful, tolerance=tolerance)
    assert products.count("float64") == found.rounds - (not near)
    left = y - (kernel(x) + 1e-3 * np.eye(600)) @ found.x
    true = (np.linalg.norm(left, axis=0) / np.linalg.norm(y, axis=0)).max()
    assert found.converged
    assert true <= found.residual * (1 + 1e-9) <= tolerance
    assert found.residual < 3 * true


def test_clusters_are_iterated_roughly_and_solved_exactly():
    rng = np.random.default_rng(4)
    x = np.repeat(points(30, 12), 10, axis=0) + 1e-3 * rng.standard_normal((300, 12))
    x[5] = x[6]
    kernel, y = wl.prepare(wl.mlp(3)), rng.standard_normal(300)
    rough = kernel.operator(x, "float32").roughly()
    matrix, exact = kernel(x), rough.careful()
    v = np.ones(300)
    error = np.abs(rough @ v - matrix @ v).max() / (matrix @ v).max()
    assert 1e-7 < error < 1e-4
    system = linalg.System(rough, 1e-4, exact=exact, rank=30)
    solution = system.solve(y, tolerance=1e-9)
    assert solution.converged
    assert not rough.rough  # what it gave up when it stood in the way
    left = y - (matrix + 1e-4 * np.eye(300)) @ solution.x
    assert np.linalg.norm(left) < 2e-9 * np.linalg.norm(y)
    apply = system.preconditioner
    np.testing.assert_allclose(
        apply.diagonal(), np.diag(apply(rough.vector(np.eye(300)))), rtol=1e-9
    )
    far = system.shifted(np.linspace(1, 2, 300))
    fresh = linalg.System(rough, np.linspace(1, 2, 300), rank=30)
    v = rough.vector(y[:, None])
    np.testing.assert_allclose(far.inverse(v), fresh.inverse(v), rtol=1e-9)


class Stop(Exception):
    pass


def stop_at(step):
    def callback(i):
        if i == step:
            raise Stop

    return callback


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(linalg._checkpoint, "_SECONDS", -1.0)


def test_a_run_that_was_stopped_goes_on_bit_for_bit(tmp_path, often):
    kernel, x = wl.prepare(wl.mlp(3)), points(300, 12)
    y, file = np.sin(x[:, 0]), tmp_path / "state.npz"
    operators = {"gram": kernel.operator(x, "float32"), "exact": kernel.operator(x)}
    solve = lambda **more: conjugate_gradients(
        b=y, ridge=1e-3, tolerance=1e-10, rank=20, **operators, **more
    )
    whole = solve()
    for step in (3, whole.steps - 1):
        with pytest.raises(Stop):
            solve(checkpoint=file, callback=stop_at(step))
        went_on = solve(checkpoint=file)
        np.testing.assert_array_equal(went_on.x, whole.x)
        assert (went_on.steps, went_on.rounds) == (whole.steps, whole.rounds)
        assert not file.exists()  # done


def test_ctrl_c_leaves_a_checkpoint(tmp_path, capsys):
    kernel, x, path = wl.prepare(wl.mlp(3)), points(300, 12), tmp_path / "state.npz"
    y = np.sin(x[:, 0])
    solve = lambda **more: conjugate_gradients(kernel.operator(x), y, 1e-3, rank=20, **more)

    def stop(step):
        if step == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(checkpoint=path, callback=stop)
    assert f"Stopped after 6 steps; {path} goes on" in capsys.readouterr().err
    told = []
    again, whole = solve(checkpoint=path, callback=told.append), solve()
    assert told[0] == 7
    np.testing.assert_array_equal(again.x, whole.x)
    assert not path.exists()
    with pytest.raises(KeyboardInterrupt):
        solve(callback=stop)
    assert not capsys.readouterr().err


def test_a_watch_learns_how_many_steps_there_will_be(monkeypatch, capsys):
    monkeypatch.setattr("widelimit._base.watch._PAUSE", 0.0)
    kernel, x = wl.prepare(wl.mlp(3)), points(300, 12)
    watch = Watch("step", 1000, True)
    found = conjugate_gradients(kernel.operator(x), x[:, 0], 1e-3, rank=20, callback=watch)
    lines = capsys.readouterr().err.splitlines()
    totals = [int(line.split("about ")[1].split(",")[0]) for line in lines]
    assert totals[0] == 1000
    assert all(abs(total / found.steps - 1) < 0.5 for total in totals[found.steps // 3 :])
    assert lines[-1].startswith(f"step: {found.steps} of about {found.steps}")


def test_a_watch_that_is_not_asked_speaks_up_after_a_minute(monkeypatch, capsys):
    clock = iter(range(0, 1000, 25))
    monkeypatch.setattr("widelimit._base.watch.time.perf_counter", lambda: float(next(clock)))
    watch = Watch("step", 2, None)  # of which it takes more
    for step in (1, 2, 3):
        watch(step)
    assert capsys.readouterr().err == "step: 3 of about 3, 0 s left\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    watch(4)
    watch.close()
    assert capsys.readouterr().err == "step: 4 of about 4, 0 s left\r" + " " * 28 + "\r"


def test_a_checkpoint_of_something_else_is_refused(tmp_path, often):
    laplace = lambda a, b=None: np.exp(-np.abs(a - (a if b is None else b).T))
    x = np.linspace(0, 9, 40)[:, None]
    gram, file = TiledGram(laplace, x), tmp_path / "state.npz"
    with pytest.raises(Stop):
        conjugate_gradients(gram, x[:, 0], 0.1, rank=0, checkpoint=file, callback=stop_at(3))
    with pytest.raises(ValueError, match=r"belongs to other targets"):
        conjugate_gradients(gram, np.cos(x[:, 0]), 0.1, rank=0, checkpoint=file)
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"state.npz is damaged.*Remove it"):
        conjugate_gradients(gram, x[:, 0], 0.1, rank=0, checkpoint=file)
    nowhere = tmp_path / "nowhere" / "state.npz"
    with pytest.raises(ValueError, match=r"cannot be written"):
        conjugate_gradients(gram, x[:, 0], 0.1, rank=0, checkpoint=nowhere)


def test_precision_is_one_of_two():
    with pytest.raises(ValueError, match="'float32' or 'float64'"):
        wl.prepare(wl.mlp(1)).operator(points(4, 3), "float16")
