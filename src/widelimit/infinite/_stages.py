r"""A first stage by slices: what stands before the first pool of a network, such as Myrtle's.

A fine displacement $d$ adds to coarse ones: with a pool of window and stride $k$, pixels $p=kp'+a$ and $p+d$ lie in
the windows $p'$ and $p'+\lfloor(a+d)/k\rfloor$. So slices are summed into the coarse block of a pair, which is $k^4$
times smaller, and the layers behind the pool go on with it.
"""

import functools
import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from widelimit._base.abreast import abreast
from widelimit._base.compile import quick_jit, wide_jit
from widelimit._base.passes import once_for_each_network
from widelimit._base.thresholds import BRIEF_MATRIX, COARSE_ENTRIES, DEVICE_COARSE_ENTRIES
from widelimit.activations import How
from widelimit.describe import check_pixels
from widelimit.layers import AvgPool, Layer, Pool, Serial, Sites, SumPool

from ._coarse import Coarse, Rows, coarse_sums
from ._demand import demand
from ._displacements import dealt, displacements
from ._edges import written
from ._fast import (
    BRIEFLY,
    WELL,
    Parts,
    Side,
    going,
)
from ._images import Images
from ._linear_map import Mapped, enlarged, settled
from ._masks import Extras
from ._meet import order
from ._pair import going as unknown
from ._plan import Numbers, split
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
    around = circles(body, sites, still=False)
    shrinks = check_pixels(body, sites) != sites
    if around is None or shrinks:
        return None
    room = tuple(-(-n // k) * k for n, k in zip(around, sizes, strict=True))
    if room != around and around == sites:  # circular windows: the circle must be that of the image
        return None
    stage = Stage(split(body)[0], split(Serial())[0], "parts", sites, room)
    return Coarse(stage, sizes, math.prod(sizes) if pool.average else 1.0), body, rest


def coarse_images(
    coarse: Coarse,
    rows: tuple[Rows, Rows],
    same: bool,
    brief: bool,
    sides: tuple[Side, Side],
    sums: tuple[list[Parts], list[Parts], list[Parts]],
) -> Images:
    """The state behind the pool, from the sums of pairs and of images with themselves, and which rows those are.

    Of what is symmetric half the displacements were summed; the others are the same with images and pixels exchanged.
    """
    sites = tuple(n // c for n, c in zip(coarse.stage.sites, coarse.pool, strict=True))
    a1, a2 = (_pooled(side.end.astype(jnp.float64), coarse) / coarse.scale for side in sides)
    n1, n2 = len(a1), len(a2)
    listed = order(n1, None if same else n2, own=True)
    cross, own1, own2 = sums
    if same:  # an image with itself is a pair
        found = _blocks(cross, coarse, rows[0], (listed.first, listed.second), exchanged=True)
    else:
        alone = lambda n: (np.arange(n), np.zeros(n, int))
        heads = [
            _blocks(own, coarse, rows[1], alone(n), exchanged=True)
            for own, n in ((own1, n1), (own2, n2))
        ]
        pairs = np.repeat(np.arange(n1), n2), np.tile(np.arange(n2), n1)
        met = _blocks(cross, coarse, rows[0], pairs, exchanged=False)
        found = [
            _listed(own, n1 + n2, v) for own, v in zip(zip(*heads, strict=True), met, strict=True)
        ]
    a = a1 if same else jnp.concatenate([a1, a2])
    meeting = listed.meeting()
    low, high, ntk = found
    mapped = Mapped(
        a[meeting.first],
        a[meeting.second],
        low,
        high,
        jnp.zeros_like(low) if ntk is None else ntk,
    )
    block, doubt = settled(mapped, meeting, positive=True, known=high is None, how=How())
    units = jnp.sqrt(jnp.concatenate([side.q for side in sides[: 1 if same else 2]]))[:, None]
    block = enlarged(block, units[meeting.first], units[meeting.second])
    return Images(block, meeting, Extras(), Extras(), doubt, sites, brief)


def _listed(heads: tuple[Array_ | None, ...], images: int, pairs: Array_ | None) -> Any:
    """Own blocks, then all pairs, as one list; own blocks have no tangent kernel."""
    if pairs is None:
        return None
    own = [value for value in heads if value is not None]
    head = own or [jnp.zeros((images, *pairs.shape[1:]), pairs.dtype)]
    return jnp.concatenate([*head, pairs])


_settled, _briefly_settled = (
    compiled(coarse_images, static_argnums=(0, 1, 2, 3)) for compiled in (wide_jit, quick_jit)
)


def _pooled(end: Array_, coarse: Coarse) -> Array_:
    """Sums over windows, shape (images, coarse pixels)."""
    shape = itertools.chain(
        *((n // c, c) for n, c in zip(coarse.stage.sites, coarse.pool, strict=True))
    )
    k = len(coarse.pool)
    summed = jnp.sum(end.reshape(*shape, end.shape[-1]), axis=tuple(range(1, 2 * k, 2)))
    return summed.reshape(-1, end.shape[-1]).T


def _blocks(
    parts: list[Parts],
    coarse: Coarse,
    rows: Rows,
    pairs: tuple[Int[np.ndarray, " pairs"], Int[np.ndarray, " pairs"]],
    *,
    exchanged: bool,
) -> list[Any]:
    """From sums of axes (*displacements, *pixels, n1, n2) to blocks of these pairs, axes (pairs, pixels, pixels).

    `exchanged`: half the displacements were summed; the others are the same with images and pixels exchanged.
    """
    k = len(coarse.pool)
    room = [n // c for n, c in zip(coarse.stage.around, coarse.pool, strict=True)]
    fine = [n // c for n, c in zip(coarse.stage.sites, coarse.pool, strict=True)]
    places = np.stack(np.meshgrid(*map(np.arange, fine), indexing="ij"), -1).reshape(-1, k)
    away = (places[None] - places[:, None]) % np.array(room)  # (p', r', axes)
    index = tuple(away[..., i] for i in range(k)) + tuple(places[:, None, i] for i in range(k))
    first, second = pairs

    def whole(given: tuple[Array_, ...]) -> Array_:
        """All coarse displacements, from the rows of each share."""
        blank = jnp.zeros(given[0].shape[1:], given[0].dtype)
        found = [blank] * room[0]
        for first_row, share in zip(rows.first, given, strict=True):
            for i in range(rows.count):
                row = (first_row + i) % room[0]
                found[row] = share[i] if found[row] is blank else found[row] + share[i]
        return jnp.stack(found)

    def block(given: tuple[Any, ...]) -> Any:
        if given[0] is None:
            return None
        total = whole(given)[index]  # (p', r', n1, n2)
        flat = total.reshape(*total.shape[:2], -1)
        found = flat[:, :, first * total.shape[3] + second]
        if exchanged:
            back = second * total.shape[3] + first if total.shape[3] > 1 else first
            found = found + jnp.swapaxes(flat[:, :, back], 0, 1)
        turned = lambda v: jnp.moveaxis(v, 2, 0) / coarse.scale**2
        return written(unknown(found), turned, found)

    return [*map(block, zip(*parts, strict=True))]


def coarse_side(coarse: Coarse, points: int) -> int:
    """How many images a tile has along each side."""
    entries = math.prod(coarse.stage.sites) ** 2 // math.prod(coarse.pool) ** 2
    on_cpu = jax.default_backend() == "cpu"
    most = COARSE_ENTRIES if on_cpu else DEVICE_COARSE_ENTRIES
    room = 2 ** int(math.log2(max(most // entries, 1)) / 2)
    return min(room, 16 if on_cpu else 64, 2 ** math.ceil(math.log2(points)))


def first_stage(coarse: Coarse, numbers: Numbers, x1: Any, x2: Any, *, ntk: bool) -> Images:
    """Two batches of images behind the first pool."""
    programs = BRIEFLY if jax.default_backend() == "cpu" else WELL  # pairs cost so much more
    one = programs.side_of(coarse.stage, numbers, x1, going())
    two = one if x2 is None else programs.side_of(coarse.stage, numbers, x2, going())
    same = x2 is None

    spread = [dealt(*displacements(coarse.stage.around, half=half)) for half in (same, True)]
    rows = Rows.of(spread[0], coarse.pool[0]), Rows.of(spread[1], coarse.pool[0])

    def sums(wanted: tuple[str, ...], first: Side, second: Side, *, own: bool) -> list[Parts]:
        twice = WELL.twice_around(coarse.stage, second)
        given = coarse, wanted, own, rows[own].count
        calls = [
            functools.partial(
                coarse_sums,
                *given,
                np.int32(start),
                first,
                twice,
                moves,
                weights.astype(first.end.dtype),
                going(),
            )
            for start, (moves, weights) in zip(rows[own].first, spread[own], strict=True)
        ]
        kind = *given, str(first.end.dtype), first.end.shape, second.end.shape
        return abreast(kind, calls)

    cross = sums(("nngp", "ntk") if ntk else ("nngp",), one, two, own=False)
    own1, own2 = ([] if same else sums(("nngp",), s, s, own=True) for s in (one, two))
    pairs = len(x1) * len(x1 if same else x2)
    brief = (
        pairs * math.prod(coarse.stage.sites) ** 2 // math.prod(coarse.pool) ** 2 <= BRIEF_MATRIX
    )
    rule = _briefly_settled if brief else _settled
    return rule(coarse, rows, same, brief, (one, two), (cross, own1, own2))
