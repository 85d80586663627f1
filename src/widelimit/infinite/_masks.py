"""What belongs to single inputs with pixels, masks and graphs, and what maps of pixels make of it."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Bool, Float

from widelimit.layers import LinearMap, Sites, Whole, centre

Mask = Bool[Array, " n *sites"]


class Extras(eqx.Module):
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


def middle_of(pixels: LinearMap, sites: Sites) -> Sequence[np.ndarray] | None:
    """Under the middle of which pixels the outputs of a map lie, for their masks."""
    single = pixels.single
    if isinstance(single, Whole):
        return None
    window = getattr(single, "window", None)
    if window is not None:
        return centre(window.tables(sites))
    if all(step.out(sites) == sites for _, chain in pixels.terms for step in chain):
        return tuple(np.arange(n) for n in sites)
    raise ValueError(
        "Masked inputs are resized, or meet in a sum of maps that change the number of pixels: which pixels "
        "of the result are masked is not defined. Resize the data before they are masked."
    )
