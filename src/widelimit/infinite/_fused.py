"""Products by the kernel for Hopper GPUs: whether it serves, and a look at its first result."""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Bool, Float, Float16, Int

from widelimit._base import mesh as devices
from widelimit._base.ahead import ahead
from widelimit._base.mesh import EVERYWHERE
from widelimit._base.thresholds import FUSED_COLUMNS, FUSED_ERROR, FUSED_POINTS

from . import _hopper
from ._hopper import MOST_FEATURES
from ._hopper_tile import Polynomial, Shape
from ._powers import powers_of
from ._profile import Series

_TRIED: dict[
    tuple[object, ...], bool
] = {}  # what was tried in this process, and whether it was right


class Fused(NamedTuple):
    """A matrix by its profile, on a device that has the kernel.

    Attributes:
        parts: Unit vectors as float16 halves.
        sizes: sqrt(K(x, x)) of each row, 0 where rows fill up.
        polynomial: The profile.
        shape: How the kernel is compiled.
        mesh: The devices that share the work, or None: one.
    """

    parts: Float16[Array, "2 rows width"]
    sizes: Float[Array, " rows"]
    polynomial: Polynomial
    shape: Shape
    mesh: Mesh | None = None

    @classmethod
    def of(
        cls,
        points: Callable[[], tuple[Array, Array]],
        n: int,
        features: int,
        series: Series,
        mesh: Mesh | None = None,
    ) -> "Fused | None":
        """The product of n points, which `filled` has made, or None where the kernel does not serve."""
        if n < FUSED_POINTS or features > MOST_FEATURES or not _hopper.served():
            return None
        powers = powers_of(series, "float32")
        if powers is None:
            return None
        coefficients = tuple(float(c) for c in powers.coefficients)
        polynomial = Polynomial(float(series.shift), coefficients)
        parts, sizes = points()
        return cls(parts, sizes, polynomial, Shape(stages=4 if features <= 64 else 2), mesh)

    @property
    def tried(self) -> bool | None:
        """Whether such products were right, or None if none was tried yet."""
        return _TRIED.get((self.parts.shape, self.polynomial, self.shape))

    def serves(self, columns: int) -> bool:
        """Whether the kernel is the fastest way for so many right-hand sides."""
        return columns <= FUSED_COLUMNS and self.tried is not False

    def __call__(self, v: Float[Array, "n k"], diagonal: Float[Array, " n"]) -> Float[Array, "n k"]:
        """The matrix with this diagonal, times v."""
        how = self.polynomial, self.shape, self.mesh
        return _multiply(*how, self.parts, self.sizes, diagonal, v)

    def expect(
        self, v: jax.ShapeDtypeStruct, diagonal: Float[Array, " n"], rows: Int[np.ndarray, " r"]
    ) -> None:
        """Begin to compile the product with such vectors."""
        how = self.polynomial, self.shape, self.mesh
        _multiply.prepare(*how, self.parts, self.sizes, diagonal, v)
        if self.tried is None:
            sums = jax.ShapeDtypeStruct((2, len(rows), v.shape[1]), np.float64)
            _compared.prepare(v, v, v, diagonal, rows, sums)

    def first(
        self,
        v: Float[Array, "n k"],
        diagonal: Float[Array, " n"],
        rows: Int[np.ndarray, " r"],
        sums: Float[Array, "2 r k"],
    ) -> Float[Array, "n k"] | None:
        """The product, tried: twice the same, and right in some rows; None, and a word, if not.

        Args:
            v: The vectors.
            diagonal: The matrix's.
            rows: Some rows.
            sums: What the product without the diagonal must be there, and how large its terms are, shape
                (2, rows, k).
        """
        key = (self.parts.shape, self.polynomial, self.shape)
        try:
            out, again = self(v, diagonal), self(v, diagonal)
            same, error = (a.item() for a in _compared(out, again, v, diagonal, rows, sums))
            _TRIED[key] = same and error < FUSED_ERROR
            found = f"an error of {error:.1e}" if same else "results that differ from call to call"
        except Exception as error:  # of a backend under construction: anything may be raised
            out, _TRIED[key] = None, False
            found = f"{type(error).__name__}: {str(error)[:300]}"
        if _TRIED[key]:
            return out
        warnings.warn(
            f"The kernel for Hopper GPUs is not used: it was tried and gave {found}. Products are "
            "computed by XLA instead, three times slower and as exact.",
            RuntimeWarning,
            stacklevel=4,
        )
        return None


def filled(
    unit: Float[Array, "n d"], sizes: Float[Array, " n"]
) -> tuple[Float16[Array, "2 rows width"], Float[Array, " rows"]]:
    """Unit vectors and sizes as the kernel wants them: float16 halves, whole blocks."""
    parts = _hopper.halves(unit)
    return parts, jnp.pad(sizes.astype(jnp.float64), (0, parts.shape[1] - len(unit)))


@ahead()
def _compared(
    out: Float[Array, "n k"],
    again: Float[Array, "n k"],
    v: Float[Array, "n k"],
    diagonal: Float[Array, " n"],
    rows: Int[Array, " r"],
    sums: Float[Array, "2 r k"],
) -> tuple[Bool[Array, ""], Float[Array, ""]]:
    """Whether two products are the same, and how far some rows are off, the diagonal apart."""
    own = diagonal[rows, None] * v[rows]
    error = jnp.abs(out[rows] - own - sums[0]).max(0) / sums[1].max(0)
    return (out == again).all(), error.max()


@ahead(static=3)
def _multiply(
    polynomial: Polynomial,
    shape: Shape,
    mesh: Mesh | None,
    parts: Float16[Array, "2 rows width"],
    sizes: Float[Array, " rows"],
    diagonal: Float[Array, " n"],
    v: Float[Array, "n k"],
) -> Float[Array, "n k"]:
    def share(parts: Array, narrow: Float[Array, " rows"]) -> Float[Array, " rows"]:
        mine = devices.index(mesh), devices.count(mesh)
        return devices.total(mesh, _hopper.product(parts, narrow, polynomial, shape, mine))

    def one(column: Float[Array, " n"]) -> Float[Array, " n"]:
        wide = jnp.pad(column, (0, len(sizes) - len(column))) * sizes
        largest = jnp.max(jnp.abs(wide))
        scale = jnp.where(largest > 0, largest, 1)
        run = devices.spread(mesh, share, EVERYWHERE, EVERYWHERE)
        return (run(parts, (wide / scale).astype(jnp.float32)) * scale * sizes)[: len(column)]

    return jax.lax.map(one, v.T).T + diagonal[:, None] * v
