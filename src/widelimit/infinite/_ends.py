"""From inputs with pixels to a state, and from a state to kernels."""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.arrays import is_transformed
from widelimit._base.compile import light_jit, quick_jit
from widelimit._base.structured import Graphs, Masked
from widelimit._base.thresholds import BRIEF_MATRIX

from ._block import from_pixels
from ._images import Images
from ._layered import kernel_values
from ._masks import Extras, Read, both
from ._meet import order, unfolded


def images_of(x1: Any, x2: Any, dtype: str, *, own: bool) -> Images:
    """Two batches of inputs as a state; without the second, the first with itself."""
    first, second = _read(x1, dtype), None if x2 is None else _read(x2, dtype)
    if is_transformed((x1, x2)):
        return _as_images((own, False), first, second)
    pairs = len(x1) ** 2 // 2 if x2 is None else len(x1) * len(x2)
    brief = pairs * math.prod(x1.shape[1:-1]) ** 2 <= BRIEF_MATRIX
    return (_briefly_met if brief else _met)((own, brief), first, second)


def _as_images(options: tuple[bool, bool], one: Read, two: Read | None) -> Images:
    own, brief = options
    x, extras = one if two is None else both(one, two)
    meeting = order(len(one[0]), None if two is None else len(two[0]), own=own).meeting()
    taken = lambda number: jax.tree.map(lambda a: a[number], (x, extras))
    (x1, extras1), (x2, extras2) = taken(meeting.first), taken(meeting.second)
    sites = tuple(x.shape[1:-1])
    return Images(from_pixels(x1, x2), meeting, extras1, extras2, None, sites, brief)


_met, _briefly_met = light_jit(_as_images), quick_jit(_as_images)


def _read(x: Any, dtype: str) -> Read:
    if isinstance(x, Masked):
        return jnp.asarray(x.seen, dtype), Extras(mask=jnp.asarray(x.mask))
    if isinstance(x, Graphs):
        graph = jnp.swapaxes(jnp.asarray(x.adjacency, jnp.float64), 1, 2)
        return jnp.asarray(x.x, dtype), Extras(graph=graph)
    return jnp.asarray(x, dtype), Extras()


def kernels_of(
    state: Images, kernels: tuple[str, ...], n1: int, n2: int | None, dtype: str
) -> tuple[Float[Array, "..."], ...]:
    """The kernels from a state, axes (n1, n2, *pixels, *pixels); n2 = None: of one batch with itself."""
    ask = _answer if is_transformed(state) else _answered
    return ask((kernels, n1, n2, dtype), state)


def _answer(asked: tuple[Any, ...], state: Images) -> tuple[Float[Array, "..."], ...]:
    kernels, n1, n2, dtype = asked
    listed = order(n1, n2, own=n2 is not None and len(state.pairs.minus) > n1 * n2)
    values = kernel_values(state.pairs, kernels, state.pairs.size)
    shape = (len(listed.first), *state.sites, *state.sites)
    # Rounded first: outside of a 64-bit context, where derivatives may be taken, there is no gather of doubles.
    rounded = [v.astype(dtype).reshape(shape) for v in values]
    return tuple(unfolded(v, listed, n2 is None) for v in rounded)


_answered = quick_jit(_answer)
