"""Which of two programs for one result an accelerator runs: the one that a trial finds right and faster."""

import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import jax
import numpy as np

Way = TypeVar("Way")

AGREED = 1e-5  # of the largest entry, in single precision
_found: dict[Hashable, Any] = {}


def preferred(kind: Hashable, ways: tuple[Way, Way], run: Callable[[Way], Any]) -> Way:
    """The first way, unless it fails, errs or is slower than the second.

    A kernel of its own depends on a compiler that may change weekly and on a device that nobody has tried; XLA's
    program is always there.

    Args:
        kind: What the answer is remembered for.
        ways: The one to be tried, and the one to compare it with.
        run: A short piece of the work.
    """
    if kind not in _found:
        _found[kind] = ways[0] if _better(ways, run) else ways[1]
    return _found[kind]


def _better(ways: tuple[Way, Way], run: Callable[[Way], Any]) -> bool:
    try:
        mine, seconds = _timed(ways[0], run)
    except Exception:  # whatever Pallas or a driver raises
        return False
    other, its_seconds = _timed(ways[1], run)
    close = (
        np.abs(np.asarray(a) - np.asarray(b)).max() <= AGREED * np.abs(np.asarray(b)).max()
        for a, b in zip(*map(jax.tree.leaves, (mine, other)), strict=True)
    )
    return seconds < its_seconds and all(close)


def _timed(way: Way, run: Callable[[Way], Any]) -> tuple[Any, float]:
    """What a way gives, and the least time that it takes once it is compiled."""
    found, least = jax.block_until_ready(run(way)), float("inf")
    for _ in range(3):
        start = time.perf_counter()
        found = jax.block_until_ready(run(way))
        least = min(least, time.perf_counter() - start)
    return found, least
