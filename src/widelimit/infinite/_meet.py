"""Which inputs meet: pairs in a list, each input with itself first where that is needed."""

from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int


class Meeting(eqx.Module):
    """The pairs of inputs of a block.

    Attributes:
        first: The number of each pair's first input.
        second: That of its second.
        same: Which pairs are one input.
        images: How many inputs meet themselves, at the head of the list: pair i is input i with itself. 0 where no
            layer needs that.
    """

    first: Int[Array, " pairs"]
    second: Int[Array, " pairs"]
    same: Bool[Array, " pairs"]
    images: int = eqx.field(static=True)


class Order(NamedTuple):
    """How pairs are listed.

    Attributes:
        first: The number of each pair's first input, those of the second batch counted behind the first batch's.
        second: That of its second.
        images: How many inputs meet themselves at the head of the list.
        matrix: Where pair (i, j) is in the list, shape (n1, n2); of symmetric pairs that with the smaller number first.
    """

    first: Int[np.ndarray, " pairs"]
    second: Int[np.ndarray, " pairs"]
    images: int
    matrix: Int[np.ndarray, "n1 n2"]

    def meeting(self) -> Meeting:
        """As a part of a state."""
        first, second = jnp.asarray(self.first), jnp.asarray(self.second)
        return Meeting(first, second, jnp.asarray(self.first == self.second), self.images)


def order(n1: int, n2: int | None, *, own: bool) -> Order:
    """All pairs of two batches, or of one with itself (n2 = None); `own`: with the inputs' own pairs in front."""
    i = np.arange(n1, dtype=np.int32)
    if n2 is None:
        rows, columns = np.triu_indices(n1, 1)
        first = np.concatenate([i, rows.astype(np.int32)])
        second = np.concatenate([i, columns.astype(np.int32)])
        matrix = np.empty((n1, n1), np.int32)
        matrix[first, second] = matrix[second, first] = np.arange(len(first))
        return Order(first, second, n1 if own else 0, matrix)
    head = np.arange(n1 + n2 if own else 0, dtype=np.int32)
    first = np.concatenate([head, np.repeat(i, n2)])
    second = np.concatenate([head, np.tile(n1 + np.arange(n2, dtype=np.int32), n1)])
    matrix = (len(head) + np.arange(n1 * n2)).reshape(n1, n2)
    return Order(first, second, len(head), matrix)


def unfolded(values: Float[Array, "..."], found: Order, symmetric: bool) -> Any:
    """From a list of pairs, axes (pairs, *pixels of the first, *pixels of the second), to a matrix of them."""
    whole = values[found.matrix]
    axes = (values.ndim - 1) // 2
    if not symmetric or not axes:
        return whole
    swapped = whole.transpose(0, 1, *range(2 + axes, 2 + 2 * axes), *range(2, 2 + axes))
    below = np.tril(np.ones(found.matrix.shape, bool), -1)
    return jnp.where(below.reshape(*below.shape, *(1,) * (2 * axes)), swapped, whole)
