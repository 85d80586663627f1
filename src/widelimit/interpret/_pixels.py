r"""What each layer with pixels does, written once (as `_interpret.py` does for the others)."""

from typing import TypeVar

from widelimit.layers import (
    Aggregate,
    Attention,
    AvgPool,
    Concat,
    Conv,
    ConvLocal,
    ConvTranspose,
    Dropout,
    Flatten,
    GlobalAvgPool,
    GlobalSumPool,
    LayerNorm,
    Positions,
    Product,
    Resize,
    SumPool,
)

from ._interpret import interpret, propagate
from ._state import State

S = TypeVar("S", bound=State)


@propagate.register
def propagate_conv(layer: Conv | ConvTranspose, state: S) -> S:
    r"""$z_p=\sigma_w\sum_oW_ox_{p(o)}/\sqrt{Fn}+\sigma_bb$, trained."""
    fresh = state.windowed(layer.reads, layer.width)
    return fresh.scaled(layer.w_std).biased(layer.b_std).trained()


@propagate.register
def propagate_conv_local(layer: ConvLocal, state: S) -> S:
    """The same with weights and biases of their own at each position."""
    fresh = state.windowed(layer.reads, layer.width)
    return fresh.scaled(layer.w_std).biased(layer.b_std).localised().trained()


@propagate.register
def propagate_map(
    layer: AvgPool | SumPool | GlobalAvgPool | GlobalSumPool | Resize | Aggregate, state: S
) -> S:
    r"""$y_p=\sum_aA_{pa}x_a$."""
    return state.mapped(layer.map)


@propagate.register
def propagate_flatten(layer: Flatten, state: S) -> S:
    """Pixels become channels."""
    return state.flattened()


@propagate.register
def propagate_layer_norm(layer: LayerNorm, state: S) -> S:
    r"""$(z-\mathrm{mean})/\sqrt{\mathrm{variance}+\epsilon}$."""
    return state.centred(layer.over).normalised(layer.over, layer.eps)


@propagate.register
def propagate_dropout(layer: Dropout, state: S) -> S:
    """Entries are dropped, for each input its own."""
    return state.dropped(layer.keep)


@propagate.register
def propagate_positions(layer: Positions, state: S) -> S:
    r"""$x_p+\sigma_pE_p$, trained."""
    return state.positioned(layer.std, layer.decay)


@propagate.register
def propagate_attention(layer: Attention, state: S) -> S:
    r"""Values, mixed by attention weights, then output weights; all trained."""
    seen = state if layer.positions is None else interpret(layer.positions, state)
    source = seen if layer.positions is not None and layer.positions.in_values else state
    values = source.weighted(layer.value_channels).scaled(layer.v_std).trained()
    mixed = values.attended(seen, layer)
    return mixed.weighted(layer.width).scaled(layer.o_std).biased(layer.b_std).trained()


@propagate.register
def propagate_concat(layer: Concat, state: S) -> S:
    """Channels side by side."""
    parts = [interpret(branch, state.branched()) for branch in layer.branches]
    return state.concatenated(parts, layer.proportions)


@propagate.register
def propagate_product(layer: Product, state: S) -> S:
    """Entries multiplied."""
    return state.multiplied([interpret(branch, state.branched()) for branch in layer.branches])
