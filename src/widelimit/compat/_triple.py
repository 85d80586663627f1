"""The three functions that a layer of `stax` is: draw weights, apply them, the limit kernels."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.structured import Graphs, Masked
from widelimit.finite import FiniteNetwork, finite
from widelimit.infinite import prepare
from widelimit.layers import Layer, Serial

from ._words import Network, Word, Words, put_together

Get = str | Sequence[str] | None


class Kernel(eqx.Module):
    """Both kernels of some inputs, with what is needed to go on through further layers.

    Attributes:
        net: The network so far.
        x1: The first inputs.
        x2: The second inputs, or None.
        nngp: The NNGP kernel.
        ntk: The tangent kernel.
    """

    net: Layer = eqx.field(static=True)
    x1: Any
    x2: Any
    nngp: Any
    ntk: Any

    @property
    def cov1(self) -> Any:
        """The NNGP kernel of each first input with itself."""
        return prepare(self.net, "nngp").diagonal(self.x1)

    @property
    def cov2(self) -> Any:
        """The NNGP kernel of each second input with itself; None where there are none."""
        return None if self.x2 is None else prepare(self.net, "nngp").diagonal(self.x2)

    @property
    def x1_is_x2(self) -> bool:
        """Whether the inputs met themselves."""
        return self.x2 is None

    def __getattr__(self, name: str) -> Any:
        if name in _INSIDE:
            raise AttributeError(
                f"Kernel.{name} belongs to the inside of neural-tangents; widelimit carries another state. "
                "There are nngp, ntk, cov1, cov2 and x1_is_x2; wl.trace shows kernels layer by layer."
            )
        raise AttributeError(f"Kernel has no attribute {name!r}.")


_INSIDE = {
    "is_gaussian",
    "is_reversed",
    "is_input",
    "diagonal_batch",
    "diagonal_spatial",
    "shape1",
    "shape2",
    "batch_axis",
    "channel_axis",
    "mask1",
    "mask2",
}


@dataclasses.dataclass(frozen=True)
class _Spelt:
    """A function of a network that is put together when it is first needed."""

    words: Words

    @functools.cached_property
    def network(self) -> Network:
        """The description and its parameterisation."""
        return put_together(self.words)

    @functools.cached_property
    def finite(self) -> FiniteNetwork:
        """The network with the widths that its layers state."""
        return finite(self.network.net, parameterisation=self.network.parameterisation)


class InitFn(_Spelt):
    """`init_fn(key, input_shape)`: the shape of the outputs, and weights."""

    def __call__(
        self, rng: Any, input_shape: Sequence[int], **_: Any
    ) -> tuple[tuple[int, ...], Any]:
        """Draw the weights.

        Args:
            rng: A JAX key.
            input_shape: The shape of the inputs, the first axis being that of the points.

        Returns:
            The shape of the outputs, and nested lists of {"w": ..., "b": ...}.
        """
        points, *shape = input_shape
        params = self.finite.init(rng, tuple(shape))
        needs = jax.ShapeDtypeStruct((1, *shape), jnp.result_type(float))
        try:
            out = jax.eval_shape(self.finite.apply, params, needs).shape[1:]
        except (TypeError, ValueError):  # it reads more than an array, such as graphs
            out = ()
        return (points, *out), params


class ApplyFn(_Spelt):
    """`apply_fn(params, x)`: the outputs of the finite network."""

    def __call__(
        self,
        params: Any,
        inputs: Any,
        rng: Any = None,
        mask_constant: float | None = None,
        pattern: Any = None,
        **_: Any,
    ) -> Any:
        """The outputs.

        Args:
            params: From `init_fn`.
            inputs: Points, shape (n, ...).
            rng: What Dropout drops by.
            mask_constant: A number that marks what is not there.
            pattern: Adjacency matrices, where the network aggregates.

        Returns:
            Shape (n, ..., outputs).
        """
        return self.finite.apply(params, as_data(inputs, mask_constant, pattern), key=rng)


class KernelFn(_Spelt):
    """`kernel_fn(x1, x2, get)`: the kernels of the infinite network."""

    def __call__(
        self,
        x1: Any,
        x2: Any = None,
        get: Get = None,
        mask_constant: float | None = None,
        pattern: Any = None,
        diagonal_batch: bool | None = None,
        diagonal_spatial: bool | None = None,
        **_: Any,
    ) -> Any:
        """Kernel matrices.

        Args:
            x1: Inputs, shape (n1, ...), or a `Kernel`, with which the network goes on.
            x2: Inputs, shape (n2, ...); None for `x1`.
            get: "nngp", "ntk", "cov1", "cov2", several of them, or None for a `Kernel`.
            mask_constant: A number that marks what is not there.
            pattern: A pair of adjacency matrices, where the network aggregates.
            diagonal_batch: Refused unless None; `wl.prepare(net).diagonal` is what it is for.
            diagonal_spatial: Refused unless None.

        Returns:
            A matrix, a named tuple, or a `Kernel`. NumPy in, NumPy out; JAX in, JAX out.
        """
        if diagonal_batch or diagonal_spatial:
            raise ValueError(
                "diagonal_batch and diagonal_spatial are chosen by widelimit itself. For the diagonal of the "
                "kernel use wl.prepare(kernel_fn.network.net, 'ntk').diagonal(x)."
            )
        if isinstance(x1, Kernel):
            net, x1, x2 = Serial(x1.net, self.network.net), x1.x1, x1.x2
        else:
            first, second = pattern if isinstance(pattern, tuple | list) else (pattern, pattern)
            net, x1 = self.network.net, as_data(x1, mask_constant, first)
            x2 = None if x2 is None else as_data(x2, mask_constant, second)
        names = (get,) if isinstance(get, str) else tuple(get or ("nngp", "ntk"))
        self._check(names)
        found = _evaluate(net, x1, x2, names)
        if isinstance(get, str):
            return found[get]
        if get is None:
            return Kernel(net, x1, x2, found["nngp"], found["ntk"])
        return collections.namedtuple("AnalyticKernel", names)(**found)

    def _check(self, names: tuple[str, ...]) -> None:
        known = ("nngp", "ntk", "cov1", "cov2")
        wrong = [name for name in names if name not in known]
        if wrong:
            raise ValueError(f"get={wrong[0]!r} is not known; there are {', '.join(known)}.")
        if "ntk" in names and self.network.parameterisation == "standard":
            raise NotImplementedError(
                "The tangent kernel in standard parameterisation grows with the widths and has no limit; "
                "neural-tangents scales it by the widths that are stated. Take parameterization='ntk', or "
                "get='nngp', which is the same in both, or wl.finite(net, parameterisation='standard').ntk "
                "for one finite network."
            )


class Triple(NamedTuple):
    """A layer or a network: what neural-tangents' layers are."""

    init_fn: InitFn
    apply_fn: ApplyFn
    kernel_fn: KernelFn


def spelt(*words: Word) -> Triple:
    """The three functions of some words."""
    return Triple(InitFn(words), ApplyFn(words), KernelFn(words))


def words_of(layer: Any) -> Words:
    """The words behind a layer that a user passes on."""
    last = layer[-1] if isinstance(layer, tuple) and len(layer) == 3 else None
    if isinstance(last, KernelFn):
        return last.words
    raise TypeError(
        f"A layer of widelimit.compat.stax was expected, got {layer!r}. Layers are calls, as stax.Relu(); "
        "one of your own is written with widelimit.extend."
    )


def as_data(x: Any, mask_constant: float | None, pattern: Any) -> Any:
    """Inputs with their mask or their graphs."""
    if pattern is not None:
        return Graphs(x, pattern)
    if mask_constant is None or isinstance(x, Masked | Graphs):
        return x
    numbers = jnp if isinstance(x, jax.Array) else np
    missing = numbers.isnan(x) if np.isnan(mask_constant) else x == mask_constant
    return Masked(x, missing.all(-1))


def _evaluate(net: Layer, x1: Any, x2: Any, names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if {"nngp", "ntk"} <= set(names):
        both = prepare(net, "ntk").both(x1, x2)
        found = {"nngp": interleaved(both.nngp), "ntk": interleaved(both.ntk)}
    for name in names:
        if name in ("nngp", "ntk") and name not in found:
            found[name] = interleaved(prepare(net, name)(x1, x2))
        elif name.startswith("cov"):
            points = x1 if name == "cov1" else x2
            found[name] = None if points is None else prepare(net, "nngp").diagonal(points)
    return {name: found[name] for name in names}


def interleaved(matrix: Any) -> Any:
    """Axes (n1, n2, h, w, h', w') in the order (n1, n2, h, h', w, w')."""
    axes = (matrix.ndim - 2) // 2
    order = [2 + i + axes * j for i in range(axes) for j in range(2)]
    return matrix if axes == 0 else matrix.transpose(0, 1, *order)


Foreign = Callable[..., Any]
