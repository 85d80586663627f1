"""A network, and its kernel recursion, in LaTeX: two more states."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from widelimit._base.scalars import Scalar, concrete
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import State, interpret, is_one
from widelimit.layers import Layer

from ._check import check

S = TypeVar("S", bound=State)


def _number(value: Scalar) -> str:
    number = concrete(value)
    return r"\cdot" if number is None else f"{number:.6g}"


class Book:
    """The equations so far; every signal of a network writes into the same one."""

    def __init__(self, *lines: str):
        self.lines, self.count = [*lines], 0

    def name(self, letter: str) -> str:
        """A new symbol."""
        self.count += 1
        return f"{letter}_{{{self.count}}}"

    def aligned(self, last: str) -> str:
        """All equations, as an `aligned` environment."""
        return "\\begin{aligned}\n" + " \\\\\n".join([*self.lines, last]) + "\n\\end{aligned}"


@dataclasses.dataclass(frozen=True)
class Equations(State):
    """The forward pass.

    Attributes:
        x: The signal's symbol.
        book: Where equations are written.
        weights: The factor of a weight matrix whose equation is not finished, or None.
        bias: Its bias.
    """

    question: ClassVar[str] = "LaTeX"

    x: str
    book: Book
    weights: str | None = None
    bias: str = ""

    def _write(self, letter: str, rule: str) -> Self:
        out = self.book.name(letter)
        self.book.lines.append(f"{out} &= {rule}")
        return type(self)(out, self.book)

    def weighted(self, width: int | None) -> Self:
        return type(self)(self.trained().x, self.book, "1")

    def scaled(self, factor: Scalar) -> Self:
        if self.weights == "1":
            return type(self)(self.x, self.book, _number(factor))
        return type(self)(rf"{_number(factor)}\,{self.trained().x}", self.book)

    def biased(self, b_std: Scalar) -> Self:
        bias = _number(b_std)
        if bias == "0":
            return self
        tail = rf" + {bias}\,b_{{{self.book.count + 1}}}"
        if self.weights is None:
            return self._write("g", self.x + tail)
        return type(self)(self.x, self.book, self.weights, tail)

    def trained(self) -> Self:
        """The equation of the weights is complete."""
        if self.weights is None:
            return self
        matrix = f"W_{{{self.book.count + 1}}}"
        return self._write(
            "g", rf"\frac{{{self.weights}}}{{\sqrt n}} {matrix}\, {self.x}{self.bias}"
        )

    def activated(self, activation: Activation) -> Self:
        rule = activation.latex or rf"\text{{{activation.name}}}(x)"
        x = self.trained().x
        return self._write("x", rf"\varphi({x}), \quad \varphi(x) = {rule}")

    def normalised(self) -> Self:
        x = self.trained().x
        return self._write("x", rf"{x}\,/\,\sqrt{{\operatorname{{mean}}({x}^2)}}")

    def branched(self) -> Self:
        return self.trained()

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [_multiple(self, skip), *parts]
        return self._write("x", " + ".join(state.trained().x for state in met))

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        start = self.trained()
        title = f"{times} times, with weights of its own each time:"
        start.book.lines.append(rf"&\text{{{title}}}")
        return step(start)


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
        gain = _number(factor)
        square = "" if gain == "1" else rf"{gain}^2\,"
        theta = self.theta if self.theta == "0" else square + self.theta
        return type(self)(square + self.k, theta, self.book)

    def biased(self, b_std: Scalar) -> Self:
        bias = _number(b_std)
        return self if bias == "0" else type(self)(f"{self.k} + {bias}^2", self.theta, self.book)

    def trained(self) -> Self:
        return self._write(self.k, lambda k: k if self.theta == "0" else f"{k} + {self.theta}")

    def activated(self, activation: Activation) -> Self:
        mean = lambda f: rf"\mathbb E[{f}(u){f}(v)]"
        law = rf", \quad (u,v)\sim\mathcal N(0, {self.k})"
        return self._write(mean(r"\varphi") + law, lambda _: mean(r"\varphi'") + rf"\,{self.theta}")

    def normalised(self) -> Self:
        over = lambda symbol: rf"{symbol}\,/\,\sqrt{{{self.k}(x,x)\,{self.k}(x',x')}}"
        return self._write(over(self.k), lambda _: over(self.theta))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        met = [*parts] if skip is None else [_multiple(self, skip), *parts]
        total = " + ".join(state.theta for state in met if state.theta != "0") or "0"
        return self._write(" + ".join(state.k for state in met), lambda _: total)

    def repeated(self, step: Callable[[Self], Self], times: int) -> Self:
        self.book.lines.append(rf"&\text{{{times} times:}}")
        return step(self)


def _multiple(state: S, skip: Scalar) -> S:
    return state if is_one(skip) else state.scaled(skip)


def latex(net: Layer) -> str:
    r"""The network's equations in LaTeX (an `aligned` environment).

    Args:
        net: The network.

    Returns:
        LaTeX to put between `\[` and `\]`.

    Example:
        >>> import widelimit as wl
        >>> print(latex(wl.Dense() >> wl.Phi("relu") >> wl.Dense(w_std=1.5)))
        \begin{aligned}
        g_{1} &= \frac{1}{\sqrt n} W_{1}\, x \\
        x_{2} &= \varphi(g_{1}), \quad \varphi(x) = \max(0,x) \\
        g_{3} &= \frac{1.5}{\sqrt n} W_{3}\, x_{2} \\
        f(x) &= g_{3}
        \end{aligned}
    """
    check(net)
    out = interpret(net, Equations("x", Book())).trained()
    return out.book.aligned(f"f(x) &= {out.x}")


def latex_kernels(net: Layer) -> str:
    r"""The recursion of the network's NNGP and tangent kernels in LaTeX.

    Args:
        net: The network.

    Returns:
        LaTeX to put between `\[` and `\]`.

    Example:
        >>> import widelimit as wl
        >>> print(latex_kernels(wl.Dense() >> wl.Phi("relu") >> wl.Dense()))
        \begin{aligned}
        K_{0} &= \langle x, x'\rangle/d \\
        K_{1} &= K_{0} \\
        \Theta_{1} &= K_{1} \\
        K_{2} &= \mathbb E[\varphi(u)\varphi(v)], \quad (u,v)\sim\mathcal N(0, K_{1}) \\
        \Theta_{2} &= \mathbb E[\varphi'(u)\varphi'(v)]\,\Theta_{1} \\
        K_{3} &= K_{2} \\
        \Theta_{3} &= K_{3} + \Theta_{2} \\
        K &= K_{3}, \quad \Theta = \Theta_{3}
        \end{aligned}
    """
    check(net)
    out = interpret(net, Recursion("K_{0}", "0", Book(r"K_{0} &= \langle x, x'\rangle/d")))
    return out.book.aligned(rf"K &= {out.k}, \quad \Theta = {out.theta}")
