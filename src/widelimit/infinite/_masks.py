"""What belongs to single inputs with pixels, masks and graphs, and what maps of pixels make of it."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from widelimit.layers import LinearMap

Mask = Bool[Array, " n *sites"]


class Extras(eqx.Module):
    """What belongs to single inputs: masks and graphs.

    Attributes:
        mask: Where nothing is, shape (n, *sites), or None.
        graph: The transposed adjacencies, shape (n, nodes, nodes), or None.
    """

    mask: Mask | None = None
    graph: Float[Array, "n nodes nodes"] | None = None


Read = tuple[Float[Array, "..."], Extras]


def both(one: Read, two: Read) -> Read:
    """Two batches in one; where only one has masks, nothing of the other is hidden."""
    (x1, extras1), (x2, extras2) = one, two
    joint = lambda a, b: jnp.concatenate([a, b])
    masks = [
        jnp.zeros(x.shape[:-1], bool) if extras.mask is None else extras.mask
        for x, extras in (one, two)
    ]
    some = extras1.mask is not None or extras2.mask is not None
    graph = None
    if extras1.graph is not None and extras2.graph is not None:
        graph = joint(extras1.graph, extras2.graph)
    return joint(x1, x2), Extras(joint(*masks) if some else None, graph)


def never_negative(pixels: LinearMap) -> bool:
    """Whether no entry of the map can be negative: graphs count as such if their weights are."""
    return all(isinstance(c, float) and c >= 0 for c, _ in pixels.terms) and not pixels.own
