"""A batch of images on its way through the body of a network: what slices read of it."""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from widelimit._base.numerics import safe_divide, safe_sqrt
from widelimit.interpret import interpret

from ._displacements import doubled_up, moved_by
from ._edges import HALF, Edge, inverse, written
from ._plan import Numbers, join
from ._stage import Stage

Array_ = Float[Array, "..."]


class Side(NamedTuple):
    """A batch of images on its way through the body.

    Attributes:
        unit: The pixels' directions, axes (*pixels, images, channels).
        tape: What the slices read.
        end: Shares of the read-out, axes (*pixels, images).
        q: The variance behind the read-out, shape (images,).
    """

    unit: Array_
    tape: list[Any]
    end: Array_
    q: Array_


def side_of(stage: Stage, numbers: Numbers, x: Array_, go: Bool[Array, ""] | None) -> Side:
    """What belongs to single images, once for each; x of shape (n, *sites, channels)."""
    k, channels = len(stage.sites), x.shape[-1]
    wide = jnp.moveaxis(x.astype(jnp.float64), 0, k)
    square = jnp.sum(wide**2, axis=-1)
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))
    unit = (wide / norm[..., None]).astype(x.dtype)
    tape: list[Any] = []
    still = stage.readout == "flatten"
    start = Edge(square / channels, stage.sites, tape, str(x.dtype), still, go=go)
    out = interpret(join(stage.body, numbers), start)
    pixels = tuple(range(len(out.sites)))
    if stage.readout == "flatten":
        total = jnp.sum(out.q, axis=pixels, keepdims=True)
        end = HALF * safe_sqrt(out.q) * inverse(total)
        return Side(unit, tape, end.astype(x.dtype), total.reshape(-1) / math.prod(out.sites))
    if stage.readout == "parts":
        return Side(unit, tape, safe_sqrt(out.q).astype(x.dtype), jnp.zeros((1,), jnp.float64))
    size = math.prod(out.sites) if stage.readout == "mean" else 1
    root = safe_sqrt(out.q) / size
    total = jnp.sum(root, axis=pixels)
    end = safe_divide(root, jnp.broadcast_to(total, root.shape))
    return Side(unit, tape, end.astype(x.dtype), total**2)


class Twice(eqx.Module):
    """Images whose displacements are slices: what belongs to pixels once around the circle, and again.

    Attributes:
        groups: Arrays side by side, along the last axis, where they have the same other axes: a CPU moves few long
            ones faster than many.
        q: The variances behind the read-out.
        places: For each array its group, where it begins and ends there, and its shape.
        tree: What they are.
    """

    groups: list[Array_]
    q: Array_
    places: tuple[tuple[int, int, int, tuple[int, ...]], ...] = eqx.field(static=True)
    tree: Any = eqx.field(static=True)

    @classmethod
    def around(cls, stage: Stage, side: Side) -> "Twice":
        """From images once around."""
        leaves, tree = jax.tree.flatten((side.unit, side.tape, side.end))
        flat = [leaves[0].reshape(*leaves[0].shape[:-2], -1), *leaves[1:]]
        apart = jax.default_backend() != "cpu"
        kinds = [(a.shape[:-1], a.dtype, i if apart else 0) for i, a in enumerate(flat)]
        order = [*dict.fromkeys(kinds)]
        groups: list[list[Array_]] = [[] for _ in order]
        places = []
        for leaf, kind, whole in zip(flat, kinds, leaves, strict=True):
            number = order.index(kind)
            start = sum(a.shape[-1] for a in groups[number])
            groups[number].append(leaf)
            places.append((number, start, start + leaf.shape[-1], whole.shape))
        joined = [jnp.concatenate(group, axis=-1) for group in groups]
        return cls([doubled_up(stage.around, a, 1) for a in joined], side.q, tuple(places), tree)

    def moved(self, stage: Stage, move: Array, go: Bool[Array, ""] | None) -> Side:
        """Images by a displacement away."""
        by = lambda move: [moved_by(stage.around, a, move, 1) for a in self.groups]
        groups = written(go, by, move)
        parts = [groups[g][..., a:b].reshape(shape) for g, a, b, shape in self.places]
        unit, tape, end = jax.tree.unflatten(self.tree, parts)
        return Side(unit, tape, end, self.q)
