r"""The product $K_{ij}=\kappa(u_i\cdot u_j)$ with a vector as one kernel for Hopper GPUs.

A Pallas kernel on the Mosaic GPU backend. The points are cut into an odd number $T$ of blocks of 128;
block $J$ stays in shared memory as the right operand while the blocks $J, J+1,\dots,J+(T-1)/2$ (modulo $T$)
pass by, so that every pair of blocks meets once and all blocks have the same work. Correlations are three
products of float16 halves, the polynomial runs on the registers, and only sums leave the kernel: of columns
at the end, of rows after every tile, to a workspace in which every number has its own place. There are no
atomics; a product repeats bit for bit.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Float16, Int

from ._hopper_tile import BLOCK, GROUPS, Polynomial, Shape, Tile, pallas

MOST_FEATURES = 128  # more do not fit into shared memory beside each other


def served() -> bool:
    """Whether JAX has this backend, and computes on a GPU for which the kernel is written."""
    if jax.default_backend() != "gpu" or jax.devices()[0].compute_capability != "9.0":
        return False
    try:
        return bool(pallas())
    except ImportError:
        return False


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
    offsets = parts.shape[1] // BLOCK // 2 + 1
    strip = -(-offsets // -(-offsets // shape.strip))
    shape = shape._replace(stages=min(shape.stages, strip))
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
        zero, strips = jnp.zeros(v.shape, jnp.float64), -(-offsets // strip)
        return jax.lax.fori_loop(jnp.int32(0), jnp.int32(-(-strips // shares)), add, zero)


@functools.lru_cache(maxsize=64)
def _kernel(size: tuple[int, int], strip: int, polynomial: Polynomial, shape: Shape) -> Any:
    """A function of (parts, v, first offset) that gives the sums over columns and over rows."""
    pl, plgpu = pallas()
    rows, width = size
    many, stages = rows // BLOCK, shape.stages
    swizzle = plgpu.find_swizzle(width * 16)
    tiled = (plgpu.TilingTransform((8, swizzle // 2)), plgpu.SwizzleTransform(swizzle))
    f16, f32 = jnp.float16, jnp.float32
    scratch = {
        "a": plgpu.SMEM((stages, 2, BLOCK, width), f16, transforms=tiled),
        "b": plgpu.SMEM((2, BLOCK, width), f16, transforms=tiled),
        "v_rows": plgpu.SMEM((stages, BLOCK), f32),
        "v_columns": plgpu.SMEM((BLOCK,), f32),
        "row": plgpu.SMEM((GROUPS, 2, 64), f32),
        "column": plgpu.SMEM((GROUPS, BLOCK), f32),
        "ready": plgpu.Barrier(num_arrivals=2),
        "full": plgpu.Barrier(num_arrivals=2, num_barriers=stages),
        "free": plgpu.Barrier(num_arrivals=GROUPS, num_barriers=stages),
        "turn": plgpu.Barrier(num_arrivals=1),
    }

    def body(*refs: Any) -> None:
        run = lambda **at: Tile(many, strip, polynomial, shape, refs, at).run()
        pl.run_scoped(run, collective_axes="wg", **scratch)

    sums = jax.ShapeDtypeStruct((strip, rows), f32)
    totals = jax.ShapeDtypeStruct((many, GROUPS, BLOCK), f32)
    return plgpu.kernel(
        body,
        out_type=(sums, totals),
        grid=(many,),
        grid_names=("block",),
        num_threads=GROUPS + 1,
        thread_name="wg",
        compiler_params=plgpu.CompilerParams(
            approx_math=True,
            lowering_semantics=plgpu.LoweringSemantics.Lane,
            unsafe_no_auto_barriers=not shape.barriers,
        ),
        **({} if shape.interpret is None else {"interpret": shape.interpret}),
    )
