"""The language of networks, read in one pass; nothing is executed."""

import ast
import re
from collections.abc import Callable
from typing import Any

from widelimit.layers import Layer, Serial, Sum

_LONGEST = 10**6  # characters of a text
_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[A-Za-z_]\w*)
    |(?P<number>(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
    |(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<sign>>>|[-+(),=\[\]]))""",
    re.VERBOSE,
)
_WORDS = {"None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan")}

Build = Callable[[str, list[Any], dict[str, Any]], Layer]


def parse(text: str, build: Build) -> Any:
    """What an expression of layers, `>>`, `+`, numbers, strings and tuples stands for.

    Args:
        text: The expression.
        build: Makes a layer of its name, positional and named arguments.

    Returns:
        A layer, or the number, string or tuple that was written instead.

    Raises:
        ValueError: It is no such expression.
    """
    if len(text) > _LONGEST:
        raise ValueError(
            f"A text of {len(text)} characters was given; a network has at most {_LONGEST}. Repeat(...) "
            "writes many equal layers as one."
        )
    reader = _Reader(text, build)
    try:
        found = reader.expression()
    except RecursionError:
        raise reader.error("parentheses are nested too deeply") from None
    if reader.kind:
        raise reader.error(f"{reader.shown} was not expected")
    return found


class _Reader:
    """Recursive descent; chains are loops, so that only parentheses nest."""

    def __init__(self, text: str, build: Build) -> None:
        self.text, self.build, self.end = text, build, 0
        self.kind, self.word = "", ""
        self.step()

    def step(self) -> str:
        """Go to the next word; the one that was left behind."""
        before, self.start = self.word, self.end
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            rest = self.text[self.end :].strip()
            if rest:
                raise self.error(f"{rest[:20]!r} was not expected")
            self.kind, self.word = "", ""
            return before
        self.kind, self.end = match.lastgroup or "", match.end()
        self.word = match[self.kind]
        return before

    @property
    def shown(self) -> str:
        return repr(self.word[:40]) if self.kind else "the end"

    def error(self, what: str) -> ValueError:
        near = self.text[max(self.start - 30, 0) : self.start + 30].strip()
        return ValueError(
            f"This is not the text of a network: {what} at character {self.start}, near {near!r}."
        )

    def is_sign(self, sign: str) -> bool:
        return self.kind == "sign" and self.word == sign

    def expect(self, sign: str) -> None:
        if not self.is_sign(sign):
            raise self.error(f"{sign!r} was expected before {self.shown}")
        self.step()

    def expression(self) -> Any:
        """`a >> b`, which binds more loosely than `a + b`."""
        return self._chain(">>", lambda: self._chain("+", self._atom, Sum), Serial)

    def _chain(self, sign: str, part: Callable[[], Any], join: Callable[..., Layer]) -> Any:
        parts = [part()]
        while self.is_sign(sign):
            self.step()
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        for found in parts:
            if not isinstance(found, Layer):
                raise self.error(f"{sign} combines layers, not {str(found)[:40]!r},")
        return join(*parts)

    def _atom(self) -> Any:
        if self.kind in ("number", "string"):
            return self._literal(self.step())
        if self.is_sign("-") or self.is_sign("+"):
            sign = -1 if self.step() == "-" else 1
            if self.word in ("inf", "nan"):
                return sign * _WORDS[self.step()]
            if self.kind != "number":
                raise self.error(f"a number was expected before {self.shown}")
            return sign * self._literal(self.step())
        if self.kind == "name":
            name = self.step()
            if self.is_sign("("):
                return self._call(name)
            if name in _WORDS:
                return _WORDS[name]
            raise self.error(f"{name[:40]!r} is not a layer, a number or a quoted name")
        if self.is_sign("(") or self.is_sign("["):
            return self._parenthesis(")" if self.step() == "(" else "]")
        raise self.error(f"{self.shown} is not a layer, a number or a quoted name")

    def _literal(self, word: str) -> Any:
        try:
            return ast.literal_eval(word)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise self.error(f"{word[:40]!r} cannot be read") from None

    def _parenthesis(self, close: str) -> Any:
        parts, tuple_ = [], close == "]"
        while not self.is_sign(close):
            parts.append(self.expression())
            if not self.is_sign(","):
                break
            tuple_ = True
            self.step()
        self.expect(close)
        return parts[0] if parts and not tuple_ else tuple(parts)

    def _call(self, name: str) -> Layer:
        self.step()
        args: list[Any] = []
        named: dict[str, Any] = {}
        while not self.is_sign(")"):
            found, key = self._argument()
            if key in named or (key is None and named):
                raise self.error(f"the arguments of {name} are not in order")
            if key is None:
                args.append(found)
            else:
                named[key] = found
            if not self.is_sign(","):
                break
            self.step()
        self.expect(")")
        return self.build(name, args, named)

    def _argument(self) -> tuple[Any, str | None]:
        key = None
        if self.kind == "name" and re.match(r"\s*=", self.text[self.end : self.end + 20]):
            key = self.step()
            self.expect("=")
        return self.expression(), key
