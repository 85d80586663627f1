"""The law of finite width: sampled networks scatter as the first order in 1/n says."""

import math

import numpy as np

from widelimit._base.keys import as_generator
from widelimit._base.types import Seed
from widelimit.describe import infer
from widelimit.finite import monte_carlo_kernels
from widelimit.layers import Layer
from widelimit.width import fluctuations


def check_width(net: Layer, key: Seed = 0, *, width: int = 64, samples: int = 20_000) -> None:
    """Draw networks and compare the spread and the mean of both kernels with `widelimit.fluctuations`.

    Deviations are judged in standard errors, at most four, after an allowance for the next order in 1/n: 0.8 of the
    tangent kernel's relative variance for variances, its square for means.

    Args:
        net: The network, one that `fluctuations` covers.
        key: For the inputs and the networks.
        width: Of the hidden layers.
        samples: The number of networks, drawn in law.

    Raises:
        AssertionError: Where a mean or a variance is off.
    """
    rng = as_generator(key)
    x = rng.standard_normal((2, 3))
    x *= np.array([[1.0], [0.7]]) * math.sqrt(3) / np.linalg.norm(x, axis=1, keepdims=True)
    found = fluctuations(net, x, width=width)
    outputs = infer(net, 3, width).widths[-1]
    drawn = monte_carlo_kernels(
        net, np.float32(x), width=width, samples=samples, key=int(rng.integers(2**31)), method="law"
    )
    small = float((np.diag(found.ntk_var) / np.diag(found.ntk) ** 2).max()) / width
    for name, estimate, variance, mean in (
        ("last-layer kernel", drawn.nngp, found.nngp_var, found.expected_nngp()),
        ("tangent kernel", drawn.ntk, found.ntk_var_of(outputs), found.expected_ntk()),
    ):
        allowed = 4 * estimate.stderr + small**2 * np.abs(mean)
        off = np.abs(estimate.mean - mean) - allowed
        assert (off <= 0).all(), f"The mean of the {name} is off by {off.max():.2g} too much."
        # Kernels are sums of products of Gaussians: their fourth moments are a little above 3.
        ratio = estimate.std**2 * width / variance
        error = 4 * math.sqrt((2 + 12 * small) / samples) + 0.8 * small
        assert (np.abs(ratio - 1) <= error).all(), (
            f"The variance of the {name}: {ratio} predicted ones."
        )
