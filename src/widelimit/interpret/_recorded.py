"""A network's history: the signal before and behind each layer, as a tree of visits."""

import dataclasses
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from widelimit._base.types import Self
from widelimit.layers import Layer

from ._delegated import Delegated
from ._interpret import interpret
from ._state import Rule, State

S = TypeVar("S", bound=State)


class Visit(NamedTuple):
    """One layer, once.

    Attributes:
        layer: The layer.
        before: The signal that it saw.
        after: The signal that it made.
        inner: The visits of the layers inside it, in order, repetitions written out.
    """

    layer: Layer
    before: Any
    after: Any
    inner: "tuple[Visit, ...]"


@dataclasses.dataclass(frozen=True)
class Recorded(Delegated[S], Generic[S]):
    """Any state, with a log of what happened to it.

    Attributes:
        state: The state itself.
        log: The visits so far, of the layer that is being visited.
    """

    log: list[Visit]

    def _of(self, state: S) -> Self:
        return type(self)(state, self.log)

    def repeated(self, step: Callable[[Self], Self], times: Any) -> Self:
        """Written out, whatever the state itself would do: each step is a visit."""
        recorded = self
        for _ in range(times):
            recorded = step(recorded)
        return recorded

    def visited(self, layer: Layer, rule: Rule) -> Self:
        inner: list[Visit] = []

        def watched(layer: Layer, state: S) -> S:
            return rule(layer, type(self)(state, inner)).state

        after = self.state.visited(layer, watched)
        self.log.append(Visit(layer, self.state, after, tuple(inner)))
        return self._of(after)


def visits(net: Layer, state: State) -> Visit:
    """Interpret a network and keep every signal on the way.

    Args:
        net: The network.
        state: The signal that enters.

    Returns:
        The visit of the network itself; its `inner` visits are those of the layers inside.

    Example:
        >>> from widelimit import Dense, Phi
        >>> from widelimit.interpret import Facts
        >>> root = visits(Dense() >> Phi("relu"), Facts())
        >>> [(visit.layer, visit.after.fresh) for visit in root.inner]
        [(Dense(), True), (Phi('relu'), False)]
    """
    log: list[Visit] = []
    interpret(net, Recorded(state, log))
    return log[0]
