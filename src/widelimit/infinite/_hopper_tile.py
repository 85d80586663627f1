"""What runs on a Hopper GPU: one block of columns, while blocks of rows pass by (`_hopper.py`)."""

import functools
import importlib
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

BLOCK = 128  # points in a block: the rows of two warpgroups, and the columns of each
GROUPS = 2  # warpgroups that compute; one more fetches


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


@functools.cache
def pallas() -> tuple[Any, Any]:
    """Pallas and its backend, imported where they are used; JAX says of it that it may change weekly."""
    name = "jax.experimental.pallas"
    return importlib.import_module(name), importlib.import_module(f"{name}.mosaic_gpu")


class Tile(NamedTuple):
    """The work of one block.

    Attributes:
        many: Blocks in all.
        strip: Those that pass by.
        polynomial: The kernel as a function of the correlation.
        shape: How it is compiled.
        refs: Points, vector, first offset; the places of sums over columns and over rows.
        at: Shared memory and barriers, by name.
    """

    many: int
    strip: int
    polynomial: Polynomial
    shape: Shape
    refs: tuple[Any, ...]
    at: dict[str, Any]

    def run(self) -> None:
        """A warpgroup fetches, two compute."""
        pl, _ = pallas()
        group = jax.lax.axis_index("wg")
        pl.when(group == GROUPS)(self.fetch)
        pl.when(group < GROUPS)(lambda: self.compute(group))

    @property
    def offset(self) -> Any:
        """By how many blocks the first that passes is ahead."""
        return self.refs[2][0]

    def passing(self, t: Any) -> Any:
        """The t-th block that passes by."""
        return jax.lax.rem(jax.lax.axis_index("block") + self.offset + t, jnp.int32(self.many))

    def slot(self, t: Any) -> Any:
        """Where it is in shared memory."""
        return jax.lax.rem(t, jnp.int32(self.shape.stages))

    def fetch(self) -> None:
        """Bring the block of columns, then blocks of rows as places become free."""
        pl, plgpu = pallas()
        (parts, v, *_), at, stages = self.refs, self.at, self.shape.stages
        if self.shape.registers:
            plgpu.set_max_registers(40, action="decrease")
        own = pl.ds(jax.lax.axis_index("block") * BLOCK, BLOCK)
        plgpu.copy_gmem_to_smem(parts.at[:, own], at["b"], at["ready"])
        plgpu.copy_gmem_to_smem(v.at[own], at["v_columns"], at["ready"])

        def bring(t: Any) -> None:
            slot, here = self.slot(t), pl.ds(self.passing(t) * BLOCK, BLOCK)
            plgpu.copy_gmem_to_smem(parts.at[:, here], at["a"].at[slot], at["full"].at[slot])
            plgpu.copy_gmem_to_smem(v.at[here], at["v_rows"].at[slot], at["full"].at[slot])

        for t in range(stages):
            bring(jnp.int32(t))

        @pl.loop(jnp.int32(0), jnp.int32(self.strip))
        def _next(t: Any) -> None:
            plgpu.barrier_wait(at["free"].at[self.slot(t)])
            pl.when(t + stages < self.strip)(lambda: bring(t + stages))

    def compute(self, group: Any) -> None:
        """Multiply all that passes by with the block of columns, and hand out sums."""
        pl, plgpu = pallas()
        at, columns_out = self.at, self.refs[4]
        if self.shape.registers:
            plgpu.set_max_registers(232, action="increase")
        plgpu.barrier_wait(at["ready"])
        v_columns = _load(at["v_columns"], plgpu.Layout.WGMMA.reduce(0))
        step = functools.partial(self.step, group, v_columns)
        blank = plgpu.layout_cast(jnp.zeros((64, BLOCK), jnp.float32), plgpu.Layout.WGMMA)
        column = jax.lax.fori_loop(jnp.int32(0), jnp.int32(self.strip), step, blank)
        # Sums over rows pass through memory that the warpgroups share: one after the other.
        pl.when(group == 1)(lambda: plgpu.barrier_wait(at["turn"]))
        at["column"].at[group][...] = jnp.sum(column, axis=0)
        plgpu.commit_smem()
        pl.when(group == 0)(lambda: plgpu.barrier_arrive(at["turn"]))
        block = jax.lax.axis_index("block")
        plgpu.copy_smem_to_gmem(at["column"].at[group], columns_out.at[block, group])
        plgpu.wait_smem_to_gmem(0)

    def step(self, group: Any, v_columns: Any, t: Any, column: Any) -> Any:
        """One tile, 64 rows of it in this warpgroup; the sums of columns stay in registers."""
        pl, plgpu = pallas()
        at, slot, own = self.at, self.slot(t), pl.ds(group * 64, 64)
        plgpu.barrier_wait(at["full"].at[slot])

        def multiply(sums: Any) -> Any:
            for i, j in ((1, 0), (0, 1), (0, 0)):  # small terms first
                plgpu.wgmma(sums, at["a"].at[slot, i, own], at["b"].at[j].transpose((1, 0)))
            return sums[...]

        tile = self.evaluate(pl.run_scoped(multiply, plgpu.ACC((64, BLOCK), jnp.float32)))
        off = lambda p: _off_diagonal(p, group)
        tile = jax.lax.cond(t + self.offset == 0, off, lambda p: p, tile)
        v_rows = _load(at["v_rows"].at[slot, own], plgpu.Layout.WGMMA.reduce(1))
        # Beyond the last offset pairs would count twice.
        v_rows = v_rows * (t + self.offset <= self.many // 2).astype(jnp.float32)
        column = column + tile * jax.lax.broadcast_in_dim(v_rows, tile.shape, [0])
        part = tile * jax.lax.broadcast_in_dim(v_columns, tile.shape, [1])
        folded = functools.reduce(jnp.add, (part[:, i : i + 8] for i in range(0, BLOCK, 8)))
        sums, turn = jnp.sum(folded, axis=1), jax.lax.rem(t, jnp.int32(2))
        plgpu.wait_smem_to_gmem(1, wait_read_only=True)
        at["row"].at[group, turn][...] = sums
        plgpu.commit_smem()
        place = pl.ds(self.passing(t) * BLOCK + group * 64, 64)
        plgpu.copy_smem_to_gmem(at["row"].at[group, turn], self.refs[3].at[t, place])
        plgpu.barrier_arrive(at["free"].at[slot])  # after the last use of what was fetched
        return column

    def evaluate(self, sums: Any) -> Any:
        r"""$\kappa$ from $2^{22}\rho$."""
        flush = self.shape.ptx and self.shape.interpret is None
        root, half = _flushing_sqrt if flush else jnp.sqrt, sums * jnp.float32(2.0**-23)
        y = root(jnp.abs(jnp.float32(0.5) - half)) - root(jnp.abs(half + jnp.float32(0.5)))
        if self.polynomial.shift:
            s = jnp.float32(self.polynomial.shift)
            y = (y + s) / (y * s + jnp.float32(1))
        *rest, last = (jnp.float32(c) for c in self.polynomial.coefficients)
        total = y * last + rest[-1]
        for c in rest[-2::-1]:
            total = total * y + c
        return total


def _load(ref: Any, layout: Any) -> Any:
    load = pallas()[1].load
    index = inspect.signature(load).parameters["idx"].default
    where = ((),) if index is inspect.Parameter.empty else ()  # JAX before 0.11
    return load(ref, *where, layout=layout)


def _off_diagonal(tile: Any, group: Any) -> Any:
    plgpu = pallas()[1]
    iota = functools.partial(plgpu.broadcasted_iota, layout=plgpu.Layout.WGMMA)
    row, column = (iota(jnp.int32, tile.shape, i) for i in (0, 1))
    return jnp.where(row + group * 64 == column, jnp.float32(0), tile)


def _flushing_sqrt(x: Any) -> Any:
    plgpu = pallas()[1]
    wide = plgpu.Layout.WGMMA
    answer = plgpu.ShapeDtypeStruct(x.shape, jnp.float32, layout=wide)
    inline: Any = plgpu.inline_mgpu(arg_types=(wide,), return_type=answer)
    instruction = "sqrt.approx.ftz.f32"
    return inline(lambda _, array: array._pointwise(array._lift_fast_instr(instruction)))(x)
