"""The page: its numbers are the library's, and the file that is shipped is what the sources build."""

import contextlib
import io
import json
import math
import os
import shutil
import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import widelimit as wl
from widelimit import explorer
from widelimit.cli._app import app
from widelimit.explorer import _page, _share, _widget

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "explorer"
NODE = shutil.which("node")
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = os.environ.get("WIDELIMIT_CHROMIUM") or next(
    filter(None, map(shutil.which, NAMES)), None
)
needs_node = pytest.mark.skipif(NODE is None, reason="Node is not installed")
needs_modules = pytest.mark.skipif(
    NODE is None or not (SOURCE / "node_modules" / "esbuild").is_dir(),
    reason="Node or explorer/node_modules is missing; `make explorer` installs the latter",
)
needs_chromium = pytest.mark.skipif(
    NODE is None or CHROMIUM is None, reason="Node or a Chromium is not installed"
)


def node(*words: str) -> str:
    assert NODE is not None
    out = subprocess.run(
        [NODE, *words], cwd=SOURCE, capture_output=True, text=True, timeout=240, check=False
    )
    assert out.returncode == 0, out.stdout[-2000:] + out.stderr[-4000:]
    return out.stdout


@needs_node
def test_the_kernels_in_javascript_are_the_librarys():
    told = node("--test", "tests/kernels.test.mjs", "tests/state.test.mjs")
    assert "# pass 6" in told
    assert "# fail 0" in told


def test_the_golden_numbers_are_still_the_librarys():
    golden = json.loads((SOURCE / "tests" / "golden.json").read_text())
    angle = np.array(golden["angle"])
    points = np.stack([np.cos(angle), np.sin(angle)], 1)
    chosen = [k for k in golden["kernels"] if (k["net"]["act"], k["net"]["kind"]) == ("erf", "mlp")]
    assert len(chosen) == 4
    for entry in chosen:
        net = entry["net"]
        made = wl.mlp(net["depth"], "erf", net["w"], net["b"])
        row = wl.ntk(made, points[:1], points)[0]
        np.testing.assert_allclose(row, entry["ntk"], rtol=1e-12, atol=1e-13 * max(entry["ntk"]))


@needs_modules
def test_the_page_is_what_the_sources_build(tmp_path):
    node("build.mjs", str(tmp_path / "page.html"))
    built = (tmp_path / "page.html").read_bytes()
    assert built == explorer.page_file().read_bytes(), "run `make explorer` and commit the page"


@needs_modules
def test_the_sources_have_the_types_they_say():
    node("node_modules/typescript/bin/tsc", "-p", ".")


def test_the_page_is_one_small_file_that_asks_for_nothing():
    page = explorer.page_text()
    assert len(page.encode()) < 700_000
    assert "connect-src 'none'" in page
    assert not any(word in page for word in ('src="http', "@import", 'href="http'))
    lock = (SOURCE / "package-lock.json").read_text()
    assert '"resolved"' not in lock


@needs_chromium
def test_a_visit_without_network():
    found = json.loads(node("tests/visit.mjs"))
    golden = found["golden"]
    assert golden["kernels"] >= 2000
    assert golden["predictions"] >= 200
    assert max(golden["closed"], golden["profile"]) < 1e-12
    assert max(golden["table"], golden["flow"]) < 1e-9
    assert golden["measures"] < 1e-8
    # The scripts that were copied print the numbers that are on the screen.
    for script in found["scripts"]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(script["python"], "copied.py", "exec"), {})
        lines = [line.split() for line in out.getvalue().splitlines()]
        assert len(lines) == 6
        for name, what, *values in lines:
            expected = script["numbers"][name][what]
            np.testing.assert_allclose(np.array(values, float), expected, rtol=1e-9, atol=1e-12)


def run(*words: object):
    runner = CliRunner(env={"COLUMNS": "400", "TERM": "dumb"})
    return runner.invoke(app, ["explore", *map(str, words)])


def test_the_command_writes_and_opens(tmp_path, monkeypatch):
    assert run("--out", tmp_path / "x.html").exit_code == 0
    assert (tmp_path / "x.html").read_text() == explorer.page_text()
    assert run("--out", tmp_path).exit_code == 0
    assert (tmp_path / "explorer.html").is_file()
    wrong = run("--out", tmp_path / "no" / "x.html")
    assert wrong.exit_code == 2
    assert "--out" in wrong.output
    opened = []
    monkeypatch.setattr(_page.webbrowser, "open", lambda a: opened.append(a) or len(opened) == 1)
    assert "Opened" in run().output
    assert opened[0].startswith("file://")
    found = run()
    assert found.exit_code == 0
    assert str(explorer.page_file()) in found.output


def test_a_port_that_is_taken_is_told():
    with explorer.serve(0) as address:
        assert address.startswith("http://127.0.0.1:")
        taken = run("--port", address.rstrip("/").rpartition(":")[2])
    assert taken.exit_code == 2
    assert "--port" in taken.output


def test_networks_of_the_sliders_family_are_recognised():
    b = wl.Dense(w_std=1.5, b_std=0.2)
    branch = wl.Residual(b >> wl.Phi("erf") >> wl.Dense(), alpha=0.25)
    known = {
        "m,relu,3,1,0,0.1": wl.mlp(3),
        "m,leaky_relu,3,1.414,0.5,0.1": wl.mlp(3, "leaky_relu(0.1)", 1.414, 0.5),
        "r,tanh,7,2,0,0.025": wl.resnet(7, 0.025, "tanh", 2.0),
        "r,erf,4,1.5,0.2,0.25": wl.Dense() >> wl.Repeat(branch, 4) >> b,
    }
    assert {_share.as_sliders(net): net for net in known.values()} == known
    for other in (
        wl.mlp(101),
        wl.mlp(3, w_std=math.sqrt(2)),
        wl.mlp(3, "elu"),
        wl.resnet(3, v_std=2.0),
    ):
        assert _share.as_sliders(other) is None


def test_data_that_the_page_cannot_show_are_refused():
    with pytest.raises(ValueError, match="norms from 1 to 2"):
        _share.as_data([[1.0, 0.0], [0.0, 2.0]], [0.0, 1.0])
    with pytest.raises(ValueError, match=r"shape \(n,\), \(n, 2\)"):
        _share.as_data(np.ones((2, 4)), [0.0, 1.0])
    with pytest.raises(ValueError, match="Standardise"):
        _share.as_data([0.0], [7.0])
    with pytest.raises(ValueError, match="no direction"):
        _share.as_data([[0.0, 0.0]], [0.0])
    with pytest.raises(ValueError, match="NaN"):
        _share.as_data([math.nan], [0.0])
    with pytest.raises(ValueError, match="holds 500"):
        _share.as_data(np.zeros(501), np.zeros(501))
    assert _share.as_data([[2.0, 1.0], [0.5, 1.0]], [0.0, 1.0]).tab == "line"
    sphere = _share.as_data([[0.0, 0.0, 1.0]], [0.5])
    assert (sphere.tab, sphere.points) == ("sphere", [[0.0, 1.5708, 0.5]])
    with pytest.raises(ValueError, match="sliders"):
        explorer.link(wl.mlp(3, "elu"), [0.0], [0.0])


@pytest.mark.parametrize("tab", ["circle", "line", "sphere"])
def test_points_come_back_as_they_went(tab):
    x = {
        "circle": [[1.0, 0.0], [0.0, -1.0]],
        "line": [[0.5, 1.0], [-2.0, 1.0]],
        "sphere": [[0.0, 0.6, 0.8], [-1.0, 0.0, 0.0]],
    }[tab]
    data = _share.as_data(x, [1.0, -1.0])
    assert data.tab == tab
    np.testing.assert_allclose(_widget.embedded(tab, data.points), x, atol=1e-4)


def test_a_profile_travels_as_json():
    p = wl.profile(wl.mlp(3, w_std=2**0.5), 0.5)
    again = wl.Profile.from_json(p.to_json())
    rho = np.linspace(-1, 1, 9)
    assert np.array_equal(again.ntk(rho), p.ntk(rho))
    assert np.array_equal(again.nngp(rho), p.nngp(rho))
    for wrong in ("{", "[]", '{"schema": "x"}', p.to_json().replace("coefficients", "c")):
        with pytest.raises(ValueError, match=r"widelimit.profile/1"):
            wl.Profile.from_json(wrong)
    message = _share.as_message(wl.mlp(3, w_std=2**0.5), _share.as_data([0.0, 1.0], [0.0, 1.0]))
    assert json.loads(message["profile"])["schema"] == "widelimit.profile/1"


def test_the_widget_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    _widget._widget_class.cache_clear()
    with pytest.raises(ImportError, match=r"widelimit\[widget\]"):
        wl.explore(wl.mlp(1), [0.0, 1.0], [0.0, 1.0])


def test_the_widget_holds_network_and_data():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        anywidget = pytest.importorskip("anywidget")
    assert isinstance(anywidget, types.ModuleType)
    _widget._widget_class.cache_clear()
    w = wl.explore(wl.mlp(3), [0.0, 1.0], [0.5, -0.5])
    assert w.hash.startswith("#1!c!ntk!m,relu,3,1,0")
    np.testing.assert_allclose(w.y, [0.5, -0.5])
    w.points = [[0.5, 0.25]]
    np.testing.assert_allclose(w.x, [[math.cos(0.5), math.sin(0.5)]])
