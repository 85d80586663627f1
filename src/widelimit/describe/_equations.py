"""The forward pass of a network in LaTeX, as a state."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, is_zero
from widelimit.layers import Attention, LinearMap, Window

from ._words import MEAN, Book, braced, multiple, number, shown_covariance, shown_map, shown_window


@dataclasses.dataclass(frozen=True)
class Equations(State):
    """The forward pass.

    Attributes:
        x: The signal's symbol.
        book: Where equations are written.
        weights: The factor of a weight matrix whose equation is not finished, or None.
        bias: Its bias.
        window: Its window, if it slides over pixels.
        local: Whether each pixel has weights of its own.
    """

    question: ClassVar[str] = "LaTeX"

    x: str
    book: Book
    weights: str | None = None
    bias: str = ""
    window: str | None = None
    local: bool = False

    def _write(self, letter: str, rule: str) -> Self:
        out = self.book.name(letter)
        self.book.lines.append(f"{out} &= {rule}")
        return type(self)(out, self.book)

    def weighted(self, width: int | None) -> Self:
        return type(self)(self.trained().x, self.book, "1")

    def scaled(self, factor: Scalar) -> Self:
        if self.weights == "1":
            return dataclasses.replace(self, weights=number(factor))
        return type(self)(rf"{number(factor)}\,{self.trained().x}", self.book)

    def biased(self, b_std: Scalar) -> Self:
        bias = number(b_std)
        if bias == "0":
            return self
        tail = rf" + {bias}\,b_{{{self.book.count + 1}}}"
        if self.weights is None:
            return self._write("g", self.x + tail)
        return dataclasses.replace(self, bias=tail)

    def trained(self) -> Self:
        """The equation of the weights is complete."""
        if self.weights is None:
            return self
        matrix = f"W_{{{self.book.count + 1}{',p' if self.local else ''}}}"
        star, n = (r"\,", "n") if self.window is None else (rf" *_{{{self.window}}} ", "Fn")
        return self._write(
            "g",
            rf"\frac{{{self.weights}}}{{\sqrt{braced(n)}}} {matrix}{star} {self.x}{self.bias}".replace(
                "  ", " "
            ),
        )

    def activated(self, activation: Activation) -> Self:
        rule = activation.latex or rf"\text{{{activation.name}}}(x)"
        x = self.trained().x
        return self._write("x", rf"\varphi({x}), \quad \varphi(x) = {rule}")

    def untrained(self) -> Self:
        return self.trained()

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        x, more = self.trained().x, "" if is_zero(eps) else f" + {number(eps)}"
        mean = MEAN if over == "channels" else r"\operatorname{mean}_{p,c}"
        return self._write("x", rf"{x}\,/\,\sqrt{{{mean}({x}^2){more}}}")

    def centred(self, over: str = "channels") -> Self:
        x = self.trained().x
        mean = MEAN if over == "channels" else r"\operatorname{mean}_{p,c}"
        return self._write("x", rf"{x} - {mean}({x})")

    def dropped(self, keep: Scalar) -> Self:
        x, kept = self.trained().x, number(keep)
        return self._write(
            "x", rf"m \odot {x}\,/\,{kept}, \quad m \sim \operatorname{{Bernoulli}}({kept})"
        )

    def windowed(self, window: Window, width: int | None) -> Self:
        return type(self)(self.trained().x, self.book, "1", window=shown_window(window))

    def localised(self) -> Self:
        return dataclasses.replace(self, local=True)

    def mapped(self, pixels: LinearMap) -> Self:
        x = self.trained().x
        return self._write("x", rf"{shown_map(pixels)}\, {x}")

    def flattened(self) -> Self:
        return self._write("x", rf"\operatorname{{vec}}({self.trained().x})")

    def positioned(self, std: Scalar, decay: float | None, *, trained: bool = True) -> Self:
        law = rf"\quad E_p \sim \mathcal N(0, {shown_covariance(decay)})"
        return self._write("x", rf"{self.trained().x} + {number(std)}\,E, {law}")

    def attended(self, queries: Self, layer: Attention, *, trained: bool = True) -> Self:
        x, seen = self.trained().x, queries.trained().x
        size = "d" if layer.scaling == "linear" else r"\sqrt d"
        gain = number(layer.q_std * layer.k_std)
        zeta = {"softmax": r"\operatorname{softmax}", "identity": "", "relu": r"\max"}.get(
            layer.weights, r"\operatorname{abs}"
        )
        zero = "0, " if layer.weights == "relu" else ""
        inner = rf"{gain}\,(W_Q {seen})^\top (W_K {seen})\,/\,(n {size})"
        return self._write("x", rf"{x}\, {zeta}\left({zero}{inner}\right)^\top")

    def concatenated(self, parts: Sequence[Self], widths: Sequence[int]) -> Self:
        return self._write("x", "[" + ", ".join(part.trained().x for part in parts) + "]")

    def multiplied(self, parts: Sequence[Self]) -> Self:
        return self._write("x", r" \odot ".join(part.trained().x for part in parts))

    def branched(self) -> Self:
        return self.trained()

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [multiple(self, skip), *parts]
        return self._write("x", " + ".join(state.trained().x for state in met))

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        start = self.trained()
        title = f"{times} times, with weights of its own each time:"
        start.book.lines.append(rf"&\text{{{title}}}")
        return step(start)
