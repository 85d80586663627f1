"""What belongs to single inputs with pixels, masks and graphs, and what maps of pixels make of it."""

import dataclasses

from jaxtyping import Array, Bool, Float

from widelimit._base.trees import as_tree
from widelimit.layers import LinearMap

Mask = Bool[Array, " n *sites"]


@as_tree()
@dataclasses.dataclass(frozen=True)
class Extras:
    """What belongs to single inputs: masks and graphs.

    Attributes:
        mask: Where nothing is, shape (n, *sites), or None.
        graph: The transposed adjacencies, shape (n, nodes, nodes), or None.
    """

    mask: Mask | None = None
    graph: Float[Array, "n nodes nodes"] | None = None


def never_negative(pixels: LinearMap) -> bool:
    """Whether no entry of the map can be negative: graphs count as such if their weights are."""
    return all(isinstance(c, float) and c >= 0 for c, _ in pixels.terms) and not pixels.own
