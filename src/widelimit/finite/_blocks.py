"""The structured tangent kernel of many points: one pair of blocks at a time."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.types import Params, Tensor
from widelimit.layers import Layer

from ._forward import Tap
from ._parameterise import How
from ._tangent import contract, signals, tangent_kernel

_MEMORY = 2**30  # bytes of signals that are held at once

Signals = list[tuple[Tap, Float[Array, "..."]]]


def kernel_in_blocks(
    net: Layer,
    params: Params,
    x1: Float[Tensor, "n1 d"],
    x2: Float[Tensor, "n2 d"] | None,
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
    size = block_size(params)
    if len(x1) <= size and (x2 is None or len(x2) <= size):
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


def _blocks(x: Float[Tensor, "n d"], size: int) -> list[Tensor]:
    return [x[i : i + size] for i in range(0, len(x), size)]


@functools.partial(jax.jit, static_argnames=("how", "outputs"))
def _kernel(
    net: Layer,
    params: Params,
    x1: Float[Tensor, "n1 d"],
    x2: Float[Tensor, "n2 d"] | None,
    how: How,
    outputs: str,
) -> Float[Array, "n1 n2 *outputs"]:
    return tangent_kernel(net, params, x1, x2, how, outputs)


@functools.partial(jax.jit, static_argnames="how")
def _signals(net: Layer, params: Params, x: Float[Tensor, "n d"], how: How) -> Signals:
    with jax.default_matmul_precision("highest"):
        return signals(net, params, x, how)


@functools.partial(jax.jit, static_argnames="outputs")
def _contract(first: Signals, second: Signals, outputs: str) -> Float[Array, "n1 n2 *outputs"]:
    with jax.default_matmul_precision("highest"):
        return contract(first, second, outputs)
