"""What goes wrong around the numbers: damaged files, Ctrl-C, full disks, other people's input."""

import contextlib
import decimal
import errno
import fractions
import json
import math
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import fuzz
import widelimit as wl
from widelimit import experiments as ex
from widelimit._base.functions import digest
from widelimit._base.lock import LOCK, locked
from widelimit.activations import How
from widelimit.estimators import NTKRegressor
from widelimit.experiments import _store as store
from widelimit.infinite import _patience, _plan

X, Y = np.eye(2), np.ones(2)
NETWORK = wl.finite(wl.mlp(1, "erf"), width=8)


def train(file, **options):
    return wl.optimise(NETWORK, X, Y, **{"steps": 20, "record": 4, "checkpoint": file} | options)


def equal(a, b):
    return all(map(np.array_equal, jax.tree.leaves(a), jax.tree.leaves(b)))


def test_a_damaged_checkpoint_is_named(tmp_path):
    file = tmp_path / "c.npz"
    whole = train(file)
    data = file.read_bytes()
    for damaged in (b"", data[:-1], data[: len(data) // 2], b"PK" + data[5:], b"x", data[40:]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"c\.npz is damaged, or not a checkpoint.*delete it"):
            train(file)
    np.save(file.with_suffix(".npy"), np.zeros(3))
    file.write_bytes(file.with_suffix(".npy").read_bytes())
    with pytest.raises(ValueError, match="not a checkpoint"):
        train(file)
    for place in range(0, len(data), 307):  # a single byte, anywhere
        file.write_bytes(data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :])
        with contextlib.suppress(ValueError):  # else a byte without meaning, as in a date
            assert equal(train(file).params, whole.params)


def test_a_checkpoint_without_its_arrays_is_refused(tmp_path):
    file = tmp_path / "c.npz"
    train(file)
    with np.load(file) as found:
        arrays = dict(found)
    np.savez(file, **{name: value for name, value in arrays.items() if name != "state/1"})
    with pytest.raises(ValueError, match="arrays of 'state' do not fit"):
        train(file)


decay = lambda last: optax.sgd(optax.piecewise_constant_schedule(0.01, {10: last}))
power = lambda k: lambda f, y: jnp.sum(jnp.abs(f - y) ** k)


@pytest.mark.parametrize(
    ("first", "then", "named"),
    [
        ({"steps": 50}, {"steps": 20}, r"steps \(50 are done, 20 are asked for\)"),
        ({"record": 4}, {"record": 5}, r"record .*then 0, 5, 10, 15, now 0, 4, 8, 12, 16"),
        ({}, {"tolerance": 1e-3}, r"tolerance \(then none, now 0\.001\)"),
        ({"learning_rate": 0.1}, {"learning_rate": 0.2}, r"learning_rate \(then 0\.1, now 0\.2\)"),
        ({"optimiser": decay(0.1)}, {"optimiser": decay(0.2)}, "What differs: optimiser"),
        ({"loss": power(2)}, {"loss": power(3)}, "What differs: loss"),
        ({"loss": "squared"}, {"loss": "huber"}, "loss .*then squared, now huber"),
        ({}, {"key": 1}, "initial parameters; key"),
        ({}, {"probe": X}, "What differs: probe"),
        ({"batch_size": 1}, {"batch_size": 2}, "batch_size .*then 1, now 2"),
    ],
)
def test_a_checkpoint_of_another_run_says_what_differs(tmp_path, first, then, named):
    file = tmp_path / "c.npz"
    train(file, **first)
    train(file, **first)
    with pytest.raises(ValueError, match=named):
        train(file, **then)


def test_other_data_and_networks_are_noticed(tmp_path):
    file = tmp_path / "c.npz"
    own = lambda c: wl.finite(wl.mlp(1, lambda v: jnp.sin(c * v)), width=8)
    wl.optimise(own(1.0), X, Y, steps=3, checkpoint=file)
    wl.optimise(own(1.0), X, Y, steps=3, checkpoint=file)
    with pytest.raises(ValueError, match="What differs: network"):
        wl.optimise(own(2.0), X, Y, steps=3, checkpoint=file)
    with pytest.raises(ValueError, match=r"What differs: y\."):
        wl.optimise(own(1.0), X, 2 * Y, steps=3, checkpoint=file)


def test_a_finished_run_is_continued(tmp_path):
    file = tmp_path / "c.npz"
    wl.optimise(NETWORK, X, Y, steps=30, checkpoint=file)
    longer = wl.optimise(NETWORK, X, Y, steps=50, checkpoint=file)
    whole = wl.optimise(NETWORK, X, Y, steps=50)
    assert equal(longer.params, whole.params)
    assert longer.steps.tolist() == whole.steps.tolist() == [0, 50]
    goal = {"steps": 5000, "tolerance": 1e-3, "record": 1}
    met = train(tmp_path / "d.npz", **goal)
    again = train(tmp_path / "d.npz", **goal)
    assert met.outcome == again.outcome == "tolerance"
    assert met.steps.tolist() == again.steps.tolist()


def test_a_checkpoint_that_cannot_be_written_is_refused_before_any_work(tmp_path, monkeypatch):
    never = lambda *_: pytest.fail("work was begun")
    monkeypatch.setattr("widelimit.training._optimise.prepare", never)
    with pytest.raises(ValueError, match=r"gone.c\.npz cannot be written \(No such file"):
        train(tmp_path / "gone" / "c.npz")
    with pytest.raises(ValueError, match="it is a folder"):
        train(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="cannot be written"):
        train(tmp_path / "file" / "c.npz")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_keeps_the_old_checkpoint(tmp_path, monkeypatch):
    file = tmp_path / "c.npz"
    train(file, steps=10, record=2)
    before = file.read_bytes()
    full = lambda handle, mode: Path("/dev/full").open(mode)  # noqa: SIM115
    monkeypatch.setattr("widelimit._base.files.os.fdopen", full)
    with pytest.raises(OSError, match=r"c\.npz could not be written \(No space left on device\)"):
        train(file, steps=20, record=4)
    assert file.read_bytes() == before


@pytest.fixture
def usual_interrupts():
    """Ctrl-C as in a terminal; a shell that runs its commands in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_stops_within_two_seconds_and_leaves_a_checkpoint(tmp_path, usual_interrupts):
    file = tmp_path / "c.npz"
    options = {"steps": 20_000_000, "record": None, "learning_rate": 1e-5}
    train(tmp_path / "warm.npz", **options | {"steps": 1})
    pressed, stopped = [], threading.Event()

    def press():  # again, should the interpreter have lost it in a callback
        while not stopped.wait(2.5) and len(pressed) < 3:
            pressed.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

    finger = threading.Thread(target=press)
    finger.start()
    with pytest.raises(KeyboardInterrupt):
        train(file, **options)
    stopped.set()
    finger.join()
    assert time.monotonic() - pressed[-1] < 2
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with np.load(file) as found:
        done = int(found["state/0"])
    assert done > 100
    resumed = train(file, **options | {"steps": done + 10})
    whole = train(None, **options | {"steps": done + 10})
    assert equal(resumed.params, whole.params)
    assert resumed.steps.tolist() == [0, done + 10]


def test_digests_are_the_same_in_another_process():
    code = """
        import functools, jax, jax.numpy as jnp, numpy as np, optax, widelimit as wl
        from widelimit._base.functions import digest
        scale = 3.0
        def inner(v, k=2): return jnp.tanh(v) ** k * scale
        outer = functools.partial(lambda v, w: inner(v) + w @ jnp.ones(2), w=np.arange(4.0).reshape(2, 2))
        rates = optax.warmup_cosine_decay_schedule(0.0, 1.0, 10, 100)
        things = (inner, outer, optax.adamw(rates, mask=None), jax.jit(inner), {"a": {1, 2}}, jax.random.key(3))
        print(*map(digest, things))
    """
    run = lambda: (
        subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    first = run()
    assert first == run()
    assert len(set(first.split())) == len(first.split()) >= 6


def test_digests_see_what_a_function_sees():
    make = lambda a: lambda v: a * v
    assert digest(make(1.0)) != digest(make(1))
    assert digest(make(np.ones(3))) != digest(make(np.zeros(3)))
    assert digest(lambda v: v + 1) != digest(lambda v: v + 2)
    assert digest(lambda v, k=1: v) != digest(lambda v, k=2: v)
    assert digest(lambda v: [v + 1 for v in v]) != digest(lambda v: [v + 2 for v in v])
    itself = [1]
    itself.append(itself)
    assert digest(itself) == digest(itself)


def test_two_runs_in_one_folder_do_not_destroy_each_other(tmp_path):
    with store.open_folder(tmp_path), store.new_folder(tmp_path, "figure5") as place:
        with pytest.raises(
            ex.FolderError, match=rf"another run is at work .*process {os.getpid()} on"
        ):
            ex.reproduce(tmp_path, figures=[5])
        assert place.exists()
        (place / "result.json").write_text("{}")
    assert (tmp_path / "figure5" / "result.json").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["figure5"]
    with store.open_folder(tmp_path):
        pass


def dead_process():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


@pytest.mark.parametrize("damage", ["dead", "another start", "empty", "[]"])
def test_a_lock_whose_owner_is_dead_is_taken_over(tmp_path, damage):
    lock = tmp_path / LOCK
    with locked(tmp_path):
        owner = json.loads(lock.read_text())
    if damage == "dead":
        lock.write_text(json.dumps(owner | {"pid": dead_process()}))
    elif damage == "another start":
        if owner["began"] is None:
            pytest.skip("the system does not tell when a process was started")
        lock.write_text(json.dumps(owner | {"began": "1"}))
    else:
        lock.write_text(damage.strip("empty"))
        with pytest.raises(ex.FolderError, match="it has only begun"), store.open_folder(tmp_path):
            pass
        os.utime(lock, (0, 0))
    (tmp_path / ".partial-figure5-x").mkdir()
    with store.open_folder(tmp_path):
        assert json.loads(lock.read_text())["pid"] == os.getpid()
        assert [p.name for p in tmp_path.iterdir()] == [LOCK]
    assert not list(tmp_path.iterdir())


def test_a_lock_of_another_machine_stands(tmp_path):
    lock = tmp_path / LOCK
    lock.write_text(json.dumps({"host": "elsewhere", "pid": 1, "began": None, "since": "noon"}))
    with pytest.raises(ex.FolderError, match="process 1 on elsewhere, since noon; if it is dead"):
        ex.reproduce(tmp_path, figures=[5])
    assert lock.exists()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("finished")
    ex.reproduce(out, figures=[5])
    return out


@pytest.mark.parametrize("name", ["result.json", "run.json"])
@pytest.mark.parametrize("text", ["", "[]", "{}", "null", "5", '"x"', "[" * 5000, "\0", None])
def test_damaged_results_are_not_trusted(finished, name, text):
    file = finished / "figure5" / name
    before = file.read_text()
    assert store.read(finished, "figure5").complete
    try:
        file.write_text(before[:-20] + before[-19:] if text is None else text)
        if text is not None or name == "result.json":
            assert store.read(finished, "figure5") is None
    finally:
        file.write_text(before)


def test_damaged_results_are_computed_and_deleted_figures_drawn_again(finished):
    (finished / "figure5" / "run.json").write_text("[]")
    (outcome,) = ex.reproduce(finished, figures=[5])
    assert (outcome.kept, outcome.error) == (False, None)
    made = outcome.made
    command = f"widelimit reproduce --figure figure5 --seed 0 --out {finished}"
    assert (made["command"], made["widelimit"]) == (command, wl.__version__)
    assert {"date", "machine", "device", "software"} <= made.keys()
    for gone in ("figure5.png", "figure5.pdf", "figure5.csv"):
        (finished / "figure5" / gone).unlink()
        (outcome,) = ex.reproduce(finished, figures=[5])
        assert (outcome.kept, outcome.error, outcome.files) == (True, None, ("figure5.png",))
        assert outcome.made == made
        assert (finished / "figure5" / gone).stat().st_size > 0
    (finished / "figure5" / "figure5.png").write_bytes(b"")
    ex.reproduce(finished, figures=[5])
    png = (finished / "figure5" / "figure5.png").read_bytes()
    assert b"The Gaussian kernel: shape and interpolants; closed form" in png
    assert "data:image/png" in (finished / "report.html").read_text()


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "where", ["report._write.write_file", "_store.write_csv", "_run.write_figures"]
)
def test_a_full_disk_ends_a_reproduction_in_one_sentence(tmp_path, monkeypatch, where):
    from typer.testing import CliRunner

    from widelimit.cli._app import app

    monkeypatch.setattr(f"widelimit.experiments.{where}", full)
    words = ["reproduce", "--figure", "5", "--out", str(tmp_path / "out")]
    found = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"}).invoke(app, words)
    assert found.exit_code == 2
    assert "could not be written (No space left on device)" in found.output
    assert not list((tmp_path / "out").glob(".*"))
    monkeypatch.undo()
    (outcome,) = ex.reproduce(tmp_path / "out", figures=[5])
    assert outcome.kept == where.startswith("report")


def test_a_full_disk_ends_the_demo_in_one_sentence(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from widelimit.cli._app import app

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    found = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["demo", "--out", str(tmp_path)])
    assert found.exit_code == 2
    assert "cannot be written: No space left on device" in found.output


def test_a_disk_that_is_full_from_the_start_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("widelimit._base.files.tempfile.TemporaryFile", full)
    with pytest.raises(ex.FolderError, match="No space left"):
        ex.reproduce(tmp_path, figures=[5])


NO_NETWORKS = [
    "",
    "5",
    "'relu'",
    "()",
    "Dense",
    "Dense(",
    "Dense() >>",
    "Dense() Dense()",
    "Dense(**{'w_std': 2.0})",
    "Dense(w_std=2.0, w_std=3.0)",
    "Dense(w_std=2.0, 3)",
    "Dense(height=2)",
    "Dense(1, 2, 3, 4)",
    "Dense(w_std=1e999)",
    "Dense(w_std=nan)",
    "Dense(w_std=None)",
    f"Dense(w_std={10**400})",
    f"Repeat(Dense(), {10**400})",
    "Repeat(None, 2)",
    "Repeat((), 2)",
    "Residual('relu')",
    "Loop(Dense(), 'abc')",
    "Serial(Dense(), 3)",
    "Sum()",
    "Phi('relu_power(1e9)')",
    "Phi('relu_power(1e300)')",
    f"Phi('polynomial({', '.join(['1'] * 5000)})')",
    "Phi(lambda x: x)",
    "__import__('os')",
    "-" * 10**5 + "1",
    "(" * 10**5,
    "Residual(" * 1000 + "Dense()" + ")" * 1000,
    "x" * 10**5,
    "1" * 10**5,
    "'" * 10**5,
    "Dense() >> " * 200_000,
    None,
    b"Dense()",
]


@pytest.mark.parametrize("text", NO_NETWORKS, ids=lambda text: str(text)[:24])
def test_text_that_is_no_network(text):
    started = time.monotonic()
    with pytest.raises(ValueError, match=r"^.{20,600}$"):
        wl.from_text(text)
    assert time.monotonic() - started < 5


def test_long_chains_are_read():
    net = wl.Serial(*[wl.Dense(), wl.Phi("erf")] * 1000)
    assert wl.from_text(wl.to_text(net)) == net
    net = wl.Sum(*[wl.Dense(w_std=k + 0.5) for k in range(1000)])
    assert wl.from_text(wl.to_text(net)) == net
    assert wl.from_text(' Dense( width=3 , )\n>> (Phi( "relu" ))') == wl.Dense(3) >> wl.Phi("relu")
    assert wl.from_text("Scale(-.5e-3) + Identity()") == wl.Scale(-5e-4) + wl.Identity()


def document(network):
    return f'{{"widelimit": 1, "network": {network}}}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[" * 10**5,
        b"\xff\xfe\x00",
        "{}",
        "NaN",
        *map(document, ["5", "null", "[]", '"x"', "{}", "NaN", '{"layer": 3}']),
        document('{"layer": "Serial"}'),
        document('{"layer": "Sum", "branches": []}'),
        document('{"layer": "Sum", "branches": 3}'),
        document('{"layer": "Serial", "layers": [{"layer": "Dense"}], "more": []}'),
        document('{"layer": "Repeat", "body": null, "times": 2}'),
        document('{"layer": "Repeat", "body": [], "times": 2}'),
        document('{"layer": "Repeat", "body": {"layer": "Dense"}, "times": "2"}'),
        document('{"layer": "Residual", "body": {"layer": "Dense"}, "alpha": {"layer": "Dense"}}'),
        document('{"layer": "Dense", "w_std": 1%s}' % ("0" * 400)),
        document('{"layer": "Dense", "w_std": NaN}'),
        document('{"layer": "Dense", "w_std": null}'),
        document('{"layer": "Dense", "height": 2}'),
        document('{"layer": "Phi", "activation": [1]}'),
        document('{"layer": "Residual", "body": ' * 900 + '{"layer": "Dense"}' + "}" * 900),
    ],
    ids=lambda text: str(text)[-40:],
)
def test_json_that_is_no_network(text):
    with pytest.raises(ValueError, match=r"^.{20,600}$"):
        wl.from_json(text)


def test_functions_without_a_name_are_not_written_down():
    def relu(v):
        return jnp.sin(v)

    for function in (relu, lambda v: v):
        with pytest.raises(ValueError, match="not registered"):
            wl.to_text(wl.mlp(2, function))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (jnp.asarray(float("nan")), "finite"),
        (jnp.asarray(-1.0), "at least 0"),
        (jnp.asarray(1j), "complex64"),
        (jnp.ones(3), r"shape \(3,\).*jax\.vmap"),
        (jnp.asarray(True), "dtype bool"),
        (np.complex128(1j), "real number was expected"),
        (np.ones(1), "real number was expected"),
        (np.longdouble("1e4000"), "finite"),
        (10**400, "beyond that"),
        (None, "real number was expected"),
        ({}, "real number was expected"),
        (..., "real number was expected"),
        (decimal.Decimal(1), "Decimal"),
        ("1", "real number was expected"),
    ],
    ids=str,
)
def test_numbers_of_a_network_are_checked_when_it_is_made(value, message):
    for make in (
        lambda v: wl.Dense(w_std=v),
        lambda v: wl.Dense(b_std=v),
        lambda v: wl.mlp(2, w_std=v),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            make(value)
    if message != "at least 0":
        with pytest.raises((ValueError, TypeError), match=message):
            wl.Scale(value)


def test_numbers_that_are_traced_pass():
    kernel = lambda w: wl.ntk(wl.mlp(2, w_std=w), jnp.eye(2)).sum()
    assert jnp.isfinite(jax.jit(jax.grad(kernel))(1.5))
    assert jax.vmap(kernel)(jnp.array([1.0, 2.0])).shape == (2,)
    with pytest.raises(ValueError, match="at least 0"):
        jax.grad(kernel)(-1.0)
    assert wl.Dense(w_std=fractions.Fraction(1, 2)).w_std == 0.5


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ([[10**400, 1]], "integers beyond the range of floats"),
        (np.array([["1e4000"]], np.longdouble), "long doubles beyond"),
        (np.ma.masked_array([[1.0, 2.0]], mask=[[True, False]]), "masked"),
    ],
    ids=["integers", "long doubles", "masked"],
)
def test_points_beyond_floats_and_masks(x, message):
    for call in (lambda: wl.ntk(wl.mlp(1), x), lambda: wl.train(wl.mlp(1), x, [1.0])):
        with pytest.raises(ValueError, match=message):
            call()


def test_long_doubles_and_empty_masks_are_read():
    want = wl.ntk(wl.mlp(1), np.eye(2))
    assert (wl.ntk(wl.mlp(1), np.eye(2, dtype=np.longdouble)) == want).all()
    assert (wl.ntk(wl.mlp(1), np.ma.masked_array(np.eye(2))) == want).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: train(None, steps=2**31), r"steps must be less than 2\^31"),
        (lambda: train(None, key=2**70), "key must fit into 64 bits"),
        (lambda: wl.mlp(2**31), r"depth must be less than 2\^31"),
        (lambda: wl.finite(wl.mlp(1), 10**12), r"width must be less than 2\^31"),
    ],
)
def test_counts_beyond_counters(call, message):
    with pytest.raises(ValueError, match=message):
        call()


POINTS = np.random.default_rng(0).standard_normal((8, 3))
TARGETS = POINTS[:, 0]
BIASED = wl.mlp(2, b_std=0.5)
HUGE = 10**400


def test_a_posterior_without_noise_is_sampled_at_its_training_points():
    drawn = wl.posterior(BIASED, POINTS, TARGETS, POINTS).sample(0, 3)
    np.testing.assert_allclose(drawn, np.tile(TARGETS, (3, 1)), atol=1e-9)
    both = np.concatenate([POINTS, POINTS + 1.0])
    drawn = wl.posterior(BIASED, POINTS, TARGETS, both).sample(0, 2000)
    np.testing.assert_allclose(drawn[:, :8], np.tile(TARGETS, (2000, 1)), atol=1e-6)
    want = wl.posterior(BIASED, POINTS, TARGETS, both).std[8:]
    np.testing.assert_allclose(drawn[:, 8:].std(axis=0), want, rtol=0.1)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        wl.linalg.eigh(np.diag([1.0, -1e-3]), scale=1.0)


@pytest.mark.parametrize(
    "function",
    [lambda v: 1 / v, jnp.log, lambda v: jnp.exp(v**2), jnp.sqrt, lambda v: jnp.abs(v) ** -0.6],
    ids=["pole", "log", "growth", "root", "power"],
)
def test_functions_without_moments_are_refused(function):
    with pytest.raises(ValueError, match="has no kernel at the variance"):
        wl.nngp(wl.mlp(1, function), np.eye(2))


@pytest.mark.parametrize("function", [lambda v: jnp.log1p(v**2), lambda v: jnp.exp(v / 2)])
def test_functions_with_moments_are_not(function):
    for size in (1e-6, 1.0, 3.0):
        assert np.isfinite(wl.nngp(wl.mlp(1, function), size * np.eye(2))).all()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (np.arctan, "jnp.arctan instead of np.arctan"),
        (math.gamma, "Write it with jax.numpy"),
        (lambda v: None, "no activation"),
        (jnp.sum, "no activation"),
        (lambda v: 1.0, "no activation"),
    ],
)
def test_functions_that_are_no_activations(function, message):
    for _ in range(2):
        with pytest.raises(TypeError, match=message):
            wl.mlp(2, function)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: wl.train(BIASED, POINTS, TARGETS).predict(POINTS, t=HUGE), "t holds an integer"),
        (lambda: wl.ensemble(BIASED, POINTS, TARGETS, POINTS, t=HUGE), "t holds an integer"),
        (lambda: wl.posterior(BIASED, POINTS, TARGETS, POINTS, noise=HUGE), "noise must be"),
        (lambda: wl.posterior(BIASED, POINTS, TARGETS, POINTS, noise="a"), "noise must be a num"),
        (lambda: wl.ridge(BIASED, POINTS, TARGETS, [HUGE, 1]), "ridge must be a float"),
        (lambda: train(None, tolerance=HUGE), "tolerance must be a float"),
        (lambda: train(None, learning_rate=HUGE), "learning_rate must be a float"),
        (lambda: train(None, learning_rate="fast"), "learning_rate must be a number"),
        (lambda: train(None, params=np.ones(3)), "params do not fit the network"),
        (lambda: wl.optimise_many(NETWORK, X, Y, keys=None, steps=1), "keys must be"),
        (lambda: NTKRegressor(depth="3").fit(POINTS, TARGETS), "depth must be an integer"),
        (lambda: NTKRegressor(depth=-1).fit(POINTS, TARGETS), "depth must be at least 0, got -1"),
        (lambda: NTKRegressor(alpha="x").fit(POINTS, TARGETS), "real number was expected"),
        (lambda: NTKRegressor(ridge=HUGE).fit(POINTS, TARGETS), "ridge must be a float"),
    ],
)
def test_unclear_numbers_are_named(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_number_of_networks_may_be_of_numpy():
    assert len(wl.optimise_many(NETWORK, X, Y, keys=np.int64(2), steps=1)) == 2


def test_precisions_mix_without_a_warning():  # warnings are errors here
    single = jnp.asarray(X, jnp.float32)
    assert wl.ntk(BIASED, single, X).dtype == wl.ntk(BIASED, X, single).dtype == jnp.float32


def test_an_absurd_depth_is_announced(monkeypatch):
    monkeypatch.setattr("widelimit.infinite._evaluate._small", lambda *_: [X])
    with pytest.warns(UserWarning, match="2000000000 activations takes about .* hours"):
        wl.ntk(wl.mlp(2 * 10**9), X)
    wl.ntk(wl.mlp(10**5), X)


def test_random_calls_are_answered_or_refused():
    script = Path(__file__).with_name("fuzz.py")
    words = [sys.executable, str(script), "500", "7", "--few-programs"]
    found = subprocess.run(words, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr[-2000:]


def test_the_fuzz_sees_what_is_wrong_and_shrinks_it(monkeypatch):
    broken = lambda net, x: np.full((len(x), len(x)), np.nan)
    monkeypatch.setattr(fuzz.wl, "nngp", broken, raising=False)
    grammar = fuzz.GRAMMAR | {"call": ["gram(wl.nngp, {net}, {x})"], "x": ["x3({few})"]}
    for seed in range(3):
        tree = fuzz.draw("call", random.Random(seed), grammar)
        assert fuzz.finding(str(tree)) == "NaN"
        least = "gram(wl.nngp, wl.mlp(1, 'relu', w_std=1.0, b_std=0.0), x3(2))"
        assert str(fuzz.shrunk(tree, "NaN", grammar)) == least
    monkeypatch.setattr(fuzz.wl, "nngp", lambda net, x: np.triu(np.ones((2, 2))))
    assert fuzz.finding(least) == "AssertionError: asymmetric"
    assert fuzz.finding("[][1]").startswith("IndexError")
    assert fuzz.finding("1 + 'a'").startswith("TypeError: unsupported operand")
    assert not fuzz.finding("wl.mlp(-1)")


def test_a_long_quadrature_is_announced_with_its_time():
    form, _ = _plan.split(wl.mlp(3, "elu", b_std=0.1))
    with pytest.warns(
        UserWarning, match=r"'elu' need a two-dimensional quadrature each: about 2.5 minutes"
    ):
        _patience.warn_if_slow(form, 10**5, How())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _patience.warn_if_slow(form, 100, How())
