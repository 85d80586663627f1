"""Inputs for laws: vectors, or pixels in as many axes as a network reads; what a Gram matrix owes."""

import jax
import numpy as np

from widelimit._base.structured import Graphs
from widelimit.describe import check_pixels
from widelimit.interpret import facts
from widelimit.layers import Aggregate, Layer

_SITES = ((4, 3), (5,), (2, 3, 2), ())


def shape_for(net: Layer, d: int = 3) -> tuple[int, ...]:
    """The shape of one input that the network can read."""
    if not facts(net).pixels:
        return (d,)
    reasons = []
    for sites in _SITES:
        try:
            check_pixels(net, sites, 2)
        except ValueError as error:
            reasons.append(str(error))
        else:
            return (*sites, 2)
    raise ValueError(f"No input of one to three spatial axes suits {net}: {reasons[0]}")


def as_batch(net: Layer, x: np.ndarray, rng: np.random.Generator) -> np.ndarray | Graphs:
    """The inputs, with graphs of their own where the network aggregates over them."""
    aggregates = lambda node: isinstance(node, Aggregate)
    if not any(map(aggregates, jax.tree.leaves(net, is_leaf=aggregates))):
        return x
    nodes = x.shape[1]
    return Graphs(x, (rng.uniform(size=(len(x), nodes, nodes)) < 0.5).astype(x.dtype))


def unlike_points(rng: np.random.Generator, n: int = 6, d: int = 3) -> np.ndarray:
    """Points of different norms, one of them twice, and its opposite."""
    x = rng.standard_normal((n, d)) * np.exp(rng.standard_normal((n, 1)))
    x[1] = x[0]
    x[2] = -x[0]
    return x


def assert_gram(matrix: np.ndarray, slack: float) -> None:
    """A matrix is finite, symmetric, and positive semidefinite up to rounding.

    Args:
        matrix: Shape (n, n).
        slack: What symmetry may miss, relative to the largest entry.
    """
    assert np.isfinite(matrix).all(), f"{(~np.isfinite(matrix)).sum()} entries are not finite"
    scale = np.abs(matrix).max()
    np.testing.assert_allclose(matrix, matrix.T, rtol=1e-12, atol=slack * scale)
    eigenvalues = np.linalg.eigvalsh(matrix)
    assert eigenvalues[0] > -1e-10 * eigenvalues[-1], (
        f"the smallest eigenvalue is {eigenvalues[0]:.1e}, the largest {eigenvalues[-1]:.1e}"
    )


def assert_bounded(matrix: np.ndarray) -> None:
    """No entry is larger than Cauchy and Schwarz allow."""
    size = np.sqrt(np.diag(matrix))
    above = np.abs(matrix) - np.outer(size, size) * (1 + 1e-12)
    assert (above <= 0).all(), f"an entry exceeds its diagonal by {above.max():.1e}"
