"""The structured tangent kernel of many points: one pair of blocks at a time."""

import functools
import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.types import Params
from widelimit.layers import Layer

from ._parameterise import How
from ._tangent import Contributions, contract, signals, tangent_kernel
from ._tap import Tap
from ._values import Signals, as_values

_MEMORY = 2**30  # bytes of signals that are held at once


def kernel_in_blocks(
    net: Layer,
    params: Params,
    x1: Signals,
    x2: Signals | None,
    how: How,
    outputs: str,
) -> Float[Array, "n1 n2 *outputs"]:
    """All at once while the signals of all points fit; else one pair of blocks at a time.

    Args:
        net: The description.
        params: Its weights.
        x1: Points.
        x2: Points; None stands for `x1`.
        how: Width, parameterisation and bias.
        outputs: "full", "diagonal" or "trace".

    Returns:
        The empirical tangent kernel.
    """
    pixels = as_values(x1).x.ndim > 2
    size = block_size_of_pixels(net, params, x1, how) if pixels else block_size(params)
    if _count(x1) <= size and (x2 is None or _count(x2) <= size):
        return _kernel(net, params, x1, x2, how, outputs)
    rows = []
    for a in _blocks(x1, size // 2 or 1):
        first = _signals(net, params, a, how)
        row = [
            _contract(first, _signals(net, params, b, how), outputs)
            for b in _blocks(x1 if x2 is None else x2, size // 2 or 1)
        ]
        rows.append(jnp.concatenate(row, axis=1))
    return jnp.concatenate(rows, axis=0)


def block_size(params: Params) -> int:
    """Points whose signals, forward and back, fit into the memory."""
    leaves = jax.tree.leaves(params)
    outputs = leaves[-1].shape[-1]  # of the last layer
    numbers = sum(leaf.shape[0] + outputs * leaf.shape[1] for leaf in leaves if leaf.ndim == 2)
    return max(1, _MEMORY // (numbers * leaves[0].dtype.itemsize))


def block_size_of_pixels(net: Layer, params: Params, x: Signals, how: How) -> int:
    """The same where signals have pixels: theirs are counted, with what a layer's contraction holds."""
    found = _signals.eval_shape(net, params, _part(x, 0, 1), how)
    held = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(found))
    largest = max(_contracted(tap, delta) for tap, delta in found)
    return max(1, _MEMORY // ((held + largest) * as_values(x).x.dtype.itemsize))


def _contracted(tap: Tap, delta: jax.ShapeDtypeStruct) -> int:
    """Numbers that a layer's contraction holds for one point: Gram matrices, or gradients."""
    *_, channels = tap.x.shape
    pixels = math.prod(tap.x.shape[tap.scanned + 1 : -1])
    outputs, after, width = delta.shape[tap.scanned], math.prod(delta.shape[2:-1]), delta.shape[-1]
    taps = 1 if tap.window is None else tap.window.taps(tap.x.ndim - 2 - tap.scanned)
    grams = pixels**2 + after**2 + outputs * after * width
    return min(grams, taps * channels * (after + outputs * width))


def _count(x: Signals) -> int:
    return as_values(x).x.shape[0]


def _part(x: Signals, start: int, stop: int) -> Signals:
    return jax.tree.map(lambda leaf: leaf[start:stop], x)


def _blocks(x: Signals, size: int) -> list[Signals]:
    return [_part(x, i, i + size) for i in range(0, _count(x), size)]


@functools.partial(jax.jit, static_argnames=("how", "outputs"))
def _kernel(
    net: Layer,
    params: Params,
    x1: Signals,
    x2: Signals | None,
    how: How,
    outputs: str,
) -> Float[Array, "n1 n2 *outputs"]:
    return tangent_kernel(net, params, x1, x2, how, outputs)


@functools.partial(jax.jit, static_argnames="how")
def _signals(net: Layer, params: Params, x: Signals, how: How) -> Contributions:
    with jax.default_matmul_precision("highest"):
        return signals(net, params, x, how)


@functools.partial(jax.jit, static_argnames="outputs")
def _contract(
    first: Contributions, second: Contributions, outputs: str
) -> Float[Array, "n1 n2 *outputs"]:
    with jax.default_matmul_precision("highest"):
        return contract(first, second, outputs)
