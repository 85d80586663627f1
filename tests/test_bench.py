"""The commands that try the library on data that people have."""

import gzip
import struct

import numpy as np
import pytest
from sklearn.svm import SVC
from typer.testing import CliRunner

import widelimit as wl
from widelimit.bench import (
    METHODS,
    PROTOCOLS,
    Chosen,
    FolderError,
    choose,
    chosen_by,
    find_sets,
    read_set,
    run_images,
    run_tables,
    standings,
    write_images_page,
    write_page,
)
from widelimit.bench import _images as images_module
from widelimit.bench import _methods as methods_module
from widelimit.bench import _tables as tables_module
from widelimit.cli._app import app


def write_set(folder, name="rings", n=24, seed=0):
    """A set in the collection's layout: two classes, told apart by their norm."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.standard_normal((n, 3)) * np.where(y, 2.0, 0.5)[:, None]
    home = folder / name
    home.mkdir(parents=True)
    (home / f"{name}.txt").write_text(
        f"n_entradas= 3\nn_clases= 2\nn_arquivos= 1\nfich1= {name}_R.dat\nn_patrons1= {n}\n"
    )
    lines = ["\tf1\tf2\tf3\tclase"]
    lines += [f"{i + 1}\t" + "\t".join(f"{v:.6f}" for v in x[i]) + f"\t{y[i]}" for i in range(n)]
    (home / f"{name}_R.dat").write_text("\n".join(lines) + "\n")
    order = rng.permutation(n)
    row = lambda part: " ".join(map(str, part))
    (home / "conxuntos.dat").write_text(f"{row(order[: n // 2])}\n{row(order[n // 2 :])}\n")
    quarters = np.array_split(order, 4)
    folds = [(np.setdiff1d(order, q), q) for q in quarters]
    (home / "conxuntos_kfold.dat").write_text("".join(f"{row(a)}\n{row(b)}\n" for a, b in folds))
    return home


@pytest.fixture
def collection(tmp_path):
    write_set(tmp_path / "data", "rings", seed=0)
    write_set(tmp_path / "data", "others", seed=1)
    return tmp_path / "data"


def test_a_set_is_read_as_it_was_written(collection):
    table = read_set(collection / "rings")
    assert (table.x.shape, table.y.tolist()[:3], len(table.splits)) == ((24, 3), [0, 1, 0], 5)
    for learnt, tested in table.splits:
        assert sorted([*learnt, *tested]) == list(range(24))
    assert [p.name for p in find_sets(collection.parent)] == ["others", "rings"]  # one folder up


DAMAGE = {
    "rings.txt": [
        (lambda text: text.replace("n_entradas= 3\n", ""), "has no line 'n_entradas= ...'"),
        (
            lambda text: text.replace("n_patrons1= 24", "n_patrons1= 25"),
            "24 rows; rings.txt says 25",
        ),
        (lambda text: text + "nonsense\n", "line 6: expected 'name= value', got 'nonsense'"),
    ],
    "rings_R.dat": [
        (lambda text: text.replace("\n3\t", "\n3\t9\t"), "line 4: 6 entries; expected 5"),
        (lambda text: text.replace("\n2\t", "\n2\tx", 1), "line 3: could not convert"),
        (lambda text: text.replace("\n2\t", "\n2\tnan\t0\t0\t1\n2\t", 1), "line 3: not finite"),
        (lambda text: None, "rings_R.dat is missing"),
    ],
    "conxuntos.dat": [
        (lambda text: text.splitlines()[0], "has 1 lines; expected 2"),
        (lambda text: "24 " + text, "line 1: row '24'; expected 0 to 23"),
        (lambda text: "\n".join([text.splitlines()[0]] * 2), "lines 1 and 2 share rows"),
    ],
}


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [(file, *case) for file, cases in DAMAGE.items() for case in cases],
)
def test_a_damaged_file_is_named(collection, file, change, words):
    path = collection / "rings" / file
    text = change(path.read_text())
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(ValueError, match=words) as error:
        read_set(collection / "rings")
    assert "rings" in str(error.value)


def recursion(x, depth, frozen):
    """The kernels of the protocol, written down from the paper: no factor makes up for the ReLU's half."""
    sigma = x @ x.T
    theta = np.zeros_like(sigma)
    for layer in range(depth):
        if layer:
            norms = np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
            angle = np.arccos(np.clip(sigma / norms, -1, 1))
            theta = theta * (np.pi - angle) / (2 * np.pi)
            sigma = norms * (np.sin(angle) + (np.pi - angle) * np.cos(angle)) / (2 * np.pi)
        if layer >= frozen:
            theta = theta + sigma
    return theta


@pytest.mark.parametrize(("depth", "frozen"), [(1, 0), (2, 0), (2, 1), (4, 2), (5, 4)])
def test_frozen_networks_have_the_kernels_of_the_protocol(depth, frozen):
    x = np.random.default_rng(0).standard_normal((7, 3))
    net = methods_module.frozen_mlp(depth, frozen, 3)
    np.testing.assert_allclose(wl.ntk(net, x), recursion(x, depth, frozen), rtol=1e-6)
    if frozen == depth - 1:
        np.testing.assert_allclose(wl.ntk(net, x), wl.nngp(net, x), rtol=1e-12)
        assert methods_module._is_nngp(f"L = {depth}, frozen {frozen}, C = 1")


def test_costs_that_change_nothing_are_not_tried_again(collection):
    table = read_set(collection / "rings")
    matrix = np.exp(-((table.x[:, None] - table.x) ** 2).sum(-1))
    learnt, tested = table.splits[1]
    found = methods_module._along_costs(matrix, table.y, learnt, tested)
    for cost, value in zip(methods_module.COSTS, found, strict=True):
        model = SVC(kernel="precomputed", C=cost).fit(
            matrix[np.ix_(learnt, learnt)], table.y[learnt]
        )
        assert value == np.mean(model.predict(matrix[np.ix_(tested, learnt)]) == table.y[tested])


def test_protocols_choose_by_what_they_may_see():
    scores = {
        "a": [0.9, 0.5, 0.5, 0.5, 0.5],
        "b": [0.8, 0.6, 0.6, 0.6, 0.6],
        "c": [0.9, 1.0, 1.0, 1.0, 1.0],
    }
    assert choose(scores, PROTOCOLS["one_split"]).candidate == "a"  # the first of equals
    assert choose(scores, PROTOCOLS["all_folds"]).candidate == "c"


def test_standings_by_hand():
    of = lambda *values: {str(i): Chosen("", np.full(4, v)) for i, v in enumerate(values)}
    found = standings({"a": of(1.0, 0.5, 0.9), "b": of(0.94, 0.5, 0.8), "c": of(0.8, 0.4, 1.0)})
    assert [round(s.rank, 3) for s in found.values()] == [1.5, 2.167, 2.333]
    assert [round(s.p90, 3) for s in found.values()] == [1.0, 0.667, 0.333]
    assert [round(s.p95, 3) for s in found.values()] == [0.667, 0.333, 0.333]
    assert [s.wins for s in found.values()] == [2, 1, 1]
    assert round(found["b"].pma, 4) == round((0.94 + 1 + 0.8) / 3, 4)


@pytest.fixture
def here(monkeypatch):
    """Tasks in this process: what they compute is the same, and processes take seconds to start."""
    run = lambda tasks, jobs: ((task, tables_module._score(task)) for task in tasks)
    monkeypatch.setattr(tables_module, "_in_processes", run)


@pytest.mark.usefixtures("here")
def test_a_run_is_kept_and_written(collection, tmp_path, monkeypatch):
    out = tmp_path / "out"
    results = run_tables(collection, out, methods=["ntk", "nngp", "gaussian"])
    assert {(done.method, done.name) for done in results} == {
        (m, s) for m in ("ntk", "nngp", "gaussian") for s in ("rings", "others")
    }
    best = chosen_by(results, "all_folds")
    assert best["ntk"]["rings"].accuracy >= best["nngp"]["rings"].accuracy > 0.7
    write_page(out, results)
    text = (out / "README.md").read_text()
    assert "Gaussian SVM" in text
    assert "2 sets" in text
    assert (out / "one_split.csv").read_text().count("\n") == 1 + 6
    assert (out / "tables.png").stat().st_size > 10_000

    def never(table):
        raise AssertionError("computed again")

    monkeypatch.setattr(tables_module, "_score", never)
    assert run_tables(collection, out, methods=["ntk", "nngp", "gaussian"]) == results
    kept = out / tables_module.RESULTS / "rings.gaussian.json"
    kept.write_text(kept.read_text()[:50])  # torn: computed again
    with pytest.raises(AssertionError, match="computed again"):
        run_tables(collection, out, methods=["gaussian"])


def test_processes_compute_the_same(collection, tmp_path):
    alone = METHODS["gaussian"].run(read_set(collection / "rings"))
    (done,) = run_tables(collection, tmp_path / "out", methods=["gaussian"], sets=["rings"], jobs=1)
    assert done.scores == alone


def test_what_cannot_be_run_is_refused_at_once(collection, tmp_path):
    with pytest.raises(ValueError, match=r"Unknown method 'ntkk'\. Did you mean 'ntk'"):
        run_tables(collection, tmp_path / "out", methods=["ntkk"])
    with pytest.raises(ValueError, match=r"Unknown set 'ring'\. Did you mean 'rings'"):
        run_tables(collection, tmp_path / "out", sets=["ring"])
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="is a file"):
        run_tables(collection, tmp_path / "file", methods=["gaussian"])
    assert not (tmp_path / "out").exists()
    runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
    shown = runner.invoke(app, ["bench", "tables", "--data", str(tmp_path / "nowhere")])
    assert (shown.exit_code, "nowhere is not a folder" in shown.output) == (2, True)


def write_digits(folder, train=150, test=40, seed=0):
    """Ten classes of noisy patterns in MNIST's format."""
    folder.mkdir()
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 256, (10, 8, 8))
    for name, count in (("train", train), ("t10k", test)):
        labels = np.arange(count) % 10
        pixels = np.clip(patterns[labels] + rng.normal(0, 40, (count, 8, 8)), 0, 255)
        head = struct.pack(">4B3I", 0, 0, 8, 3, count, 8, 8)
        packed = gzip.compress(head + pixels.astype(np.uint8).tobytes())
        (folder / f"{name}-images-idx3-ubyte.gz").write_bytes(packed)
        head = struct.pack(">4BI", 0, 0, 8, 1, count)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(head + labels.astype(np.uint8).tobytes())
    return folder


def test_images_are_classified_and_kept(tmp_path, monkeypatch):
    data, out = write_digits(tmp_path / "digits"), tmp_path / "out"
    run = lambda model, sizes: run_images(data, out, model=model, sizes=sizes)
    found = run("connected", [60, 120])
    assert [(s.kind, s.images) for s in found] == [
        ("nngp", 60),
        ("ntk", 60),
        ("nngp", 120),
        ("ntk", 120),
    ]
    assert min(s.accuracy for s in found) > 0.9
    monkeypatch.setattr(images_module, "_STRIP", 1)
    pixels = run("cnn", [60])
    assert min(s.accuracy for s in pixels) > 0.9
    write_images_page(out, found + pixels)
    assert "MLP, depth 3" in (out / "README.md").read_text()
    monkeypatch.setattr(images_module, "_both", lambda *arguments: pytest.fail("computed again"))
    assert run("connected", [60, 120]) == found
    next(out.glob("cnn-*.json")).unlink()
    assert [s.accuracy for s in run("cnn", [60])] == [s.accuracy for s in pixels]  # from the strips


def test_strips_of_kernels_are_the_matrices(tmp_path, monkeypatch):
    monkeypatch.setattr(images_module, "_STRIP", 1)
    model = images_module.MODELS["cnn"]
    x = np.random.default_rng(0).standard_normal((40, 8, 8, 1)).astype(np.float32)
    blocks = images_module._blocks(model, x[:24], x[24:], tmp_path / "strips", lambda *told: None)
    for found, given in zip(blocks, ((x[:24],), (x[24:], x[:24])), strict=True):
        exact = wl.kernels(model.network, *(a.astype(float) for a in given))
        np.testing.assert_allclose(found, [exact.nngp, exact.ntk], rtol=2e-6)


def test_images_that_are_not_there(tmp_path):
    with pytest.raises(ValueError, match="is not a folder; --data needs"):
        run_images(tmp_path / "no", tmp_path / "out", model="connected", sizes=[100])
    data = write_digits(tmp_path / "digits")
    with pytest.raises(ValueError, match=r"There are 150 training images; .* got \[1000\]"):
        run_images(data, tmp_path / "out", model="connected", sizes=[1000])
    with pytest.raises(ValueError, match="Unknown network 'resnet'"):
        run_images(data, tmp_path / "out", model="resnet", sizes=[100])
