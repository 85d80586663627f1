"""Layer by layer: the tiles of a matrix, a stack of small tiles, and diagonals."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from widelimit._base.compile import quick_jit
from widelimit._base.numerics import safe_sqrt
from widelimit._base.thresholds import FEW_TILES
from widelimit._base.watch import Watch
from widelimit.activations import How
from widelimit.interpret import interpret
from widelimit.layers import Layer

from ._correlation import Points
from ._pair import Pair, sizes
from ._plan import Numbers, Plan, join

Matrices = tuple[Float[Array, "..."], ...]


def run_layers(
    net: Layer,
    q1: Float[Array, "..."],
    q2: Float[Array, "..."],
    minus: Float[Array, "..."],
    plus: Float[Array, "..."],
    how: How,
) -> Pair:
    """The statistics of the network's output for inputs of these sizes and correlations."""
    return interpret(net, Pair.of_data(q1, q2, minus, plus, how))


def kernel_values(out: Pair, wanted: tuple[str, ...], size: Float[Array, "..."]) -> Matrices:
    """The kernels from the normalised ones and the sizes of both outputs; nothing times inf is 0."""
    times = lambda value: jnp.where((size == 0) | (value == 0), 0, size * value)
    return tuple(times(out.rho if name == "nngp" else out.ntk) for name in wanted)


class ByLayers(NamedTuple):
    """Evaluate a tile layer by layer."""

    net: Layer
    plan: Plan
    vanishes: Bool[Array, ""]

    def sizes(self, points: Points) -> tuple[Float[Array, " n"], Bool[Array, " n"]]:
        """The second moments, and which inputs have a kernel that is not exactly zero."""
        return points.q, ~(points.zero & self.vanishes)

    def diagonal(self, points: Points) -> dict[str, Float[Array, " n"]]:
        """The kernels of each input with itself, in float64."""
        with jax.enable_x64(True):
            q, keep = self.sizes(points)
            zero = jnp.zeros_like(q)
            out = run_layers(self.net, q, q, zero, zero + 2, self.plan.how)
            nngp = jnp.where(keep, out.q1, 0)
            return {"nngp": nngp, "ntk": nngp * out.ntk}

    def tile(
        self,
        minus: Float[Array, "r c"],
        plus: Float[Array, "r c"],
        edge1: tuple[Float[Array, " r"], Bool[Array, " r"]],
        edge2: tuple[Float[Array, " c"], Bool[Array, " c"]],
    ) -> tuple[Float[Array, "r c"], ...]:
        """The wanted kernels of one tile."""
        with jax.enable_x64(True):
            (q1, keep1), (q2, keep2) = edge1, edge2
            how = self.plan.how
            out = run_layers(self.net, q1[:, None], q2[None, :], minus, plus, how)
            root1 = jnp.where(keep1[:, None], safe_sqrt(out.q1), 0)
            root2 = jnp.where(keep2[None, :], safe_sqrt(out.q2), 0)
            return kernel_values(out, self.plan.wanted, sizes(root1, root2, minus))


def _stack_of_tiles(
    plan: Plan,
    numbers: Numbers,
    q1: Float[Array, "tiles r"],
    q2: Float[Array, "tiles c"],
    minus: Float[Array, "tiles r c"],
    plus: Float[Array, "tiles r c"],
    count: Int[Array, ""],
) -> tuple[Float[Array, "tiles r c"], ...]:
    """The kernels of the first `count` tiles, whose correlations are known.

    One program for all small matrices: neither the number of points nor that of features enters.
    """
    net = join(plan.form, numbers)

    def fill(i: Int[Array, ""], out: Matrices) -> Matrices:
        pick = lambda a: jax.lax.dynamic_index_in_dim(a, i, keepdims=False)
        done = run_layers(
            net, pick(q1)[:, None], pick(q2)[None, :], pick(minus), pick(plus), plan.how
        )
        parts = kernel_values(done, plan.wanted, done.size)
        put = jax.lax.dynamic_update_index_in_dim
        return tuple(put(o, part, i, 0) for o, part in zip(out, parts, strict=True))

    blank = tuple(jnp.zeros_like(minus) for _ in plan.wanted)
    return jax.lax.fori_loop(jnp.int32(0), count, fill, blank)


stack_of_tiles = quick_jit(_stack_of_tiles)
_stack_of_tiles_well = jax.jit(_stack_of_tiles, static_argnums=0)


def stack_of_tiles_watched(
    plan: Plan, numbers: Numbers, *arguments: np.ndarray | np.int32
) -> list[Float[np.ndarray, "tiles r c"]]:
    """A few tiles at a time: Ctrl-C is heard in between, and one is told how far it is."""
    *stacks, count = (np.asarray(a) for a in arguments)
    starts = range(0, int(count), FEW_TILES)
    watch = Watch("kernel", len(starts), None, skip=2)
    parts = []
    for done, i in enumerate(starts, 1):
        some = np.minimum(np.arange(i, i + FEW_TILES), int(count) - 1)
        number = np.int32(min(FEW_TILES, int(count) - i))
        parts.append(_stack_of_tiles_well(plan, numbers, *(a[some] for a in stacks), number))
        jax.block_until_ready(parts[-1])
        watch(done)
    return [np.concatenate(kind) for kind in zip(*parts, strict=True)]


@quick_jit
def diagonal_of_sizes(
    plan: Plan, numbers: Numbers, q: Float[Array, " n"]
) -> tuple[Float[Array, " n"], ...]:
    """The kernels of inputs with themselves, from their second moments."""
    zero = jnp.zeros_like(q)
    out = run_layers(join(plan.form, numbers), q, q, zero, zero + 2, plan.how)
    return kernel_values(out, plan.wanted, out.q1)
