"""From inputs with pixels to a state, and from a state to kernels."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.arrays import is_transformed
from widelimit._base.compile import light_lone_jit, quick_jit
from widelimit._base.structured import Graphs, Masked

from ._block import from_pixels
from ._images import Images
from ._layered import kernel_values
from ._masks import Extras
from ._meet import Meeting

Read = tuple[Float[Array, "..."], Extras]


class Pairs(NamedTuple):
    """Which inputs of two batches meet.

    Attributes:
        first: Their numbers in the first batch.
        second: Those in the second.
        same: Which pairs are one input.
        equal: Which are equal inputs.
    """

    first: Int[np.ndarray, " pairs"]
    second: Int[np.ndarray, " pairs"]
    same: Bool[np.ndarray, " pairs"]
    equal: Bool[np.ndarray, " pairs"]

    def meeting(self) -> Meeting:
        """As a part of a state."""
        return Meeting(*self)


def images_of(one: Read, two: Read, pairs: Pairs, *, brief: bool) -> Images:
    """Inputs of two batches that meet, as a state."""
    given = one, two, pairs.meeting()
    if is_transformed((one, two)):
        return _as_images((), *given)
    return (_briefly_met if brief else _met)((), *given)


def _as_images(_: tuple[()], one: Read, two: Read, meeting: Meeting) -> Images:
    taken = lambda read, number: jax.tree.map(lambda a: a[number], read)
    (x1, extras1), (x2, extras2) = taken(one, meeting.first), taken(two, meeting.second)
    sites = tuple(x1.shape[1:-1])
    return Images(from_pixels(x1, x2), meeting, extras1, extras2, None, sites)


_met, _briefly_met = light_lone_jit(_as_images), quick_jit(_as_images)


def read(x: Any, dtype: str) -> Read:
    """Inputs as arrays of this precision, and what stands beside them."""
    if isinstance(x, Masked):
        return jnp.asarray(x.seen, dtype), Extras(mask=jnp.asarray(x.mask))
    if isinstance(x, Graphs):
        graph = jnp.swapaxes(jnp.asarray(x.adjacency, jnp.float64), 1, 2)
        return jnp.asarray(x.x, dtype), Extras(graph=graph)
    return jnp.asarray(x, dtype), Extras()


def kernels_of(
    state: Images, kernels: tuple[str, ...], dtype: str
) -> tuple[Float[Array, "..."], ...]:
    """The kernels of a state's pairs, axes (pairs, *pixels, *pixels)."""
    ask = _answer if is_transformed(state) else _answered
    return ask((kernels, dtype), state)


def _answer(asked: tuple[tuple[str, ...], str], state: Images) -> tuple[Float[Array, "..."], ...]:
    kernels, dtype = asked
    values = kernel_values(state.pairs, kernels, state.pairs.size)
    shape = (len(state.meeting.first), *state.sites, *state.sites)
    # Rounded first: outside of a 64-bit context, where derivatives may be taken, there is no gather of doubles.
    return tuple(v.astype(dtype).reshape(shape) for v in values)


_answered = quick_jit(_answer)
