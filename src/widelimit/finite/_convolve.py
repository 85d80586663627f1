"""Weights and outputs of convolutions."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from widelimit._base.thresholds import MOST_TAPS, PATCH_ENTRIES
from widelimit._base.types import Params, Tensor
from widelimit.interpret import Visit
from widelimit.layers import Conv, ConvLocal, ConvTranspose, Sites, Window, flat_table

from ._forward import DRAW_AGAIN, Outputs, Scales, expect_fit, forward, named, tapped
from ._init import draw, draw_matrix
from ._parameterise import How
from ._values import Numbers, Signals, as_values, slid

_LAYOUTS = {1: ("NWC", "WIO", "NWC"), 2: ("NHWC", "HWIO", "NHWC"), 3: ("NDHWC", "DHWIO", "NDHWC")}


@draw.register(Conv)
@draw.register(ConvTranspose)
@draw.register(ConvLocal)
def draw_conv(
    layer: Conv | ConvTranspose | ConvLocal,
    visit: Visit,
    key: PRNGKeyArray,
    dtype: np.dtype,
    how: How,
) -> Params:
    """A matrix for each tap of the window; those of `ConvLocal` for each pixel."""
    local = isinstance(layer, ConvLocal)
    return draw_matrix(
        key,
        (int(visit.before.channels), int(visit.after.channels)),
        dtype,
        how,
        w_std=layer.w_std,
        b_std=layer.b_std,
        window=layer.reads.extents(len(visit.before.sites)),
        pixels=visit.after.sites if local else (),
    )


@forward.register(Conv)
@forward.register(ConvTranspose)
@forward.register(ConvLocal)
def forward_conv(
    layer: Conv | ConvTranspose | ConvLocal, params: Params, x: Signals, shift: PyTree, how: How
) -> Outputs:
    r"""$z_p=c_w\sum_oW_ox_{p(o)}+c_bb$."""
    values, w, window = as_values(x), params["w"], layer.reads
    local = isinstance(layer, ConvLocal)
    _expect_pixels(layer, values.sites, w.ndim - 2)
    *_, fan_in, fan_out = w.shape
    expect_fit(layer, values, fan_in)
    product = _locally(layer, values.x, w) if local else convolve(values.x, w, window)
    taps = window.taps(len(values.sites))
    scales = Scales(how, layer.w_std, layer.b_std, taps * fan_in, taps * fan_out)
    z, tap = scales.finish(values.x, product, params.get("b"), shift, window=window, local=local)
    return tapped(slid(values, z, window), tap)


def _expect_pixels(layer: Conv | ConvTranspose | ConvLocal, sites: Sites, axes: int) -> None:
    if isinstance(layer, ConvLocal):
        axes = axes // 2
    if len(sites) != axes:
        raise ValueError(
            f"{named(layer)} has weights for inputs with {axes} spatial axes, but is given {len(sites)}. Give it "
            f"inputs of shape (n, *spatial, channels). {DRAW_AGAIN}"
        )
    why = layer.reads.refuse(sites)
    if why is not None:
        raise ValueError(f"{named(layer)} cannot be applied: {why}")


def convolve(
    x: Numbers, w: Float[Tensor, "*window fan_in fan_out"], window: Window
) -> Float[Array, "points *out fan_out"]:
    """The sum over the window's taps, without factor and bias."""
    weights = jnp.asarray(w)
    if window.transposed and window.padding == "circular":
        flat = weights.reshape(-1, w.shape[-1])
        return jnp.matmul(patches(x, window), flat, precision="highest")
    x, steps, spread, pads, out = _laid_out(x, window)
    taps = window.taps(len(steps))
    if jax.default_backend() != "cpu" or taps > MOST_TAPS:
        return jax.lax.conv_general_dilated(
            jnp.asarray(x),
            weights,
            steps,
            pads,
            lhs_dilation=spread,
            dimension_numbers=_LAYOUTS[len(steps)],
            precision="highest",
        )
    # On the host XLA's own convolution is some forty times slower inside of loops (training, samples).
    edges = [(front, behind, s - 1) for (front, behind), s in zip(pads, spread, strict=True)]
    wide = jax.lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0), *edges, (0, 0, 0)])
    read = [
        _strided(wide, place, out, steps)
        for place in itertools.product(*map(range, window.extents(len(steps))))
    ]
    if taps * x.size <= PATCH_ENTRIES:
        both = jnp.concatenate(read, axis=-1), weights.reshape(-1, w.shape[-1])
        return jnp.matmul(*both, precision="highest")
    each = zip(read, weights.reshape(taps, *w.shape[-2:]), strict=True)
    return functools.reduce(jnp.add, (jnp.matmul(*pair, precision="highest") for pair in each))


def _laid_out(
    x: Numbers, window: Window
) -> tuple[Numbers, Sites, Sites, list[tuple[int, int]], Sites]:
    """What is convolved: the signal, wound around where it is circular; strides, spread, zeros, output."""
    axes = x.ndim - 2
    tables, steps, spread = window.tables(tuple(x.shape[1:-1])), window.steps(axes), (1,) * axes
    if window.transposed:
        steps, spread = spread, steps
    pads = []
    for axis, table in enumerate(tables):
        n, (count, k) = x.shape[1 + axis], table.shape
        reach = (count - 1) * steps[axis] + k
        if window.padding == "circular":
            x = jnp.take(x, (table[0, 0] + np.arange(reach)) % n, axis=1 + axis)
            pads.append((0, 0))
            continue
        p, o = (int(i) for i in np.argwhere(table >= 0)[0])  # any tap that reads a pixel tells
        front = p * steps[axis] + o - int(table[p, o]) * spread[axis]
        behind = reach - front - ((n - 1) * spread[axis] + 1)
        pads.append((front, behind if window.transposed else max(behind, 0)))
    return x, steps, spread, pads, tuple(len(table) for table in tables)


def _strided(x: Numbers, place: Sites, out: Sites, steps: Sites) -> Numbers:
    """What one tap reads at all output positions."""
    limit = [p + (count - 1) * s + 1 for p, count, s in zip(place, out, steps, strict=True)]
    n, channels = x.shape[0], x.shape[-1]
    return jax.lax.slice(x, (0, *place, 0), (n, *limit, channels), (1, *steps, 1))


def patches(x: Numbers, window: Window | None) -> Float[Array, "points *out patch"]:
    """What each output position reads: all taps' channels, 0 for padding."""
    if window is None:
        return jnp.asarray(x)
    sites = tuple(x.shape[1:-1])
    table = flat_table(window.tables(sites), sites)
    flat = x.reshape(x.shape[0], math.prod(sites), x.shape[-1])
    found = jnp.take(flat, np.maximum(table, 0), axis=1)
    found = jnp.where(jnp.asarray(table >= 0)[None, :, :, None], found, jnp.zeros((), x.dtype))
    return found.reshape(x.shape[0], *window.out(sites), -1)


def _locally(
    layer: ConvLocal, x: Numbers, w: Float[Tensor, "..."]
) -> Float[Array, "points *out fan_out"]:
    """A matrix for each position."""
    read = patches(x, layer.reads)
    out, width = tuple(read.shape[1:-1]), w.shape[-1]
    if tuple(w.shape[: len(out)]) != out:
        raise ValueError(
            f"{named(layer)} has weights for {w.shape[: len(out)]} positions, but is given an input with {out}. "
            f"{DRAW_AGAIN}"
        )
    pixels = math.prod(out)
    flat = read.reshape(read.shape[0], pixels, -1)
    product = jnp.einsum(
        "npf,pfw->npw", flat, jnp.asarray(w).reshape(pixels, -1, width), precision="highest"
    )
    return product.reshape(read.shape[0], *out, width)
