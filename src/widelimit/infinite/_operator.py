"""A network's kernel matrix as an operator on the device: products without the matrix."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Float16, Int

from widelimit._base import mesh as devices
from widelimit._base.arrays import Inputs, is_jax
from widelimit._base.thresholds import (
    DEVICE_PRODUCT_SIDE,
    FEW_FEATURES,
    REPRESENTABLE,
    TILE_SIDE,
    TUNED_POINTS,
)
from widelimit._base.types import Self, Tensor

from ._correlation import as_points
from ._dealt import columns, look_for_near, some_rows, symmetric_product
from ._evaluate import Request, fill_up
from ._fused import Fused, filled
from ._host import second_moments
from ._plan import Numbers, Plan, without_widths
from ._powers import all_powers
from ._products import diagonal
from ._tile import Extra, evaluator

_TRIED_ROWS = 256  # in which the first product by a device's own kernel is compared


class NetworkGram:
    r"""The matrix $K_{ij}=k(x_i,x_j)$ of a network, kept as its points.

    Entries are float32 or float64; their sums over a tile are float64. Half of the tiles are computed,
    each used for $K_{IJ}v_J$ and $K_{IJ}^\top v_I$; nothing of size $n^2$ is stored. The diagonal is
    exact in float64 in either case. Vectors are float64 JAX arrays where the computation runs.

    Args:
        request: Which kernel of which network.
        x: Points, shape (n, d).
        precision: "float32" or "float64": of the entries; float64 in any case where float32 cannot hold
            the sizes of the inputs or of their kernels.
        mesh: The devices that share the work, or None: one.
        like: The same matrix in another precision, from which what does not depend on it is taken.

    Attributes:
        size: The number of points.
        precision: Of the entries.
        mesh: The devices.
        rough: Whether nearly parallel pairs are computed as all others: to 1e-4 of the kernel at
            worst, in float32. For iterations whose residual is computed with care.
    """

    def __init__(
        self,
        request: Request,
        x: Float[np.ndarray, "n d"],
        precision: str,
        mesh: Mesh | None = None,
        like: "NetworkGram | None" = None,
    ):
        self.size, self.mesh, self.rough = len(x), mesh, False
        request = request._replace(form=without_widths(request.form))
        self._request, self._points = request, x
        self.precision, exact = precision, np.zeros(0)
        if like is None:
            wide = Inputs(x.astype(np.float64), None, True, np.dtype(float))
            exact = np.asarray(diagonal(request, wide)[0])
            if not _fits(np.concatenate([second_moments(wide.x1), exact])):
                self.precision = "float64"
        dtype = np.dtype(self.precision)
        with jax.enable_x64(True):
            # As many pairs as are to come, so that what pays for large matrices is used.
            inputs = Inputs(x.astype(dtype), None, True, dtype)
            made = fill_up(request, inputs, dtype=self.precision)
            side = TILE_SIDE if jax.default_backend() == "cpu" else DEVICE_PRODUCT_SIDE
            self._side = min(side, -(-self.size // 8) * 8)
            rows = -(-self.size // self._side) * self._side
            points = np.zeros((rows, made.x1.shape[1]), dtype)
            points[: self.size] = made.x1[: self.size]
            self._x = devices.everywhere(mesh, points)
            self._plan, self._numbers = made.plan, made.numbers
            powers = all_powers(made.extra.profiles, request.wanted, self.precision)
            self._extra = made.extra._replace(counts=None, powers=powers)
            self._like = like
            self._diagonal = devices.everywhere(mesh, exact) if like is None else like._diagonal
            self._fused = self._look_for_kernel(request.wanted[0])

    @functools.cached_property
    def _near(self) -> Bool[Array, " tiles"] | None:
        """Which tiles have nearly parallel pairs, so that only those are computed with care; None: none.

        With few features correlations come from differences in any case.
        """
        if self._like is not None:
            return self._like._near  # what is nearly parallel in double precision is so in single
        rows, features = self._x.shape
        with jax.enable_x64(True):
            if features <= FEW_FEATURES:
                many = rows // self._side
                return devices.everywhere(self.mesh, np.ones(many * (many + 1) // 2, bool))
            near, some = look_for_near(self.mesh, self._side, self._x, np.int32(self.size))
            return near if bool(some) else None

    def roughly(self) -> Self:
        """This operator, rough from now on, unless its few features make all pairs nearly parallel."""
        self.rough = self._x.shape[1] > FEW_FEATURES
        return self

    def settle(self) -> bool:
        """Become careful; whether that makes a difference."""
        changed, self.rough = self.rough and self._near is not None, False
        return changed

    def careful(self) -> "NetworkGram":
        """The same matrix with entries in float64."""
        if self.precision == "float64":
            return self
        return NetworkGram(self._request, self._points, "float64", self.mesh, self)

    def _look_for_kernel(self, kind: str) -> Fused | None:
        """The product by a kernel of the device's own, where there is one and no pair needs care."""
        profiles = self._extra.profiles
        if self.precision != "float32" or self._plan.path != "profile" or profiles is None:
            return None
        given = self._numbers, self._x, self._extra
        points = functools.partial(_units, self._plan, self.size, *given)
        features = self._x.shape[1]
        return Fused.of(points, self.size, features, getattr(profiles, kind), self.mesh)

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.size, self.size

    def vector(self, v: object) -> Float[Array, " n *k"]:
        """A vector, or several as columns, where products are computed."""
        with jax.enable_x64(True):
            ours = v if isinstance(v, jax.Array) else np.asarray(v, np.float64)
            there = devices.everywhere(self.mesh, ours)
            return there if there.dtype == np.float64 else there.astype(jnp.float64)

    def __matmul__(self, v: object) -> Float[Tensor, " n *k"]:
        """K v for v of shape (n,) or (n, k), in float64: NumPy for NumPy, else where it was computed."""
        with jax.enable_x64(True):
            given = self.vector(v)
            if given.ndim not in (1, 2) or len(given) != self.size:
                raise ValueError(f"v must have {self.size} rows, got shape {given.shape}.")
            columns = given if given.ndim == 2 else given.reshape(self.size, -1)
            out = self._by_kernel(columns)
            out = self._by_tiles(columns) if out is None else out
            out = out if given.ndim == 2 else out.reshape(given.shape)
            return out if is_jax(v) else np.asarray(out)

    def expect(self, outputs: int, rank: int = 0) -> None:
        """Begin to compile products with so many vectors, and so many columns, while there is other work.

        Nearly parallel pairs are not expected.
        """
        if self.mesh is not None:
            return
        of, fused = jax.ShapeDtypeStruct, self._fused
        v, given = of((self.size, outputs), np.float64), (self._numbers, self._x)
        with jax.enable_x64(True):
            if self._like is None and self._x.shape[1] > FEW_FEATURES:
                look_for_near.prepare(None, self._side, self._x, np.int32(self.size))
            if rank:
                more = of((rank,), np.int32), self._diagonal, self._extra
                columns.prepare(self._plan, self.size, None, True, *given, *more)
            if fused is None or not fused.serves(outputs):
                how = self._plan, self._side, None
                more = v, self._extra, None, self._diagonal
                symmetric_product.prepare(*how, *given, *more, tuned=self.size >= TUNED_POINTS)
                return
            fused.expect(v, self._diagonal, self._tried_rows)
            if fused.tried is None:
                more = self._tried_rows, v, self._extra
                some_rows.prepare(self._plan, self._side, *given, *more)

    @property
    def _tried_rows(self) -> Int[np.ndarray, " rows"]:
        """Where the first product by the device's own kernel is compared."""
        return np.unique(np.linspace(0, self.size - 1, _TRIED_ROWS).astype(np.int32))

    def _by_tiles(self, columns: Float[Array, "n k"]) -> Float[Array, "n k"]:
        near, how = None if self.rough else self._near, (self._plan, self._side, self.mesh)
        given = self._numbers, self._x, columns, self._extra, near, self._diagonal
        return symmetric_product(*how, *given)

    def _by_kernel(self, columns: Float[Array, "n k"]) -> Float[Array, "n k"] | None:
        """The same by the device's own kernel, whose first product is checked; None: not served."""
        fused = self._fused
        careful = not self.rough and self._near is not None
        if fused is None or careful or not fused.serves(columns.shape[1]):
            return None
        if fused.tried:
            return fused(columns, self._diagonal)
        chosen = self._tried_rows
        given = self._numbers, self._x, chosen, columns, self._extra
        return fused.first(
            columns, self._diagonal, chosen, some_rows(self._plan, self._side, *given)
        )

    def some(
        self, rows: Int[np.ndarray, " r"], v: Float[Array, "n k"]
    ) -> Float[np.ndarray, "r k"] | None:
        """Some rows of K v, or None where nearly parallel pairs would need care."""
        if self._near is not None:
            return None
        with jax.enable_x64(True):
            given = self._numbers, self._x, rows.astype(np.int32), v, self._extra
            others = np.asarray(some_rows(self._plan, self._side, *given))[0]
        return others + (np.asarray(self._diagonal)[:, None] * np.asarray(v))[rows]

    def columns(self, index: object) -> Float[Array, "n k"]:
        """K[:, index], shape (n, len(index)), in the precision of the entries."""
        return self.shared_columns(index)[: self.size]

    def shared_columns(self, index: object) -> Float[Array, "rows k"]:
        """The same, each device having its rows, zeros below them."""
        with jax.enable_x64(True):
            chosen = np.asarray(index, np.int32)
            program = self._plan, self.size, self.mesh, self._near is None
            given = self._numbers, self._x, chosen, self._diagonal, self._extra
            return columns(*program, *given)

    def diagonal(self) -> Float[Array, " n"]:
        """The diagonal of K, in float64."""
        return self._diagonal


@functools.partial(jax.jit, static_argnums=(0, 1))
def _units(
    plan: Plan, size: int, numbers: Numbers, x: Float[Array, "rows d"], extra: Extra
) -> tuple[Float16[Array, "2 filled width"], Float[Array, " filled"]]:
    """Unit vectors, and the roots of the kernel of each point with itself, as the kernel wants them."""
    points = as_points(x[:size])
    edge = evaluator(plan, numbers, extra).sizes(points)
    return filled(points.unit, jnp.broadcast_to(jnp.asarray(edge), (size,)))


def _fits(sizes: Float[np.ndarray, " sizes"]) -> bool:
    """Whether float32 holds these second moments, and products of four of their roots."""
    used = sizes[sizes != 0]
    return bool(np.all((used > 1 / REPRESENTABLE) & (used < REPRESENTABLE)))
