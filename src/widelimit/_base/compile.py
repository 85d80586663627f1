"""Programs that run for less time than it takes to compile them well."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import jax

from .thresholds import CHEAP_COMPILATION


@functools.cache
def host() -> Any:
    """The CPU, also where JAX computes on an accelerator; None if JAX was told to leave it out."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:
        return None


def on_host() -> contextlib.AbstractContextManager[Any]:
    """A context in which small things are computed where they are, not sent to an accelerator."""
    if jax.default_backend() == "cpu" or host() is None:
        return contextlib.nullcontext()
    return jax.default_device(host())


@functools.cache
def _options() -> dict[str, bool | int] | None:
    """Those of the cheap options that this release of XLA knows on the host."""
    for number in range(len(CHEAP_COMPILATION), 0, -1):
        options = dict(list(CHEAP_COMPILATION.items())[:number])
        try:
            with on_host():
                jax.jit(lambda x: x + 1, compiler_options=options)(0)
        except Exception:  # whatever a release raises for an option that it does not know
            continue
        return options
    return None


class QuickJit:
    """`jax.jit` with options that compile fast, found when the function is first called."""

    def __init__(self, function: Callable[..., Any], static_argnums: int | tuple[int, ...]):
        self._function, self._static = function, static_argnums
        functools.update_wrapper(self, function)

    @functools.cached_property
    def program(self) -> Any:
        """The jitted function."""
        return jax.jit(
            self._function, static_argnums=self._static, compiler_options=_options() or {}
        )

    def __call__(self, *args: Any) -> Any:
        """Run on the host."""
        with on_host():
            return self.program(*args)


def quick_jit(function: Callable[..., Any], static_argnums: int | tuple[int, ...] = 0) -> QuickJit:
    """Compile quickly, and run on the host; the first argument is static unless others are named."""
    return QuickJit(function, static_argnums)
