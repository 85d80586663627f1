"""Inputs for a network: vectors, or pixels in as many axes as it reads."""

import jax
import numpy as np

from widelimit._base.structured import Graphs
from widelimit.describe import check_pixels
from widelimit.interpret import facts
from widelimit.layers import Aggregate, Layer

_SITES = ((4, 3), (5,), (2, 3, 2), ())


def shape_for(net: Layer, d: int = 3) -> tuple[int, ...]:
    """The shape of one input that the network can read."""
    if not facts(net).pixels:
        return (d,)
    reasons = []
    for sites in _SITES:
        try:
            check_pixels(net, sites, 2)
        except ValueError as error:
            reasons.append(str(error))
        else:
            return (*sites, 2)
    raise ValueError(f"No input of one to three spatial axes suits {net}: {reasons[0]}")


def as_batch(net: Layer, x: np.ndarray, rng: np.random.Generator) -> np.ndarray | Graphs:
    """The inputs, with graphs of their own where the network aggregates over them."""
    aggregates = lambda node: isinstance(node, Aggregate)
    if not any(map(aggregates, jax.tree.leaves(net, is_leaf=aggregates))):
        return x
    nodes = x.shape[1]
    return Graphs(x, (rng.uniform(size=(len(x), nodes, nodes)) < 0.5).astype(x.dtype))
