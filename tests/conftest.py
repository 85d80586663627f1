"""Strict numerics: warnings are errors, shapes, dtypes and types are checked, keys are reproducible."""

import contextlib
import importlib.util
import json
import mmap
import os
import sys
import zlib
from collections import Counter
from pathlib import Path

import hypothesis
import jax
import jaxtyping
import pytest

os.environ.setdefault("MPLBACKEND", "Agg")
# Programs of a test run once or twice: code that is compiled well would never earn back its compilation.
os.environ["XLA_FLAGS"] = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    + os.environ.get("XLA_FLAGS", "")
)


def _xla_knows(option):
    """Whether this release has an option; XLA ends the process where one is unknown."""
    (folder,) = importlib.util.find_spec("jaxlib").submodule_search_locations
    for library in Path(folder).glob("libjax_common.*"):
        with library.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
            return text.find(option.encode()) >= 0
    return False


if _xla_knows("xla_cpu_use_fusion_emitters"):  # they take a quarter of a run's time to compile
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false"

# The same examples on every run and every machine.
hypothesis.settings.register_profile("reproducible", derandomize=True, deadline=None)
hypothesis.settings.load_profile("reproducible")

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

# Every annotation where arrays flow is checked, shapes included; an int may stand for a float. The passes
# over descriptions carry no arrays and run thousands of times.
CHECKED = (
    "_base activations infinite width finite linalg regression dynamics training estimators experiments bench "
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

# Families of cases of which every day runs one in so many; `make test-all` runs each.
EVERY = {
    "test_experiments.py::test_small_sizes_have_the_whole_form": 3,
    "test_finite_empirical.py::test_the_three_forms_of_several_outputs": 2,
    "test_width_oracle.py::test_all_moments": 2,
    "test_kernels.py::test_large_matrices_are_symmetric_to_the_last_bit": 2,
    "test_activations.py::test_laws": 3,
    "test_estimators.py::test_scikit_learn_contract": 4,
    "test_estimators.py::test_heads_keep_the_contract": 8,
    "test_kernels.py::test_laws": 4,
    "test_golden.py::test_both_precisions": 2,
    "test_learning_curve.py::test_theory_meets_measurement_on_the_sphere": 2,
    "test_finite_pixels.py::test_the_structured_kernel_is_the_contracted_jacobian": 3,
    "test_finite_pixels.py::test_sampled_kernels_agree_with_the_limit": 3,
    "test_finite.py::test_the_structured_kernel_is_the_dense_one": 2,
    "test_width.py::test_known_values": 2,
    "test_spectrum.py::test_float64_agrees_with_many_digits_over_twelve_orders": 2,
    "test_spatial.py::test_many_digits": 4,
    "test_spatial.py::test_pools_whose_terms_cancel_keep_single_precision": 2,
    "test_finite.py::test_every_activation_converges_to_its_limit": 4,
    "test_operator.py::test_products_are_those_of_the_matrix": 4,
    "test_hopper.py::test_it_is_tried_before_it_is_used": 2,
    "test_hopper.py::test_profiles_are_powers_where_the_arithmetic_holds_them": 2,
    "test_extremes.py::test_a_zero_vector_is_an_input": 4,
    "test_kernels.py::test_gradients_match_finite_differences": 2,
    "test_kernels.py::test_profile_inside_jit_when_norms_are_unknown": 2,
    "test_kernels.py::test_tiles_and_profiles_agree_with_single_entries": 2,
    "test_prepare.py::test_matvec_does_not_need_the_matrix": 2,
    "test_prepare.py::test_far_outside_the_announced_norms_it_is_as_right": 2,
    "test_extremes.py::test_slope_at_weights_of_zero": 2,
    "test_finite_stability.py::test_the_drift_falls_at_least_like_the_inverse_root": 2,
    "test_spatial.py::test_networks_that_are_one_function": 2,
    "test_spatial.py::test_laws_of_gram_matrices": 3,
    "test_neural_tangents.py": 3,
}


def pytest_collection_modifyitems(config, items):
    """Thin out families of cases, always to the same ones."""
    if os.environ.get("WIDELIMIT_ALL"):
        return
    seen, kept, left = Counter(), [], []
    for item in items:
        name = item.nodeid.split("[")[0]
        family = next((f for f in EVERY if f in name), None)
        number = seen[name]
        seen[name] += 1
        (left if family and number % EVERY[family] else kept).append(item)
    items[:] = kept
    config.hook.pytest_deselected(items=left)


GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(autouse=True, scope="module")
def forget_programs():
    """Free compiled programs when they are many: thousands exhaust a process's memory maps."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_text().count("\n") > 25_000:
        jax.clear_caches()


@pytest.fixture(autouse=True)
def close_figures():
    """Figures of one test are not those of the next, nor those of docstrings: more than twenty are warned of."""
    _close_figures()
    yield
    _close_figures()


def _close_figures():
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


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
