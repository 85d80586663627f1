"""The pass that draws the weights; widths flow through the description as it goes."""

from typing import Any

import jax

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import concrete
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._parameterise import How, cast


@layer_pass("one decides whether it sets the width")
def sets_width(layer: Layer) -> Any:
    """Whether the layer chooses the width of its output, rather than keeping that of its input."""


@sets_width.register
def _sets_dense(layer: Dense) -> bool:
    return True


@sets_width.register(Phi)
@sets_width.register(Identity)
@sets_width.register(Scale)
@sets_width.register(Residual)
def _sets_never(layer: Layer) -> bool:
    return False


@sets_width.register
def _sets_serial(layer: Serial) -> bool:
    return any(map(sets_width, layer.layers))


@sets_width.register
def _sets_repeat(layer: Repeat) -> bool:
    return layer.times > 0 and sets_width(layer.body)


@sets_width.register
def _sets_sum(layer: Sum) -> bool:
    return all(map(sets_width, layer.branches))


@layer_pass("one reads the width that it states")
def stated_width(layer: Layer) -> Any:
    """The width of the output where the description states it, else None."""


@stated_width.register
def _stated_dense(layer: Dense) -> int | None:
    return layer.width


@stated_width.register(Phi)
@stated_width.register(Identity)
@stated_width.register(Scale)
@stated_width.register(Residual)
def _stated_never(layer: Layer) -> None:
    return None


@stated_width.register
def _stated_serial(layer: Serial) -> int | None:
    return next((stated_width(p) for p in reversed(layer.layers) if sets_width(p)), None)


@stated_width.register
def _stated_repeat(layer: Repeat) -> int | None:
    return stated_width(layer.body)


@stated_width.register
def _stated_sum(layer: Sum) -> int | None:
    return next((w for w in map(stated_width, layer.branches) if w is not None), None)


@layer_pass("its weights are drawn")
def draw(layer: Layer, key: Any, fan_in: int, out: int | None, dtype: Any, how: How) -> Any:
    """The parameters (a list or dict) and the width of the output; `out` asks for that width."""


@draw.register
def _draw_dense(
    layer: Dense, key: Any, fan_in: int, out: int | None, dtype: Any, how: How
) -> tuple[Any, int]:
    if layer.width is not None and out is not None and layer.width != out:
        raise ValueError(
            f"{layer} states the width {layer.width}, but its place asks for {out}: the last layer "
            "has the width of the output, and a residual branch that of its skip path. "
            "Leave the width out, or make the two agree."
        )
    width = layer.width or out or how.width
    scheme = how.scheme
    w_spread, b_spread = scheme.spreads(layer.w_std, layer.b_std, fan_in, width)
    key_w, key_b = jax.random.split(key)
    params = {"w": scheme.draw(key_w, (fan_in, width), dtype) * cast(w_spread, dtype)}
    described = how.scheme.bias or concrete(layer.b_std) != 0.0
    if described if how.bias is None else how.bias:
        params["b"] = scheme.draw(key_b, (width,), dtype) * cast(b_spread, dtype)
    return params, width


@draw.register(Phi)
@draw.register(Identity)
@draw.register(Scale)
def _draw_nothing(
    layer: Layer, key: Any, fan_in: int, out: int | None, dtype: Any, how: How
) -> tuple[Any, int]:
    return {}, fan_in


@draw.register
def _draw_serial(
    layer: Serial, key: Any, fan_in: int, out: int | None, dtype: Any, how: How
) -> tuple[Any, int]:
    last = max((i for i, part in enumerate(layer.layers) if sets_width(part)), default=-1)
    params = []
    for i, part in enumerate(layer.layers):
        wanted = out if i == last else None
        p, fan_in = draw(part, jax.random.fold_in(key, i), fan_in, wanted, dtype, how)
        params.append(p)
    return params, fan_in


@draw.register
def _draw_repeat(
    layer: Repeat, key: Any, fan_in: int, out: int | None, dtype: Any, how: How
) -> tuple[Any, int]:
    params = []
    for i in range(layer.times):
        wanted = out if i == layer.times - 1 else None
        p, fan_in = draw(layer.body, jax.random.fold_in(key, i), fan_in, wanted, dtype, how)
        params.append(p)
    return params, fan_in


@draw.register
def _draw_residual(
    layer: Residual, key: Any, fan_in: int, out: int | None, dtype: Any, how: How
) -> tuple[Any, int]:
    params, width = draw(layer.body, key, fan_in, fan_in, dtype, how)
    _check_equal({fan_in, width}, layer)
    return params, width


@draw.register
def _draw_sum(
    layer: Sum, key: Any, fan_in: int, out: int | None, dtype: Any, how: How
) -> tuple[Any, int]:
    wanted = out if sets_width(layer) else fan_in
    drawn = [
        draw(branch, jax.random.fold_in(key, i), fan_in, wanted, dtype, how)
        for i, branch in enumerate(layer.branches)
    ]
    _check_equal({width for _, width in drawn}, layer)
    return [params for params, _ in drawn], drawn[0][1]


def _check_equal(widths: set[int], layer: Layer) -> None:
    if len(widths) > 1:
        raise ValueError(
            f"The paths of {layer} have widths {sorted(widths)}; they are added, so they must be "
            "equal. End each branch with a Dense() of the width of the skip path."
        )
