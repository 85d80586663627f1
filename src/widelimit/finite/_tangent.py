r"""The structured tangent kernel: a Gram matrix of signals forward times one of signals backward.

A layer $z=c_wWx+c_bb$ has $\partial f/\partial W=c_w\,\delta x^\top$ with $\delta=\partial f/\partial z$, so it adds
$(c_w^2\langle x,x'\rangle+c_b^2)\langle\delta,\delta'\rangle$. No Jacobian of size points × parameters is ever formed.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from widelimit._base.types import Params
from widelimit.layers import Layer

from ._contract import OUTPUTS as OUTPUTS
from ._contract import Kernel, contribution
from ._forward import forward
from ._parameterise import How
from ._tap import Tap, is_tap
from ._values import Signals, as_values

# The signals of one group of weights: its tap, and δ of shape ([repetitions,] outputs, points, *pixels, fan_out),
# whose sizes differ from group to group.
Contribution = tuple[Tap, Float[Array, "..."]]
Contributions = list[Contribution]


def signals(net: Layer, params: Params, x: Signals, how: How) -> Contributions:
    """For each group of weights its tap and the signals δ.

    The outputs of a network whose output has pixels are those of all pixels.
    """
    apply = functools.partial(_outputs, net, params, x, how)
    shapes = jax.eval_shape(lambda: apply(None)[1])
    still = jax.tree.map(lambda t: jnp.zeros(t.z.shape, t.z.dtype), shapes, is_leaf=is_tap)
    y, back, taps = jax.vjp(apply, still, has_aux=True)
    # Points do not interact, so one pull-back for each output serves all of them. One after the
    # other: batched over outputs the products would not be plain matrix products, far slower.
    units = jnp.eye(y.shape[1], dtype=y.dtype)
    pull = lambda unit: back(jnp.broadcast_to(unit[None, :], y.shape))[0]
    alone = lambda: jax.tree.map(lambda leaf: leaf[None], pull(units[0]))
    deltas = alone() if y.shape[1] == 1 else jax.lax.map(pull, units)
    taps = [dataclasses.replace(tap, z=None) for tap in jax.tree.leaves(taps, is_leaf=is_tap)]
    found = zip(taps, jax.tree.leaves(deltas), strict=True)
    return [(tap, jnp.moveaxis(delta, 0, tap.scanned)) for tap, delta in found]


def _outputs(
    net: Layer, params: Params, x: Signals, how: How, shift: PyTree
) -> tuple[Float[Array, "points outputs"], PyTree]:
    y, taps = forward(net, params, x, shift, how)
    y = jnp.asarray(as_values(y).x)
    return y.reshape(y.shape[0], -1), taps


def contract(first: Contributions, second: Contributions, outputs: str) -> Kernel:
    """The kernel of two sets of signals: (n1, n2, k, k), (n1, n2, k) or (n1, n2)."""

    def term(pair: tuple[Contribution, Contribution]) -> Kernel:
        (tap1, delta1), (tap2, delta2) = pair
        if not tap1.scanned:
            return contribution(tap1, delta1, tap2, delta2, outputs)
        # A scanned loop: its repetitions one by one.
        start = jax.eval_shape(lambda p: term(jax.tree.map(lambda leaf: leaf[0], p)), pair)
        add = lambda total, now: (total + term(now), None)
        return jax.lax.scan(add, jnp.zeros(start.shape, start.dtype), pair)[0]

    pairs = [pair for pair in zip(first, second, strict=True) if pair[0][0].trained]
    if pairs:
        return functools.reduce(jnp.add, map(term, pairs))
    nothing = jax.eval_shape(lambda: term((first[0], second[0])))
    return jnp.zeros(nothing.shape, nothing.dtype)


def tangent_kernel(
    net: Layer, params: Params, x1: Signals, x2: Signals | None, how: How, outputs: str
) -> Kernel:
    """The empirical tangent kernel of one network; `x2=None` stands for `x1`."""
    with jax.default_matmul_precision("highest"):  # TF32 would cost four digits
        first = signals(net, params, x1, how)
        return contract(first, first if x2 is None else signals(net, params, x2, how), outputs)
