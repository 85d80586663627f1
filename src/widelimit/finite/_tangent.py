r"""The structured tangent kernel: a Gram matrix of signals forward times one of signals backward.

A layer $z=c_wWx+c_bb$ has $\partial f/\partial W=c_w\,\delta x^\top$ with $\delta=\partial f/\partial z$, so it adds
$(c_w^2\langle x,x'\rangle+c_b^2)\langle\delta,\delta'\rangle$. No Jacobian of size points × parameters is ever formed.
"""

from typing import Any

import jax
import jax.numpy as jnp

from widelimit._base.passes import layer_pass
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._forward import Tap, forward
from ._parameterise import How

OUTPUTS = {"full": "ipc,jqc->pqij", "diagonal": "ipc,iqc->pqi", "trace": "ipc,iqc->pq"}


def _is_tap(node: Any) -> bool:
    return isinstance(node, Tap)


def signals(net: Layer, params: Any, x: Any, how: How) -> list[tuple[Tap, Any]]:
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


def contract(first: Any, second: Any, outputs: str) -> Any:
    """The kernel of two sets of signals: (n1, n2, k, k), (n1, n2, k) or (n1, n2)."""

    def term(pair: Any) -> Any:
        (tap1, delta1), (tap2, delta2) = pair
        c_w, c_b = tap1.tangent
        gram = c_w * (tap1.x @ tap2.x.T) + c_b
        back = _inner(delta1, delta2, outputs)
        return back * gram.reshape(gram.shape + (1,) * (back.ndim - 2))

    total: Any = None
    for pair in zip(first, second, strict=True):
        if pair[0][0].x.ndim == 3:  # a scanned loop: its repetitions one by one
            start = jnp.zeros_like(term(jax.tree.map(lambda leaf: leaf[0], pair)))
            part = jax.lax.scan(lambda sum, now: (sum + term(now), None), start, pair)[0]
        else:
            part = term(pair)
        total = part if total is None else total + part
    return total


def _inner(delta1: Any, delta2: Any, outputs: str) -> Any:
    """Inner products of signals; one plain matrix product where there is one."""
    (k, n1, width), n2 = delta1.shape, delta2.shape[1]
    if outputs == "full":
        flat = delta1.reshape(k * n1, width) @ delta2.reshape(k * n2, width).T
        return flat.reshape(k, n1, k, n2).transpose(1, 3, 0, 2)
    return jnp.einsum(OUTPUTS[outputs], delta1, delta2)


def tangent_kernel(net: Layer, params: Any, x1: Any, x2: Any, how: How, outputs: str) -> Any:
    """The empirical tangent kernel of one network; `x2=None` stands for `x1`."""
    with jax.default_matmul_precision("highest"):  # TF32 would cost four digits
        first = signals(net, params, x1, how)
        return contract(first, first if x2 is None else signals(net, params, x2, how), outputs)


@layer_pass("its read-out is found")
def readout(layer: Layer, taps: Any, factor: Any) -> Any:
    """The taps that end in the output, each with its factor, and the factor of the skip path.

    The second is None where nothing of the layer's input reaches the output unchanged.
    """


@readout.register
def _readout_dense(layer: Dense, taps: Any, factor: Any) -> Any:
    return [(taps, factor)], None


@readout.register
def _readout_phi(layer: Phi, taps: Any, factor: Any) -> Any:
    raise ValueError(
        f"The network's output passes through {layer} after its last Dense, so it is not Gaussian "
        "given the features and has no last-layer kernel. End the network with a Dense()."
    )


@readout.register
def _readout_identity(layer: Identity, taps: Any, factor: Any) -> Any:
    return [], factor


@readout.register
def _readout_scale(layer: Scale, taps: Any, factor: Any) -> Any:
    return [], factor * layer.factor


@readout.register
def _readout_serial(layer: Serial, taps: Any, factor: Any) -> Any:
    return _backwards(zip(layer.layers, taps, strict=True), factor)


@readout.register
def _readout_repeat(layer: Repeat, taps: Any, factor: Any) -> Any:
    scanned = jax.tree.leaves(taps["scan"])
    count = len(scanned[0]) if scanned else 0
    rest = [jax.tree.map(lambda leaf, i=i: leaf[i], taps["scan"]) for i in range(count)]
    return _backwards(((layer.body, tap) for tap in taps["each"] + rest), factor)


def _backwards(parts: Any, factor: Any) -> Any:
    found: list[Any] = []
    for part, tap in reversed(list(parts)):
        new, factor = readout(part, tap, factor)
        found += new
        if factor is None:
            break
    return found, factor


@readout.register
def _readout_residual(layer: Residual, taps: Any, factor: Any) -> Any:
    found, through = readout(layer.body, taps, factor * layer.alpha)
    return found, factor if through is None else factor + through


@readout.register
def _readout_sum(layer: Sum, taps: Any, factor: Any) -> Any:
    parts = [readout(b, tap, factor) for b, tap in zip(layer.branches, taps, strict=True)]
    through = [f for _, f in parts if f is not None]
    return [tap for found, _ in parts for tap in found], sum(through) if through else None


def readout_kernel(net: Layer, params: Any, x1: Any, x2: Any, how: How) -> Any:
    """The covariance of one output over the weights of the last layer, the features held fixed."""
    with jax.default_matmul_precision("highest"):
        first = _features(net, params, x1, how)
        second = first if x2 is None else _features(net, params, x2, how)
        total: Any = 0.0
        for (tap1, factor), (tap2, _) in zip(first, second, strict=True):
            v_w, v_b = tap1.prior
            kernel = v_w * (tap1.x @ tap2.x.T) + v_b
            total = total + jnp.asarray(factor, kernel.dtype) ** 2 * kernel
        return total


def _features(net: Layer, params: Any, x: Any, how: How) -> Any:
    return readout(net, forward(net, params, x, None, how)[1], 1.0)[0]
