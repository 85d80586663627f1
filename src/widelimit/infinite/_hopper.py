r"""The product $K_{ij}=\kappa(u_i\cdot u_j)$ with a vector as one kernel for Hopper GPUs.

A Pallas kernel on the Mosaic GPU backend. The points are cut into an odd number $T$ of blocks of 128;
block $J$ stays in shared memory as the right operand while the blocks $J, J+1,\dots,J+(T-1)/2$ (modulo $T$)
pass by, so that every pair of blocks meets once and all blocks have the same work. Correlations are three
products of float16 halves, the polynomial runs on the registers, and only sums leave the kernel: of columns
at the end, of rows after every tile, to a workspace in which every number has its own place. There are no
atomics; a product repeats bit for bit.
"""

import functools
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float16, Int

try:
    import jax.experimental.pallas as pl
    import jax.experimental.pallas.mosaic_gpu as plgpu
except ImportError:  # JAX says of this backend that it may change weekly
    pl = plgpu = None

BLOCK = 128  # points in a block: the rows of two warpgroups, and the columns of each
MOST_FEATURES = 128  # more do not fit into shared memory beside each other
_GROUPS = 2  # warpgroups that compute; one more fetches


class Polynomial(NamedTuple):
    r"""$\kappa$ as $\sum_kc_ky^k$, $y=(v+s)/(1+sv)$, $v=\sqrt{(1-\rho)/2}-\sqrt{(1+\rho)/2}$.

    Attributes:
        shift: s.
        coefficients: c, lowest degree first.
    """

    shift: float
    coefficients: tuple[float, ...]


class Shape(NamedTuple):
    """What a kernel is compiled for.

    Attributes:
        stages: Tiles that are fetched ahead.
        strip: Blocks that pass by in one launch: float32 sums stay short, the workspace small.
        registers: Whether the warpgroups that compute take those that the fetching one does not need.
        ptx: Whether square roots flush denormal numbers, which takes one instruction instead of four.
        barriers: Whether Pallas guards each access to shared memory; ours need none beyond those written.
        interpret: How to run without a GPU, or None.
    """

    stages: int = 4
    strip: int = 64
    registers: bool = True
    ptx: bool = True
    barriers: bool = True
    interpret: Any = None


def halves(unit: Float[Array, "n d"]) -> Float16[Array, "2 rows width"]:
    """Unit vectors as two float16 halves of 2^11 times themselves, filled up to blocks.

    Under `jit` XLA removes a round trip through float16, so the first half is rounded explicitly.
    """
    n, d = unit.shape
    below, right = blocks(n) * BLOCK - n, -(-d // 16) * 16 - d
    scaled = jnp.pad(unit, ((0, below), (0, right))) * jnp.float32(2**11)
    high = jax.lax.reduce_precision(scaled, 5, 10)
    return jnp.stack([high.astype(jnp.float16), (scaled - high).astype(jnp.float16)])


def blocks(n: int) -> int:
    """How many blocks hold n points; an odd number."""
    return -(-n // BLOCK) // 2 * 2 + 1


def product(
    parts: Float16[Array, "2 rows width"],
    v: Float[Array, " rows"],
    polynomial: Polynomial,
    shape: Shape,
    share: tuple[Int[Array, ""] | int, int] = (0, 1),
) -> Float[Array, " rows"]:
    """The matrix without its diagonal times v: float32 sums of some tiles, added in float64.

    Args:
        parts: Points, from `halves`.
        v: 0 where rows only fill up.
        polynomial: The matrix as a function of the correlation.
        shape: How the kernel is compiled.
        share: (i, n): only every n-th part of the work, from the i-th on.

    Returns:
        The product, or what the share adds to it.
    """
    index, shares = share
    many = parts.shape[1] // BLOCK
    offsets = many // 2 + 1
    strip = -(-offsets // -(-offsets // shape.strip))
    with jax.enable_x64(False):  # Python numbers in the kernel are 32 bits wide
        call = _kernel(parts.shape[1:], strip, polynomial, shape)

    def add(i: Int[Array, ""], out: Float[Array, " rows"]) -> Float[Array, " rows"]:
        start = jnp.int32(strip) * (i * jnp.int32(shares) + index)
        with jax.enable_x64(False):
            rows, columns = call(parts, v, start[None])
        with jax.enable_x64(True):
            offset = start + jax.lax.broadcasted_iota(jnp.int32, rows.shape, 0)
            counted = (offset > 0) & (offset < offsets)
            across = jnp.where(counted, rows, 0).astype(jnp.float64).sum(0)
            return out + across + columns.astype(jnp.float64).sum(1).reshape(-1)

    with jax.enable_x64(True):
        zero = jnp.zeros(v.shape, jnp.float64)
        strips = -(-offsets // strip)
        return jax.lax.fori_loop(jnp.int32(0), jnp.int32(-(-strips // shares)), add, zero)


@functools.lru_cache(maxsize=64)
def _kernel(size: tuple[int, int], strip: int, polynomial: Polynomial, shape: Shape) -> Any:
    """A function of (parts, v, first offset) that gives the sums over columns and over rows."""
    rows, width = size
    many = rows // BLOCK
    stages = min(shape.stages, strip)
    swizzle = plgpu.find_swizzle(width * 16)
    tiled = (plgpu.TilingTransform((8, swizzle // 2)), plgpu.SwizzleTransform(swizzle))
    f16, f32 = jnp.float16, jnp.float32
    scratch = {
        "a": plgpu.SMEM((stages, 2, BLOCK, width), f16, transforms=tiled),
        "b": plgpu.SMEM((2, BLOCK, width), f16, transforms=tiled),
        "v_rows": plgpu.SMEM((stages, BLOCK), f32),
        "v_columns": plgpu.SMEM((BLOCK,), f32),
        "row": plgpu.SMEM((_GROUPS, 2, 64), f32),
        "column": plgpu.SMEM((_GROUPS, BLOCK), f32),
        "ready": plgpu.Barrier(num_arrivals=2),
        "full": plgpu.Barrier(num_arrivals=2, num_barriers=stages),
        "free": plgpu.Barrier(num_arrivals=_GROUPS, num_barriers=stages),
        "turn": plgpu.Barrier(num_arrivals=1),
    }
    body = functools.partial(_body, many, strip, stages, polynomial, shape)
    extra = {} if shape.interpret is None else {"interpret": shape.interpret}
    return plgpu.kernel(
        lambda *refs: pl.run_scoped(lambda **at: body(*refs, at), collective_axes="wg", **scratch),
        out_type=(
            jax.ShapeDtypeStruct((strip, rows), f32),
            jax.ShapeDtypeStruct((many, _GROUPS, BLOCK), f32),
        ),
        grid=(many,),
        grid_names=("block",),
        num_threads=_GROUPS + 1,
        thread_name="wg",
        compiler_params=plgpu.CompilerParams(
            approx_math=True,
            lowering_semantics=plgpu.LoweringSemantics.Lane,
            unsafe_no_auto_barriers=not shape.barriers,
        ),
        **extra,
    )


def _body(
    many: int,
    strip: int,
    stages: int,
    polynomial: Polynomial,
    shape: Shape,
    parts: Any,
    v: Any,
    start: Any,
    rows_out: Any,
    columns_out: Any,
    at: dict[str, Any],
) -> None:
    """One block of columns: a warpgroup fetches blocks of rows, two compute."""
    block, group = jax.lax.axis_index("block"), jax.lax.axis_index("wg")
    first = block + start[0]
    passing = lambda t: jax.lax.rem(first + t, jnp.int32(many))
    stage = lambda t: jax.lax.rem(t, jnp.int32(stages))

    @pl.when(group == _GROUPS)
    def _fetch() -> None:
        if shape.registers:
            plgpu.set_max_registers(40, action="decrease")
        own = pl.ds(block * BLOCK, BLOCK)
        plgpu.copy_gmem_to_smem(parts.at[:, own], at["b"], at["ready"])
        plgpu.copy_gmem_to_smem(v.at[own], at["v_columns"], at["ready"])

        def fetch(t: Any) -> None:
            slot, here = stage(t), pl.ds(passing(t) * BLOCK, BLOCK)
            plgpu.copy_gmem_to_smem(parts.at[:, here], at["a"].at[slot], at["full"].at[slot])
            plgpu.copy_gmem_to_smem(v.at[here], at["v_rows"].at[slot], at["full"].at[slot])

        for t in range(stages):
            fetch(jnp.int32(t))

        @pl.loop(jnp.int32(0), jnp.int32(strip))
        def _next(t: Any) -> None:
            plgpu.barrier_wait(at["free"].at[stage(t)])
            pl.when(t + stages < strip)(lambda: fetch(t + stages))

    @pl.when(group < _GROUPS)
    def _compute() -> None:
        if shape.registers:
            plgpu.set_max_registers(232, action="increase")
        plgpu.barrier_wait(at["ready"])
        wide = plgpu.Layout.WGMMA
        v_columns = _load(at["v_columns"], wide.reduce(0))
        own = pl.ds(group * 64, 64)

        def step(t: Any, column: Any) -> Any:
            slot = stage(t)
            plgpu.barrier_wait(at["full"].at[slot])

            def multiply(sums: Any) -> Any:
                for i, j in ((1, 0), (0, 1), (0, 0)):  # small terms first
                    right = at["b"].at[j].transpose((1, 0))
                    plgpu.wgmma(sums, at["a"].at[slot, i, own], right)
                return sums[...]

            rho = pl.run_scoped(multiply, plgpu.ACC((64, BLOCK), jnp.float32))
            tile = _evaluate(rho, polynomial, shape)
            own_block = (t + start[0]) == 0
            tile = jax.lax.cond(own_block, lambda p: _off_diagonal(p, group), lambda p: p, tile)
            v_rows = _load(at["v_rows"].at[slot, own], wide.reduce(1))
            # Beyond the last offset pairs would count twice.
            v_rows = v_rows * (t + start[0] <= many // 2).astype(jnp.float32)
            column = column + tile * jax.lax.broadcast_in_dim(v_rows, tile.shape, [0])
            part = tile * jax.lax.broadcast_in_dim(v_columns, tile.shape, [1])
            folded = functools.reduce(jnp.add, (part[:, i : i + 8] for i in range(0, BLOCK, 8)))
            row = jnp.sum(folded, axis=1)
            turn = jax.lax.rem(t, jnp.int32(2))
            plgpu.wait_smem_to_gmem(1, wait_read_only=True)
            at["row"].at[group, turn][...] = row
            plgpu.commit_smem()
            place = pl.ds(passing(t) * BLOCK + group * 64, 64)
            plgpu.copy_smem_to_gmem(at["row"].at[group, turn], rows_out.at[t, place])
            plgpu.barrier_arrive(at["free"].at[slot])  # after the last use of what was fetched
            return column

        blank = plgpu.layout_cast(jnp.zeros((64, BLOCK), jnp.float32), wide)
        column = jax.lax.fori_loop(jnp.int32(0), jnp.int32(strip), step, blank)
        # Sums over rows pass through memory that the warpgroups share: one after the other.
        pl.when(group == 1)(lambda: plgpu.barrier_wait(at["turn"]))
        at["column"].at[group][...] = jnp.sum(column, axis=0)
        plgpu.commit_smem()
        pl.when(group == 0)(lambda: plgpu.barrier_arrive(at["turn"]))
        plgpu.copy_smem_to_gmem(at["column"].at[group], columns_out.at[block, group])
        plgpu.wait_smem_to_gmem(0)


def _load(ref: Any, layout: Any) -> Any:
    index = inspect.signature(plgpu.load).parameters["idx"].default
    where = ((),) if index is inspect.Parameter.empty else ()  # JAX before 0.11
    return plgpu.load(ref, *where, layout=layout)


def _off_diagonal(tile: Any, group: Any) -> Any:
    wide = plgpu.Layout.WGMMA
    row, column = (plgpu.broadcasted_iota(jnp.int32, tile.shape, i, layout=wide) for i in (0, 1))
    return jnp.where(row + group * 64 == column, jnp.float32(0), tile)


def _evaluate(sums: Any, polynomial: Polynomial, shape: Shape) -> Any:
    r"""$\kappa$ from $2^{22}\rho$."""
    root = _flushing_sqrt if shape.ptx and shape.interpret is None else jnp.sqrt
    half = sums * jnp.float32(2.0**-23)
    y = root(jnp.abs(jnp.float32(0.5) - half)) - root(jnp.abs(half + jnp.float32(0.5)))
    if polynomial.shift:
        s = jnp.float32(polynomial.shift)
        y = (y + s) / (y * s + jnp.float32(1))
    *rest, last = (jnp.float32(c) for c in polynomial.coefficients)
    total = y * last + rest[-1]
    for c in rest[-2::-1]:
        total = total * y + c
    return total


def _flushing_sqrt(x: Any) -> Any:
    wide = plgpu.Layout.WGMMA
    answer = plgpu.ShapeDtypeStruct(x.shape, jnp.float32, layout=wide)

    @plgpu.inline_mgpu(arg_types=(wide,), return_type=answer)
    def root(_: Any, array: Any) -> Any:
        return array._pointwise(array._lift_fast_instr("sqrt.approx.ftz.f32"))

    return root(x)


def served() -> bool:
    """Whether JAX has this backend, and computes on a GPU for which the kernel is written."""
    if plgpu is None or jax.default_backend() != "gpu":
        return False
    return getattr(jax.devices()[0], "compute_capability", "") == "9.0"
