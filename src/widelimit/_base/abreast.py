"""Programs side by side on the cores of the host.

XLA divides every loop of a program among the cores, and has them wait for each other behind each: short loops
gain little. Programs that are not divided (`compile.lone_jit`) run best one on each core. JAX keeps those that one
thread starts in order, so there is a thread for each core.
"""

import functools
import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import jax

from .thresholds import MOST_CORES

T = TypeVar("T")
_seen: set[Hashable] = set()


def cores() -> int:
    """How many programs run side by side: the cores that this process may use; 1 on an accelerator."""
    if jax.default_backend() != "cpu":
        return 1
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return max(1, min(allowed or 1, MOST_CORES))


def abreast(kind: Hashable, calls: Sequence[Callable[[], T]]) -> list[T]:
    """What these calls return, each started by another thread; arrays may still be computed.

    Args:
        kind: What is compiled for them; the first time one call goes first, so that it is compiled once.
        calls: Functions of nothing that start programs which are not divided; those of one core in order.
    """
    if len(calls) == 1:
        return [calls[0]()]
    head = [] if kind in _seen else [calls[0]()]
    _seen.add(kind)
    double, device = bool(jax.config.jax_enable_x64), jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    rest: list[Future[T]] = [
        _worker(os.getpid(), number % cores()).submit(_as_here, double, device, call)
        for number, call in enumerate(calls[len(head) :])
    ]
    return head + [future.result() for future in rest]


@functools.cache
def _worker(process: int, number: int) -> ThreadPoolExecutor:
    """The thread of a core; a forked process has none of its parent's."""
    return ThreadPoolExecutor(1, f"widelimit-{number}")


def _as_here(double: bool, device: Any, call: Callable[[], T]) -> T:
    """The call with the settings of the thread that asks."""
    with jax.enable_x64(double), jax.default_device(device):
        return call()
