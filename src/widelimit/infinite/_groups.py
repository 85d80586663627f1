"""Kernels by blocks: each input with itself once, then groups of pairs, dealt out to the cores.

What maps of pixels need of an input (`Tape`) is found where it meets itself. Pairs of different inputs read it, so a
group holds any pairs of two batches, as many as stay in a core's cache.
"""

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from widelimit._base.abreast import abreast, cores
from widelimit._base.thresholds import (
    BLOCK_ENTRIES,
    BLOCK_SIDE,
    BRIEF_MATRIX,
    GROUP_BYTES,
    REFINED,
)
from widelimit.interpret import interpret
from widelimit.layers import Layer, Sites

from ._demand import Demand, demand, parted
from ._doubt import Doubt
from ._ends import Pairs, Read, images_of, kernels_of, keys_of, read
from ._fast import Side
from ._meet import Page, Tape, paired, swapped
from ._plan import split
from ._stages import (
    Coarse,
    Coarsened,
    behind_pool,
    coarse_side,
    coarsened,
    first_sums,
    sides_of,
)

Values = tuple[Float[np.ndarray, "pairs ..."], ...]


class Batch(NamedTuple):
    """Some inputs, and what is known of each by itself.

    Attributes:
        x: The inputs.
        read: The same as arrays; beyond the last it is repeated.
        keys: What is equal for equal inputs.
        pages: What maps of pixels need of each; None where no layer asks.
        values: Their kernels with themselves, likewise.
        doubt: How far these are off, by estimate; None where nothing is in doubt.
        side: What a first stage by slices needs of each.
        inner: Its sums for all pairs among these inputs, until they are used.
    """

    x: Any
    read: Read
    keys: list[bytes]
    pages: tuple[Page, ...] | None = None
    values: Values | None = None
    doubt: Float[np.ndarray, " n"] | None = None
    side: Side | None = None
    inner: Coarsened | None = None

    @property
    def used(self) -> int:
        """How many inputs there are."""
        return len(self.keys)

    @property
    def nbytes(self) -> int:
        """What it keeps."""
        return sum(a.nbytes for a in jax.tree.leaves((self.pages, self.values, self.side)))


class Found(NamedTuple):
    """The kernels of pairs, axes (pairs, *pixels, *pixels), and how far they are off, by estimate.

    Of all pairs of two batches: axes (n1, n2, *pixels, *pixels), and (n1, n2).
    """

    values: Values
    doubt: Float[np.ndarray, "..."] | None


class Blocks:
    """A network whose kernels are computed by blocks, in one precision.

    Attributes:
        side: How many inputs a batch has at most: a power of two.
    """

    def __init__(
        self,
        net: Layer,
        sites: Sites,
        kernels: tuple[str, ...],
        dtype: str,
        points: int,
        *,
        plain: bool,
    ):
        """For so many inputs; `plain`: arrays without masks or graphs."""
        self._kernels, self._dtype = kernels, dtype
        self._stage: tuple[Coarse, Any] | None = None
        found = coarsened(net, sites) if plain and math.prod(sites) ** 3 > REFINED else None
        self._asked: Demand = demand(net)
        least = 2 ** math.ceil(math.log2(points))
        entries = math.prod(sites) ** 2
        if found is None:
            room = 2 ** int(math.log2(max(BLOCK_ENTRIES // entries, 4)) / 2)
            self.side = min(room, BLOCK_SIDE, least)
        else:
            coarse, body, net = found
            self._stage = coarse, split(body)[1]
            self.side = coarse_side(coarse, points)
            entries //= math.prod(coarse.pool) ** 2
        self._watched, self._last = parted(net)
        self._kind = split(net)[0], sites, kernels, dtype, plain, found is None
        self._brief = points * (points + 1) // 2 * entries <= BRIEF_MATRIX
        self._cores = 1 if self._brief else cores()
        size = np.dtype(dtype).itemsize
        room = 2 ** int(math.log2(max(GROUP_BYTES // (entries * size), 1)))
        self._few = max(min(self.side // self._cores, room), 1)  # of a batch, for each core
        most = self.side**2 // self._cores
        # Groups of both kinds share programs unless the pairs of images are small.
        self._many = min(room, most) if min(room, most) >= 8 * self._few else self._few
        if jax.default_backend() != "cpu":
            self._few, self._many = self.side, self.side**2

    def batch(self, x: Any, among: int, *, inner: bool) -> Batch:
        """These inputs, of so many, by themselves; `inner`: their pairs will be asked for too.

        The last of several batches is filled up to the size of the others, for which everything is compiled.
        """
        size = min(self.side, 2 ** math.ceil(math.log2(among)))
        full = x[np.minimum(np.arange(size), len(x) - 1)]
        out = Batch(x, read(full, self._dtype), keys_of(x))
        if self._stage is not None:
            coarse, numbers = self._stage
            side = sides_of(coarse, numbers, out.read[0])
            sums = first_sums(coarse, self._kernels, side, None, alone=not inner)
            out = out._replace(side=side, inner=sums)
        if not self._asked.own:
            return out
        number = np.arange(len(x))
        done, pages = self._run(out, out, out.inner, (number, number), None)
        out = out._replace(pages=pages, values=done.values, doubt=done.doubt)
        return out if inner else out._replace(inner=None)

    def alone(self, batch: Batch) -> Found:
        """Each input with itself."""
        if batch.values is not None:
            return Found(batch.values, batch.doubt)
        number = np.arange(batch.used)
        return self._run(batch, batch, None, (number, number), None)[0]

    def met(self, one: Batch, two: Batch | None) -> Found:
        """The kernels of all pairs of two batches, or of one, axes (n1, n2, ...)."""
        other = one if two is None else two
        shape = one.used, other.used
        own = one.values is not None
        numbers = paired(shape[0], None if two is None else shape[1], own=not own)
        sums = one.inner
        if self._stage is not None and two is not None:
            assert one.side is not None
            sums = first_sums(self._stage[0], self._kernels, one.side, two.side)
        pages = None
        if one.pages is not None and other.pages is not None:
            pages = one.pages, other.pages
        found = self._run(one, other, sums, numbers, pages)[0]
        diagonal = Found(one.values, one.doubt) if one.values is not None and two is None else None
        return _matrix(found, diagonal, numbers, shape, symmetric=two is None)

    def _run(
        self,
        one: Batch,
        two: Batch,
        sums: Coarsened | None,
        numbers: tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]],
        pages: tuple[tuple[Page, ...], tuple[Page, ...]] | None,
    ) -> tuple[Found, tuple[Page, ...]]:
        """The kernels of pairs with these numbers, in groups of one size; without pages they are written."""
        first, second = numbers
        many = self._few if pages is None and self._asked.own else self._many
        same = (first == second) if one is two else np.zeros(len(first), bool)
        equal = np.array(
            [one.keys[i] == two.keys[j] for i, j in zip(first, second, strict=True)], bool
        )
        pairs = Pairs(first.astype(np.int32), second.astype(np.int32), same, equal)
        groups = [
            Pairs(*(a[np.minimum(np.arange(i, i + many), len(first) - 1)] for a in pairs))
            for i in range(0, len(first), many)
        ]
        ask = functools.partial(self._walked, one, two, sums, pages)
        count = min(self._cores, len(groups))
        calls = [functools.partial(ask, groups[k::count]) for k in range(count)]
        kind = self._kind, many, pages is None, one.read[0].shape, two.read[0].shape, sums is None
        shares = abreast(kind, calls) if groups else []
        done = [shares[k % count][k // count] for k in range(len(groups))]
        shapes = [] if done else jax.tree.leaves(one.values)  # one input meets no other
        together = lambda parts: np.concatenate(parts)[: len(first)]
        values = tuple(map(together, zip(*(v for v, _, _ in done), strict=True)))
        values = values if done else tuple(v[:0] for v in shapes)
        doubts = [d for _, d, _ in done if d is not None]
        doubt = together(doubts) if doubts else None
        return Found(values, doubt), self._bound([p for _, _, p in done])

    def _bound(self, parts: Sequence[tuple[Page, ...]]) -> tuple[Page, ...]:
        """The pages of a whole batch, from those of groups."""
        if not parts or not jax.tree.leaves(parts[0]):
            return parts[0] if parts else ()
        if len(parts) == 1 and len(jax.tree.leaves(parts[0])[0]) == self.side:
            return parts[0]
        rows = len(parts) * len(jax.tree.leaves(parts[0])[0])
        number = np.minimum(np.arange(self.side), rows - 1)
        whole = lambda *some: jax.device_put(np.concatenate([*map(np.asarray, some)])[number])
        return jax.tree.map(whole, *parts)

    def _walked(
        self,
        one: Batch,
        two: Batch,
        sums: Coarsened | None,
        pages: tuple[tuple[Page, ...], tuple[Page, ...]] | None,
        groups: Sequence[Pairs],
    ) -> list[Any]:
        """Group after group: the kernels, the doubt, and the pages; one is computed while the next is started."""
        found: list[Any] = []
        ready = lambda values, doubt, written: (
            tuple(map(np.asarray, values)),
            None if doubt is None else doubt.each,
            written,
        )
        for pairs in groups:
            found.append(self._started(one, two, sums, pages, pairs))
            if len(found) > 1:
                found[-2] = ready(*found[-2])
        found[-1] = ready(*found[-1])
        return found

    def _started(
        self,
        one: Batch,
        two: Batch,
        sums: Coarsened | None,
        pages: tuple[tuple[Page, ...], tuple[Page, ...]] | None,
        pairs: Pairs,
    ) -> tuple[Any, Doubt | None, tuple[Page, ...]]:
        """One group of pairs, by slices up to a first pool, then by layers."""
        tape = Tape(pages) if self._asked.own else None
        if self._stage is None:
            state = images_of(one.read, two.read, pairs, brief=self._brief)
        else:
            assert one.side is not None
            assert sums is not None
            assert tape is not None
            given = self._stage[0], one.side, sums, pairs, tape
            state = behind_pool(*given, brief=self._brief)
        many = 0 if self._brief else self.side**2
        state = dataclasses.replace(state, tape=tape, many=many)
        out = interpret(self._watched, state)
        written = () if tape is None else (*tape.pages,)
        values = kernels_of(out, self._kernels, self._dtype, self._last)
        return values, out.doubt, written


def _matrix(
    found: Found,
    diagonal: Found | None,
    numbers: tuple[Int[np.ndarray, " k"], Int[np.ndarray, " k"]],
    shape: tuple[int, int],
    *,
    symmetric: bool,
) -> Found:
    """From a list of pairs to a matrix of them."""

    def whole(values: np.ndarray, own: np.ndarray | None) -> np.ndarray:
        out = np.empty((*shape, *values.shape[1:]), values.dtype)
        if symmetric:
            out[numbers[1], numbers[0]] = swapped(values)
        out[numbers] = values
        if own is not None:
            out[np.diag_indices(shape[0])] = own
        return out

    own = [None] * len(found.values) if diagonal is None else diagonal.values
    values = tuple(whole(v, d) for v, d in zip(found.values, own, strict=True))
    if found.doubt is None and (diagonal is None or diagonal.doubt is None):
        return Found(values, None)
    pairs = np.zeros(len(numbers[0])) if found.doubt is None else found.doubt
    return Found(values, whole(pairs, None if diagonal is None else diagonal.doubt))
