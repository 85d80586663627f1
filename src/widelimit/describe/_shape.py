"""Widths and parameter counts of the finite network."""

from typing import NamedTuple

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import as_count
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._check import check


class Shape(NamedTuple):
    """The size of a finite network.

    Attributes:
        widths: The number of outputs of each `Dense`, in order, repetitions written out.
        num_params: How many trainable numbers there are.
    """

    widths: tuple[int, ...]
    num_params: int


class _Walk(NamedTuple):
    fan_in: int
    widths: tuple[int, ...]
    num_params: int


@layer_pass("its shape is found")
def _walk(layer: Layer, state: _Walk, width: int, last: int | None):
    """The state after the layer; `last` is the width of its final Dense, if it is the output."""


@_walk.register
def _walk_dense(layer: Dense, state: _Walk, width: int, last: int | None) -> _Walk:
    out = last if last is not None else (layer.width or width)
    biases = 0 if isinstance(layer.b_std, float) and layer.b_std == 0 else out
    return _Walk(out, (*state.widths, out), state.num_params + out * state.fan_in + biases)


@_walk.register(Phi)
@_walk.register(Identity)
@_walk.register(Scale)
def _walk_elementwise(layer: Layer, state: _Walk, width: int, last: int | None) -> _Walk:
    return state


@_walk.register
def _walk_serial(layer: Serial, state: _Walk, width: int, last: int | None) -> _Walk:
    final = max((i for i, part in enumerate(layer.layers) if _has_dense(part)), default=-1)
    for i, part in enumerate(layer.layers):
        state = _walk(part, state, width, last if i == final else None)
    return state


@_walk.register
def _walk_repeat(layer: Repeat, state: _Walk, width: int, last: int | None) -> _Walk:
    for i in range(layer.times):
        state = _walk(layer.body, state, width, last if i == layer.times - 1 else None)
    return state


@_walk.register
def _walk_residual(layer: Residual, state: _Walk, width: int, last: int | None) -> _Walk:
    return _walk(layer.body, state, state.fan_in, last)


@_walk.register
def _walk_sum(layer: Sum, state: _Walk, width: int, last: int | None) -> _Walk:
    out = state
    for branch in layer.branches:
        done = _walk(branch, out._replace(fan_in=state.fan_in), width, last)
        out = done if _has_dense(branch) else out
    return out


def _has_dense(layer: Layer) -> bool:
    if isinstance(layer, Serial):
        return any(map(_has_dense, layer.layers))
    if isinstance(layer, Sum):
        return any(map(_has_dense, layer.branches))
    if isinstance(layer, Repeat):
        return layer.times > 0 and _has_dense(layer.body)
    if isinstance(layer, Residual):
        return _has_dense(layer.body)
    return isinstance(layer, Dense)


def shape(net: Layer, input_dim: int, width: int, output_dim: int = 1) -> Shape:
    r"""Widths and parameter count of the network at finite width.

    Args:
        net: The network.
        input_dim: d.
        width: The width of every hidden `Dense` that states none.
        output_dim: k, the width of the last `Dense`.

    Returns:
        The widths of all `Dense` layers and the number of parameters.

    Example:
        >>> import widelimit as wl
        >>> shape(wl.resnet(depth=5), input_dim=2, width=100).num_params  # n + 2 L n^2 + n d
        100300
    """
    check(net)
    input_dim = as_count(input_dim, "input_dim", minimum=1)
    width = as_count(width, "width", minimum=1)
    output_dim = as_count(output_dim, "output_dim", minimum=1)
    done = _walk(net, _Walk(input_dim, (), 0), width, output_dim)
    return Shape(done.widths, done.num_params)
