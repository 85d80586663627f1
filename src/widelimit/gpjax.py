"""GPJax: the kernel of a network of infinite width as one of its kernels."""

try:
    import gpjax as _gpjax  # noqa: F401
except ImportError as error:
    raise ImportError("widelimit.gpjax needs GPJax: pip install 'widelimit[gpjax]'.") from error

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from gpjax.kernels.base import AbstractKernel
from gpjax.kernels.computations import DenseKernelComputation
from gpjax.parameters import PositiveReal, Real, val

from widelimit.infinite import prepare
from widelimit.layers import Layer
from widelimit.regression import Family, family_of


class _Whole(DenseKernelComputation):
    """Whole matrices at once, with an exact diagonal, instead of pair by pair."""

    def _cross_covariance(self, kernel: Any, x: jax.Array, y: jax.Array) -> jax.Array:
        return kernel.matrix(x, y)

    def _gram(self, kernel: Any, x: jax.Array) -> jax.Array:
        return kernel.matrix(x, None)


class NetworkKernel(AbstractKernel):
    """The NNGP or tangent kernel of a network, for GPJax's models.

    Its parameters are the network's numbers but for those that are exactly 0; positive ones stay positive.

    Attributes:
        numbers: The parameters.
        family: The networks with such numbers.
        kind: "ntk" or "nngp".

    Example:
        >>> import jax.numpy as jnp, widelimit as wl
        >>> kernel = NetworkKernel(wl.mlp(depth=2, activation="erf"), "nngp")
        >>> kernel.gram(jnp.eye(3)).as_matrix().shape
        (3, 3)
    """

    numbers: tuple[Any, ...]  # pyright: ignore[reportGeneralTypeIssues]
    family: Family = eqx.field(static=True)  # pyright: ignore[reportGeneralTypeIssues]
    kind: str = eqx.field(static=True)  # pyright: ignore[reportGeneralTypeIssues]
    name: ClassVar[str] = "Network"

    def __init__(
        self,
        net: Layer,
        kind: str = "ntk",
        active_dims: list[int] | slice | None = None,
        n_dims: int | None = None,
    ) -> None:
        prepare(net, kind)  # checked before any work
        self.family, values = family_of(net)
        self.numbers = tuple(PositiveReal(v) if v > 0 else Real(v) for v in values.tolist())
        self.kind = kind
        super().__init__(active_dims, n_dims, _Whole())

    @property
    def net(self) -> Layer:
        """The network with its numbers as they are now."""
        return self.family.network(tuple(val(number) for number in self.numbers))

    def matrix(self, x: jax.Array, y: jax.Array | None) -> jax.Array:
        """The kernel of all pairs, shape (n, m); None for y is x."""
        second = None if y is None else self.slice_input(y)
        return jnp.asarray(prepare(self.net, self.kind)(self.slice_input(x), second))

    def __call__(self, x: jax.Array, y: jax.Array) -> jax.Array:
        """The kernel of one pair."""
        return self.matrix(x[None], y[None])[0, 0]
