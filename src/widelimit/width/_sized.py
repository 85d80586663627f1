"""Relative widths: how many neurons each layer has, in units of the reference width."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax

from widelimit._base.scalars import Scalar, as_float
from widelimit.describe import infer
from widelimit.interpret import State, interpret, propagate
from widelimit.layers import Dense, Layer, Repeat, Serial

S = TypeVar("S", bound=State)


class _Sized(Layer):
    """A `Dense` with its width in units of the reference width, a number like the others."""

    dense: Layer
    ratio: Scalar


@propagate.register
def _propagate_sized(layer: _Sized, state: S) -> S:
    out = interpret(layer.dense, state)
    wide = getattr(out, "wide", None)  # most questions do not ask for widths
    return out if wide is None else wide(layer.ratio)


class Sized(NamedTuple):
    """A network whose layers know their relative widths.

    Attributes:
        net: The network.
        reference: The width that is the unit, where the network states it.
        equal: Whether all are 1.
    """

    net: Layer
    reference: int | None
    equal: bool


def with_widths(net: Layer, widths: Sequence[float] | None, width: int | None = None) -> Sized:
    """The network with the relative width of every layer.

    Args:
        net: The network.
        widths: Of each weight matrix but the last, in order, repetitions written out; None: as the
            network states them, or all equal.
        width: That of layers which state none; None: all state theirs, or none does.

    Returns:
        The network, its loops written out only where widths change along them.
    """
    if widths is None:
        stated = [d.width for d in _hidden(net)]
        if not any(stated):
            return Sized(net, width, True)
        if width is None and not all(stated):
            raise ValueError(
                "Some layers of the network state a width and others do not, so the widths' ratios are open. "
                "State all of them, or none, or give the ratios: widths=[...]."
            )
        found = infer(net, 1, width or 1).widths[:-1]
        unit = width or (found[0] if found else 1)
        ratios = [n / unit for n in found]
        return Sized(_sized(net, iter([*ratios, 1.0])), unit, set(ratios) <= {1.0})
    ratios = [as_float(ratio, "A relative width") for ratio in widths]
    count = len(infer(net, 1, 1).widths) - 1
    if len(ratios) != count or not all(0 < r < float("inf") for r in ratios):
        raise ValueError(
            f"widths must be {count} positive numbers, one for each weight matrix but the last, in units of "
            f"the width n; got {list(widths)}."
        )
    return Sized(_sized(net, iter([*ratios, 1.0])), None, set(ratios) <= {1.0})


def _hidden(net: Layer) -> list[Dense]:
    """The layers with weights, as written, without the last."""
    is_dense = lambda node: isinstance(node, Dense)
    return [node for node in jax.tree.leaves(net, is_leaf=is_dense) if is_dense(node)][:-1]


def _sized(net: Layer, ratios: Iterator[float]) -> Layer:
    def change(node: Any) -> Any:
        if isinstance(node, Dense):
            return _Sized(Dense(w_std=node.w_std, b_std=node.b_std), next(ratios))
        if isinstance(node, Repeat):
            bodies = [_sized(node.body, ratios) for _ in range(node.times)]
            same = all(body == bodies[0] for body in bodies)
            return Repeat(bodies[0], node.times) if bodies and same else Serial(*bodies)
        return node

    return jax.tree.map(change, net, is_leaf=lambda node: isinstance(node, Dense | Repeat))
