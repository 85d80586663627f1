"""Gram matrices: tiles, each by the profile or layer by layer; derivatives layer by layer."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.numerics import steer
from widelimit.activations import How
from widelimit.interpret import facts, interpret
from widelimit.layers import Dense, Layer

from ._correlation import Points, as_points, correlation, map_correlation
from ._pair import Pair, outer
from ._profile import Profiles, build

# Entries of a tile. On a CPU its state stays in the cache; a GPU wants few and large ones.
_TILE = {"cpu": 2**18}
_LARGE_TILE = 2**28


class Plan(NamedTuple):
    """What is fixed at compile time.

    Attributes:
        structure: The network's tree structure, widths removed.
        zeros: Which numbers of the network are exactly 0 (biases that are not there).
        wanted: "nngp", "ntk" or both.
        path: "layers", "profile", or "either": decided at run time.
        degree: Of homogeneity, if the profile holds for inputs of any norm.
        how: How moments are evaluated.
        terms: How many coefficients of each wanted profile are used, if known beforehand.
    """

    structure: Any
    zeros: tuple[bool, ...]
    wanted: tuple[str, ...]
    path: str
    degree: float | None
    how: How
    terms: tuple[int, ...] = ()


def split(net: Layer) -> tuple[Any, tuple[bool, ...], tuple[Any, ...]]:
    """Structure, which numbers are exactly zero, and the other numbers."""
    is_dense = lambda node: isinstance(node, Dense)
    bare = lambda node: Dense(w_std=node.w_std, b_std=node.b_std) if is_dense(node) else node
    numbers, structure = jax.tree.flatten(jax.tree.map(bare, net, is_leaf=is_dense))
    zeros = tuple(isinstance(v, float) and v == 0 for v in numbers)
    return structure, zeros, tuple(v for v, z in zip(numbers, zeros, strict=True) if not z)


def join(plan: Plan, numbers: tuple[Any, ...]) -> Layer:
    """The network again."""
    rest = iter(numbers)
    return jax.tree.unflatten(plan.structure, [0.0 if z else next(rest) for z in plan.zeros])


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _gram(
    plan: Plan, numbers: Any, x1: Float[Array, "n1 d"], x2: Any, profiles: Any
) -> tuple[Float[Array, "n1 n2"], ...]:
    """The wanted kernel matrices; `x2=None` means `x1` with itself, its diagonal exact."""
    net = join(plan, numbers)
    first = as_points(x1)
    second = first if x2 is None else as_points(x2)

    def fill(evaluate: Any) -> tuple[Array, ...]:
        edge1 = evaluate.sizes(first)
        edge2 = edge1 if x2 is None else evaluate.sizes(second)
        return _tiles(evaluate, first, second, (edge1, edge2), symmetric=x2 is None)

    layers = _ByLayers(net, plan)
    if plan.path == "profile":
        by_profile = _ByProfile(net, plan, profiles)
        out = fill(by_profile)
        return out if x2 is not None else _with_diagonal(plan, out, by_profile.diagonal(first))
    by_layers = plan.path == "layers"
    out = fill(layers) if by_layers else _either(net, plan, first, second, fill, layers)
    # In double precision the tiles set the diagonal as well as a separate pass would.
    if x2 is None and not (by_layers and x1.dtype == jnp.float64):
        out = _with_diagonal(plan, out, layers.diagonal(first))
    return out


@_gram.defjvp
def _gram_jvp(plan, primals, tangents):
    numbers, x1, x2, _ = primals
    smooth = lambda numbers, x1, x2: differentiable_gram(plan, numbers, x1, x2)
    return jax.jvp(smooth, (numbers, x1, x2), tangents[:3])


gram = jax.jit(_gram, static_argnums=0)


def differentiable_gram(
    plan: Plan, numbers: Any, x1: Float[Array, "n1 d"], x2: Any
) -> tuple[Float[Array, "n1 n2"], ...]:
    """The same matrices in one piece, layer by layer: the form that is differentiated."""
    net = join(plan, numbers)
    first = as_points(x1)
    second = first if x2 is None else as_points(x2)
    with jax.enable_x64(True):
        minus, plus = correlation(first.unit, second.unit)
        if x2 is None:
            same = jnp.eye(x1.shape[0], dtype=bool)
            minus = steer(jnp.where(same, 0, minus), minus)
            plus = steer(jnp.where(same, 2, plus), plus)
        pair = Pair.of_data(first.q[:, None], second.q[None, :], minus, plus, plan.how)
        out = interpret(net, pair)
        size = out.size
        dead = ~_kept(net, first)[:, None] | ~_kept(net, second)[None, :]
        results = []
        for name in plan.wanted:
            value = size * (out.rho if name == "nngp" else out.ntk)
            results.append(steer(jnp.where(dead, 0, value), value))
        return tuple(results)


def _kept(net: Layer, points: Points) -> Any:
    """Which inputs have a kernel that is not exactly zero."""
    return ~points.zero if facts(net).vanishes else jnp.ones_like(points.zero)


class _ByLayers(NamedTuple):
    """Evaluate a tile layer by layer."""

    net: Layer
    plan: Plan

    def sizes(self, points: Points) -> tuple[Array, Array]:
        return points.q, _kept(self.net, points)

    def diagonal(self, points: Points) -> dict[str, Array]:
        """The kernels of each input with itself, in float64."""
        with jax.enable_x64(True):
            zero = jnp.zeros_like(points.q)
            out = interpret(self.net, Pair(points.q, points.q, zero, zero + 2, zero, self.plan.how))
            nngp = jnp.where(_kept(self.net, points), out.q1, 0)
            return {"nngp": nngp, "ntk": nngp * out.ntk}

    def tile(self, minus: Array, plus: Array, edge1: Any, edge2: Any) -> tuple[Array, ...]:
        with jax.enable_x64(True):
            (q1, keep1), (q2, keep2) = edge1, edge2
            pair = Pair.of_data(q1[:, None], q2[None, :], minus, plus, self.plan.how)
            out = interpret(self.net, pair)
            root1 = jnp.where(keep1[:, None], jnp.sqrt(out.q1), 0)
            root2 = jnp.where(keep2[None, :], jnp.sqrt(out.q2), 0)
            size = outer(root1, root2, minus)
            return tuple(size * (out.rho if w == "nngp" else out.ntk) for w in self.plan.wanted)


class _ByProfile(NamedTuple):
    """Evaluate a tile by polynomials in the angle."""

    net: Layer
    plan: Plan
    profiles: Profiles

    def sizes(self, points: Points) -> Array:
        """sqrt(K(x, x)) for each input, 0 where the kernel vanishes."""
        with jax.enable_x64(True):
            stretch = 1.0
            if self.plan.degree is not None:
                stretch = jnp.sqrt(points.q / self.profiles.variance) ** self.plan.degree
            return jnp.where(_kept(self.net, points), jnp.sqrt(self.profiles.scale) * stretch, 0)

    def diagonal(self, points: Points) -> dict[str, Array]:
        """The kernels of each input with itself, in float64."""
        with jax.enable_x64(True):
            nngp = self.sizes(points) ** 2
            return {"nngp": nngp, "ntk": nngp * self.profiles.peak}

    def tile(self, minus: Array, plus: Array, edge1: Any, edge2: Any) -> tuple[Array, ...]:
        size = outer(edge1[:, None], edge2[None, :], minus)
        terms = self.plan.terms or (None,) * len(self.plan.wanted)
        pick = zip(self.plan.wanted, terms, strict=True)
        return tuple(size * getattr(self.profiles, w).at(minus, plus, t) for w, t in pick)


def _with_diagonal(plan: Plan, out: Any, exact: dict[str, Array]) -> Any:
    """The matrices with a diagonal that is rounded once."""
    with jax.enable_x64(True):
        i = jnp.arange(out[0].shape[0])
        put = lambda name, m: m.at[i, i].set(exact[name].astype(m.dtype))
        return tuple(put(name, matrix) for name, matrix in zip(plan.wanted, out, strict=True))


def _tiles(
    evaluate: Any, first: Points, second: Points, edges: Any, *, symmetric: bool
) -> tuple[Array, ...]:
    """All entries, tile by tile; of a symmetric matrix the lower half is computed."""
    n1, n2 = first.unit.shape[0], second.unit.shape[0]
    entries = _TILE.get(jax.default_backend(), _LARGE_TILE)
    if symmetric and n1 * n2 > entries:
        rows = columns = _even(n1, math.isqrt(entries))
    else:
        rows, columns = _even(n1, max(entries // n2, 8)), n2
    corners = _corners(n1, n2, rows, columns, symmetric)
    edge1, edge2 = edges

    def tile(start1: Any, start2: Any) -> tuple[Array, ...]:
        cut1 = lambda a: jax.lax.dynamic_slice_in_dim(a, start1, rows)
        cut2 = lambda a: jax.lax.dynamic_slice_in_dim(a, start2, columns)
        part1, part2 = jax.tree.map(cut1, edge1), jax.tree.map(cut2, edge2)
        diagonal = start1 - start2 if symmetric else None

        def then(minus: Array, plus: Array) -> tuple[Array, ...]:
            if diagonal is not None:
                row, column = (jax.lax.broadcasted_iota(jnp.int32, minus.shape, i) for i in (0, 1))
                same = column == row + diagonal
                minus, plus = jnp.where(same, 0, minus), jnp.where(same, 2, plus)
            return evaluate.tile(minus, plus, part1, part2)

        return map_correlation(then, cut1(first.unit), cut2(second.unit), diagonal)

    if len(corners) == 1:
        out = tile(*map(jnp.int32, corners[0]))
        return tuple(_mirrored(o, corners, rows, first.q) for o in out) if symmetric else out
    starts = jnp.asarray(corners)
    shapes = jax.eval_shape(tile, *(jax.ShapeDtypeStruct((), jnp.int32),) * 2)
    put = jax.lax.dynamic_update_slice

    def fill(i: Any, out: tuple[Array, ...]) -> tuple[Array, ...]:
        start1, start2 = starts[i, 0], starts[i, 1]
        parts = tile(start1, start2)
        if symmetric:
            out = tuple(
                put(o, part.T, (start2, start1)) for o, part in zip(out, parts, strict=True)
            )
        return tuple(put(o, part, (start1, start2)) for o, part in zip(out, parts, strict=True))

    blank = tuple(jnp.zeros((n1, n2), s.dtype) for s in shapes)
    out = jax.lax.fori_loop(jnp.int32(0), jnp.int32(len(corners)), fill, blank)
    return tuple(_mirrored(o, corners, rows, first.q) for o in out) if symmetric else out


def _mirrored(matrix: Array, corners: np.ndarray, side: int, q: Array) -> Array:
    """Tiles on the diagonal get an upper half that is, to the last bit, their lower half mirrored."""
    starts = jnp.asarray([i for i, j in corners if i == j], jnp.int32)
    row, column = (jax.lax.broadcasted_iota(jnp.int32, (side, side), i) for i in (0, 1))

    def mirror(i: Any, matrix: Array) -> Array:
        place = starts[i], starts[i]
        tile = jax.lax.dynamic_slice(matrix, place, (side, side))
        return jax.lax.dynamic_update_slice(matrix, jnp.where(row < column, tile.T, tile), place)

    # A length that the compiler cannot know: unrolled, it would compute the tiles a second time.
    count = jnp.where(q[0] == q[0], len(starts), 0).astype(jnp.int32)
    return jax.lax.fori_loop(jnp.int32(0), count, mirror, matrix)


def _even(size: int, most: int) -> int:
    """The side of tiles, at most about `most`, that cover `size` with the least overlap."""
    return -(-size // -(-size // min(most, size)))


def _corners(n1: int, n2: int, rows: int, columns: int, symmetric: bool) -> np.ndarray:
    """Where tiles start; the last one overlaps the one before where sizes do not divide."""
    first = [min(i, n1 - rows) for i in range(0, n1, rows)]
    second = [min(i, n2 - columns) for i in range(0, n2, columns)]
    pairs = [(i, j) for i in first for j in second if i >= j or not symmetric]
    return np.array(pairs, dtype=np.int32)


def _either(net: Layer, plan: Plan, first: Points, second: Points, fill: Any, layers: Any) -> Any:
    """Decide at run time, when norms and numbers are known, whether the profile holds."""
    tolerance = norm_tolerance(first.unit.dtype)
    with jax.enable_x64(True):
        q0 = first.q[0]
        gap = jnp.maximum(jnp.max(jnp.abs(first.q - q0)), jnp.max(jnp.abs(second.q - q0)))
        profiles = build(net, q0, plan.how, cut_off(first.unit.dtype))
        equal = (plan.degree is not None) | (gap <= tolerance * q0)
        good = equal & certified(profiles, first.unit.dtype)
    by_profile = _ByProfile(net, plan, profiles)
    return jax.lax.cond(good, lambda: fill(by_profile), lambda: fill(layers))


def norm_tolerance(dtype: Any) -> float:
    """How far squared norms may differ, relatively, and still count as equal."""
    return 8 * float(jnp.finfo(dtype).eps)


def cut_off(dtype: Any) -> float:
    """Where a profile's coefficients are cut, relative to the largest value."""
    return 1e-15 if dtype == jnp.float64 else 2e-8


def certified(profiles: Profiles, dtype: Any) -> Any:
    """Whether the discarded coefficients show that the profile is right to rounding."""
    limit = 1e-13 if dtype == jnp.float64 else 1e-6
    return (profiles.nngp.error < limit) & (profiles.ntk.error < limit)
