"""The shape of the code base, checked by machine; each check is itself checked on broken source."""

import subprocess
import sys
from importlib.util import find_spec

import jaxtyping
import numpy as np
import pytest

from structure import (
    CHECKS,
    LONG,
    SNAPSHOT,
    cycles,
    lazy_names_apart,
    library,
    matplotlib_elsewhere,
    parsed,
    private_imports,
    private_jax,
    public_names,
    sizes,
    too_long,
    too_much_any,
    upward_imports,
)

BRIDGES = ("torch", "gpytorch", "gpjax")
EXTRAS = ("optax", "diffrax", "lineax", "sklearn", "matplotlib", "typer", "rich", "mpmath")


@pytest.fixture(scope="module")
def modules():
    return library()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_library_is_in_order(check, modules):
    wrong = check(modules)
    assert not wrong, "\n".join(wrong)


def test_no_exception_is_out_of_date(modules):
    assert not LONG - sizes(modules).keys()


def test_public_names(modules):
    found, known = set(public_names(modules)), set(SNAPSHOT.read_text().split())
    assert found == known, (
        f"new: {sorted(found - known)}, gone: {sorted(known - found)}. If that is meant, run "
        "`python tests/structure.py` and say so in CHANGELOG.md."
    )


LAZY = "if typing.TYPE_CHECKING:\n    from {} import {} as {}\nelse:\n    T = {}\n"
BROKEN = [
    (private_imports, "widelimit.plot._x", "from widelimit.finite._network import finite"),
    (private_imports, "widelimit.plot._x", "from widelimit.finite import _network"),
    (private_imports, "widelimit.plot._x", "def f():\n    import widelimit.finite._network"),
    (private_imports, "widelimit.plot._x", "from ..finite._network import finite"),
    (private_imports, "widelimit.analysis.signal._x", "from ..spectrum._kink import kink"),
    (upward_imports, "widelimit.layers._x", "from widelimit.finite import finite"),
    (upward_imports, "widelimit.layers._x", "def f():\n    from widelimit import finite"),
    (upward_imports, "widelimit.layers._x", "from widelimit import ntk"),
    (upward_imports, "widelimit.layers._x", "import widelimit as wl"),
    (upward_imports, "widelimit.layers._x", "from ..finite import finite"),
    (private_jax, "widelimit.layers._x", "from jax._src import dtypes"),
    (private_jax, "widelimit.layers._x", "import jax\nt = jax.core.Tracer"),
    (private_jax, "widelimit.layers._x", "from jax.interpreters import ad"),
    (matplotlib_elsewhere, "widelimit.cli._x", "def f():\n    import matplotlib.pyplot as plt"),
    (too_long, "widelimit.layers._x", "x = 0\n" * 301),
    (too_long, "widelimit.layers._x", "def f():\n    '''f'''\n" + "    x = 0\n" * 61),
    (too_much_any, "widelimit.linalg._x", "def f(x: Any, y: int) -> int: ..."),
    (lazy_names_apart, "widelimit", LAZY.format(".a", "b", "b", {"a": "c"})),
    (lazy_names_apart, "widelimit", LAZY.format(".widelimit", "a", "a", {"widelimit": "a"})),
]
SOUND = [
    (private_imports, "widelimit.finite._x", "from ._network import finite"),
    (private_imports, "widelimit.finite._x", "from widelimit._base.arrays import is_jax"),
    (private_imports, "widelimit.analysis.signal._x", "from widelimit.analysis._zonal import f"),
    (upward_imports, "widelimit.finite._x", "from widelimit.infinite import ntk"),
    (upward_imports, "widelimit.finite._x", "from widelimit import layers"),
    (private_jax, "widelimit.layers._x", "import jax\nx = jax.corella"),
    (matplotlib_elsewhere, "widelimit.plot._x", "import matplotlib"),
    (too_long, "widelimit.layers._x", "def f():\n" + "    x = 0\n" * 59),
    (too_much_any, "widelimit.plot._x", "def f(x: Any, y: int) -> int: ..."),
]


@pytest.mark.parametrize(("check", "name", "source"), BROKEN)
def test_each_check_sees_what_is_wrong(check, name, source):
    assert check([parsed(name, source, name == "widelimit")])


@pytest.mark.parametrize(("check", "name", "source"), SOUND)
def test_each_check_passes_what_is_right(check, name, source):
    assert not check([parsed(name, source)])


def test_cycles_are_seen():
    first = parsed("widelimit.a", "from ._b import f", is_package=True)
    second = parsed("widelimit.a._b", "def f():\n    from widelimit.a import g")
    assert cycles([first, second]) == ["widelimit.a -> widelimit.a._b -> widelimit.a"]
    assert not cycles([first, parsed("widelimit.a._b", "import jax")])


def test_public_names_are_those_without_underscore():
    source = "from ._a import X as X\nfrom ._a import y as z\ndef f(): ...\ndef _g(): ...\n"
    assert public_names([parsed("widelimit.a", source)]) == ["widelimit.a.X", "widelimit.a.f"]
    assert not public_names([parsed("widelimit._a", source)])


def answer(code: str) -> list[str]:
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert out.returncode == 0, out.stderr
    return out.stdout.split()


def test_the_core_imports_without_extras():
    code = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in EXTRAS)
    code += (
        "import widelimit as wl, numpy as np, jax\n"
        "print(wl.ntk(wl.mlp(2), np.eye(3)).dtype, jax.config.jax_enable_x64, *dir(wl))\n"
        "try:\n    wl.estimators\nexcept ImportError as error:\n    print(error)"
    )
    dtype, x64, *rest = answer(code)
    assert (dtype, x64) == ("float64", "False")
    assert "train" in rest
    assert "estimators" not in rest
    assert " ".join(rest).endswith("pip install 'widelimit[estimators]'.")


def test_importing_brings_in_the_core_only(modules):
    loaded = set(answer("import widelimit, sys; print(*sys.modules)"))
    core = {
        "",
        "_base",
        "activations",
        "layers",
        "interpret",
        "describe",
        "infinite",
        "width",
        "finite",
    }
    assert {m.folder for m in modules if m.name in loaded} <= core
    heavy = ("scipy.linalg", "scipy.sparse", "scipy.optimize", "scipy.special")
    assert not loaded & {*EXTRAS, *heavy}


def test_lazy_names_are_there_and_stay():
    import widelimit as wl

    for full in public_names([module for module in library() if module.name == "widelimit"]):
        name = full.rpartition(".")[2]
        if name in BRIDGES and find_spec(name) is None:
            with pytest.raises(ImportError, match=rf"pip install 'widelimit\[{name}\]'"):
                getattr(wl, name)
            continue
        assert getattr(wl, name) is getattr(wl, name)
        assert name in wl.__all__
    assert callable(wl.finite)
    assert wl.train.__module__.startswith("widelimit.dynamics")
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
        _ = wl.unheard_of


def test_annotations_are_checked_at_run_time():
    from widelimit.linalg import Cholesky

    message = ""
    try:  # not pytest.raises, under which the checks stand aside
        Cholesky(np.zeros((2, 3)), 0.0, 0.0)
    except jaxtyping.TypeCheckError as error:
        message = str(error)
    assert "'lower'" in message
