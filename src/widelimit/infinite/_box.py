"""Sums over windows of pairs of pixels: arrays of axes (*pixels, first input, second input)."""

import itertools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit.layers import Sites, Window

from ._edges import frame, padded

Array_ = Float[Array, "..."]


def box(value: Array_, window: Window, sites: Sites) -> Array_:
    """Window sums, one axis at a time: XLA does not fuse them with what comes before, nor repeat it."""
    around = window.padding == "circular"
    for axis, (k, s, _, front, behind) in enumerate(frame(window, sites)):
        size, stride = [1] * value.ndim, [1] * value.ndim
        size[axis], stride[axis] = k, s
        padding = [(0, 0)] * value.ndim
        if around:
            value = padded(value, axis, front, behind, around=True)
        else:
            padding[axis] = (front, behind)
        zero = jnp.zeros((), value.dtype)
        value = jax.lax.reduce_window(value, zero, jax.lax.add, size, stride, padding)
    return value


def box_at_once(value: Array_, window: Window, sites: Sites) -> Array_:
    """The same for an accelerator: what is summed is written once, and its taps are read by what comes next."""
    value = jax.lax.optimization_barrier(value)
    frames = frame(window, sites)
    for axis, (_, _, _, front, behind) in enumerate(frames):
        value = padded(value, axis, front, behind, around=window.padding == "circular")
    taps = [
        value[
            tuple(
                slice(o, o + (n - 1) * s + 1, s)
                for o, (_, s, n, _, _) in zip(offset, frames, strict=True)
            )
        ]
        for offset in itertools.product(*(range(k) for k, *_ in frames))
    ]
    return sum(taps[1:], taps[0])
