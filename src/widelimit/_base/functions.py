"""What a function is, told in a way that another process understands."""

import dataclasses
import functools
import hashlib
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes)


def digest(value: object) -> str:
    """A digest of a value that is the same in every process.

    Functions count by their code, their defaults, the values that they close over, and what their
    global names stand for; arrays by their bytes; other objects by their type and fields.

    Args:
        value: Arrays, functions, and whatever is made of them.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> rate = lambda scale: lambda step: scale / (1 + step)
        >>> digest(rate(1.0)) == digest(rate(1.0)), digest(rate(1.0)) == digest(rate(2.0))
        (True, False)
    """
    reader = _Reader()
    reader.read(value)
    return reader.hash.hexdigest()


class _Reader:
    """Walks through a value; what was met before is told by its number, so that cycles end."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.met: dict[int, tuple[int, object]] = {}  # held, so that no address is used again

    def write(self, *words: object) -> None:
        self.hash.update("|".join(map(str, words)).encode("utf-8", "surrogatepass") + b"\n")

    def read(self, value: Any) -> None:
        """The value, by its kind."""
        if isinstance(value, _PLAIN):
            self.write(type(value).__name__, repr(value))
        elif isinstance(value, np.ndarray | np.generic | jax.Array):
            self._array(value)
        elif id(value) in self.met:
            self.write("again", self.met[id(value)][0])
        else:
            self.met[id(value)] = len(self.met), value
            self._object(value)

    def _array(self, value: Any) -> None:
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        array = np.asarray(value)
        self.write("array", array.dtype, array.shape)
        self.hash.update(np.ascontiguousarray(array).tobytes())

    def _object(self, value: Any) -> None:
        if isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.CodeType):
            self._code(value)
        elif isinstance(value, functools.partial):
            self._each("partial", value.func, value.args, value.keywords)
        elif isinstance(value, types.MethodType):
            self._each("method", value.__func__, value.__self__)
        elif isinstance(value, dict):
            self._each("mapping", *(part for item in value.items() for part in item))
        elif isinstance(value, set | frozenset):
            self.write("set", *sorted(map(digest, value)))
        elif isinstance(value, tuple | list):
            self._each(_name(type(value)), *value)
        elif isinstance(value, type | types.ModuleType) or not hasattr(value, "__dict__"):
            self.write(_name(value))
        elif isinstance(getattr(value, "__wrapped__", None), types.FunctionType):  # under a jit
            self._each("wrapped", value.__wrapped__)
        elif dataclasses.is_dataclass(value):
            fields = [getattr(value, field.name) for field in dataclasses.fields(value)]
            self._each(_name(type(value)), *fields)
        else:
            self._each(_name(type(value)), _name(value), vars(value))

    def _each(self, kind: str, *parts: object) -> None:
        self.write(kind, len(parts))
        for part in parts:
            self.read(part)

    def _function(self, fn: types.FunctionType) -> None:
        seen = []
        for cell in fn.__closure__ or ():
            try:
                seen.append(cell.cell_contents)
            except ValueError:  # not bound yet
                seen.append("unbound")
        self._each("function", fn.__code__, fn.__defaults__, fn.__kwdefaults__, *seen)
        for name in _names(fn.__code__):
            found = fn.__globals__.get(name)
            own = isinstance(found, types.FunctionType) and found.__module__ == fn.__module__
            if own or isinstance(found, (*_PLAIN, np.ndarray, np.generic, jax.Array)):
                self.read(found)
            else:  # of another module, or something that may change without a difference
                self.write("global", name, type(found).__name__)

    def _code(self, code: types.CodeType) -> None:
        self.write(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        self.write(code.co_code.hex(), code.co_names, code.co_varnames, code.co_freevars)
        self._each("constants", *code.co_consts)


def _names(code: types.CodeType) -> list[str]:
    inner = [c for c in code.co_consts if isinstance(c, types.CodeType)]
    return sorted({*code.co_names, *(name for c in inner for name in _names(c))})


def _name(value: Any) -> str:
    """Where it is defined; never an address."""
    home = getattr(value, "__module__", None) or ""
    return f"{home}.{getattr(value, '__qualname__', getattr(value, '__name__', ''))}"
