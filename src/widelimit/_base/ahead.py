"""Programs that other threads compile while this one is busy: on a GPU each takes a second or two."""

import functools
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import numpy as np

from .arrays import is_transformed
from .thresholds import COMPILED_AHEAD, COMPILERS, UNTUNED_COMPILATION

# Python does one thing at a time: what was asked for first is done first.
_LOWERING = threading.Lock()


class Ahead:
    """`jax.jit` of which programs may be asked for before they are called.

    Args:
        function: To be compiled.
        static: The numbers of arguments that are known when it is compiled: the first ones.
        donated: As `donate_argnums`.

    Attributes:
        jit: The function as JAX compiles it.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static: int = 0,
        donated: tuple[int, ...] = (),
    ):
        self._static = static
        self.jit = jax.jit(function, static_argnums=(*range(static),), donate_argnums=donated)
        self._begun: dict[Hashable, Future[Any]] = {}
        functools.update_wrapper(self, function)

    def prepare(self, *given: Any, tuned: bool = False) -> None:
        """Begin to compile for such arguments.

        Args:
            *given: The arguments; arrays may be `jax.ShapeDtypeStruct`.
            tuned: Whether a GPU looks for the fastest way to multiply matrices, which takes some seconds.
        """
        kind = self._kind(given)
        if kind is None or kind in self._begun:
            return
        if len(self._begun) >= COMPILED_AHEAD:
            self._begun.pop(next(iter(self._begun)))
        double, device = bool(jax.config.jax_enable_x64), jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
        self._begun[kind] = _compilers(os.getpid()).submit(
            self._compiled, double, device, given, None if tuned else UNTUNED_COMPILATION
        )

    def _compiled(self, double: bool, device: Any, given: tuple[Any, ...], options: Any) -> Any:
        with jax.enable_x64(double), jax.default_device(device):
            with _LOWERING:
                lowered = self.jit.lower(*given)
            return lowered.compile(options)

    def __call__(self, *given: Any) -> Any:
        """The result, by the program that was asked for if there is one."""
        begun = self._begun.get(self._kind(given)) if self._begun else None
        if begun is None or begun.exception() is not None:
            return self.jit(*given)
        try:
            return begun.result()(*given[self._static :])
        except (TypeError, ValueError):  # of a kind that the program was not made for
            return self.jit(*given)

    def clear_cache(self) -> None:
        """Forget all programs."""
        self.jit.clear_cache()  # pyright: ignore[reportAttributeAccessIssue, reportFunctionMemberAccess]
        self._begun.clear()

    def _kind(self, given: tuple[Any, ...]) -> Hashable:
        """What decides which program it is; None for what is traced or lies on several devices."""
        leaves, tree = jax.tree.flatten(given[self._static :])
        if is_transformed(leaves) or any(map(_is_spread, leaves)):
            return None
        form = tuple((np.shape(a), str(getattr(a, "dtype", type(a)))) for a in leaves)
        return given[: self._static], tree, form, bool(jax.config.jax_enable_x64)  # pyright: ignore[reportAttributeAccessIssue]


def ahead(static: int = 0, donated: tuple[int, ...] = ()) -> Callable[[Callable[..., Any]], Ahead]:
    """A decorator: `Ahead` with so many static arguments."""
    return lambda function: Ahead(function, static, donated)


def _is_spread(value: Any) -> bool:
    return isinstance(value, jax.Array) and len(value.sharding.device_set) > 1


@functools.cache
def _compilers(process: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(COMPILERS, "widelimit-compiler")
