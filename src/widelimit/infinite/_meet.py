"""Which inputs meet: a list of pairs, and what maps of pixels need of each input by itself."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.arrays import is_transformed
from widelimit._base.compile import light_lone_jit
from widelimit._base.thresholds import LARGE_PAGE
from widelimit._base.trees import as_tree
from widelimit._base.types import Tensor

T = TypeVar("T")
# What the maps of one layer need of single inputs: arrays with an axis of inputs in front, or pages of inner layers.
Page = tuple[Any, ...]


@as_tree()
@dataclasses.dataclass(frozen=True)
class Meeting:
    """The pairs of inputs of a block.

    Attributes:
        first: The number of each pair's first input.
        second: That of its second.
        same: Which pairs are one input.
        equal: Which are equal inputs that nothing random tells apart: pixels at one place have correlation 1.
    """

    first: Int[Tensor, " pairs"]
    second: Int[Tensor, " pairs"]
    same: Bool[Tensor, " pairs"]
    equal: Bool[Tensor, " pairs"]


class OfPairs(NamedTuple):
    """Pages laid out for pairs."""

    first: Page
    second: Page


class Tape:
    """What maps of pixels need of single inputs: written where each meets itself, read where inputs meet others.

    Attributes:
        pages: What was written, in the order of the layers.
        inner: Whether it is that of one layer.
        laid_out: Whether what it holds has an axis of pairs in front, instead of one of inputs.
    """

    def __init__(self, given: Sequence[Sequence[Any]] | None = None, *, inner: bool = False):
        self.pages: list[Any] = []
        self.inner, self.laid_out = inner, isinstance(given, OfPairs)
        # Of the first and of the second inputs, side by side.
        self._given = None if given is None else iter([*zip(*given, strict=True)])

    def of(self, make: Callable[[], T], meeting: Meeting) -> tuple[T, T]:
        """What is needed of the first and of the second input of each pair."""
        if self._given is None:
            record = make()
            self.pages.append(record)
            return record, record
        return self._for_pairs(next(self._given), meeting)

    def turned(self, meeting: Meeting) -> tuple[Page, ...]:
        """The pages of both inputs for the next layer; none if it writes, or has no maps.

        Large ones are laid out for its pairs by a program of its own: XLA would make products of matrices twice as slow
        that it fuses with a gather.
        """
        if self._given is None:
            return ()
        pages = next(self._given)
        if not pages[0]:
            return ()
        if self.inner:
            return OfPairs(*pages) if self.laid_out else pages
        large = max(a.size // len(a) for a in jax.tree.leaves(pages[0])) > LARGE_PAGE
        if not large or is_transformed((pages, meeting)):
            return pages
        return OfPairs(*_laid_out((), pages, (meeting.first, meeting.second)))

    def _for_pairs(self, records: tuple[T, T], meeting: Meeting) -> tuple[T, T]:
        return records if self.laid_out else _of_pairs((), records, (meeting.first, meeting.second))

    def filed(self, page: Page) -> None:
        """What the layer has written."""
        if self._given is None:
            self.pages.append(page)
        elif page:
            raise RuntimeError(
                "A layer has maps of pixels where inputs meet others, and none where one is alone."
            )


def _of_pairs(_: tuple[()], records: tuple[Any, Any], numbers: tuple[Any, Any]) -> tuple[Any, Any]:
    one, two = (
        jax.tree.map(lambda a, number=number: _rows(a, number), record)
        for record, number in zip(records, numbers, strict=True)
    )
    return one, two


@jax.custom_jvp
def _rows(
    a: Float[Array, "inputs ..."], number: Int[Tensor, " pairs"]
) -> Float[Array, "pairs ..."]:
    """Some rows.

    Derivatives are a product: outside of a 64-bit context, where they may be taken, there is no gather of doubles.
    """
    return a[number]


@_rows.defjvp
def _rows_jvp(primals, tangents):
    a, number = primals
    reads = (
        jnp.arange(len(a), dtype=jnp.int32)[None, :] == jnp.asarray(number, jnp.int32)[:, None]
    ).astype(a.dtype)
    over_inputs = (((1,), (0,)), ((), ()))
    return _rows(a, number), jax.lax.dot_general(
        reads, tangents[0], over_inputs, precision=jax.lax.Precision.HIGHEST
    )


_laid_out = light_lone_jit(_of_pairs)


def paired(
    n1: int, n2: int | None, *, own: bool
) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]]:
    """The numbers of both inputs of all pairs; of one batch (n2 = None) those above the diagonal, and on it (`own`)."""
    if n2 is None:
        return np.triu_indices(n1, 0 if own else 1)
    return np.repeat(np.arange(n1), n2), np.tile(np.arange(n2), n1)


def swapped(values: Any) -> Any:
    """The kernels of the exchanged pairs, axes (pairs, *pixels of the first, *pixels of the second)."""
    axes = (values.ndim - 1) // 2
    return values.transpose(0, *range(1 + axes, 1 + 2 * axes), *range(1, 1 + axes))


def unfolded(
    values: Float[Array, "..."], alone: Float[Array, "..."] | None, n1: int, n2: int | None
) -> Float[Array, "..."]:
    """From the values of all pairs to a matrix of them; `alone`: those of each input with itself, not in the list."""
    if n2 is not None:
        return values.reshape(n1, n2, *values.shape[1:])
    rows, columns = paired(n1, None, own=alone is None)
    place = np.zeros((n1, n1), int)
    place[rows, columns] = np.arange(len(rows))
    below = np.tri(n1, k=-1, dtype=bool)
    place[below] = place.T[below] + len(rows)
    everything = [values, swapped(values)]
    if alone is not None:
        place[np.diag_indices(n1)] = 2 * len(rows) + np.arange(n1)
        everything.append(alone)
    return jnp.concatenate(everything)[place]
