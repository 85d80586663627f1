"""When two functions are the same: by what they do, not by where they are kept in memory."""

import types
from collections.abc import Callable
from typing import Any


def identity_of(fn: Callable[..., Any] | None) -> Any:
    """What a function is, so that an equal one, typed again, is the same: its code and what it sees.

    Defaults and captured values count by value where they can be hashed, global names by the objects
    that they stand for. A function that is no plain Python function is itself.
    """
    if not isinstance(fn, types.FunctionType):
        return fn
    captured = tuple(_seen(cell) for cell in fn.__closure__ or ())
    extras = (*(fn.__defaults__ or ()), *sorted((fn.__kwdefaults__ or {}).items()))
    scope = tuple(_Same(fn.__globals__.get(name)) for name in _names(fn.__code__))
    found = (_code(fn.__code__), captured, tuple(map(_valued, extras)), scope)
    try:
        hash(found)
    except TypeError:  # something that cannot be compared: the function is itself
        return fn
    return found


def _code(code: types.CodeType) -> tuple[Any, ...]:
    constants = tuple(
        _code(c) if isinstance(c, types.CodeType) else _valued(c) for c in code.co_consts
    )
    signature = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    return (*signature, code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars)


def _names(code: types.CodeType) -> list[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return sorted({*code.co_names, *(name for c in inner for name in _names(c))})


def _seen(cell: types.CellType) -> Any:
    try:
        return _valued(cell.cell_contents)
    except ValueError:  # not bound yet
        return _Same(cell)


class _Same:
    """An object that equals itself only; held, so that no other takes its place in memory."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _valued(value: Any) -> Any:
    """A value and its type: 1 == 1.0 == True, but functions of them differ."""
    if isinstance(value, types.FunctionType):
        return identity_of(value)
    return type(value), repr(value) if isinstance(value, float) else value
