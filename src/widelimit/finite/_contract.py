r"""What one layer's weights add to the tangent kernel, from signals forward and back.

A layer $z_p=c_w\sum_oW_ox_{p(o)}+c_bb$, one matrix for all pixels, has
$\partial f/\partial W_o=c_w\sum_p\delta_px_{p(o)}^\top$ and adds
$\sum_{p,r}(c_w^2\sum_o\langle x_{p(o)},x'_{r(o)}\rangle+c_b^2)\langle\delta_p,\delta'_r\rangle$:
a Gram matrix of patches, which is a sum along diagonals of one of pixels, times one of signals back. Where
pixels are so many that this costs more than the gradients of the one layer, those are formed and multiplied instead.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.types import Tensor
from widelimit.layers import Sites, Window

from ._convolve import patches
from ._tap import Tap

# δ of one layer: shape (outputs, points, *pixels, fan_out).
Deltas = Float[Array, "outputs _ ... fan_out"]
Pixels = Float[Array, "_ _ channels"]
Flat = Float[Array, "outputs _ _ fan_out"]
Kernel = Float[Array, "n1 n2 *outputs"]

OUTPUTS = {"full": "ipc,jqc->pqij", "diagonal": "ipc,iqc->pqi", "trace": "ipc,iqc->pq"}
_ROWS = {"full": "inrw,jnrw->nij", "diagonal": "inrw,inrw->ni", "trace": "inrw,inrw->n"}
_LOCAL = {"full": "ipw,jnpw,np->nij", "diagonal": "ipw,inpw,np->ni", "trace": "ipw,inpw,np->n"}


def contribution(tap1: Tap, delta1: Deltas, tap2: Tap, delta2: Deltas, outputs: str) -> Kernel:
    """The part of the kernel that comes from one layer's weights."""
    c_w, c_b = tap1.tangent
    if tap1.x.ndim == 2:
        gram = c_w * (tap1.x @ tap2.x.T) + c_b
        back = _inner(delta1, delta2, outputs)
        return back * gram.reshape(gram.shape + (1,) * (back.ndim - 2))
    flat1, flat2 = _flat(delta1), _flat(delta2)
    if tap1.local:
        return _by_positions(tap1, flat1, tap2, flat2, outputs)
    if grams_are_cheaper(tap1, flat1, tap2):
        return _by_grams(tap1, flat1, tap2, flat2, outputs)
    own1, bias1 = _gradients(tap1, flat1)
    own2, bias2 = (own1, bias1) if tap2 is tap1 else _gradients(tap2, flat2)
    return c_w * _inner(own1, own2, outputs) + c_b * _inner(bias1, bias2, outputs)


def grams_are_cheaper(tap1: Tap, delta1: Flat, tap2: Tap) -> bool:
    """Compare the multiplications of both ways."""
    n1, n2, channels = tap1.x.shape[0], tap2.x.shape[0], tap1.x.shape[-1]
    outputs, _, after, width = delta1.shape
    before = math.prod(tap1.x.shape[1:-1])
    taps = 1 if tap1.window is None else tap1.window.taps(tap1.x.ndim - 2)
    grams = n1 * n2 * (before**2 * channels + taps * after**2 + outputs * after**2 * width)
    size = taps * channels * width * outputs
    return grams <= (n1 + n2) * after * size + n1 * n2 * size * outputs


def _flat(delta: Deltas) -> Flat:
    return delta.reshape(*delta.shape[:2], -1, delta.shape[-1])


def _pixels(x: Float[Tensor, "points *pixels channels"]) -> Pixels:
    return jnp.asarray(x).reshape(x.shape[0], -1, x.shape[-1])


def _inner(
    delta1: Float[Array, "outputs n1 _"], delta2: Float[Array, "outputs n2 _"], outputs: str
) -> Kernel:
    """Inner products of signals; one plain matrix product where there is one."""
    (k, n1, width), n2 = delta1.shape, delta2.shape[1]
    if outputs == "full":
        flat = delta1.reshape(k * n1, width) @ delta2.reshape(k * n2, width).T
        return flat.reshape(k, n1, k, n2).transpose(1, 3, 0, 2)
    return jnp.einsum(OUTPUTS[outputs], delta1, delta2)


def _by_grams(tap1: Tap, delta1: Flat, tap2: Tap, delta2: Flat, outputs: str) -> Kernel:
    """One image of the first set at a time, whose Gram matrices with all others are held."""
    c_w, c_b = tap1.tangent
    second = _pixels(tap2.x)

    def row(now: tuple[Array, Array]) -> Array:
        x, delta = now
        gram = c_w * _patch_grams(x, second, tap1) + c_b
        mixed = jnp.einsum("ipw,npr->inrw", delta, gram)
        return jnp.einsum(_ROWS[outputs], mixed, delta2)

    return jax.lax.map(row, (_pixels(tap1.x), jnp.moveaxis(delta1, 1, 0)))


def _patch_grams(
    x: Float[Array, "pixels channels"], second: Pixels, tap: Tap
) -> Float[Array, "n2 out1 out2"]:
    """Inner products of what the window reads in one image and in others."""
    gram = jnp.einsum("ac,nbc->nab", x, second)
    if tap.window is None:
        return gram
    return window_sums(gram, tap.window, tuple(tap.x.shape[1:-1]))


def window_sums(
    gram: Float[Array, "n2 pixels pixels"], window: Window, sites: Sites
) -> Float[Array, "n2 out out"]:
    r"""$\sum_oG(p(o),r(o))$: the same tap on both sides, one axis after another."""
    axes = len(sites)
    found = gram.reshape(-1, *sites, *sites)
    for axis, table in enumerate(window.tables(sites)):
        places = (1 + axis, 1 + axes + axis)
        if (table < 0).any():  # padding reads the zero that is put at the end
            pads = [(0, 1) if a in places else (0, 0) for a in range(found.ndim)]
            found = jnp.pad(found, pads)
        found = _along_diagonal(found, np.where(table < 0, sites[axis], table), *places)
    return found.reshape(gram.shape[0], *(math.prod(window.out(sites)),) * 2)


def _along_diagonal(x: Array, table: np.ndarray, first: int, second: int) -> Array:
    take = lambda taps: jnp.take(jnp.take(x, taps, axis=first), taps, axis=second)
    if table.shape[1] <= 8:
        return sum((take(table[:, o]) for o in range(1, table.shape[1])), take(table[:, 0]))
    add = lambda total, taps: (total + take(taps), None)
    return jax.lax.scan(add, take(table[:, 0]), jnp.asarray(table.T[1:]))[0]


def _by_positions(tap1: Tap, delta1: Flat, tap2: Tap, delta2: Flat, outputs: str) -> Kernel:
    """Weights of each pixel's own: equal pixels only."""
    c_w, c_b = tap1.tangent
    one, two = (_pixels(patches(tap.x, tap.window)) for tap in (tap1, tap2))

    def row(now: tuple[Array, Array]) -> Array:
        x, delta = now
        gram = c_w * jnp.einsum("pc,npc->np", x, two) + c_b
        return jnp.einsum(_LOCAL[outputs], delta, delta2, gram)

    return jax.lax.map(row, (one, jnp.moveaxis(delta1, 1, 0)))


def _gradients(
    tap: Tap, delta: Flat
) -> tuple[Float[Array, "outputs points weights"], Float[Array, "outputs points fan_out"]]:
    """The gradients of one layer's weights and bias, without their factors."""
    read = _pixels(patches(tap.x, tap.window))
    weights = jnp.einsum("inpw,npf->infw", delta, read)
    return weights.reshape(*delta.shape[:2], -1), delta.sum(axis=2)
