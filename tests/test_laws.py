"""The laws for kernels of any library: ours obey them, and each law sees the fault that it is about."""

import numpy as np
import pytest

import widelimit as wl
from widelimit.testing import KERNEL_LAWS, check_kernel, examine_kernel

NAMES = {law.__name__ for law in KERNEL_LAWS}


def test_our_kernels_obey():
    report = check_kernel(wl.prepare(wl.mlp(2, b_std=0.3)))
    assert set(report.holds) == NAMES


def linear(x, y):
    return x @ y.T


def distance(x, y):
    return np.sqrt(np.maximum(((x[:, None] - y[None]) ** 2).sum(-1), 0))


def noisy(x, y):
    """Noise on the diagonal, which tells a point from its copy."""
    return linear(x, y) + (0.1 * np.eye(len(x)) if x.shape == y.shape else 0)


BROKEN = {
    "symmetry": lambda x, y: linear(x, y) + 0.1 * x[:, :1],
    "positive_semidefinite": lambda x, y: -distance(x, y),
    "diagonal": noisy,
    "dtype": lambda x, y: linear(x, y).astype(np.float64),
    "zero_vectors": lambda x, y: linear(x, y) / np.sqrt((x**2).sum(1))[:, None] / np.sqrt((y**2).sum(1)),
    "unusual_sizes": lambda x, y: linear(x, y) ** 20,
    "gram_against_pairs": lambda x, y: linear(x, y) / len(x),
}  # fmt: skip


@pytest.mark.parametrize("law", BROKEN)
def test_each_law_sees_its_fault(law):
    with np.errstate(all="ignore"):
        report = examine_kernel(lambda x, y: BROKEN[law](np.asarray(x), np.asarray(y)))
        assert law in report.fails
        assert report.skipped["jit"] == "not written in JAX"
        assert "no derivative" in report.skipped["gradient_at_equal_inputs"]
    assert "FAILS" in str(report)


def test_derivatives_and_transformations_are_tried():
    """A distance whose root has no derivative at 0; values that are decided on; a scale that is not mapped over."""
    import jax.numpy as jnp

    def root(x, y):
        return jnp.exp(-jnp.sqrt(((x[:, None] - y[None]) ** 2).sum(-1)))

    report = examine_kernel(root)
    assert set(report.fails) == {"gradient_at_equal_inputs"}
    assert "nan" in report.fails["gradient_at_equal_inputs"]

    def by_batch(x, y):
        return x @ y.T / x.shape[0]

    assert {"vmap", "gram_against_pairs"} <= examine_kernel(by_batch).fails.keys()
    given = examine_kernel(
        lambda x, y: np.asarray(linear(np.asarray(x), np.asarray(y))),
        gradient=lambda x, y: np.array(np.inf),
    )
    assert given.fails.keys() == {"gradient_at_equal_inputs"}


def test_expected_failures_stay_true():
    scaled = lambda x, y: np.asarray(x) @ np.asarray(y).T / len(x)
    both = {"gram_against_pairs": "by design", "symmetry": "of other lengths"}
    assert both.keys() == check_kernel(scaled, expected_failures=both).fails.keys()
    with pytest.raises(AssertionError, match="dtype: it was expected to fail"):
        check_kernel(scaled, expected_failures={**both, "dtype": "an old fault"})
    with pytest.raises(AssertionError, match="gram_against_pairs: Max absolute"):
        check_kernel(scaled)
    with pytest.raises(ValueError, match="no law 'beauty'"):
        check_kernel(linear, expected_failures={"beauty": "none"})
    with pytest.raises(ValueError, match="n >= 6"):
        check_kernel(linear, points=np.ones((2, 2)))
