r"""A first stage by slices: what stands before the first pool of a network, such as Myrtle's.

A fine displacement $d$ adds to coarse ones: with a pool of window and stride $k$, pixels $p=kp'+a$ and $p+d$ lie in
the windows $p'$ and $p'+\lfloor(a+d)/k\rfloor$. So slices are summed into the coarse block of a pair, which is $k^4$
times smaller, and the layers behind the pool go on with it.
"""

import dataclasses
import functools
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from widelimit._base.abreast import abreast
from widelimit._base.compile import light_jit, light_lone_jit, quick_jit
from widelimit._base.passes import once_for_each_network
from widelimit._base.thresholds import COARSE_ENTRIES, DEVICE_COARSE_ENTRIES
from widelimit.activations import How
from widelimit.describe import check_pixels
from widelimit.layers import AvgPool, Layer, Pool, Serial, Sites, SumPool

from ._coarse import Coarse, Rows, coarse_sums
from ._demand import demand
from ._displacements import dealt
from ._edges import written
from ._ends import Pairs
from ._fast import Parts, Side
from ._images import Images
from ._linear_map import Mapped, Size, enlarged, settled
from ._masks import Extras
from ._meet import Meeting, Page, Tape
from ._pair import going as unknown
from ._plan import Numbers, split
from ._programs import BRIEFLY, WELL, going
from ._stage import Stage, circles

Array_ = Float[Array, "..."]


@once_for_each_network
def coarsened(net: Layer, sites: Sites) -> tuple[Coarse, Layer, Layer] | None:
    """The first stage of a network, its body and what follows; None where the first pool does not fit."""
    layers = net.layers if isinstance(net, Serial) else ()
    place = next(
        (i for i, layer in enumerate(layers) if isinstance(layer, AvgPool | SumPool)), None
    )
    if not place or not sites or not demand(net).own:
        return None
    found = layers[place]
    assert isinstance(found, AvgPool | SumPool)
    pool = found.map.single
    body, rest = Serial(*layers[:place]), Serial(*layers[place + 1 :])
    if not isinstance(pool, Pool) or pool.window.out(sites) == sites:
        return None
    window = pool.window
    sizes = tuple(table.shape[1] for table in window.tables(sites))
    fits = window.padding == "valid" and window.steps(len(sites)) == sizes
    if not fits or any(n % k for n, k in zip(sites, sizes, strict=True)):
        return None
    found = circles(body, sites, still=False)
    if found is None or check_pixels(body, sites) != sites:
        return None
    around, looped = found
    room = tuple(-(-n // k) * k for n, k in zip(around, sizes, strict=True))
    if room != around and around == sites:  # circular windows: the circle must be that of the image
        return None
    stage = Stage(split(body)[0], split(Serial())[0], "parts", sites, room, looped)
    return Coarse(stage, sizes, math.prod(sizes) if pool.average else 1.0), body, rest


class Coarsened(NamedTuple):
    """Pairs of images summed over windows, not yet normalised.

    Attributes:
        blocks: 1 - rho, 1 + rho (or None) and the tangent kernel (or None), axes (pairs, pixels, pixels).
        columns: How many second images each first one meets; 1 where it meets itself alone.
    """

    blocks: Parts
    columns: int

    def number(self, pairs: Pairs) -> Int[np.ndarray, " k"]:
        """Where these pairs are in the list."""
        return pairs.first * self.columns + (pairs.second if self.columns > 1 else np.int32(0))


class Behind(NamedTuple):
    """What the first pool needs of each image by itself: deviations behind it, and their unit."""

    size: Size
    unit: Array_


def first_sums(
    coarse: Coarse, kernels: tuple[str, ...], one: Side, two: Side | None, *, alone: bool = False
) -> Coarsened:
    """Sums of pairs of images before the first pool; without second images, of the first ones.

    `alone`: each of those with itself only.
    """
    exchanged = two is None
    spread = dealt(coarse.stage.around, half=exchanged)
    rows = Rows.of(coarse.stage.around, coarse.pool[0], half=exchanged)
    wanted = ("nngp", "ntk") if "ntk" in kernels else ("nngp",)
    twice = WELL.twice_around(coarse.stage, one if two is None else two)
    given = coarse, wanted, alone, rows.count
    dtype = one.end.dtype
    calls = [
        functools.partial(
            coarse_sums, *given, np.int32(start), one, twice, moves, weights.astype(dtype), going()
        )
        for start, (moves, weights) in zip(rows.first, spread, strict=True)
    ]
    n2 = 1 if alone else twice.end.shape[-1]
    parts = abreast((*given, str(dtype), one.end.shape, n2), calls)
    return Coarsened(_laid_out(coarse, rows, exchanged, parts), n2)


def sides_of(coarse: Coarse, numbers: Numbers, x: Any) -> Side:
    """What belongs to single images in front of the first pool."""
    programs = BRIEFLY if jax.default_backend() == "cpu" else WELL  # pairs cost so much more
    return programs.side_of(coarse.stage, numbers, x, going())


def coarse_images(
    coarse: Coarse,
    ends: tuple[Array_, Array_],
    blocks: Parts,
    picked: Int[Array, " pairs"],
    meeting: Meeting,
    pages: tuple[Page, ...],
) -> tuple[Images, Page]:
    """Some pairs behind the pool as a state, and what the pool needs of single images."""
    sites = tuple(n // c for n, c in zip(coarse.stage.sites, coarse.pool, strict=True))
    low, *others = blocks
    low, (high, ntk) = low[picked], (None if v is None else v[picked] for v in others)
    tape = Tape(pages or None, inner=True)

    def alone() -> Behind:
        end, q = (a[..., meeting.first] for a in ends)
        total = _pooled(end.astype(jnp.float64), coarse) / coarse.scale
        spread = jnp.diagonal(low, axis1=1, axis2=2).astype(jnp.float64)
        size = written(unknown(total), Size.of, total, spread)
        return Behind(size, jnp.sqrt(q)[:, None])

    one, two = tape.of(alone, meeting)
    mapped = Mapped(low, high, jnp.zeros_like(low) if ntk is None else ntk)
    sizes = one.size, two.size
    block, doubt = settled(mapped, sizes, meeting, positive=True, known=high is None, how=How())
    block = enlarged(block, one.unit, two.unit)
    state = Images(block, meeting, Extras(), Extras(), doubt, sites)
    return state, (*tape.pages,)


_settled, _briefly_settled = (compiled(coarse_images) for compiled in (light_lone_jit, quick_jit))


def behind_pool(
    coarse: Coarse, side: Side, sums: Coarsened, pairs: Pairs, tape: Tape, *, brief: bool
) -> Images:
    """Some of the pairs behind the first pool, as a state; `side`: where each image meets itself, those."""
    rule = _briefly_settled if brief else _settled
    ends, meeting = (side.end, side.q), pairs.meeting()
    given = coarse, ends, sums.blocks, sums.number(pairs), meeting, tape.turned(meeting)
    state, page = rule(*given)
    tape.filed(page)
    return dataclasses.replace(state, tape=tape)


def _pooled(end: Array_, coarse: Coarse) -> Array_:
    """Sums over windows, shape (images, coarse pixels)."""
    shape = itertools.chain(
        *((n // c, c) for n, c in zip(coarse.stage.sites, coarse.pool, strict=True))
    )
    k = len(coarse.pool)
    summed = jnp.sum(end.reshape(*shape, end.shape[-1]), axis=tuple(range(1, 2 * k, 2)))
    return summed.reshape(-1, end.shape[-1]).T


def _blocks(coarse: Coarse, rows: Rows, exchanged: bool, parts: list[Parts]) -> Parts:
    """From sums of axes (*displacements, *pixels, n1, n2) to blocks, axes (n1 x n2, pixels, pixels).

    `exchanged`: half the displacements were summed; the others are the same with images and pixels exchanged.
    """
    k = len(coarse.pool)
    room = [n // c for n, c in zip(coarse.stage.around, coarse.pool, strict=True)]
    fine = [n // c for n, c in zip(coarse.stage.sites, coarse.pool, strict=True)]
    places = np.stack(np.meshgrid(*map(np.arange, fine), indexing="ij"), -1).reshape(-1, k)
    away = (places[None] - places[:, None]) % np.array(room)  # (p', r', axes)
    index = np.broadcast_arrays(*np.moveaxis(away, -1, 0), *places.T[..., None])
    index = tuple(i.astype(np.int32) for i in index)

    def whole(*given: Array_) -> Array_:
        """All coarse displacements, from the rows of each share; behind the last row comes the first."""
        placed = []
        for start, share in zip(rows.first, given, strict=True):
            behind = room[0] - start
            placed.append(_placed(share, start, room[0]))
            if rows.count > behind:
                placed.append(_placed(share[behind : behind + 1], 0, room[0]))
        return sum(placed[1:], placed[0])

    def met(total: Array_) -> Array_:
        """From displacements to pairs of pixels, axes (p', r', n1, n2)."""
        if not exchanged:
            return total[index]
        back = total[tuple(np.swapaxes(i, 0, 1) for i in index)]
        return total[index] + (back if back.shape[-1] == 1 else jnp.swapaxes(back, -1, -2))

    def turned(total: Array_) -> Array_:
        """All pairs of images, an axis of its own, before pixels."""
        return jnp.moveaxis(total.reshape(*total.shape[:2], -1), 2, 0) / coarse.scale**2

    def block(given: tuple[Any, ...]) -> Any:
        if given[0] is None:
            return None
        go = unknown(given[0])
        return written(go, turned, written(go, met, written(go, whole, *given)))

    low, high, ntk = map(block, zip(*parts, strict=True))
    return low, high, ntk


def _placed(share: Array_, start: int, rows: int) -> Array_:
    """As a part of so many rows, from this one on, the others 0; what is beyond them is cut off."""
    around = [(start, rows - start - len(share), 0), *[(0, 0, 0)] * (share.ndim - 1)]
    return jax.lax.pad(share, jnp.zeros((), share.dtype), around)


_laid_out = light_jit(_blocks, static_argnums=(0, 1, 2))


def coarse_side(coarse: Coarse, points: int) -> int:
    """How many images a tile has along each side."""
    entries = math.prod(coarse.stage.sites) ** 2 // math.prod(coarse.pool) ** 2
    on_cpu = jax.default_backend() == "cpu"
    most = COARSE_ENTRIES if on_cpu else DEVICE_COARSE_ENTRIES
    room = 2 ** int(math.log2(max(most // entries, 1)) / 2)
    return min(room, 16 if on_cpu else 64, 2 ** math.ceil(math.log2(points)))
