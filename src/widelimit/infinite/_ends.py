"""From inputs with pixels to a state, and from a state to kernels."""

import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.arrays import is_transformed
from widelimit._base.compile import lean_lone_jit, quick_jit
from widelimit._base.structured import Graphs, Masked
from widelimit.interpret import interpret
from widelimit.layers import Layer, Serial

from ._block import from_pixels
from ._images import Images
from ._layered import kernel_values
from ._masks import Extras
from ._meet import Meeting, Tape, paired, unfolded
from ._plan import Form, Numbers, join, split

T = TypeVar("T")
IDENTITY = Serial()
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


_met, _briefly_met = lean_lone_jit(_as_images), quick_jit(_as_images)


def read(x: Any, dtype: str) -> Read:
    """Inputs as arrays of this precision, and what stands beside them."""
    if isinstance(x, Masked):
        return jnp.asarray(x.seen, dtype), Extras(mask=jnp.asarray(x.mask))
    if isinstance(x, Graphs):
        graph = jnp.swapaxes(jnp.asarray(x.adjacency, jnp.float64), 1, 2)
        return jnp.asarray(x.x, dtype), Extras(graph=graph)
    return jnp.asarray(x, dtype), Extras()


def keys_of(x: Any) -> list[bytes]:
    """What is equal for equal inputs."""
    parts = [np.asarray(x.seen if isinstance(x, Masked) else x.x if isinstance(x, Graphs) else x)]
    if isinstance(x, Masked):
        parts.append(np.asarray(x.mask))
    if isinstance(x, Graphs):
        parts.append(np.asarray(x.adjacency))
    rows = zip(*(np.ascontiguousarray(part) for part in parts), strict=True)
    return [hashlib.blake2b(b"".join(a.tobytes() for a in row)).digest() for row in rows]


def kernels_of(
    state: Images, kernels: tuple[str, ...], dtype: str, last: Layer = IDENTITY
) -> tuple[Float[Array, "..."], ...]:
    """The kernels behind the last layers, where nothing looks at variances: axes (pairs, *pixels, *pixels)."""
    form, numbers = split(last)
    asked = kernels, dtype, form
    if is_transformed((numbers, state)):
        return _answer(asked, numbers, state)
    ask = _briefly_answered if state.small else _answered
    return ask(asked, numbers, dataclasses.replace(state, tape=None, doubt=None, many=0))


def _answer(
    asked: tuple[tuple[str, ...], str, Form], numbers: Numbers, state: Images
) -> tuple[Float[Array, "..."], ...]:
    kernels, dtype, form = asked
    out = interpret(join(form, numbers), state.unwatched())
    values = kernel_values(out.pairs, kernels, out.pairs.size)
    shape = (len(out.meeting.first), *out.sites, *out.sites)
    # Rounded first: outside of a 64-bit context, where derivatives may be taken, there is no gather of doubles.
    return tuple(v.astype(dtype).reshape(shape) for v in values)


_answered, _briefly_answered = lean_lone_jit(_answer), quick_jit(_answer)


def _equal(
    x1: Any,
    x2: Any,
    rows: Int[np.ndarray, " pairs"],
    columns: Int[np.ndarray, " pairs"],
    same: Bool[np.ndarray, " pairs"],
) -> Bool[np.ndarray, " pairs"]:
    """Which pairs are of equal inputs; of unknown ones those that are the same."""
    if is_transformed((x1, x2)):
        return same
    first = keys_of(x1)
    second = first if x2 is None else keys_of(x2)
    return np.array([first[i] == second[j] for i, j in zip(rows, columns, strict=True)], bool)


def of_all_pairs(x1: Any, x2: Any, dtype: str, found: Callable[[Images], T], *, own: bool) -> T:
    """What is found of states (trees of arrays, one value a pair), for all pairs of two batches at once, as matrices.

    `own`: where maps of pixels are asked for variances behind them, so that each input meets itself first.
    """
    n1, n2 = len(x1), None if x2 is None else len(x2)
    first = read(x1, dtype)
    second = first if x2 is None else read(x2, dtype)

    def walk(one: Read, two: Read, pairs: Pairs, tape: Tape | None) -> T:
        state = images_of(one, two, pairs, brief=False)
        return found(dataclasses.replace(state, tape=tape))

    def alone(one: Read, inputs: int) -> tuple[T, Tape]:
        number, same, tape = np.arange(inputs, dtype=np.int32), np.ones(inputs, bool), Tape()
        return walk(one, one, Pairs(number, number, same, same), tape), tape

    numbers = paired(n1, n2, own=not own)
    same = numbers[0] == numbers[1] if n2 is None else np.zeros(len(numbers[0]), bool)
    rows, columns = (a.astype(np.int32) for a in numbers)
    pairs = Pairs(rows, columns, same, _equal(x1, x2, rows, columns, same))
    if not own:
        values = walk(first, second, pairs, None)
        return jax.tree.map(lambda v: unfolded(v, None, n1, n2), values)
    diagonal, tape = alone(first, n1)
    other = tape if n2 is None else alone(second, n2)[1]
    some = len(same) > 0  # one input meets no other
    values = walk(first, second, pairs, Tape((tape.pages, other.pages))) if some else diagonal
    whole = lambda v, d: unfolded(v[: len(same)], d if n2 is None else None, n1, n2)
    return jax.tree.map(whole, values, diagonal)
