"""Elementwise functions against NumPy and against many digits."""

import dataclasses

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest

from widelimit._base.numerics import arctan2, chebyshev_sum, sine_gap
from widelimit._base.polynomials import evaluate_polynomial
from widelimit._base.trees import as_tree


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("terms", [8, 40, 96, 104, 256, None])
def test_chebyshev_sum(terms, dtype):
    """Coefficients that fall as fast as the length promises, both ends of the interval included."""
    count = terms or 64
    coefficients = np.zeros(256)
    decay = (1e-15 if dtype == np.float64 else 1e-8) ** (1 / count)
    rng = np.random.default_rng(0)
    coefficients[:count] = rng.standard_normal(count) * decay ** np.arange(count)
    y = np.cos(np.linspace(0, np.pi, 301))
    exact = np.polynomial.chebyshev.chebval(y.astype(dtype).astype(float), coefficients)
    with jax.enable_x64(True):
        got = np.asarray(chebyshev_sum(jnp.asarray(coefficients), jnp.asarray(y, dtype), terms))
    assert got.dtype == dtype
    assert abs(got - exact).max() < 40 * np.finfo(dtype).eps * abs(coefficients).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arctan2(dtype):
    rng = np.random.default_rng(1)
    y = (rng.standard_normal(500) * 10.0 ** rng.integers(-6, 6, 500)).astype(dtype)
    x = abs(rng.standard_normal(500)).astype(dtype)
    y[:3], x[:3] = (0, 1, 0), (1, 0, 0)
    with jax.enable_x64(True):
        got = np.asarray(arctan2(jnp.asarray(y), jnp.asarray(x)))
        slope = jax.grad(arctan2)(jnp.float64(0.3), jnp.float64(0.7))
    exact = np.array([float(mpmath.atan2(float(a), float(b))) for a, b in zip(y, x, strict=True)])
    assert (abs(got - exact) <= 4 * np.finfo(dtype).eps * abs(exact)).all()
    assert float(slope) == pytest.approx(0.7 / 0.58, rel=1e-15)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_gap_of_a_sine_keeps_every_digit(dtype):
    phi = np.concatenate([np.linspace(1e-3, np.pi / 2, 99), 10.0 ** -np.arange(1, 12)]).astype(
        dtype
    )
    with mpmath.workdps(60):
        wide = [mpmath.mpf(float(p)) for p in phi]
        exact = np.array([float(mpmath.sin(p) - p * mpmath.cos(p)) for p in wide])
    with jax.enable_x64(True):
        got = np.asarray(sine_gap(jnp.asarray(phi)))
    assert got.dtype == dtype
    assert (abs(got / exact - 1) < 3 * np.finfo(dtype).eps).all()


@dataclasses.dataclass(frozen=True)
class Leaf:
    a: int
    b: int
    kind: str = "kind"


def test_dataclasses_are_trees():
    as_tree("kind")(Leaf)
    tree = jax.tree.map(lambda v: 2 * v, Leaf(1, 2, "other"))
    assert tree == Leaf(2, 4, "other")
    (path, _), _ = jax.tree_util.tree_flatten_with_path(tree)[0]
    assert jax.tree_util.keystr(path) == ".a"
    assert jax.tree.structure(Leaf(1, 2)) != jax.tree.structure(tree)


@pytest.mark.parametrize("degree", [0, 3, 4, 5, 8, 21])
def test_polynomials(degree):
    coefficients = tuple(np.random.default_rng(degree).standard_normal(degree + 1).tolist())
    y = np.linspace(-1, 1, 33)
    with jax.enable_x64(True):
        got = np.asarray(evaluate_polynomial(coefficients, jnp.asarray(y)))
    np.testing.assert_allclose(
        got, np.polynomial.polynomial.polyval(y, coefficients), rtol=0, atol=2e-14
    )
