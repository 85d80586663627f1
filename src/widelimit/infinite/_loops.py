"""Depth as a number that is known at run time, so that all depths share one compiled program."""

from typing import Any, TypeVar

import equinox as eqx
import jax

from widelimit.interpret import State, interpret, propagate
from widelimit.layers import Layer, Repeat

S = TypeVar("S", bound=State)


class _Loop(Layer):
    """A repetition whose depth, at least 2, is a leaf like the other numbers of a network."""

    body: Layer
    times: Any = eqx.field()


@propagate.register
def _propagate_loop(layer: _Loop, state: S) -> S:
    return state.repeated(lambda s: interpret(layer.body, s), layer.times)


def with_loops(net: Layer) -> Layer:
    """The network with loops for repetitions; it cannot be differentiated backwards."""
    is_repeat = lambda node: isinstance(node, Repeat)

    def loosen(node: Any) -> Any:
        if not is_repeat(node):
            return node
        return (_Loop if node.times > 1 else Repeat)(with_loops(node.body), node.times)

    return jax.tree.map(loosen, net, is_leaf=is_repeat)
