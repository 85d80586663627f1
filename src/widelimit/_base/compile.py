"""Programs that run for less time than it takes to compile them well."""

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any

import jax

from .thresholds import (
    CHEAP_COMPILATION,
    LEAN_LONE_COMPILATION,
    LIGHT_COMPILATION,
    LIGHT_LONE_COMPILATION,
    LONE_COMPILATION,
)

Options = tuple[tuple[str, bool | int | str], ...]
_EVERY: Options = tuple(
    (LEAN_LONE_COMPILATION | LIGHT_LONE_COMPILATION | CHEAP_COMPILATION).items()
)


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
def _known(options: Options) -> dict[str, bool | int | str]:
    """Those of some options, from the first on, that this release of XLA knows on the host."""
    said = os.environ.get("XLA_FLAGS", "")
    options = tuple(option for option in options if option[0] not in said)  # the user's word holds
    if _compiles(_EVERY):  # one small program instead of one for each kind
        return dict(options)
    return next(
        (dict(options[:n]) for n in range(len(options), 0, -1) if _compiles(options[:n])), {}
    )


@functools.cache
def _compiles(options: Options) -> bool:
    """Whether XLA compiles with these options on the host."""
    try:
        with on_host():
            jax.jit(lambda x: x + 1, compiler_options=dict(options))(0)
    except Exception:  # whatever a release raises for an option that it does not know
        return False
    return True


class QuickJit:
    """`jax.jit` with options that compile fast, found when the function is first called."""

    def __init__(
        self, function: Callable[..., Any], static_argnums: int | tuple[int, ...], options: Options
    ):
        self._function, self._static, self._options = function, static_argnums, options
        functools.update_wrapper(self, function)

    @functools.cached_property
    def program(self) -> Any:
        """The jitted function."""
        return jax.jit(
            self._function, static_argnums=self._static, compiler_options=_known(self._options)
        )

    def __call__(self, *args: Any) -> Any:
        """Run on the host."""
        with on_host():
            return self.program(*args)


class LightJit(QuickJit):
    """The same, where JAX computes; on an accelerator as `jax.jit`."""

    @functools.cached_property
    def program(self) -> Any:
        """The jitted function."""
        options = _known(self._options) if jax.default_backend() == "cpu" else {}
        return jax.jit(self._function, static_argnums=self._static, compiler_options=options)

    def __call__(self, *args: Any) -> Any:
        """Run where JAX computes."""
        return self.program(*args)


def quick_jit(function: Callable[..., Any], static_argnums: int | tuple[int, ...] = 0) -> QuickJit:
    """Compile quickly, and run on the host; the first argument is static unless others are named."""
    return QuickJit(function, static_argnums, tuple(CHEAP_COMPILATION.items()))


def small_jit(function: Callable[..., Any], static_argnums: int | tuple[int, ...] = 0) -> LightJit:
    """Compile quickly, and run where JAX computes; the first argument is static unless others are named."""
    return LightJit(function, static_argnums, tuple(CHEAP_COMPILATION.items()))


def lone_jit(function: Callable[..., Any], static_argnums: int | tuple[int, ...] = 0) -> LightJit:
    """Compile well, for one core: programs that run side by side (`abreast.py`), their loops not divided."""
    return LightJit(function, static_argnums, tuple(LONE_COMPILATION.items()))


def lean_lone_jit(
    function: Callable[..., Any], static_argnums: int | tuple[int, ...] = 0
) -> LightJit:
    """The same, compiled faster, for programs that run as fast by it."""
    return LightJit(function, static_argnums, tuple(LEAN_LONE_COMPILATION.items()))


def light_jit(function: Callable[..., Any], static_argnums: int | tuple[int, ...] = 0) -> LightJit:
    """Compile with less time and memory: loops over plain arrays; the first argument is static unless others are."""
    return LightJit(function, static_argnums, tuple(LIGHT_COMPILATION.items()))


def light_lone_jit(
    function: Callable[..., Any], static_argnums: int | tuple[int, ...] = 0
) -> LightJit:
    """The same for one core."""
    return LightJit(function, static_argnums, tuple(LIGHT_LONE_COMPILATION.items()))
