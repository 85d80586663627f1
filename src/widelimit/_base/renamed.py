"""Old spellings, accepted for one version with a warning that names the new one."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Say that a name has changed."""
    warnings.warn(
        f"{old} is now called {new}; the old name will go with the next version.",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def renamed_argument(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Accept arguments under their old names.

    Args:
        **names: Old name to new name.

    Returns:
        A decorator; the signature that it leaves to be seen has the new names only.

    Example:
        >>> import warnings
        >>> half = renamed_argument(lr="learning_rate")(lambda learning_rate: learning_rate / 2)
        >>> with warnings.catch_warnings(record=True, action="always") as seen:
        ...     half(lr=3.0), seen[0].category.__name__
        (1.5, 'DeprecationWarning')
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> R:
            for old, new in names.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f"{old} is the old name of {new}; give the new one only.")
                    warn_renamed(old, new)
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def renamed_function(old: str, function: Callable[P, R]) -> Callable[P, R]:
    """A function under its old name.

    Args:
        old: The old name.
        function: The function that it stands for.

    Returns:
        The same function with a warning.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(record=True, action="always") as seen:
        ...     renamed_function("biggest", max)(3, 4), str(seen[0].message)[:25]
        (4, 'biggest is now called max')
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        warn_renamed(old, getattr(function, "__name__", "a function"))
        return function(*args, **kwargs)

    wrapped.__name__ = wrapped.__qualname__ = old
    return wrapped
