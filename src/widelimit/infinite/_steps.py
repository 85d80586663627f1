"""A program for each layer of a network on pixels: none is compiled twice, and no fusion computes a layer again."""

import dataclasses
from typing import Any, TypeVar

import jax

from widelimit._base.compile import lean_lone_jit, light_lone_jit, quick_jit
from widelimit._base.thresholds import WAITED_BYTES
from widelimit.interpret import propagate
from widelimit.layers import (
    AvgPool,
    Conv,
    ConvLocal,
    ConvTranspose,
    GlobalAvgPool,
    GlobalSumPool,
    Layer,
    Phi,
    SumPool,
)

from ._meet import Page, Tape
from ._plan import join

S = TypeVar("S", bound=Any)  # the state of `_images.py`
_SUMS = AvgPool, Conv, ConvLocal, ConvTranspose, GlobalAvgPool, GlobalSumPool, SumPool


def propagated(layer: Layer, state: S, pages: tuple[Page, ...] | None) -> tuple[S, Page]:
    """What a layer makes of a state, and of a tape of its own."""
    tape = None if pages is None else Tape(pages or None, inner=True)
    out = propagate(layer, dataclasses.replace(state, tape=tape))
    return dataclasses.replace(out, tape=None), () if tape is None else (*tape.pages,)


def _joined(form: Any, numbers: Any, state: S, pages: tuple[Page, ...] | None) -> tuple[S, Page]:
    return propagated(join(form, numbers), state, pages)


_step, _light_step, _brief_step = (
    compiled(_joined) for compiled in (lean_lone_jit, light_lone_jit, quick_jit)
)


def stepped(
    layer: Layer, form: Any, numbers: Any, start: S, pages: tuple[Page, ...] | None
) -> tuple[S, Page]:
    """The same by a program for this layer alone."""
    step = _brief_step if start.small else _light_step if isinstance(layer, _SUMS) else _step
    doubt, bare = start.doubt, dataclasses.replace(start, tape=None, many=0)
    if doubt is None or not isinstance(layer, Phi):
        out, page = step(form, numbers, bare, pages)
    else:
        doubt = doubt.activated_apart(start.pairs, layer.activation)
        out, page = step(form, numbers, dataclasses.replace(bare, doubt=None), pages)
        out = dataclasses.replace(out, doubt=doubt)
    if start.pairs.minus.nbytes >= WAITED_BYTES and jax.default_backend() == "cpu":
        jax.block_until_ready((out, page))  # or all layers have memory at once
    return out, page
