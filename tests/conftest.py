"""Strict numerics: warnings are errors, shapes, dtypes and types are checked, keys are reproducible."""

import contextlib
import json
import os
import zlib
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
# Programs of a test run once or twice: code that is compiled well would never earn back its compilation.
os.environ["XLA_FLAGS"] = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    + os.environ.get("XLA_FLAGS", "")
)

import hypothesis
import jax
import jaxtyping
import pytest

# The same examples on every run and every machine.
hypothesis.settings.register_profile("reproducible", derandomize=True, deadline=None)
hypothesis.settings.load_profile("reproducible")

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Every annotation where arrays flow is checked, shapes included; an int may stand for a float. The passes
# over descriptions carry no arrays and run thousands of times.
CHECKED = (
    "_base activations infinite width finite linalg regression dynamics training estimators experiments "
    "plot explorer compat "
    "testing analysis.smoothness analysis.spectrum analysis.signal analysis.learning_curve"
)
jaxtyping.install_import_hook(
    [f"widelimit.{name}" for name in CHECKED.split()],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

_expect = pytest.raises


@contextlib.contextmanager
def _raises(*args, **kwargs):
    """`pytest.raises` for what a user sees: without the type checker, which would refuse first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        with _expect(*args, **kwargs) as info:
            yield info
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


pytest.raises = _raises

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Free compiled programs when they are many: thousands exhaust a process's memory maps."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_text().count("\n") > 25_000:
        jax.clear_caches()


@pytest.fixture
def key(request):
    """A JAX key that depends on the test's name alone."""
    return jax.random.key(zlib.crc32(request.node.nodeid.encode()))


@pytest.fixture
def seed(request):
    """An integer seed that depends on the test's name alone."""
    return zlib.crc32(request.node.nodeid.encode())


@pytest.fixture(scope="session")
def golden():
    """High-precision values (50 digits, rounded to binary64)."""
    return json.loads((GOLDEN / "golden.json").read_text())


@pytest.fixture(scope="session")
def golden_kernels():
    """High-precision kernel matrices, one record for each network and input set."""
    return json.loads((GOLDEN / "kernels.json").read_text())
