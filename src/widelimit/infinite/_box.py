"""Sums over windows of pairs of pixels: arrays of axes (*pixels, first input, second input)."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit.layers import Sites, Window

from ._edges import frame, padded

Array_ = Float[Array, "..."]


def but_last(value: Array_, window: Window, sites: Sites) -> Array_:
    """Sums over a window along all axes but the last, which `last` adds: two halves of what is summed.

    A CPU writes one axis at a time: XLA does not fuse that with what comes before, nor repeat it. What comes next reads
    the taps along the last axis side by side, padding included. A single axis is summed here.
    """
    frames, around = frame(window, sites), window.padding == "circular"
    if around:
        for axis, (_, _, _, front, behind) in enumerate(frames):
            value = padded(value, axis, front, behind, around=True)
    for axis, (k, s, _, front, behind) in enumerate(frames[:-1] or frames):
        size, stride, padding = [1] * value.ndim, [1] * value.ndim, [(0, 0)] * value.ndim
        size[axis], stride[axis] = k, s
        if not around:
            padding[axis] = front, behind
            if axis == 0 and len(frames) > 1:
                padding[len(frames) - 1] = frames[-1][3:]
        zero = jnp.zeros((), value.dtype)
        value = jax.lax.reduce_window(value, zero, jax.lax.add, size, stride, padding)
    return value


def last(value: Array_, window: Window, sites: Sites) -> Array_:
    """Sums over the window, from those along all axes but the last."""
    if len(sites) == 1:
        return value
    axis, (k, s, count, _, _) = len(sites) - 1, frame(window, sites)[-1]
    reads = [jax.lax.slice_in_dim(value, o, o + (count - 1) * s + 1, s, axis) for o in range(k)]
    return sum(reads[1:], reads[0])


def at_once(value: Array_, window: Window, sites: Sites) -> Array_:
    """Sums over the window, for an accelerator: the array is written once, and its taps are read by what comes next.

    A tap reads a pixel in any case, beyond the edge one that does not count: behind a `pad` XLA reads pair by pair.
    Places are computed, since a table of them would be read for each entry.
    """
    value = jax.lax.optimization_barrier(value)
    axes = [
        [_read(n, s, count, o - front, around=window.padding == "circular") for o in range(k)]
        for n, (k, s, count, front, _) in zip(sites, frame(window, sites), strict=True)
    ]
    total = []
    for taps in itertools.product(*axes):
        tap = value.at[jnp.ix_(*(at for at, _ in taps))].get(mode="promise_in_bounds")
        for axis, (_, inside) in enumerate(taps):
            if inside is not None:
                tap = jnp.where(inside.reshape(-1, *(1,) * (tap.ndim - 1 - axis)), tap, 0)
        total.append(tap)
    return sum(total[1:], total[0])


def _read(
    n: int, stride: int, count: int, ahead: int, *, around: bool
) -> tuple[Array, Array | None]:
    """Along one axis of n pixels, which of them a tap reads, and where it reads one at all (None: everywhere)."""
    at = jax.lax.iota(np.int32, count) * stride + ahead
    first, last = ahead, (count - 1) * stride + ahead
    if first >= 0 and last < n:
        return at, None
    if around:
        return jnp.remainder(at, n), None
    return jnp.clip(at, 0, n - 1), (at >= 0) & (at < n)
