"""The pass that applies the network, and keeps what its kernels are made of."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from widelimit._base.passes import layer_pass
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._parameterise import How, cast

_UNROLL = 16  # repetitions up to which a loop is written out; beyond, XLA's compile time would grow


class Tap(NamedTuple):
    r"""What a fully connected layer $z=c_wWx+c_bb$ contributes to kernels.

    Attributes:
        x: Its inputs, shape (points, fan_in); in a scanned loop (repetitions, points, fan_in).
        z: Its outputs.
        tangent: $(c_w^2, c_b^2)$; the second is 0 without a bias.
        prior: The variances of $c_wW$ and $c_bb$ at initialisation.
    """

    x: Any
    z: Any
    tangent: tuple[Any, Any]
    prior: tuple[Any, Any]


@layer_pass("it is applied")
def forward(layer: Layer, params: Any, x: Any, shift: Any, how: How) -> Any:
    """The outputs, and a tree with a `Tap` for each `Dense`.

    `shift`, a tree of the same shape, is added to the output of each `Dense`; the derivative in it
    at zero is the back-propagated signal. None adds nothing.
    """


@forward.register
def _forward_dense(layer: Dense, params: Any, x: Any, shift: Any, how: How) -> Any:
    w = params["w"]
    fan_in, fan_out = w.shape
    numbers = cast(layer.w_std, x.dtype), cast(layer.b_std, x.dtype)
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


def _scaled(z: Any, c: Any) -> Any:
    return z if isinstance(c, float) and c == 1.0 else c * z


@forward.register
def _forward_phi(layer: Phi, params: Any, x: Any, shift: Any, how: How) -> Any:
    return layer.activation.fn(x), {}


@forward.register
def _forward_identity(layer: Identity, params: Any, x: Any, shift: Any, how: How) -> Any:
    return x, {}


@forward.register
def _forward_scale(layer: Scale, params: Any, x: Any, shift: Any, how: How) -> Any:
    return cast(layer.factor, x.dtype) * x, {}


def _part(shift: Any, i: int) -> Any:
    return None if shift is None else shift[i]


@forward.register
def _forward_serial(layer: Serial, params: Any, x: Any, shift: Any, how: How) -> Any:
    taps = []
    for i, (part, p) in enumerate(zip(layer.layers, params, strict=True)):
        x, tap = forward(part, p, x, _part(shift, i), how)
        taps.append(tap)
    return x, taps


@forward.register
def _forward_residual(layer: Residual, params: Any, x: Any, shift: Any, how: How) -> Any:
    y, taps = forward(layer.body, params, x, shift, how)
    return x + cast(layer.alpha, x.dtype) * y, taps


@forward.register
def _forward_sum(layer: Sum, params: Any, x: Any, shift: Any, how: How) -> Any:
    parts = [
        forward(branch, p, x, _part(shift, i), how)
        for i, (branch, p) in enumerate(zip(layer.branches, params, strict=True))
    ]
    return functools.reduce(jnp.add, [y for y, _ in parts]), [taps for _, taps in parts]


@forward.register
def _forward_repeat(layer: Repeat, params: Any, x: Any, shift: Any, how: How) -> Any:
    """Write short loops out; stack the equal repetitions of long ones and scan over them."""
    peeled = _peeled(params)
    each, shifts = [], (None, None) if shift is None else (shift["each"], shift["scan"])
    for i, p in enumerate(params[:peeled]):
        x, tap = forward(layer.body, p, x, _part(shifts[0], i), how)
        each.append(tap)
    if peeled == len(params):
        return x, {"each": each, "scan": {}}
    rest = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params[peeled:])

    def step(x: Any, now: Any) -> Any:
        return forward(layer.body, now[0], x, now[1], how)

    x, scanned = jax.lax.scan(step, x, (rest, shifts[1]))
    return x, {"each": each, "scan": scanned}


def _peeled(params: Any) -> int:
    """How many leading repetitions are written out: all of a short loop, else the unequal ones."""
    if len(params) <= _UNROLL:
        return len(params)
    shapes = [jax.tree.map(jnp.shape, p) for p in params]
    first = next(i for i in range(len(shapes)) if all(s == shapes[i] for s in shapes[i:]))
    return len(params) if len(shapes) - first <= _UNROLL else first
