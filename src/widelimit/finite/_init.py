"""The pass that draws the weights of a network whose widths have been inferred."""

import math
from types import NotImplementedType

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import Scalar, concrete
from widelimit._base.types import Params
from widelimit.interpret import Visit
from widelimit.layers import Dense, Frozen, Layer, Repeat, Residual, Serial, Sum

from ._parameterise import How, cast


def _draw_inside(
    layer: Layer, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How
) -> Params | NotImplementedType:
    """A list for a layer that has others inside it, nothing for one without weights."""
    if visit.inner:
        return draw_parts(layer, visit, key, dtype, how)
    return {} if visit.after.met == visit.before.met else NotImplemented


@layer_pass("its weights are drawn", otherwise=_draw_inside)
def draw(layer: Layer, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How):
    """The parameters of a layer, shaped like the description.

    `visit.before.channels` and `visit.after.channels` are the widths before and behind it. A rule is
    needed by layers with weights of their own only.
    """


@draw.register(Serial)
@draw.register(Repeat)
@draw.register(Sum)
def draw_parts(
    layer: Layer, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How
) -> list[Params]:
    """Those of each part, repetitions written out."""
    keys = [jax.random.fold_in(key, i) for i in range(len(visit.inner))]
    return [draw(v.layer, v, k, dtype, how) for v, k in zip(visit.inner, keys, strict=True)]


@draw.register
def draw_dense(layer: Dense, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How) -> Params:
    """A matrix, and a bias where there is one."""
    return draw_weights(visit, key, dtype, how, w_std=layer.w_std, b_std=layer.b_std)


def draw_weights(
    visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How, *, w_std: Scalar, b_std: Scalar
) -> dict[str, Float[Array, "..."]]:
    """A matrix and a bias of these standard deviations, in the chosen parameterisation."""
    sizes = int(visit.before.channels), int(visit.after.channels)
    return draw_matrix(key, sizes, dtype, how, w_std=w_std, b_std=b_std)


def draw_matrix(
    key: PRNGKeyArray,
    sizes: tuple[int, int],
    dtype: np.dtype,
    how: How,
    *,
    w_std: Scalar,
    b_std: Scalar,
    window: tuple[int, ...] = (),
    pixels: tuple[int, ...] = (),
) -> dict[str, Float[Array, "..."]]:
    """Weights of shape (*pixels, *window, fan_in, fan_out), and a bias for each pixel and output.

    Args:
        key: The randomness.
        sizes: The channels that are read and made.
        dtype: Of the weights.
        how: The parameterisation; whether there is a bias.
        w_std: The description's scale of the weights.
        b_std: That of the bias.
        window: The taps along each axis, each with a matrix.
        pixels: The positions, where each has weights of its own.

    Returns:
        The parameters.
    """
    scheme, taps, (_, width) = how.scheme, math.prod(window), sizes
    w_spread, b_spread = scheme.spreads(w_std, b_std, taps * sizes[0], taps * width)
    key_w, key_b = jax.random.split(key)
    shape = (*pixels, *window, *sizes)
    params = {"w": scheme.draw(key_w, shape, dtype) * cast(w_spread, dtype)}
    described = scheme.bias or concrete(b_std) != 0.0
    if described if how.bias is None else how.bias:
        params["b"] = scheme.draw(key_b, (*pixels, width), dtype) * cast(b_spread, dtype)
    return params


@draw.register
def draw_residual(
    layer: Residual, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How
) -> Params:
    """Those of its body."""
    return draw(layer.body, visit.inner[0], key, dtype, how)


@draw.register
def draw_frozen(
    layer: Frozen, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How
) -> Params:
    """Those of its body, by a name that says that they are not trained."""
    return {"frozen": draw(layer.body, visit.inner[0], key, dtype, how)}
