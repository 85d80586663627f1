"""The pass that draws the weights of a network whose widths have been inferred."""

from types import NotImplementedType

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import Scalar, concrete
from widelimit._base.types import Params
from widelimit.interpret import Visit
from widelimit.layers import Dense, Layer, Repeat, Residual, Serial, Sum

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
    fan_in, width = int(visit.before.channels), int(visit.after.channels)
    scheme = how.scheme
    w_spread, b_spread = scheme.spreads(w_std, b_std, fan_in, width)
    key_w, key_b = jax.random.split(key)
    params = {"w": scheme.draw(key_w, (fan_in, width), dtype) * cast(w_spread, dtype)}
    described = how.scheme.bias or concrete(b_std) != 0.0
    if described if how.bias is None else how.bias:
        params["b"] = scheme.draw(key_b, (width,), dtype) * cast(b_spread, dtype)
    return params


@draw.register
def draw_residual(
    layer: Residual, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How
) -> Params:
    """Those of its body."""
    return draw(layer.body, visit.inner[0], key, dtype, how)
