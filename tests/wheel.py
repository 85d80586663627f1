"""Is the package ready to publish? `make test-wheel`, or `python tests/wheel.py [--keep FOLDER]`.

Builds wheel and sdist twice and compares their bytes; looks at what they contain; installs the wheel alone into a bare
environment, where kernels work, importing is quick, nothing is imported before it is used, and each missing extra says
what to install; then installs the extras one after another and tries each.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MARGIN = 0.3  # seconds above `import jax, equinox`

BARE = """
import sys
import numpy as np
import widelimit as wl
x = np.array([[1.0, 0.0], [0.6, 0.8]])
assert np.allclose(wl.ntk(wl.mlp(1), x)[0, 0], 0.5)
assert wl.train(wl.mlp(2), x, [1.0, -1.0]).predict(x).shape == (2,)
assert (wl.ridge(wl.resnet(2, 0.5), x, [1.0, -1.0], 0.1).predict(x) != 0).all()
assert wl.explorer.page_file().stat().st_size > 100_000
heavy = {"matplotlib", "sklearn", "optax", "diffrax", "typer", "rich", "mpmath", "zarr", "anywidget", "pandas"}
loaded = heavy & set(sys.modules)
assert not loaded, loaded
"""
IMPORTED = """
import sys, widelimit
late = {f"widelimit.{n}" for n in ("experiments", "plot", "training", "estimators", "analysis", "regression", "cli")}
loaded = late & set(sys.modules)
assert not loaded, loaded
"""
# What needs an extra, in one line each.
EXTRAS = {
    "estimators": "from widelimit.estimators import NTKRegressor; NTKRegressor().fit([[0.0], [1.0], [2.0]], [0, 1, 0])",
    "train": "import numpy as np, widelimit as wl; wl.train(wl.mlp(1), np.eye(2), [1.0, -1.0], loss='logistic')"
    ".predict(np.eye(2), t=1.0)",
    "plot": "import widelimit as wl; wl.plot.figure()",
    "cli": "import sys; sys.argv = ['widelimit', '--help']; from widelimit.cli import main; main()",
    "precise": "import widelimit as wl; wl.spectrum.circle(wl.mlp(1), 4, digits=30)",
    "store": "import numpy as np, tempfile, widelimit as wl; "
    "wl.gram(wl.mlp(1), np.eye(3), store=tempfile.mkdtemp() + '/k')",
    "widget": "import widelimit as wl; wl.explore(wl.mlp(1), [0.0, 1.0], [0.0, 1.0])",
}


def run(command, **options):
    return subprocess.run([str(c) for c in command], check=True, text=True, **options)


def build(python, folder):
    """Wheel and sdist, made in a copy of what is committed or new, so that nothing else can slip in."""
    tree = folder / "tree"
    listed = run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, stdout=subprocess.PIPE
    ).stdout
    for name in listed.splitlines():
        if (ROOT / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    stamp = run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, stdout=subprocess.PIPE
    ).stdout.strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": stamp}
    command = [python, "-m", "hatchling", "build", "-d", folder / "dist"]
    run(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL)
    return sorted((folder / "dist").iterdir())


def look_inside(sdist, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        sources = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ("py.typed", "explorer/page.html", "explorer/widget.js", "layers/_conv.py")
    missing = [n for n in wanted if f"widelimit/{n}" not in names]
    foreign = [n for n in names if not re.match(r"widelimit(-[\d.]+\.dist-info)?/", n)]
    assert not missing, missing
    assert not foreign, foreign
    assert any(n.endswith("licenses/LICENSE") for n in names)
    assert {
        "LICENSE",
        "README.md",
        "CITATION.cff",
        "src/widelimit/py.typed",
        "tests/conftest.py",
    } <= sources
    assert not any("node_modules" in n or n.startswith(("build/", ".venv")) for n in sources)
    print(
        f"{wheel.name}: {wheel.stat().st_size >> 10} KiB; {sdist.name}: {sdist.stat().st_size >> 10} KiB"
    )


def import_seconds(python):
    """Processor seconds of `import widelimit` beyond `import jax, equinox`, the least of five runs."""
    code = "import time, jax, equinox; s = time.process_time(); import widelimit; print(time.process_time() - s)"
    times = [float(run([python, "-c", code], stdout=subprocess.PIPE).stdout) for _ in range(5)]
    return min(times)


def try_extra(python, name):
    """Whether the extra's line works, and what was said."""
    done = subprocess.run([python, "-c", EXTRAS[name]], text=True, capture_output=True, check=False)
    return done.returncode == 0, done.stdout + done.stderr


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keep", type=Path, help="a folder for wheel and sdist")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # users keep their bytecode
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        venv.create(folder / "bare", with_pip=True)
        python = folder / "bare" / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        venv.create(folder / "builder", with_pip=True)
        builder = folder / "builder" / "bin" / "python"
        run([builder, *pip[1:], "hatchling"])
        first, second = (build(builder, folder / n) for n in ("one", "two"))
        for a, b in zip(first, second, strict=True):
            hashes = [hashlib.sha256(f.read_bytes()).hexdigest() for f in (a, b)]
            assert hashes[0] == hashes[1], f"{a.name} differs from build to build"
            print(f"{hashes[0]}  {a.name}")
        wheel = next(f for f in first if f.suffix == ".whl")
        look_inside(next(f for f in first if f.suffix == ".gz"), wheel)
        run([*pip, wheel])
        run([python, "-W", "error", "-c", IMPORTED])
        run([python, "-W", "error", "-c", BARE])
        seconds = import_seconds(python)
        print(f"import widelimit: {seconds:.2f} s beyond jax and equinox (at most {MARGIN})")
        for name in EXTRAS:
            works, said = try_extra(python, name)
            assert not works, f"{name} works without its extra"
            assert re.search(rf"pip install 'widelimit\[({name}|all)\]'", said), (
                f"{name}: {said[-500:]}"
            )
            print(f"without {name}: {said.strip().splitlines()[-1][:110]}")
        for name in EXTRAS:
            run([*pip, f"{wheel}[{name}]"])
            works, said = try_extra(python, name)
            assert works, f"{name}: {said[-2000:]}"
            print(f"with {name}: works")
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
            for file in first:
                shutil.copy(file, options.keep / file.name)
        assert seconds <= MARGIN, f"importing takes {seconds:.2f} s more than jax and equinox"
    print("The package is ready.")


if __name__ == "__main__":
    sys.exit(main())
