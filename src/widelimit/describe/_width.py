"""One number of channels, perhaps not known yet, and the weights that it counts."""

from collections.abc import Sequence
from typing import NamedTuple

from widelimit.layers import Layer


class Width:
    """A number of channels, perhaps not known yet.

    Attributes:
        layer: The layer that stated it, if one did.
        share: How many times the usual width it is, unless something else is said (`Concat`).
    """

    def __init__(self, value: int | None = None, layer: Layer | None = None):
        self._value, self._same, self.layer, self.share = value, None, layer, 1

    def _root(self) -> "Width":
        width = self
        while width._same is not None:
            width = width._same
        return width

    @property
    def known(self) -> int | None:
        """The number, or None."""
        return self._root()._value

    def times(self, number: int) -> "Width":
        """So many times as many; known once this is."""
        return self if number == 1 else Multiple(((self, number),))

    def __int__(self) -> int:
        value = self.known
        assert value is not None, "widths are read after they have been inferred"
        return value

    def default(self, value: int | None) -> None:
        """What the number is unless something else was said."""
        root = self._root()
        if root.known is None and value is not None:
            root._value = value * root.share

    def shared(self, share: int) -> None:
        """What is still open will be so many times the usual width."""
        self._root().share = share

    def meet(self, other: "Width") -> None:
        """From now on the two are one."""
        a, b = self._root(), other._root()
        if a is b:
            return
        if a._value is not None and b._value is not None and a._value != b._value:
            raise self._conflict(other)
        if b._value is None:
            a, b = b, a
        a._same = b

    def _conflict(self, other: "Width") -> ValueError:
        loud, quiet = (self, other) if self._root().layer is not None else (other, self)
        layer = loud._root().layer
        if layer is None:
            return ValueError(
                f"A signal of width {loud.known} stands where one of width {quiet.known} belongs; "
                "put a Dense() there."
            )
        return ValueError(
            f"{layer} states the width {loud.known}, but its place asks for {quiet.known}: paths "
            "that are added have one width, a residual branch that of its skip path, and the last "
            "layer that of the output. Leave the width out, or make the two agree."
        )


class Multiple(Width):
    """A sum of multiples of other widths: what `Flatten` and `Concat` make of them."""

    def __init__(self, parts: Sequence[tuple[Width, int]]):
        super().__init__()
        self.parts = parts

    @property
    def known(self) -> int | None:
        found = [(width.known, number) for width, number in self.parts]
        if self._same is None and all(value is not None for value, _ in found):
            self._value = sum(value * number for value, number in found if value is not None)
        return super().known


class Weights(NamedTuple):
    """Random numbers of a layer: a matrix, or a bias where there is no fan-in.

    Attributes:
        fan_in: The number of channels that are read.
        fan_out: The number that are made.
        copies: How many such groups there are: one for each tap of a window, and for each pixel of a
            layer that has weights of its own there.
        trained: Whether they are trained.
    """

    fan_in: Width | None
    fan_out: Width
    copies: int = 1
    trained: bool = True

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return self.copies * int(self.fan_out) * (1 if self.fan_in is None else int(self.fan_in))
