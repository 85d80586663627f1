"""The papers' numbers, and the machinery that keeps, judges and reports them."""

import dataclasses
import html.parser
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widelimit as wl
from widelimit import experiments as ex
from widelimit.experiments import EXPERIMENTS, Result, Table, Verdict, judge
from widelimit.experiments import _store as store
from widelimit.experiments._draw import write_figures
from widelimit.experiments.papers import _circle, _random_sets
from widelimit.experiments.papers._digits import load_digits

# Tirer, Bruna and Giryes (2022): L, samples; MLP, alpha = 1, 0.5, 0.1, 0.01.
PUBLISHED = {
    "L=5, 6 samples": (58.36, 13.99, 4.090, 1.012, 1.000),
    "L=5, 10 samples": (191.3, 158.7, 145.3, 110.2, 105.1),
    "L=15, 6 samples": (292.4, 60.23, 14.72, 1.104, 1.000),
    "L=15, 10 samples": (421.7, 205.4, 162.5, 118.6, 102.8),
}


@pytest.fixture(scope="module")
def table1():
    return ex.table1(draws=20)


def test_published_table_of_mu(table1):
    for case, values in PUBLISHED.items():
        assert list(table1.data["ours"][case].values()) == pytest.approx(values, rel=1e-3)
    assert table1.verdicts[0].verdict == "holds"


def test_published_values_for_erf():
    found = ex.erf(depths=(5,))
    six, ten = (list(found.data["mu"][f"L=5, {n} samples"].values()) for n in (6, 10))
    assert six == pytest.approx((1.000, 1.016, 1.000, 1.000), rel=1e-3)
    assert ten == pytest.approx([22.36] * 4, rel=1e-3)


def test_interpolants_against_high_precision(golden):
    known = golden["regression"]
    sets = {case["name"]: case for case in known["sets"]}
    checked = 0
    for case in known["results"]:
        if case["set"] not in ("equispaced-6", "random-10") or case["L"] != 5:
            continue
        samples = sets[case["set"]]
        found = _circle.interpolants({"": _network(case)}, np.array(samples["betas"]), gauss=True)
        assert found["y"] == pytest.approx(samples["y"], abs=1e-12)
        assert found["mu"][""] == pytest.approx(case["mu004"], rel=1e-5)
        floor = case["mu002_floor"][known["tau"].index(1e-8)]
        assert found["mu_gauss"][""] == pytest.approx(floor, rel=1e-5)
        checked += 1
    assert checked == 8


def _network(case):
    if case["model"] == "mlp":
        return wl.mlp(depth=case["L"])
    return wl.resnet(depth=case["L"], alpha=case["alpha"])


def test_transform_against_high_precision(golden):
    found = ex.figure7()
    for case, values in zip(golden["figure7_fft"], found.data["magnitude"].values(), strict=True):
        assert values[case["k"]] == pytest.approx(case["magnitude"], rel=1e-9)
    assert [v.verdict for v in found.verdicts] == ["does not hold", "holds"]


def test_bounds_against_high_precision(golden):
    found = ex.jacobian_bounds(measured_depths=(1,), measured_width=32)
    one = lambda c: c["alpha"] == 0.1 and c["sigma_w"] == c["sigma_v"] == c["C_phi"] == 1.0
    known = {c["L"]: c for c in golden["jacobian_bounds"] if one(c) and c["n"] == 2000}
    for i, depth in enumerate(found.data["depths"]):
        ratio = found.data["ratios"]["ResNet 0.1"][i]
        assert ratio == pytest.approx(known[depth]["ratio"], rel=1e-12)
        assert found.data["threshold"][i] == pytest.approx(
            known[depth]["alpha_threshold"], abs=1e-12
        )
    verdicts = [v.verdict for v in found.verdicts]
    assert verdicts == ["holds in part", "holds", "does not hold", "holds"]


def test_sets_on_the_grid_against_the_general_interpolant():
    sets = _random_sets.on_grid(7, 3, seed=5)
    net = wl.resnet(depth=2, alpha=0.5)
    kernel = _circle.kernel_at(net, 2 * np.pi * np.arange(4096) / 4096)
    values = sets.interpolants(kernel)
    points = wl.smoothness.circle_points(_circle.grid()[::512])
    for places, labels, f in zip(sets.places, sets.labels, values, strict=True):
        general = wl.smoothness.interpolate(net, _circle.grid()[places], labels)
        assert f[::512] == pytest.approx(general.predict(points), abs=1e-8)
        assert f[places] == pytest.approx(labels, abs=1e-9)


def test_measures_depend_on_the_grid_as_theory_says():
    found = ex.measures(points=(1024, 4096))
    mlp = found.data["values"]["mu_D2"]["MLP"]
    assert mlp[1] / mlp[0] == pytest.approx(2, rel=0.01)  # kinks: the root of N
    assert mlp[1] == pytest.approx(83.8105, rel=1e-5)
    assert [v.verdict for v in found.verdicts] == ["does not hold", "does not hold", "holds"]


def test_angles():
    assert ex.angles(6)[0] == -np.pi
    assert ex.angles(6)[-1] == pytest.approx(np.pi)
    assert ex.angles(9, "random", seed=3).tolist() == ex.angles(9, "random", seed=3).tolist()
    assert ex.angles(9, "random", seed=3).tolist() != ex.angles(9, "random", seed=4).tolist()
    with pytest.raises(ValueError, match=r"Unknown samples 'paper'.*authors"):
        ex.angles(6, "paper")


def test_trained_networks_are_those_of_the_library():
    options = {"width": 12, "networks": 1, "epochs": 3, "alphas": (0.5,), "depth": 2}
    panel = (("SGD", 4, 1e-2),)
    found = ex.figure3(panels=panel, seed=2, **options)
    again = ex.figure3(panels=panel, seed=2, **options)
    assert found.to_json() == again.to_json()
    b = ex.angles(4)
    network = wl.finite(wl.mlp(depth=2), 12, parameterisation="xavier")
    run = wl.optimise(
        network,
        wl.smoothness.circle_points(b),
        ex.target(b),
        key=3000,
        learning_rate=1e-2,
        epochs=3,
        batch_size=1,
    )
    probe = wl.smoothness.circle_points(found.data["grid"]).astype(np.float32)
    expected = network.apply(run.params, probe)[:, 0]
    curve = found.data["panels"]["4 samples, SGD"]["curves"]["MLP"][0]
    assert curve == pytest.approx(expected, abs=1e-6)


def test_the_limit_follows_a_network_with_a_frozen_kernel():
    # One step of a wide network is what the linear theory says, up to its kernel's deviation.
    found = ex.descent(depth=1, alpha=0.5, width=1024, count=3, steps=(0, 1))
    start, step = found.data["network"]
    limit = found.data["limit"]
    assert limit[0] == pytest.approx(start, abs=1e-6)
    moved = np.linalg.norm(step - start)
    assert np.linalg.norm((step - start) - (limit[1] - limit[0])) < 0.2 * moved
    caption = found.verdicts[-1]
    assert caption.verdict == "holds in part"
    assert "10 samples" in caption.evidence


def test_ellipse_of_any_two_inputs():
    images = np.array([[1.0, 0.0, 0.5], [0.2, 0.9, 0.0]])
    found = ex.ellipse(images=images, widths=(8, 16), steps=10)
    assert found.data["kernels"]["8"].shape == (3, 2, 2)
    net = wl.mlp(depth=2, w_std=2**0.5, b_std=0.1)
    assert found.data["limit"] == pytest.approx(wl.ntk(net, images), rel=1e-12)
    with pytest.raises(ValueError, match="two inputs"):
        ex.ellipse(images=images[:1])


def test_accuracy_of_digits_by_another_path():
    found = ex.digits(depths=(1,), sizes=(20,), alphas=(1.0,), draws=1, seed=4)
    images, labels = load_digits((0, 8))
    y = np.where(labels == 0, 1.0, -1.0)
    order = np.random.default_rng([4, 20, 0]).permutation(len(y))
    x = images[order] - images[order[:20]].mean(0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    gram = wl.ntk(wl.mlp(depth=1), x)
    weights = np.linalg.solve(gram[:20, :20], y[order[:20]])
    right = np.sign(gram[20:, :20] @ weights) == y[order[20:]]
    assert found.data["accuracy"]["N = 20, L = 1"]["MLP"][0] == pytest.approx(right.mean())


def test_judge():
    assert judge("c", "k", {"a": True}, "e").verdict == "holds"
    assert judge("c", "k", {"a": False}, "e").verdict == "does not hold"
    part = judge("c", "k", {"a": True, "b": False}, "e")
    assert part.verdict == "holds in part"
    assert part.evidence.endswith("not in: b")
    with pytest.raises(ValueError, match="No check"):
        judge("c", "k", {}, "e")


numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(deadline=None, max_examples=25)
@given(st.lists(numbers, min_size=1), st.text(), st.integers(-5, 5))
def test_results_survive_json(curve, text, seed):
    table = Table("t", ("a", "b"), ((1, None), (text, 2.5)))
    verdict = Verdict(text, "k", "holds", "e")
    old = Result("figure2", {"seed": seed}, {"x": {"curve": np.array(curve)}}, (table,), (verdict,))
    new = Result.from_json(old.to_json())
    assert new.data["x"]["curve"].tolist() == curve
    assert (new.settings, new.tables, new.verdicts) == (old.settings, old.tables, old.verdicts)


def test_find():
    assert ex.find(2).name == "figure2"
    assert ex.find("random-sets").name == "random_sets"
    with pytest.raises(ValueError, match=r"no figure '12'.*figure1.*ellipse"):
        ex.find("12")


class _Tags(html.parser.HTMLParser):
    """Checks that tags are balanced and that nothing is loaded from elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.images = [], 0

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href"):
                assert value.startswith(("data:image/", "#"))
        self.images += tag == "img"

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_reproduce_keeps_continues_and_reports(tmp_path, monkeypatch):
    out = tmp_path / "out"
    real = EXPERIMENTS["measures"]

    def breaks(**options):
        raise RuntimeError("no luck <today>")

    monkeypatch.setitem(EXPERIMENTS, "measures", dataclasses.replace(real, run=breaks))
    first = ex.reproduce(out, figures=["measures", 5])
    assert [(o.kept, o.error is None) for o in first] == [(False, False), (False, True)]
    assert sorted(p.name for p in (out / "figure5").iterdir()) == [
        "figure5.csv",
        "figure5.pdf",
        "figure5.png",
        "result.json",
        "run.json",
    ]
    page = (out / "report.html").read_text()
    assert "no luck &lt;today&gt;" in page
    tags = _Tags()
    tags.feed(page)
    assert (tags.open, tags.images) == ([], 1)
    monkeypatch.setitem(EXPERIMENTS, "measures", real)
    second = ex.reproduce(out, figures=["measures", "figure5"])
    assert [(o.kept, o.error) for o in second] == [(False, None), (True, None)]
    other = ex.reproduce(out, figures=["figure5"], samples="equispaced")
    assert not other[0].kept
    assert not ex.reproduce(out, figures=[5], samples="equispaced", again=True)[0].kept
    rows = json.loads((out / "verdicts.json").read_text())
    assert {row["figure"] for row in rows} == {"figure5", "measures"}


def test_an_interruption_leaves_nothing_half_written(tmp_path, monkeypatch):
    def interrupted(**options):
        raise KeyboardInterrupt

    real = EXPERIMENTS["measures"]
    ex.reproduce(tmp_path, figures=["measures"])
    before = (tmp_path / "measures" / "result.json").read_bytes()
    monkeypatch.setitem(EXPERIMENTS, "measures", dataclasses.replace(real, run=interrupted))
    with pytest.raises(KeyboardInterrupt):
        ex.reproduce(tmp_path, figures=["measures"], again=True)
    with pytest.raises(KeyboardInterrupt):
        _write_half(tmp_path)
    assert (tmp_path / "measures" / "result.json").read_bytes() == before
    assert {p.name for p in tmp_path.iterdir()} == {
        "measures",
        "report.html",
        "verdicts.csv",
        "verdicts.json",
    }


def _write_half(folder):
    with store.new_folder(folder, "figure5") as place:
        (place / "half").write_text("x")
        raise KeyboardInterrupt


def test_foreign_files_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(ex.FolderError, match=r"thesis\.tex.*nothing was touched"):
        ex.reproduce(tmp_path, figures=[5])
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "figure2").mkdir()  # a known name, but not ours
    with pytest.raises(ex.FolderError, match="figure2"):
        ex.reproduce(tmp_path / "sub", figures=[5])
    with pytest.raises(ex.FolderError, match="is a file"):
        ex.reproduce(tmp_path / "thesis.tex", figures=[5])
    with pytest.raises(ValueError, match="Unknown samples"):
        ex.reproduce(tmp_path / "new", figures=[5], samples="some")
    assert not (tmp_path / "new").exists()


def test_a_new_experiment_is_one_declaration(tmp_path):
    def sketch(result):
        fig, ((panel,),) = wl.plot.figure()
        panel.plot(result.data["curve"])
        return fig

    try:

        @ex.experiment(
            title="A line",
            source="nowhere",
            seconds=(1, 2),
            draws=sketch,
            takes={"depth": 3},
            full={"points": 7},
            ignores=("samples",),
        )
        def line(s, *, points=5):
            """A straight line."""
            s.counter(1).add()
            verdict = judge("It rises.", "slope > 0", {"slope": s.depth > 0}, str(s.depth))
            return ex.Found({"curve": s.depth * np.arange(points)}, (), (verdict,), "no network")

        assert line(depth=2).settings == {"seed": 0, "depth": 2, "points": 5}
        assert ex.line is line
        assert "A straight line." in line.__doc__
        assert "nowhere" in line.__doc__
        with pytest.raises(TypeError, match=r"'dept'.*depth"):
            line(dept=2)
        (outcome,) = ex.reproduce(tmp_path, figures=["line"], full=True)
        assert (outcome.error, outcome.files) == (None, ("line.png",))
        assert len(outcome.result.data["curve"]) == 7
        assert "A line" in (tmp_path / "report.html").read_text()
    finally:
        EXPERIMENTS.pop("line", None)


def test_the_old_name_of_draw_still_draws():
    found = ex.figure5(counts=(4,))
    with pytest.warns(DeprecationWarning, match=r"experiments\.draw"):
        old = wl.plot.papers(found)
    assert list(old) == list(ex.draw(found)) == [""]


TINY = {
    "figure1": {"width": 8, "networks": 2, "kernel_width": 16, "kernels": 2, "depth": 1}
    | {"counts": (4,), "rates": (0.1,), "steps": (20,)},
    "figure8": {"width": 8, "networks": 2, "epochs": 2, "count": 4, "alphas": (), "depth": 1},
    "figure9": {"width": 8, "networks": 2, "epochs": 2, "count": 4, "alphas": (), "depth": 1},
    "convergence": {"widths": (16, 64), "draws": 3, "products": 50, "depth": 1},
    "stability": {
        "activations": ("erf",),
        "widths": (8, 32),
        "networks": 2,
        "steps": 20,
        "drifts": 4,
    }
    | {"count": 3, "depth": 1},
}


@pytest.mark.parametrize("name", TINY)
def test_small_sizes_have_the_whole_form(name, tmp_path):
    steps = []
    found = EXPERIMENTS[name].run(**TINY[name], progress=lambda *done: steps.append(done))
    assert steps[-1][0] == steps[-1][1]  # the bar reaches its end
    assert steps == sorted(steps)
    assert {v.verdict for v in found.verdicts} <= {"holds", "holds in part", "does not hold"}
    files = write_figures(Result.from_json(found.to_json()), tmp_path)
    assert all((tmp_path / file).stat().st_size > 5_000 for file in files)


def test_animation(tmp_path):
    found = ex.ellipse(images=np.eye(2), widths=(8,), steps=10)
    assert write_figures(Result.from_json(found.to_json()), tmp_path) == [
        "ellipse.png",
        "ellipse.gif",
    ]
    assert (tmp_path / "ellipse.gif").read_bytes()[:6] == b"GIF89a"
