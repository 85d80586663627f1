"""What depth does to variances, correlations and kernels."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit.infinite import ntk
from widelimit.layers import Layer

from ._block import block_of, step

Kernel = Callable[[Layer, np.ndarray, np.ndarray], np.ndarray]


@shown("a signal on its way through the layers")
class Trajectory(NamedTuple):
    """Variance and correlation layer by layer; entry 0 is the start."""

    q: np.ndarray
    c: np.ndarray


def trajectory(net: Layer, layers: int, c: float = 0.5, q: float = 1.0) -> Trajectory:
    """Follow the variance and the correlation of two inputs through repeated blocks.

    Args:
        net: A network with one repeated block, or the block itself.
        layers: How many blocks.
        c: The correlation at the start.
        q: The variance of both at the start.

    Returns:
        Arrays of length `layers` + 1.

    Example:
        >>> import widelimit as wl
        >>> t = wl.signal.trajectory(wl.mlp(depth=9, w_std=2**0.5), 50, c=0.0)
        >>> round(float(t.q[-1]), 9), bool(t.c[-1] > 0.98)  # inputs become alike
        (1.0, True)
    """
    block, n = block_of(net), as_count(layers, "layers")
    if not -1 <= c <= 1 or not 0 < q < math.inf:
        raise ValueError(
            f"A correlation in [-1, 1] and a positive variance are needed, got {c}, {q}."
        )
    states = [(float(q), 1.0 - c, 1.0 + c)]
    for _ in range(n):
        after = step(block, *states[-1])
        states.append((float(after[0]), float(after[1]), float(after[2])))
    table = np.array(states)
    return Trajectory(table[:, 0], (table[:, 2] - table[:, 1]) / 2)


@shown("the shape of a kernel at growing depth")
class DepthEffect(NamedTuple):
    """What depth does to a kernel.

    Attributes:
        depths: The depths.
        angles: Angles between inputs.
        shape: The kernel over its peak, shape (depths, angles).
        contrast: The standard deviation of that shape over angles beyond pi/8, for each depth: 0
            means that the kernel tells apart nothing but equal inputs.
    """

    depths: np.ndarray
    angles: np.ndarray
    shape: np.ndarray
    contrast: np.ndarray


def depth_effect(
    family: Callable[[int], Layer], depths: ArrayLike, *, dim: int = 2, kernel: Kernel = ntk
) -> DepthEffect:
    r"""The kernel's shape as the depth grows: does it degenerate?

    The tangent kernel of a deep ReLU MLP tends to $\frac14$ of its peak at every angle but 0; that
    of a ResNet with fixed small $\alpha$ keeps its shape for a long time.

    Args:
        family: From a depth to a network.
        depths: Depths.
        dim: The dimension of the inputs, which have norm 1.
        kernel: `widelimit.ntk` or `widelimit.nngp`.

    Returns:
        The shapes and their contrast.

    Example:
        >>> import widelimit as wl
        >>> deep = wl.signal.depth_effect(lambda l: wl.mlp(depth=l), [1, 100])
        >>> attenuated = wl.signal.depth_effect(lambda l: wl.resnet(depth=l, alpha=0.01), [1, 100])
        >>> (deep.contrast[1] / deep.contrast[0]).round(2) < 0.2 < attenuated.contrast[1].round(2)
        np.True_

    Reference:
        Huang et al. (2020), Why do deep residual networks generalize better than deep feedforward
        networks?; Tirer, Bruna and Giryes (2022).
    """
    layers = np.atleast_1d(np.asarray(depths))
    angles = np.linspace(0, np.pi, 181)
    size = math.sqrt(2 / as_count(dim, "dim", minimum=1))
    points = size * np.stack([np.cos(angles), np.sin(angles)], 1)
    rows = [kernel(family(int(l)), points[:1], points)[0] for l in layers]
    shape = np.array([row / row[0] for row in rows])
    return DepthEffect(layers, angles, shape, shape[:, angles > np.pi / 8].std(axis=1))
