"""Ctrl-C during a compiled loop."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType

from ._loop import State

_QUICK, _LONG = 0.1, 0.4  # seconds that a stretch of the compiled loop should take


class Stretches:
    """Cuts the compiled loop into stretches of a fraction of a second.

    A compiled program does not hear Ctrl-C, and a state that was handed to it is gone. So an
    interruption is noted, the stretch ends, and whoever runs the loop can save a whole state.

    Attributes:
        interrupted: Whether Ctrl-C was pressed.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._steps = 1

    def run(self, advance: Callable[[State, int], State], state: State, stop: int) -> State:
        """Steps until `stop`, an early end of the loop, or Ctrl-C; the numbers do not depend on cuts."""
        step = int(state.step)
        while not self.interrupted:
            target, started = min(stop, step + self._steps), time.perf_counter()
            state = advance(state, target)
            step = int(state.step)  # waits for the program
            seconds = time.perf_counter() - started
            if step < target or step >= stop:
                break
            self._steps = _next(self._steps, seconds)
        return state

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:  # the second time: at once
            raise KeyboardInterrupt
        self.interrupted = True


def _next(steps: int, seconds: float) -> int:
    if seconds < _QUICK:
        return steps * (8 if seconds < _QUICK / 8 else 2)
    return max(steps // 2, 1) if seconds > _LONG else steps


@contextlib.contextmanager
def stretches() -> Iterator[Stretches]:
    """Stretches that Ctrl-C ends, where it has its usual meaning; elsewhere nothing is touched."""
    found = Stretches()
    usual = threading.current_thread() is threading.main_thread()
    if not usual or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield found
        return
    before = signal.signal(signal.SIGINT, found._note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)
