"""The kernel recursion of a network in LaTeX, as a state."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, is_zero
from widelimit.layers import Attention, LinearMap, Window

from ._words import TWO, Book, multiple, number, shown_covariance, shown_map, shown_window


@dataclasses.dataclass(frozen=True)
class Recursion(State):
    """The kernels.

    Attributes:
        k: The symbol of the NNGP kernel.
        theta: The symbol of the tangent kernel; "0" before any weights.
        book: Where equations are written.
    """

    question: ClassVar[str] = "LaTeX"

    k: str
    theta: str
    book: Book

    def _write(self, k: str, theta: Callable[[str], str]) -> Self:
        k2 = self.book.name("K")
        theta2 = rf"\Theta_{{{self.book.count}}}"
        self.book.lines += [f"{k2} &= {k}", f"{theta2} &= {theta(k2)}"]
        return type(self)(k2, theta2, self.book)

    def scaled(self, factor: Scalar) -> Self:
        gain = number(factor)
        square = "" if gain == "1" else rf"{gain}^2\,"
        theta = self.theta if self.theta == "0" else square + self.theta
        return type(self)(square + self.k, theta, self.book)

    def biased(self, b_std: Scalar) -> Self:
        bias = number(b_std)
        return self if bias == "0" else type(self)(f"{self.k} + {bias}^2", self.theta, self.book)

    def trained(self) -> Self:
        return self._write(self.k, lambda k: k if self.theta == "0" else f"{k} + {self.theta}")

    def activated(self, activation: Activation) -> Self:
        mean = lambda f: rf"\mathbb E[{f}(u){f}(v)]"
        law = rf", \quad (u,v)\sim\mathcal N(0, {self.k})"
        return self._write(mean(r"\varphi") + law, lambda _: mean(r"\varphi'") + rf"\,{self.theta}")

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        more = "" if is_zero(eps) else f" + {number(eps)}"
        mean = "" if over == "channels" else r"\operatorname{mean}_p "
        size = [
            rf"({mean}{self.k}({x},{x}){more})" if mean or more else f"{self.k}({x},{x})"
            for x in TWO
        ]
        divide = lambda symbol: rf"{symbol}\,/\,\sqrt{{{size[0]}\,{size[1]}}}"
        return self._write(divide(self.k), lambda _: divide(self.theta))

    def dropped(self, keep: Scalar) -> Self:
        kept = rf"\,/\,{number(keep)}\text{{ where }}(x,p)=(x',p')"
        return self._write(f"{self.k}{kept}", lambda _: f"{self.theta}{kept}")

    def windowed(self, window: Window, width: int | None) -> Self:
        total = lambda symbol: (
            symbol
            if symbol == "0"
            else (rf"\tfrac1F\sum_{{o \in {shown_window(window)}}} {symbol}(p(o),p'(o))")
        )
        return self._write(total(self.k), lambda _: total(self.theta))

    def localised(self) -> Self:
        return self._write(rf"1_{{p=p'}}\,({self.k})", lambda _: rf"1_{{p=p'}}\,({self.theta})")

    def mapped(self, pixels: LinearMap) -> Self:
        matrix = shown_map(pixels)
        both = lambda symbol: symbol if symbol == "0" else rf"{matrix}\,({symbol})\,{matrix}^\top"
        return self._write(both(self.k), lambda _: both(self.theta))

    def flattened(self) -> Self:
        mean = lambda symbol: symbol if symbol == "0" else rf"\tfrac1P\sum_p ({symbol})(p,p)"
        return self._write(mean(self.k), lambda _: mean(self.theta))

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        more = rf"{number(std)}^2\,{shown_covariance(decay)}"
        theta = lambda _: f"{self.theta} + {more}" if trained else self.theta
        return self._write(f"{self.k} + {more}", theta)

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        gain = number(layer.q_std * layer.k_std)
        if layer.scaling == "sqrt":
            dot = lambda a, b: rf"\langle {a}, {b}\rangle"
            k, theta, k2, theta2 = queries.k, queries.theta, self.k, self.theta
            square = rf"{gain}^2\,"
            moved = f"{dot(k, k2)} + " if trained else ""  # by queries and keys
            own = f"{theta} + {k}" if trained else theta
            return self._write(
                rf"{square}{dot(k, k2)}\,{k}",
                lambda _: (
                    rf"{square}\left[({dot(theta, k2)} + {moved}{dot(k, theta2)})\,{k}"
                    rf" + {dot(k, k2)}\,({own})\right]"
                ),
            )
        a = [rf"\zeta({gain}\,{queries.k}({x},{x}))" for x in TWO]
        both = lambda symbol: rf"{a[0]}\,({symbol})\,{a[1]}^\top"
        note = rf", \quad \zeta = \text{{{layer.weights}}}"
        return self._write(both(self.k) + note, lambda _: both(self.theta))

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        total = sum(widths)
        mean = lambda symbols: " + ".join(
            rf"\tfrac{{{w}}}{{{total}}}\,({symbol})"
            for w, symbol in zip(widths, symbols, strict=True)
        )
        return self._write(mean([p.k for p in parts]), lambda _: mean([p.theta for p in parts]))

    def multiplied(self, parts: Sequence[Self]) -> Self:
        kernels = [f"({part.k})" for part in parts]
        terms = (
            "".join([f"({part.theta})", *kernels[:i], *kernels[i + 1 :]])
            for i, part in enumerate(parts)
        )
        return self._write("".join(kernels), lambda _: " + ".join(terms))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [multiple(self, skip), *parts]
        total = " + ".join(state.theta for state in met if state.theta != "0") or "0"
        return self._write(" + ".join(state.k for state in met), lambda _: total)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        self.book.lines.append(rf"&\text{{{times} times:}}")
        return step(self)
