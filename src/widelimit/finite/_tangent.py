r"""The structured tangent kernel: a Gram matrix of signals forward times one of signals backward.

A layer $z=c_wWx+c_bb$ has $\partial f/\partial W=c_w\,\delta x^\top$ with $\delta=\partial f/\partial z$, so it adds
$(c_w^2\langle x,x'\rangle+c_b^2)\langle\delta,\delta'\rangle$. No Jacobian of size points × parameters is ever formed.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from widelimit._base.scalars import Scalar
from widelimit._base.types import Params, Self, Tensor
from widelimit.activations import Activation
from widelimit.interpret import State, interpret
from widelimit.layers import Layer

from ._forward import Signals, Tap, forward
from ._parameterise import How

# The signals of one weight matrix: its tap, and δ of shape ([repetitions,] outputs, points, fan_out),
# whose sizes differ from matrix to matrix.
Deltas = Float[Array, "..."]
Contribution = tuple[Tap, Deltas]
Contributions = list[Contribution]
Kernel = Float[Array, "n1 n2 *outputs"]
First = Float[Tensor, "n1 d"]
Second = Float[Tensor, "n2 d"]

OUTPUTS = {"full": "ipc,jqc->pqij", "diagonal": "ipc,iqc->pqi", "trace": "ipc,iqc->pq"}


def _is_tap(node: object) -> bool:
    return isinstance(node, Tap)


def signals(net: Layer, params: Params, x: Signals, how: How) -> Contributions:
    """For each `Dense` its tap and the signals δ, shape ([repetitions,] outputs, points, width)."""
    shapes = jax.eval_shape(lambda: forward(net, params, x, None, how)[1])
    still = jax.tree.map(lambda t: jnp.zeros(t.z.shape, t.z.dtype), shapes, is_leaf=_is_tap)
    y, back, taps = jax.vjp(lambda s: forward(net, params, x, s, how), still, has_aux=True)
    # Points do not interact, so one pull-back for each output serves all of them. One after the
    # other: batched over outputs the products would not be plain matrix products, far slower.
    units = jnp.eye(y.shape[1], dtype=y.dtype)
    pull = lambda unit: back(jnp.broadcast_to(unit[None, :], y.shape))[0]
    if y.shape[1] == 1:
        deltas = jax.tree.map(lambda leaf: leaf[..., None, :, :], pull(units[0]))
    else:
        deltas = jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -3), jax.lax.map(pull, units))
    taps = [tap._replace(z=None) for tap in jax.tree.leaves(taps, is_leaf=_is_tap)]
    return list(zip(taps, jax.tree.leaves(deltas), strict=True))


def contract(first: Contributions, second: Contributions, outputs: str) -> Kernel:
    """The kernel of two sets of signals: (n1, n2, k, k), (n1, n2, k) or (n1, n2)."""

    def term(pair: tuple[Contribution, Contribution]) -> Kernel:
        (tap1, delta1), (tap2, delta2) = pair
        c_w, c_b = tap1.tangent
        gram = c_w * (tap1.x @ tap2.x.T) + c_b
        back = _inner(delta1, delta2, outputs)
        return back * gram.reshape(gram.shape + (1,) * (back.ndim - 2))

    parts = []
    for pair in zip(first, second, strict=True):
        if pair[0][0].x.ndim == 3:  # a scanned loop: its repetitions one by one
            start = jnp.zeros_like(term(jax.tree.map(lambda leaf: leaf[0], pair)))
            parts.append(jax.lax.scan(lambda sum, now: (sum + term(now), None), start, pair)[0])
        else:
            parts.append(term(pair))
    return functools.reduce(jnp.add, parts)


def _inner(delta1: Deltas, delta2: Deltas, outputs: str) -> Kernel:
    """Inner products of signals; one plain matrix product where there is one."""
    (k, n1, width), n2 = delta1.shape, delta2.shape[1]
    if outputs == "full":
        flat = delta1.reshape(k * n1, width) @ delta2.reshape(k * n2, width).T
        return flat.reshape(k, n1, k, n2).transpose(1, 3, 0, 2)
    return jnp.einsum(OUTPUTS[outputs], delta1, delta2)


def tangent_kernel(
    net: Layer, params: Params, x1: First, x2: Second | None, how: How, outputs: str
) -> Kernel:
    """The empirical tangent kernel of one network; `x2=None` stands for `x1`."""
    with jax.default_matmul_precision("highest"):  # TF32 would cost four digits
        first = signals(net, params, x1, how)
        return contract(first, first if x2 is None else signals(net, params, x2, how), outputs)


@dataclasses.dataclass(frozen=True)
class Readout(State):
    """Which of the network's weight matrices the output is a sum of, and with what factors.

    Attributes:
        terms: (number of the matrix in the order of the layers, factor).
        drawn: How many matrices there are so far; all signals of a network share it.
        through: What the signal went through since that is not linear, if anything.
        drawing: Whether a matrix's own scale is still to come; it is part of its tap.
    """

    question: ClassVar[str] = "the last-layer kernel"

    terms: tuple[tuple[int, Scalar], ...]
    drawn: list[None]
    through: str | None = None
    drawing: bool = False

    def weighted(self, width: int | None) -> Self:
        self.drawn.append(None)
        return type(self)(((len(self.drawn) - 1, 1.0),), self.drawn, drawing=True)

    def trained(self) -> Self:
        return type(self)(self.terms, self.drawn, self.through)

    def scaled(self, factor: Scalar) -> Self:
        if self.drawing:
            return self
        terms = tuple((i, own * factor) for i, own in self.terms)
        return type(self)(terms, self.drawn, self.through)

    def biased(self, b_std: Scalar) -> Self:
        return self

    def activated(self, activation: Activation) -> Self:
        return type(self)((), self.drawn, repr(activation.name))

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return type(self)((), self.drawn, "a normalisation")

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self.scaled(skip), *parts]
        terms = tuple(term for state in met for term in state.terms)
        return type(self)(terms, self.drawn, next((s.through for s in met if s.through), None))


def _readout(net: Layer) -> tuple[tuple[int, Scalar], ...]:
    found = interpret(net, Readout((), []))
    if found.through is not None:
        raise ValueError(
            f"The network's output passes through {found.through} after its last Dense, so "
            "it is not Gaussian given the features and has no last-layer kernel. End the network "
            "with a Dense()."
        )
    return found.terms


def _in_order(taps: PyTree) -> list[Tap]:
    """The taps of all weight matrices in the order of the layers, repetitions written out."""
    if isinstance(taps, Tap):
        return [taps]
    if isinstance(taps, dict) and "scan" in taps:
        leaves = jax.tree.leaves(taps["scan"])
        rounds = range(len(leaves[0]) if leaves else 0)
        taps = taps["each"] + [
            jax.tree.map(lambda leaf, i=i: leaf[i], taps["scan"]) for i in rounds
        ]
    return [tap for part in taps for tap in _in_order(part)]


def readout_kernel(
    net: Layer, params: Params, x1: First, x2: Second | None, how: How
) -> Float[Array, "n1 n2"]:
    """The covariance of one output over the weights of the last layer, the features held fixed."""
    with jax.default_matmul_precision("highest"):
        first = _features(net, params, x1, how)
        second = first if x2 is None else _features(net, params, x2, how)
        total = jnp.zeros((), x1.dtype)
        for (tap1, factor), (tap2, _) in zip(first, second, strict=True):
            v_w, v_b = tap1.prior
            kernel = v_w * (tap1.x @ tap2.x.T) + v_b
            total = total + jnp.asarray(factor, kernel.dtype) ** 2 * kernel
        return total


def _features(net: Layer, params: Params, x: Signals, how: How) -> list[tuple[Tap, Scalar]]:
    taps = _in_order(forward(net, params, x, None, how)[1])
    return [(taps[i], factor) for i, factor in _readout(net)]
