"""The pass that applies the network, and keeps what its kernels are made of."""

import dataclasses
from collections.abc import Callable, Sequence
from types import NotImplementedType
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, PyTree

from widelimit._base.arrays import is_transformed
from widelimit._base.passes import layer_pass
from widelimit._base.scalars import Scalar
from widelimit._base.types import Params, Tensor
from widelimit.interpret import interpret
from widelimit.layers import (
    Concat,
    Dense,
    Frozen,
    Layer,
    Product,
    Repeat,
    Residual,
    Serial,
    Sum,
)

from ._parameterise import How, cast
from ._tap import Tap, is_tap
from ._values import Numbers, Signals, Values, as_values, handed

Outputs = tuple[Signals, PyTree]  # what a layer gives, and its taps

DRAW_AGAIN = (
    "Draw the weights for inputs of this shape: init(key, input_dim=x.shape[1:])."  # ends an error
)
_UNROLL = 16  # repetitions up to which a loop is written out; beyond, XLA's compile time would grow


def _apply_values(
    layer: Layer, params: Params, x: Signals, shift: PyTree, how: How
) -> Outputs | NotImplementedType:
    """A layer without weights does to numbers what it does to every signal."""
    try:
        return handed(interpret(layer, as_values(x))), {}
    except NotImplementedError:
        return NotImplemented


@layer_pass("it is applied", otherwise=_apply_values)
def forward(layer: Layer, params: Params, x: Signals, shift: PyTree, how: How):
    """The outputs, and a tree with a `Tap` for each group of weights.

    `shift`, a tree of the same shape, is added to what each of them makes; the derivative in it
    at zero is the back-propagated signal. None adds nothing. A rule is needed by layers with weights
    of their own only.
    """


@forward.register
def forward_dense(layer: Dense, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    r"""$c_wWx+c_bb$, at each pixel where there are any."""
    return apply_weights(params, x, shift, how, w_std=layer.w_std, b_std=layer.b_std, layer=layer)


def apply_weights(
    params: Params,
    x: Signals,
    shift: Numbers | None,
    how: How,
    *,
    w_std: Scalar,
    b_std: Scalar,
    layer: Layer | None = None,
) -> tuple[Signals, Tap]:
    r"""$c_wWx+c_bb$ with weights from `draw_weights`, and their tap."""
    w, values = params["w"], as_values(x)
    fan_in, fan_out = w.shape
    expect_fit(layer, values, fan_in)
    # The default of GPUs, TF32, keeps three digits: too few to see a network follow its limit.
    product = jnp.matmul(values.x, w, precision="highest")
    scales = Scales(how, w_std, b_std, fan_in, fan_out)
    z, tap = scales.finish(values.x, product, params.get("b"), shift)
    return tapped(values.now(z), tap)


def tapped(values: Values, tap: Tap) -> tuple[Signals, Tap]:
    """What a layer with weights hands on, and its tap, which keeps what stands beside the signal."""
    return handed(values), dataclasses.replace(tap, mask=values.mask, graph=values.graph)


def expect_fit(layer: Layer | None, values: Values, channels: int) -> None:
    """Refuse a signal for which the weights were not drawn."""
    given = values.x.shape[-1]
    if given != channels:
        name = "A layer" if layer is None else named(layer)
        raise ValueError(
            f"{name} has weights for {channels} channels, but is given {given}. {DRAW_AGAIN}"
        )


def named(layer: Layer) -> str:
    """The layer in an error: numbers that are being traced are left out."""
    traced = {
        field.name: field.default
        for field in dataclasses.fields(layer)
        if field.default is not dataclasses.MISSING and is_transformed(getattr(layer, field.name))
    }
    return repr(dataclasses.replace(layer, **traced))


class Scales:
    """Where the scale of one layer lives, in the dtype of its signal."""

    def __init__(self, how: How, w_std: Scalar, b_std: Scalar, fan_in: int, fan_out: int):
        self.how, self.numbers, self.fans = how, (w_std, b_std), (fan_in, fan_out)

    def finish(
        self,
        x: Numbers,
        product: Numbers,
        bias: Float[Tensor, "..."] | None,
        shift: Numbers | None,
        **reads: Any,
    ) -> tuple[Numbers, Tap]:
        """The product of weights and inputs with its factor, bias and shift; and the tap."""
        w_std, b_std = (cast(number, product.dtype) for number in self.numbers)
        fan_in, fan_out = self.fans
        c_w, c_b = self.how.scheme.factors(w_std, b_std, fan_in)
        s_w, s_b = self.how.scheme.spreads(w_std, b_std, fan_in, fan_out)
        z = _scaled(product, c_w)
        if bias is None:
            c_b = 0.0
        else:
            z = z + _scaled(bias, c_b).reshape(*(1,) * (z.ndim - bias.ndim), *bias.shape)
        if shift is not None:
            z = z + shift
        return z, Tap(x, z, (c_w**2, c_b**2), ((c_w * s_w) ** 2, (c_b * s_b) ** 2), **reads)


def _scaled(z: Float[Tensor, "..."], c: Scalar) -> Float[Tensor, "..."]:
    return z if isinstance(c, float) and c == 1.0 else c * z


def _part(shift: PyTree, i: int) -> PyTree:
    return None if shift is None else shift[i]


@forward.register
def forward_serial(layer: Serial, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    """One after another."""
    taps = []
    for i, (part, p) in enumerate(zip(layer.layers, params, strict=True)):
        x, tap = forward(part, p, x, _part(shift, i), how)
        taps.append(tap)
    return x, taps


@forward.register
def forward_residual(
    layer: Residual, params: Params, x: Signals, shift: PyTree, how: How
) -> Outputs:
    r"""$x+\alpha\,\mathrm{body}(x)$."""
    values = as_values(x)
    y, taps = forward(layer.body, params, handed(values.branch(0)), shift, how)
    return handed(values.joined(1.0, [as_values(y).scaled(layer.alpha)])), taps


def _forward_branches(
    branches: Sequence[Layer],
    params: Params,
    x: Signals,
    shift: PyTree,
    how: How,
    meet: Callable[[Values, list[Values]], Values],
) -> Outputs:
    values = as_values(x)
    parts = [
        forward(branch, p, handed(values.branch(i)), _part(shift, i), how)
        for i, (branch, p) in enumerate(zip(branches, params, strict=True))
    ]
    return handed(meet(values, [as_values(y) for y, _ in parts])), [taps for _, taps in parts]


@forward.register
def forward_sum(layer: Sum, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    """Branches, added."""
    meet = lambda values, parts: values.joined(None, parts)
    return _forward_branches(layer.branches, params, x, shift, how, meet)


@forward.register
def forward_concat(layer: Concat, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    """Branches, their channels side by side."""
    meet = lambda values, parts: values.concatenated(parts, layer.proportions)
    return _forward_branches(layer.branches, params, x, shift, how, meet)


@forward.register
def forward_product(layer: Product, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    """Branches, multiplied."""
    return _forward_branches(layer.branches, params, x, shift, how, Values.multiplied)


@forward.register
def forward_frozen(layer: Frozen, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    """The body; its weights have no gradient."""
    still = jax.lax.stop_gradient(params["frozen"])
    y, taps = forward(layer.body, still, x, shift, how)
    untrained = lambda tap: dataclasses.replace(tap, trained=False)
    return y, jax.tree.map(untrained, taps, is_leaf=is_tap)


@forward.register
def forward_repeat(layer: Repeat, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    """Write short loops out; stack the equal repetitions of long ones and scan over them."""
    peeled = _peeled(params)
    each, shifts = [], (None, None) if shift is None else (shift["each"], shift["scan"])
    for i, p in enumerate(params[:peeled]):
        x, tap = forward(layer.body, p, x, _part(shifts[0], i), how)
        each.append(tap)
    if peeled == len(params):
        return x, {"each": each, "scan": {}}
    rest = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params[peeled:])

    def step(x: Signals, now: tuple[Params, PyTree]) -> Outputs:
        return forward(layer.body, now[0], x, now[1], how)

    x, scanned = jax.lax.scan(step, x, (rest, shifts[1]))
    return x, {"each": each, "scan": scanned}


def _peeled(params: list[Params]) -> int:
    """How many leading repetitions are written out: all of a short loop, else the unequal ones."""
    if len(params) <= _UNROLL:
        return len(params)
    shapes = [jax.tree.map(jnp.shape, p) for p in params]
    first = next(i for i in range(len(shapes)) if all(s == shapes[i] for s in shapes[i:]))
    return len(params) if len(shapes) - first <= _UNROLL else first
