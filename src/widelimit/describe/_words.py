"""Words of LaTeX that the forward pass and the recursion of the kernels share."""

from typing import TypeVar

from widelimit._base.scalars import Scalar, concrete
from widelimit.interpret import State, is_one
from widelimit.layers import LinearMap, Window

S = TypeVar("S", bound=State)


def number(value: Scalar) -> str:
    """A number with six digits; a dot while it is not known."""
    found = concrete(value)
    return r"\cdot" if found is None else f"{found:.6g}"


MEAN = r"\operatorname{mean}"
TWO = ("x", "x'")


def braced(text: str) -> str:
    """What stands under a root."""
    return f" {text}" if len(text) == 1 else f"{{{text}}}"


def shown_window(window: Window) -> str:
    """A window as an index."""
    size = window.size if isinstance(window.size, tuple) else (window.size,)
    shown = r"\times".join(map(str, size))
    stride = "" if window.stride in (1, (1,) * len(size)) else f",/{window.stride}"
    return f"{shown}{stride}" + ("^\\top" if window.transposed else "")


def shown_map(pixels: LinearMap) -> str:
    """A linear map of pixels."""
    names = {"Pool": r"A", "Whole": r"\bar A", "Resized": "R", "Neighbours": r"G^\top"}
    show = lambda chain: "".join(names[type(step).__name__] for step in reversed(chain)) or "I"
    times = lambda c: "" if is_one(c) else rf"{number(c)}\,"
    total = " + ".join(f"{times(c)}{show(chain)}" for c, chain in pixels.terms)
    return total if len(pixels.terms) == 1 else f"({total})"


def shown_covariance(decay: float | None) -> str:
    """The covariance of positional embeddings."""
    return "1_{p=p'}" if decay is None else rf"e^{{-|p-p'|^2/{decay:g}^2}}"


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


def multiple(state: S, skip: Scalar) -> S:
    return state if is_one(skip) else state.scaled(skip)
