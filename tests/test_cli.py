"""The commands, as a user types them."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from widelimit.cli._app import app
from widelimit.experiments import EXPERIMENTS


@pytest.fixture
def run():
    runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
    return lambda *words: runner.invoke(app, [str(w) for w in words])


def test_list_names_everything(run):
    found = run("reproduce", "--list")
    assert found.exit_code == 0
    assert all(name in found.output for name in EXPERIMENTS)


def test_reproduce_writes_and_then_keeps(run, tmp_path):
    out = tmp_path / "here"
    found = run("reproduce", "--figure", 5, "--out", out)
    assert found.exit_code == 0
    assert "done" in found.output
    assert "Report:" in found.output
    for name in ("figure5.png", "figure5.pdf", "figure5.csv", "result.json"):
        assert (out / "figure5" / name).stat().st_size > 100
    assert (out / "report.html").is_file()
    again = run("reproduce", "--figure", "figure5", "--out", out)
    assert (again.exit_code, "kept" in again.output) == (0, True)


def test_the_full_size_says_how_long_it_takes(run, tmp_path):
    found = run("reproduce", "--full", "--figure", 7, "--out", tmp_path / "out", "--seed", 3)
    assert found.exit_code == 0
    assert "take about 1 minute" in found.output


def test_an_unknown_figure_lists_the_known(run, tmp_path):
    found = run("reproduce", "--figure", 77, "--out", tmp_path / "new")
    assert found.exit_code == 2
    assert all(name in found.output.replace("\n", " ") for name in ("'77'", "figure1", "ellipse"))
    assert not (tmp_path / "new").exists()


def test_folders_that_cannot_be_used(run, tmp_path):
    (tmp_path / "mine.txt").write_text("x")
    found = run("reproduce", "--figure", 5, "--out", tmp_path)
    assert found.exit_code == 2
    assert "mine.txt" in found.output
    below = run("reproduce", "--figure", 5, "--out", tmp_path / "mine.txt" / "x")
    assert below.exit_code == 2
    assert "--out" in below.output
    assert run("demo", "--out", tmp_path / "mine.txt" / "x").exit_code == 2


def test_a_failure_shows_in_the_exit_status(run, tmp_path, monkeypatch):
    import dataclasses

    def breaks(**options):
        raise MemoryError("out of it")

    broken = dataclasses.replace(EXPERIMENTS["figure5"], run=breaks)
    monkeypatch.setitem(EXPERIMENTS, "figure5", broken)
    found = run("reproduce", "--figure", 5, "--out", tmp_path / "out")
    assert found.exit_code == 1
    assert "Not enough memory" in found.output
    assert "Not enough memory" in (tmp_path / "out" / "report.html").read_text()


def test_demo(run, tmp_path):
    found = run("demo", "--out", tmp_path)
    assert found.exit_code == 0
    assert "0.7958" in found.output  # the MLP's kink, 5 / (2 pi)
    assert (tmp_path / "ntk_circle.png").stat().st_size > 10_000


def test_the_core_needs_no_extras():
    program = (
        "import sys\n"
        "for name in ('matplotlib', 'typer', 'rich', 'optax', 'diffrax', 'sklearn'):\n"
        "    sys.modules[name] = None\n"
        "import widelimit as wl\n"
        "print(wl.experiments.find('2').name)\n"
        "from widelimit.cli import main\n"
        "main()\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.stdout == "figure2\n"
    assert "pip install 'widelimit[all]'" in found.stderr
    assert found.returncode == 1


def test_the_module_is_the_command():
    words = [sys.executable, "-m", "widelimit"]
    listed = subprocess.run([*words, "reproduce", "--list"], capture_output=True, text=True)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert all(name in listed.stdout for name in EXPERIMENTS)
