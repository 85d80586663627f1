"""The pass that applies the network, and keeps what its kernels are made of."""

import dataclasses
import functools
from collections.abc import Sequence
from types import NotImplementedType
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from widelimit._base.numerics import safe_sqrt
from widelimit._base.passes import layer_pass
from widelimit._base.scalars import Scalar
from widelimit._base.types import Params, Self, Tensor
from widelimit.activations import Activation
from widelimit.interpret import State, interpret, is_zero
from widelimit.layers import Dense, Layer, Repeat, Residual, Serial, Sum

from ._parameterise import How, cast

Signals = Float[Tensor, "points _"]
Outputs = tuple[Signals, PyTree]  # what a layer gives, and its taps

_UNROLL = 16  # repetitions up to which a loop is written out; beyond, XLA's compile time would grow


class Tap(NamedTuple):
    r"""What a fully connected layer $z=c_wWx+c_bb$ contributes to kernels.

    Attributes:
        x: Its inputs, shape (points, fan_in); in a scanned loop (repetitions, points, fan_in).
        z: Its outputs.
        tangent: $(c_w^2, c_b^2)$; the second is 0 without a bias.
        prior: The variances of $c_wW$ and $c_bb$ at initialisation.
    """

    x: Float[Tensor, "*repetitions points fan_in"]
    z: Float[Tensor, "*repetitions points fan_out"] | None
    tangent: tuple[Scalar, Scalar]
    prior: tuple[Scalar, Scalar]


@dataclasses.dataclass(frozen=True)
class Values(State):
    """The signal itself: what layers without weights do to numbers."""

    question: ClassVar[str] = "the output of a finite network"

    x: Signals

    def weighted(self, width: int | None) -> Self:
        raise NotImplementedError("a layer with weights has a rule of its own")

    def biased(self, b_std: Scalar) -> Self:
        return self if is_zero(b_std) else self.weighted(None)

    def scaled(self, factor: Scalar) -> Self:
        return type(self)(cast(factor, self.x.dtype) * self.x)

    def activated(self, activation: Activation) -> Self:
        return type(self)(activation.fn(self.x))

    def _axes(self, over: str) -> tuple[int, ...]:
        return (-1,) if over == "channels" else tuple(range(1, self.x.ndim))

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        square = jnp.mean(self.x**2, axis=self._axes(over), keepdims=True)
        square = square + cast(eps, self.x.dtype)
        return type(self)(self.x / safe_sqrt(jnp.where(square > 0, square, 1)))

    def centred(self, over: str = "channels") -> Self:
        return type(self)(self.x - jnp.mean(self.x, axis=self._axes(over), keepdims=True))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [self.scaled(skip), *parts]
        return type(self)(functools.reduce(jnp.add, [state.x for state in met]))


def _apply_values(
    layer: Layer, params: Params, x: Signals, shift: PyTree, how: How
) -> Outputs | NotImplementedType:
    """A layer without weights does to numbers what it does to every signal."""
    try:
        return interpret(layer, Values(x)).x, {}
    except NotImplementedError:
        return NotImplemented


@layer_pass("it is applied", otherwise=_apply_values)
def forward(layer: Layer, params: Params, x: Signals, shift: PyTree, how: How):
    """The outputs, and a tree with a `Tap` for each `Dense`.

    `shift`, a tree of the same shape, is added to the output of each `Dense`; the derivative in it
    at zero is the back-propagated signal. None adds nothing. A rule is needed by layers with weights
    of their own only.
    """


@forward.register
def forward_dense(layer: Dense, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    r"""$c_wWx+c_bb$."""
    return apply_weights(params, x, shift, how, w_std=layer.w_std, b_std=layer.b_std)


def apply_weights(
    params: Params, x: Signals, shift: Signals | None, how: How, *, w_std: Scalar, b_std: Scalar
) -> tuple[Signals, Tap]:
    r"""$c_wWx+c_bb$ with weights from `draw_weights`, and their tap."""
    w = params["w"]
    fan_in, fan_out = w.shape
    numbers = cast(w_std, x.dtype), cast(b_std, x.dtype)
    c_w, c_b = how.scheme.factors(*numbers, fan_in)
    s_w, s_b = how.scheme.spreads(*numbers, fan_in, fan_out)
    # The default of GPUs, TF32, keeps three digits: too few to see a network follow its limit.
    z = _scaled(jnp.matmul(x, w, precision="highest"), c_w)
    if "b" in params:
        z = z + _scaled(params["b"], c_b)[None, :]
    else:
        c_b = 0.0
    if shift is not None:
        z = z + shift
    return z, Tap(x, z, (c_w**2, c_b**2), ((c_w * s_w) ** 2, (c_b * s_b) ** 2))


def _scaled(z: Float[Array, "..."], c: Scalar) -> Float[Array, "..."]:
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
    y, taps = forward(layer.body, params, x, shift, how)
    return x + cast(layer.alpha, x.dtype) * y, taps


@forward.register
def forward_sum(layer: Sum, params: Params, x: Signals, shift: PyTree, how: How) -> Outputs:
    """Branches, added."""
    parts = [
        forward(branch, p, x, _part(shift, i), how)
        for i, (branch, p) in enumerate(zip(layer.branches, params, strict=True))
    ]
    return functools.reduce(jnp.add, [y for y, _ in parts]), [taps for _, taps in parts]


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
