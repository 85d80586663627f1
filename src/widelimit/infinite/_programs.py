"""What is compiled for slices, and how well."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from widelimit._base.compile import lean_lone_jit, light_lone_jit, lone_jit, quick_jit
from widelimit._base.thresholds import FEW_IMAGES
from widelimit.interpret import facts

from ._fast import behind, flat_tile, pooled_tile, side_of, twice_around
from ._plan import example
from ._stage import Stage


class Programs(NamedTuple):
    """What is compiled for a network: for single images, for tiles of either read-out, and for what stands behind."""

    side_of: Any
    twice_around: Any
    flat_tile: Any
    pooled_tile: Any
    behind: Any

    @classmethod
    def by(
        cls, compiled: Callable[..., Any], lightly: Callable[..., Any] | None = None
    ) -> "Programs":
        """All of them, compiled in this way; what runs once for many tiles in the second, if there is one."""
        lightly = lightly or compiled
        return cls(
            lightly(side_of, static_argnums=0),
            lightly(twice_around, static_argnums=0),
            compiled(flat_tile, static_argnums=(0, 1, 2)),
            compiled(pooled_tile, static_argnums=(0, 1, 2, 3)),
            lightly(behind, static_argnums=(0, 1, 2, 3)),
        )


WELL, LEAN, BRIEFLY = (
    Programs.by(lone_jit, light_lone_jit),
    Programs.by(lean_lone_jit, light_lone_jit),
    Programs.by(quick_jit),
)


@functools.cache
def programs_for(stage: Stage, side: int) -> Programs:
    """For tiles of this side: compiled well where loops are long and formulas short, otherwise lean.

    All of LLVM's levels write loops over few images out, number by number, before they look for vectors: light
    formulas then take five times as long. Moments that are not functions of the angle compile three times as long.
    """
    activations = facts(example(stage.body)).activations
    short = all(act.angular is not None for act in activations)
    return WELL if short and stage.readout != "flatten" and side > FEW_IMAGES else LEAN


def going(programs: Programs | None = None) -> np.ndarray | None:
    """What makes a CPU write arrays where they are read twice (`written`); an accelerator would stop to ask."""
    here = programs is BRIEFLY or jax.default_backend() == "cpu"
    return np.asarray(True) if here else None
