"""The corrections of a few pairs: one program for each operation, shared by all networks.

A network's own program costs seconds to compile. Where few pairs are asked for, its operations run one by one instead;
each is compiled when it is first met and serves every network from then on.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import jax.numpy as jnp

from widelimit._base.compile import quick_jit
from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, is_one, is_zero

from ._state import Fluctuating


def _operate(name: str, extra: tuple[Any, ...], state: Fluctuating, *numbers: Any) -> Fluctuating:
    found: Fluctuating = getattr(state, name)(*extra, *numbers)
    return found.opened()


_operation = quick_jit(_operate, (0, 1))


def _joined(has_skip: bool, state: Fluctuating, skip: Any, *parts: Fluctuating) -> Fluctuating:
    return state.joined(skip if has_skip else None, parts).opened()


_meeting = quick_jit(_joined, 0)


@dataclasses.dataclass(frozen=True)
class Stepwise(State):
    """A signal whose operations run at once.

    Attributes:
        state: The signal.
    """

    question: ClassVar[str] = "corrections of finite width"

    state: Fluctuating

    def _do(self, name: str, *extra: Any, numbers: Sequence[Scalar] = ()) -> Self:
        # An operation's program is the same whatever other activations the network has.
        own = {act for act in extra if isinstance(act, Activation)}
        how = tuple(pair for pair in self.state.how if pair[0] in own)
        state = dataclasses.replace(self.state, how=how)
        values = [jnp.asarray(number, jnp.float64) for number in numbers]
        done = _operation(name, extra, state, *values)
        return dataclasses.replace(self, state=dataclasses.replace(done, how=self.state.how))

    def weighted(self, width: int | None) -> Self:
        return self._do("weighted", None)

    def wide(self, width: Scalar) -> Self:
        """Of so many components, in units of n."""
        return dataclasses.replace(self, state=self.state.wide(width))

    def scaled(self, factor: Scalar) -> Self:
        return self if is_one(factor) else self._do("scaled", numbers=(factor,))

    def biased(self, b_std: Scalar) -> Self:
        return self if is_zero(b_std) else self._do("biased", numbers=(b_std,))

    def trained(self) -> Self:
        return self._do("trained")

    def activated(self, activation: Activation) -> Self:
        return self._do("activated", activation)

    def branched(self) -> Self:
        return self._do("branched")

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        bare = lambda state: dataclasses.replace(state, how=())
        number = jnp.asarray(1.0 if skip is None else skip, jnp.float64)
        met = [bare(part.state) for part in parts]
        done = _meeting(skip is not None, bare(self.state), number, *met)
        return dataclasses.replace(self, state=dataclasses.replace(done, how=self.state.how))
