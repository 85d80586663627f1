"""What stands between two windows as one kernel of a GPU.

XLA gives the sums over windows a pass of their own, in which every entry reads its nine neighbours from the second
cache. `Leg` is a slice that waits: operations are remembered until a window or the end asks for arrays. The kernel
(`_leg_kernel.py`) replays them on a `Slice` whose arrays are one pixel of a tile of pairs, so that each layer is
written once for both.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, is_zero
from widelimit.layers import Window

from ._edges import unrolled
from ._leg_kernel import Opening, Sides, Step, replayed, run
from ._slices import Slice, Tapes

MOST_TAPS = 25  # of a window; they are written out


@dataclasses.dataclass(frozen=True)
class Leg(State):
    """A slice that waits until a window asks for arrays.

    Attributes:
        slice: What is in memory; behind an opening, what its window adds up.
        opening: The window that comes first, if any.
        steps: The operations behind it.
        interpreted: Whether kernels run without a GPU, slowly.
    """

    question: ClassVar[str] = "the kernels by slices"

    slice: Slice
    opening: Opening | None = None
    steps: tuple[Step, ...] = ()
    interpreted: bool = False

    def _then(self, apply: Callable[[Slice], Slice], *records: Sides) -> Self:
        return dataclasses.replace(self, steps=(*self.steps, Step(apply, records)))

    def _of(self, found: Slice, opening: Opening | None = None) -> Self:
        return dataclasses.replace(self, slice=found, opening=opening, steps=())

    @functools.cached_property
    def done(self) -> Slice:
        """The slice, with all that waits."""
        if self.opening is not None:
            return run(self.slice, self.opening, self.steps, interpreted=self.interpreted)
        tapes = self.slice.tapes
        state = dataclasses.replace(self.slice, tapes=_again(self.steps, tapes.first, tapes.second))
        return dataclasses.replace(replayed(state, self.steps), tapes=tapes)

    def scaled(self, factor: Scalar) -> Self:
        return self

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        return self

    def localised(self) -> Self:
        return self

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        return self._then(lambda state: state.biased(b_std), self.slice.tapes.raw())

    def trained(self) -> Self:
        return self._then(lambda state: state.trained())

    def activated(self, activation: Activation) -> Self:
        if activation.angular is None:  # needs variances in double precision
            return self._of(self.done.activated(activation))
        return self._then(lambda state: state.activated(activation))

    def windowed(self, window: Window, width: int | None) -> Self:
        if window.taps(2) > MOST_TAPS:
            return self._of(self.done.windowed(window, width))
        (root1, *one), (root2, *two) = self.slice.tapes.raw()
        weighed = self._then(lambda state: state.weighed(*state.tapes.raw()), (root1, root2))
        return self._of(weighed.done, Opening(window, (one, two)))

    def branched(self) -> Self:
        return self._of(self.done)

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        return self._of(self.done.joined(skip, [part.done for part in parts]))

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self._of(self.done.concatenated([part.done for part in parts], widths))

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self._of(self.done.multiplied([part.done for part in parts]))

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        if times <= unrolled():
            return super().repeated(step, times)
        again = lambda state: step(self._of(state)).done
        return self._of(self.done.repeated(again, times))


def _again(
    steps: Sequence[Step], first: Callable[[Any], Any], second: Callable[[Any], Any]
) -> Tapes:
    """A tape of what these operations read."""
    records = [sides for step in steps for sides in step.records]
    return Tapes([one for one, _ in records], [two for _, two in records], first, second)
