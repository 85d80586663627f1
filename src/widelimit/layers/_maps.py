r"""Linear maps of pixels: $y_p=\sum_aA_{pa}x_a$, the same for every channel.

Pools, resizing and the aggregation over a graph are such maps; so are their chains and sums, which is what
a branch without weights is.
"""

import dataclasses
import functools
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from widelimit._base.scalars import Scalar

from ._windows import Sites, Window, centre

Matrix = Float[np.ndarray, "positions pixels"]


@dataclasses.dataclass(frozen=True)
class Pool:
    """Sums or averages of windows.

    Attributes:
        window: The window.
        average: Whether the sum is divided by the number of taps.
        normalise_edges: Whether it is divided by the number of pixels that exist.
    """

    window: Window
    average: bool = True
    normalise_edges: bool = False

    def out(self, sites: Sites) -> Sites:
        """The sizes of the output's axes."""
        return self.window.out(sites)

    def refuse(self, sites: Sites) -> str | None:
        """Why there is no such map, or None."""
        return self.window.refuse(sites)

    def factors(self, sites: Sites) -> tuple[Matrix, ...]:
        """A matrix for each axis; the map is their Kronecker product."""
        found = []
        for table, n in zip(self.window.tables(sites), sites, strict=True):
            matrix = (table[:, :, None] == np.arange(n)[None, None, :]).sum(axis=1).astype(float)
            if self.average:
                taps = matrix.sum(axis=1) if self.normalise_edges else table.shape[1]
                matrix = matrix / np.reshape(taps, (-1, 1))
            found.append(matrix)
        return tuple(found)


@dataclasses.dataclass(frozen=True)
class Whole:
    """The sum or average of all pixels; the output is a vector."""

    average: bool = True

    def out(self, sites: Sites) -> Sites:
        """No axes remain."""
        return ()

    def refuse(self, sites: Sites) -> str | None:
        """There always is one."""
        return None

    def factors(self, sites: Sites) -> tuple[Matrix, ...]:
        """A matrix for each axis."""
        return tuple(np.full((1, n), 1 / n if self.average else 1.0) for n in sites)


@dataclasses.dataclass(frozen=True)
class Resized:
    """Interpolation to another number of pixels.

    Attributes:
        shape: The new sizes.
        method: "linear" or "nearest".
    """

    shape: Sites
    method: str = "linear"

    def out(self, sites: Sites) -> Sites:
        """The new sizes."""
        return self.shape

    def refuse(self, sites: Sites) -> str | None:
        """The number of axes must be that of the input."""
        if len(sites) == len(self.shape):
            return None
        return f"its shape {self.shape} is for images of {len(self.shape)} axes, the input has {len(sites)}."

    def factors(self, sites: Sites) -> tuple[Matrix, ...]:
        """A matrix for each axis: half-pixel centres; when shrinking, the triangle is widened."""
        rule = _nearest if self.method == "nearest" else _linear
        return tuple(rule(n, m) for n, m in zip(sites, self.shape, strict=True))


def _nearest(n: int, m: int) -> Matrix:
    source = np.floor((np.arange(m) + 0.5) * n / m).astype(int)
    return (source[:, None] == np.arange(n)[None, :]).astype(float)


def _linear(n: int, m: int) -> Matrix:
    centre = (np.arange(m) + 0.5) * n / m - 0.5
    reach = max(n / m, 1.0)
    weight = np.maximum(0, 1 - np.abs(centre[:, None] - np.arange(n)[None, :]) / reach)
    return weight / weight.sum(axis=1, keepdims=True)


@dataclasses.dataclass(frozen=True)
class Neighbours:
    """The sum over the neighbours of a node in the input's own graph (`Graphs`)."""

    def out(self, sites: Sites) -> Sites:
        """The same nodes."""
        return sites

    def refuse(self, sites: Sites) -> str | None:
        """Nodes have one axis."""
        if len(sites) == 1:
            return None
        return f"a graph's nodes have one axis, the input has {len(sites)}."


Elementary = Pool | Whole | Resized | Neighbours


@dataclasses.dataclass(frozen=True)
class LinearMap:
    r"""$\sum_ic_iA_{i1}A_{i2}\cdots$: chains of elementary maps (first applied first), with factors.

    Attributes:
        terms: Factors and chains; an empty chain is the identity.
    """

    terms: tuple[tuple[Scalar, tuple[Elementary, ...]], ...] = ((1.0, ()),)

    @staticmethod
    def of(elementary: Elementary) -> "LinearMap":
        """One map."""
        return LinearMap(((1.0, (elementary,)),))

    @property
    def factor(self) -> Scalar | None:
        """The number by which the signal is multiplied, if nothing else happens to it."""
        if not self.terms or any(chain for _, chain in self.terms):
            return None
        return functools.reduce(lambda a, b: a + b, [c for c, _ in self.terms])

    @property
    def single(self) -> Elementary | None:
        """The only elementary map, if there is but one, once."""
        if (
            len(self.terms) == 1
            and len(self.terms[0][1]) == 1
            and isinstance(self.terms[0][0], float)
        ):
            return self.terms[0][1][0] if self.terms[0][0] == 1 else None
        return None

    @property
    def own(self) -> bool:
        """Whether the matrix depends on the single input (its graph)."""
        return any(isinstance(m, Neighbours) for _, chain in self.terms for m in chain)

    def times(self, factor: Scalar) -> "LinearMap":
        """A multiple."""
        return LinearMap(tuple((c * factor, chain) for c, chain in self.terms))

    def plus(self, other: "LinearMap") -> "LinearMap":
        """The sum; multiples of the identity are added up."""
        terms: dict[tuple[Elementary, ...], Any] = {}
        for c, chain in (*self.terms, *other.terms):
            terms[chain] = terms[chain] + c if chain in terms else c
        return LinearMap(tuple((c, chain) for chain, c in terms.items()))

    def after(self, first: "LinearMap") -> "LinearMap":
        """This map behind another."""
        return LinearMap(
            tuple(
                (a * b, (*before, *chain)) for a, before in first.terms for b, chain in self.terms
            )
        )

    def out(self, sites: Sites) -> Sites:
        """The sizes of the output's axes."""
        found = sites
        for _, chain in self.terms[:1]:
            for step in chain:
                found = step.out(found)
        return found

    def refuse(self, sites: Sites) -> str | None:
        """Why there is no such map of these pixels, or None."""
        ends = set()
        for _, chain in self.terms:
            here = sites
            for step in chain:
                why = step.refuse(here)
                if why is not None:
                    return why
                here = step.out(here)
            ends.add(here)
        if len(ends) > 1:
            return f"its branches have different numbers of pixels: {sorted(ends)}."
        return None

    def middle(self, sites: Sites) -> tuple[Int[np.ndarray, " positions"], ...] | None:
        """For each axis, under which pixel each output lies, whose mask it takes; None: no pixels remain."""
        if isinstance(self.single, Whole):
            return None
        if isinstance(self.single, Pool):
            return centre(self.single.window.tables(sites))
        if all(step.out(sites) == sites for _, chain in self.terms for step in chain):
            return tuple(np.arange(n) for n in sites)
        raise ValueError(
            "Masked inputs are resized, or meet in a sum of maps that change the number of pixels: which "
            "pixels of the result are masked is not defined. Resize the data before they are masked."
        )

    def matrix(self, sites: Sites, graph: Any = None) -> Any:
        """The whole matrix, pixels in row-major order.

        Args:
            sites: The sizes of the input's axes.
            graph: The matrices of `Neighbours`, shape (n, nodes, nodes), where they occur.

        Returns:
            NumPy where all factors are known numbers; shape (P', P), or (n, P', P) for graphs.
        """
        total = None
        for c, chain in self.terms:
            here, product = sites, np.eye(int(np.prod(sites)))
            for step in chain:
                if isinstance(step, Neighbours):
                    product = graph @ product
                else:
                    product = (
                        functools.reduce(np.kron, step.factors(here), np.ones((1, 1))) @ product
                    )
                here = step.out(here)
            part = product if isinstance(c, float) and c == 1 else c * product
            total = part if total is None else total + part
        return total
