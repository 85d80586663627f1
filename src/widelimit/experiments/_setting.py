"""The common setting: a target on the circle, its samples, the networks."""

from typing import Any

import numpy as np

from widelimit._base.names import unknown
from widelimit._base.scalars import as_count
from widelimit.layers import Layer, mlp, resnet

KINDS = ("authors", "equispaced", "random")
JITTER = 1e-10  # the authors repeat the end of the period: their Gram matrix is singular without it


def target(b: Any) -> np.ndarray:
    r"""The function to be learnt, $\frac12\cos b+\sin4b$."""
    b = np.asarray(b, dtype=np.float64)
    return np.cos(b) / 2 + np.sin(4 * b)


def angles(count: int, samples: str = "authors", seed: int = 0) -> np.ndarray:
    r"""Where the target is sampled.

    Args:
        count: The number of samples n.
        samples: "authors" for $-\pi+2\pi i/(n-1)$, both ends of the period included, as in the papers'
            published code; "equispaced" for $-\pi+2\pi i/n$; "random" for uniform draws.
        seed: Of the random draws.

    Returns:
        Angles in increasing order, shape (n,).

    Example:
        >>> (angles(5) / np.pi).tolist(), (angles(4, "equispaced") / np.pi).tolist()
        ([-1.0, -0.5, 0.0, 0.5, 1.0], [-1.0, -0.5, 0.0, 0.5])
    """
    count = as_count(count, "count", minimum=2)
    if samples not in KINDS:
        raise ValueError(unknown("samples", samples, KINDS))
    if samples == "authors":
        return -np.pi + 2 * np.pi * np.linspace(0, 1, count)
    if samples == "equispaced":
        return -np.pi + 2 * np.pi * np.arange(count) / count
    rng = np.random.default_rng([seed, count])
    return np.sort(rng.uniform(-np.pi, np.pi, count))


def networks(depth: int, alphas: Any = (1.0, 0.1), activation: Any = "relu") -> dict[str, Layer]:
    """The MLP and the residual networks of one depth.

    Args:
        depth: L.
        alphas: The attenuations of the residual networks.
        activation: Of all networks.

    Returns:
        Name to network.

    Example:
        >>> list(networks(5))
        ['MLP', 'ResNet 1', 'ResNet 0.1']
    """
    nets = {"MLP": mlp(depth=depth, activation=activation)}
    for alpha in alphas:
        nets[f"ResNet {alpha:g}"] = resnet(depth=depth, alpha=float(alpha), activation=activation)
    return nets


def describe_samples(samples: str) -> str:
    """The kind of samples in words."""
    return {
        "authors": "samples as in the papers' code, both ends of the period included",
        "equispaced": "equispaced samples, the end of the period not repeated",
        "random": "samples drawn uniformly",
    }[samples]
