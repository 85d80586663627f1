"""Long work says so before, and how far it is."""

import sys
import time

MINUTE = 60.0  # seconds of expected work from which on something is said unasked
_PAUSE = 2.0  # seconds between two words


class Watch:
    """To be called with the number of steps done.

    Args:
        label: What is being done.
        expected: How many steps it takes, about.
        verbose: Whether to tell; None: if it is expected to take longer than a minute, or has done so.
        skip: Steps at the start that are not typical, since they compile.
    """

    def __init__(self, label: str, expected: float, verbose: bool | None, skip: int = 1):
        self._label, self._expected, self._verbose, self._skip = label, expected, verbose, skip
        self._times = [time.perf_counter()]
        self._said, self._width = -_PAUSE, 0

    def expect(self, steps: float) -> None:
        """How many steps it takes, as far as that is known by now."""
        self._expected = steps

    def __call__(self, done: int) -> None:
        now = time.perf_counter()
        self._times.append(now)
        typical = self._times[self._skip :]
        if self._verbose is False or len(typical) < 2:
            return
        each = (now - typical[0]) / (len(typical) - 1)
        if self._verbose is None and max(each * self._expected, now - self._times[0]) > MINUTE:
            self._verbose = True
        if self._verbose and now - self._said >= _PAUSE:
            self._said = now
            total = max(self._expected, done)
            left = _span((total - done) * each)
            self._show(f"{self._label}: {done} of about {total:.0f}, {left} left")

    def _show(self, text: str) -> None:
        if not sys.stderr.isatty():
            print(text, file=sys.stderr, flush=True)
            return
        print(text.ljust(self._width), file=sys.stderr, end="\r", flush=True)
        self._width = len(text)

    def close(self) -> None:
        """Leave an empty line where progress was shown."""
        if self._width:
            print(" " * self._width, file=sys.stderr, end="\r", flush=True)
            self._width = 0


def announce(label: str, seconds: float, verbose: bool | None) -> None:
    """Say what begins and how long it takes, about; unasked only where that is more than a minute.

    Args:
        label: What begins.
        seconds: How long it is expected to take.
        verbose: Whether to tell; None: if it takes longer than a minute.
    """
    say(f"{label}: about {_span(seconds)}", verbose or (verbose is None and seconds > MINUTE))


def say(text: str, verbose: bool | None) -> None:
    """A line on standard error, where it was asked for."""
    if verbose:
        print(text, file=sys.stderr, flush=True)


def _span(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
