"""The shape of the code base, checked by machine."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "widelimit"
LEVELS = (
    {"_base"},
    {"activations"},
    {"layers"},
    {"describe"},
    {"infinite", "finite", "linalg"},
    {"analysis", "dynamics"},
    {"estimators", "plot", "testing"},
    {"experiments"},
    {"cli"},
)
LEVEL = {name: i for i, names in enumerate(LEVELS) for name in names}
FILES = sorted(SRC.rglob("*.py"))
EXTRAS = ("optax", "diffrax", "lineax", "sklearn", "matplotlib", "typer", "rich", "mpmath")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path):
    parts = path.relative_to(SRC).parts
    if len(parts) == 1:
        return
    for target in re.findall(r"^\s*from widelimit\.(\w+)", path.read_text(), re.M):
        assert LEVEL[target] <= LEVEL[parts[0]], f"{path.name} imports upwards: {target}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SRC)))
def test_no_private_jax(path):
    assert not re.search(r"(from|import) jax\.(_src|core|interpreters)", path.read_text())


def test_matplotlib_lives_in_plot_only():
    for path in FILES:
        if "plot" not in path.relative_to(SRC).parts:
            assert not re.search(r"^\s*(from|import) matplotlib", path.read_text(), re.M), path


def test_the_core_imports_without_extras():
    block = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in EXTRAS)
    code = block + (
        "import widelimit as wl, numpy as np, jax\n"
        "print(wl.ntk(wl.mlp(2), np.eye(3)).dtype, jax.config.jax_enable_x64)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    assert out.stdout.split() == ["float64", "False"]


def test_contract_names():
    import widelimit as wl

    names = (
        "mlp resnet Dense Phi Repeat Residual Sum Identity nngp ntk kernels trace profile finite "
        "empirical_ntk linearize train posterior smoothness bounds spectrum cite latex from_json"
    )
    for name in names.split():
        assert getattr(wl, name) is not None
