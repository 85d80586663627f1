"""Which networks run by slices, and what slices see of them."""

from typing import NamedTuple

import jax
import numpy as np

from widelimit._base.passes import once_for_each_network
from widelimit.interpret import facts, interpret
from widelimit.layers import Flatten, GlobalAvgPool, GlobalSumPool, Layer, Serial, Sites, Window

from ._demand import demand
from ._displacements import room_for
from ._edges import Edge
from ._plan import Form, split


class Stage(NamedTuple):
    """A network as what slices see of it.

    Attributes:
        body: What acts on pixels, without its numbers.
        tail: What acts on the vector behind the read-out.
        readout: "flatten", "mean" or "sum"; "parts" where pixels remain.
        sites: The sizes of the input's spatial axes.
        around: The sizes of the circles on which displacements wrap.
        looped: Whether repetitions are one loop, the first included: layers whose moments are long to compile.
    """

    body: Form
    tail: Form
    readout: str
    sites: Sites
    around: Sites
    looped: bool


@once_for_each_network
def staged(net: Layer, sites: Sites) -> tuple[Stage, Layer, Layer] | None:
    """The network as a stage, its body and its tail; None where slices do not serve it."""
    layers = net.layers if isinstance(net, Serial) else (net,)
    kinds = {Flatten: "flatten", GlobalAvgPool: "mean", GlobalSumPool: "sum"}
    place = next((i for i, layer in enumerate(layers) if type(layer) in kinds), None)
    if place is None or not sites:
        return None
    body, tail = Serial(*layers[:place]), Serial(*layers[place + 1 :])
    readout = kinds[type(layers[place])]
    if facts(tail).pixels or (readout != "flatten" and demand(net).own):
        return None
    found = circles(body, sites, still=readout == "flatten")
    if found is None:
        return None
    return Stage(split(body)[0], split(tail)[0], readout, sites, *found), body, tail


def circles(body: Layer, sites: Sites, *, still: bool) -> tuple[Sites, bool] | None:
    """The circles on which the displacements of a body wrap, and `Stage.looped`; None where slices do not serve it."""
    activations = facts(body).activations
    if any(not (act.closed_form or act.degree is not None) for act in activations):
        return None  # the general path chooses series by the variances that it meets
    seen: list[tuple[Window, Sites]] = []
    walk = lambda q: interpret(body, Edge(q, sites, [], "float64", still, seen=seen)).q
    try:
        with jax.enable_x64(True):
            jax.eval_shape(walk, jax.ShapeDtypeStruct((*sites, 1), np.float64))
    except ValueError:
        return None
    looped = all(act.angular is None for act in activations)
    looped = looped and all(window.out(before) == before for window, before in seen)
    around = (1,) * len(sites) if still else room_for(sites, seen)
    return None if around is None else (around, looped)
