"""A prepared kernel: checked and decided once, evaluated often."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import Inputs, as_array, as_inputs
from widelimit._base.mesh import as_mesh
from widelimit._base.passes import once_for_each_network
from widelimit._base.shown import shown
from widelimit._base.structured import Data, as_images
from widelimit._base.thresholds import MATVEC_ENTRIES
from widelimit.describe import check, check_pixels, expect_network
from widelimit.layers import Layer

from ._evaluate import Request, evaluate, on_device, scope_of
from ._operator import NetworkGram
from ._plan import Form, Numbers, Scope, facts, join, split, without_widths
from ._products import diagonal, matvec
from ._spatial import image_diagonal, image_kernels
from ._whole import on_accelerator

Path = Literal["layers", "profile"]


@shown("both kernels of a network of infinite width")
class Kernels(NamedTuple):
    """Both kernels of a network.

    Attributes:
        nngp: The covariance of the network's outputs at initialisation, shape (n1, n2).
        ntk: The tangent kernel, shape (n1, n2).
    """

    nngp: Any
    ntk: Any


class PreparedKernel(eqx.Module):
    """A kernel of a network as a value: a pytree whose leaves are the network's numbers.

    It pickles, compares and hashes by value, and can be an argument of a function under `jax.jit`
    or `jax.grad`. Made by `prepare`.

    Attributes:
        numbers: The network's numbers that are not exactly zero.
        form: The rest of the network.
        kind: "nngp" or "ntk".
        scope: The range of |x|^2/d that was announced, or None.
        path: "layers" or "profile" where only that one is to be used, or None.
        layout: The shape (*spatial, channels) of an input where inputs come as rows, or None.
    """

    numbers: Numbers
    form: Form = eqx.field(static=True)
    kind: str = eqx.field(static=True)
    scope: Scope | None = eqx.field(static=True, default=None)
    path: Path | None = eqx.field(static=True, default=None)
    layout: tuple[int, ...] | None = eqx.field(static=True, default=None)

    @property
    def net(self) -> Layer:
        """The network."""
        return join(self.form, self.numbers)

    def __call__(self, x1: Data, x2: Data | None = None) -> Any:
        """The kernel matrix.

        Args:
            x1: Data, shape (n1, d), or (n1, *spatial, channels) where the network reads pixels; `Masked`,
            `Graphs`. NumPy in, NumPy out; JAX in, JAX out.
            x2: Data, shape (n2, d); None stands for `x1`, and the diagonal is then exact.

        Returns:
            The matrix, shape (n1, n2), in the dtype of the inputs.
        """
        return matrices(self, (self.kind,), x1, x2)[0]

    def both(self, x1: Data, x2: Data | None = None) -> Kernels:
        """Both kernels at once, for little more than the price of one."""
        return Kernels(*matrices(self, ("nngp", "ntk"), x1, x2))

    def _read(self, x1: Any, x2: Any = None) -> Inputs:
        if not self.pixels:
            return as_inputs(x1, x2)
        layout = self.layout
        if layout is not None:
            whole = lambda x: None if x is None else x.reshape(len(x), *layout)
            x1, x2 = whole(x1), whole(x2)
        return as_images(x1, x2)

    @property
    def pixels(self) -> bool:
        """Whether the network reads pixels: inputs have shape (n, *spatial, channels)."""
        return facts(self.form).pixels

    def diagonal(self, x: Data) -> Any:
        """The kernel of each point with itself, shape (n,), at a cost of O(n)."""
        rule = image_diagonal if self.pixels else diagonal
        return rule(self._request(self.kind), self._read(x))[0]

    def matvec(self, x1: Data, x2: Data | None, v: ArrayLike) -> Any:
        """The matrix times v, without the matrix being stored.

        Args:
            x1: Data, shape (n1, d).
            x2: Data, shape (n2, d), or None for `x1`.
            v: Shape (n2,) or (n2, k).

        Returns:
            Shape (n1,) or (n1, k), in the dtype of the inputs.
        """
        inputs = self._read(x1, x2)
        many = len(inputs.x1 if x2 is None else inputs.x2)
        rank = 1 if np.ndim(v) == 1 else 2
        vector = as_array(v, "v", rank=rank, layout="(n2,) or (n2, k)").astype(inputs.dtype)
        if len(vector) != many:
            raise ValueError(
                f"v has {len(vector)} rows, but the matrix has {many} columns: one for each point "
                "of x2 (of x1, if x2 is None)."
            )
        if self.pixels:
            return self._product(inputs, vector)
        return matvec(self._request(self.kind), inputs, vector)

    def operator(
        self, x: ArrayLike, precision: str = "float64", mesh: Mesh | None = None
    ) -> NetworkGram:
        """The matrix of some points as an operator (`linalg.KernelOperator`): products, no matrix.

        Args:
            x: Data, shape (n, d).
            precision: "float32" or "float64", of the entries; sums are float64.
            mesh: The devices that share the work; None: all of this process.

        Example:
            >>> import numpy as np, widelimit as wl
            >>> k, x = wl.prepare(wl.mlp(2)), np.eye(4)
            >>> bool(np.allclose(k.operator(x) @ np.ones(4), k(x).sum(1)))
            True
        """
        if precision not in ("float32", "float64"):
            raise ValueError(f"precision must be 'float32' or 'float64', got {precision!r}.")
        if self.pixels:
            raise ValueError(
                "Operators are for inputs without pixels; the kernel of images is too dear to be computed "
                "anew for every product. Store its matrix."
            )
        points = np.asarray(as_inputs(x).x1)
        return NetworkGram(self._request(self.kind), points, precision, as_mesh(mesh))

    def _product(self, inputs: Inputs, vector: Any) -> Any:
        """Strips of rows, which are not kept."""
        second = inputs.x1 if inputs.x2 is None else inputs.x2
        request = self._request(self.kind)
        rows = max(MATVEC_ENTRIES // len(second) // 16, 1)
        parts = [
            image_kernels(request, inputs._replace(x1=inputs.x1[i : i + rows], x2=second))[0]
            @ vector
            for i in range(0, len(inputs.x1), rows)
        ]
        return np.concatenate(parts) if inputs.numpy else jnp.concatenate(parts)

    def block(self, x1: Float[Array, "..."], x2: Float[Array, "..."]) -> Float[Array, "n1 n2 ..."]:
        """The matrix in pure JAX, for use inside `jit`, `vmap` and `shard_map`; nothing is checked.

        If a range of norms was announced that matters (activations without closed form), pairs with
        a point outside it are NaN: a compiled program can neither decide anew nor raise.
        """
        request = self._request(self.kind)._replace(form=without_widths(self.form))
        if self.pixels:
            return jnp.asarray(image_kernels(request, Inputs(x1, x2, False, x1.dtype))[0])
        with jax.enable_x64(True):
            return on_device(request, Inputs(x1, x2, False, x1.dtype))[0]

    def of_rows(self, layout: tuple[int, ...]) -> "PreparedKernel":
        """The same kernel for inputs (*spatial, channels) that come as rows of a matrix.

        What solves and regresses works on matrices of points. The network must end in a vector.
        """
        if not self.pixels:
            raise ValueError(
                f"Data of shape {layout} have pixels, which the network does not read. Let it begin with "
                "Flatten() or a convolution, or give the points as rows."
            )
        left = check_pixels(self.net, tuple(layout[:-1]), layout[-1])
        if left:
            raise ValueError(
                f"The network's output has {' x '.join(map(str, left))} pixels; one number for each output is "
                "needed. Put Flatten() or GlobalAvgPool() before its last Dense()."
            )
        return PreparedKernel(
            self.numbers, self.form, self.kind, self.scope, self.path, tuple(layout)
        )

    def by(self, path: Path) -> "PreparedKernel":
        """The same kernel evaluated layer by layer, or by its profile, only: the numbers agree."""
        return PreparedKernel(self.numbers, self.form, self.kind, self.scope, path, self.layout)

    def _request(self, *wanted: str) -> Request:
        return Request(self.form, self.numbers, wanted, self.scope, self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PreparedKernel) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"prepare({self.net!r}, {self.kind!r})"

    def __reduce__(self) -> tuple[Callable[..., "PreparedKernel"], tuple[Any, ...]]:
        return _restore, self._key()

    def _key(self) -> tuple[Any, ...]:
        return self.net, self.kind, self.scope, self.path, self.layout


def matrices(
    kernel: PreparedKernel, wanted: tuple[str, ...], x1: Data, x2: Data | None
) -> tuple[Any, ...]:
    """The wanted kernel matrices (a function, since Equinox builds a value for each method that is called)."""
    form = kernel.form
    request = Request(form, kernel.numbers, wanted, kernel.scope, kernel.path)
    if facts(form).pixels:
        return image_kernels(request, kernel._read(x1, x2))
    # An accelerator's result tells, without a wait before it, whether the inputs were finite.
    return evaluate(request, as_inputs(x1, x2, look=not on_accelerator()))


def _restore(
    net: Layer,
    kind: str,
    scope: Scope | None,
    path: Path | None,
    layout: tuple[int, ...] | None = None,
) -> PreparedKernel:
    form, numbers = split(net)
    return PreparedKernel(numbers, form, kind, scope, path, layout)


def prepare(net: Layer, kind: str = "ntk", like: Data | None = None) -> PreparedKernel:
    """Check a network once, and get its kernel as a value that is evaluated often.

    Args:
        net: The network.
        kind: "ntk" or "nngp".
        like: Data like those to come, shape (n, d): their norms decide, once for all, how
            activations without closed form are integrated. A call with other norms decides anew, so
            it is as right, but may compile anew.

    Returns:
        The kernel: `k(x1, x2)`, `k.diagonal(x)`, `k.matvec(x1, x2, v)`, `k.block(x1, x2)`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> k = prepare(wl.mlp(depth=2), "ntk")
        >>> x = np.eye(3)
        >>> bool(np.allclose(k.matvec(x, None, np.ones(3)), k(x).sum(axis=1)))
        True
        >>> k.diagonal(x).round(4)
        array([0.25, 0.25, 0.25])
    """
    if kind not in ("nngp", "ntk"):
        raise ValueError(f"kind must be 'ntk' or 'nngp', got {kind!r}.")
    expect_network(net)
    kernel = _prepared(net, kind)
    if like is None or kernel.pixels:
        return kernel
    return _restore(net, kind, scope_of(as_inputs(like)), None)


@once_for_each_network
def _prepared(net: Layer, kind: str) -> PreparedKernel:
    check(net, ntk=kind == "ntk")
    return _restore(net, kind, None, None)
