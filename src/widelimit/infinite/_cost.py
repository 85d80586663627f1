"""What a Gram matrix of inputs with pixels costs, before it is computed."""

import functools
import math
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from widelimit._base.abreast import cores
from widelimit._base.passes import once_for_each_network
from widelimit._base.structured import Data, as_images
from widelimit._base.thresholds import COARSE_ENTRIES, GROUP_BYTES, KEPT_BYTES, SLICE_PAIRS
from widelimit.describe import check, check_pixels
from widelimit.interpret import facts
from widelimit.layers import Layer, Serial, Sites

from ._stage import staged

# Nanoseconds for each pair of pixels and layer on one core, by slices and by blocks; and operations.
_SLICES = {"float32": 1.8, "float64": 4.3}
_BLOCKS = {"float32": 8.0, "float64": 14.0}
# The same on an accelerator, where one H200 was measured in float32.
_DEVICE_SLICES = {"float32": 0.014, "float64": 0.04}
_DEVICE_BLOCKS = {"float32": 0.045, "float64": 0.15}
_OPERATIONS = {"float32": 64, "float64": 95}
_REFERENCE = 1.2e-4  # seconds that a hundred thousand square roots took where these were measured


class Cost(NamedTuple):
    """An estimate; sizes are exact, seconds are right to a factor of about 2.

    Attributes:
        entries: Pairs of pixels, over all pairs of inputs and all layers.
        flops: Floating-point operations.
        memory: Bytes at the peak, the answer included.
        seconds: Time on this machine.
        path: "slices" of constant displacement, or whole "blocks".
    """

    entries: int
    flops: int
    memory: int
    seconds: float
    path: str


def cost(net: Layer, x1: Data, x2: Data | None = None) -> Cost:
    """What `wl.kernels(net, x1, x2)` will cost.

    Args:
        net: A network that reads pixels.
        x1: Inputs, shape (n1, *spatial, channels).
        x2: Inputs, or None for `x1`.

    Returns:
        The estimate.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x = np.zeros((10, 16, 16, 3), np.float32)
        >>> flat, pool = (wl.cost(wl.cnn(depth=4, readout=r), x) for r in ("flatten", "pool"))
        >>> pool.entries // flat.entries  # all displacements of 17 x 17, instead of one
        289
    """
    check(net)
    inputs = as_images(x1, x2)
    return cost_of(net, inputs)


def cost_of(net: Layer, inputs: Any) -> Cost:
    """The same of inputs that have been checked."""
    sites, dtype = tuple(inputs.x1.shape[1:-1]), str(inputs.dtype)
    n1 = len(inputs.x1)
    n2 = n1 if inputs.x2 is None else len(inputs.x2)
    left = check_pixels(net, sites, inputs.x1.shape[-1])
    pairs = n1 * n2 if inputs.x2 is not None else n1 * (n1 + 1) // 2
    found = staged(net, sites)
    size = np.dtype(dtype).itemsize
    layers = max(facts(net).evaluated, 1)
    answer = n1 * n2 * math.prod(left) ** 2 * size
    weight = _weight(net)
    operations = weight * _OPERATIONS[dtype]
    if found is not None:
        each = math.prod(sites) * math.prod(found[0].around)
        entries, memory = pairs * each * layers, 12 * SLICE_PAIRS * size * cores()
        each = 1e-9 * weight * _rate(_SLICES[dtype] / cores(), _DEVICE_SLICES[dtype])
        return Cost(entries, int(entries * operations), memory + answer, entries * each, "slices")
    entries = pairs * _block_entries(net, sites, inputs.x1.shape[-1])
    whole = math.prod(sites) ** 2
    groups = 12 * cores() * max(min(GROUP_BYTES, pairs * whole * size), whole * size)
    kept = min((n1 + (0 if inputs.x2 is None else n2)) * whole * size, KEPT_BYTES)
    memory = groups + kept + 4 * min(pairs * whole, COARSE_ENTRIES) * size
    each = 1e-9 * weight * _rate(_BLOCKS[dtype], _DEVICE_BLOCKS[dtype])
    return Cost(entries, int(entries * operations), memory + answer, entries * each, "blocks")


@once_for_each_network
def _weight(net: Layer) -> float:
    """What the mean activation takes, relu being 1: long formulas are not functions of the angle alone."""
    weights = [
        1.0 if act.angular is not None else 2 + 0.8 * act.cost for act in facts(net).activations
    ]
    return sum(weights) / max(len(weights), 1) or 1.0


@once_for_each_network
def _block_entries(net: Layer, sites: Sites, channels: int) -> int:
    """Pairs of pixels of one pair of inputs, over all layers: fewer behind pools and strides."""
    layers = net.layers if isinstance(net, Serial) else (net,)
    total, left = 0, sites
    for i, layer in enumerate(layers):
        total += facts(layer).evaluated * math.prod(left) ** 2
        left = check_pixels(Serial(*layers[: i + 1]), sites, channels)
    return max(total, math.prod(sites) ** 2)


def _rate(here: float, device: float) -> float:
    """Nanoseconds where the work will run."""
    return here * _speed() if jax.default_backend() == "cpu" else device


@functools.cache
def _speed() -> float:
    """How much slower this machine is than the one of the table."""
    values = np.linspace(1, 2, 10**5)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        np.sqrt(values)
        best = min(best, time.perf_counter() - start)
    return best / _REFERENCE
