"""Kernels of finite networks, Taylor models and sampling, under neural-tangents' names."""

import collections
import enum
import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from widelimit.finite import empirical_ntk, empirical_ntk_matvec, linearise, taylor

from ._triple import ApplyFn, Foreign, KernelFn

Axes = int | Sequence[int]


class NtkImplementation(enum.Enum):
    """How neural-tangents contracts; widelimit decides by itself, so that all mean the same."""

    AUTO = 0
    JACOBIAN_CONTRACTION = 1
    NTK_VECTOR_PRODUCTS = 2
    STRUCTURED_DERIVATIVES = 3


def _axes(axes: Axes, rank: int, name: str) -> tuple[int, ...]:
    """Axes of an output, the first axis of the points not counted."""
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    found = tuple(axis % rank for axis in given)
    if 0 in found:
        raise NotImplementedError(
            f"{name}={given} names the axis of the points. Take the trace of the kernel, or wl.prepare(...).diagonal."
        )
    return tuple(axis - 1 for axis in found)


def _reduced(kernel: Any, rank: int, traced: tuple[int, ...], kept: tuple[int, ...]) -> Any:
    """(n1, n2, *out, *out) averaged over some axes, and its diagonal in others; pairs side by side."""
    letters = iter("cdefghijklmnopqrstuvw")
    first = [next(letters) for _ in range(rank - 1)]
    second = [
        letter if axis in (*traced, *kept) else next(letters) for axis, letter in enumerate(first)
    ]
    out = "".join(
        first[axis] if axis in kept else first[axis] + second[axis]
        for axis in range(rank - 1)
        if axis not in traced
    )
    size = math.prod(kernel.shape[2 + axis] for axis in traced)
    source = "ab" + "".join(first) + "".join(second)
    numbers = jnp if isinstance(kernel, jax.Array) else np
    return numbers.einsum(f"{source}->ab{out}", kernel) / size


def empirical_ntk_fn(
    f: Foreign,
    trace_axes: Axes = (-1,),
    diagonal_axes: Axes = (),
    vmap_axes: Any = None,
    implementation: NtkImplementation | int = NtkImplementation.JACOBIAN_CONTRACTION,
    **_: Any,
) -> Callable[..., Any]:
    """`wl.empirical_ntk(f, params, x1, x2, outputs=...)`, averaged over traced axes.

    Args:
        f: A function of (params, points).
        trace_axes: Axes of the outputs over which is averaged.
        diagonal_axes: Axes of the outputs of which only equal pairs are kept.
        vmap_axes: Not needed.
        implementation: Not needed.

    Returns:
        A function of (x1, x2, params).
    """

    def kernel_fn(x1: Any, x2: Any, params: Any, **options: Any) -> Any:
        model = functools.partial(f, **options) if options else f
        shape = _output(model, params, x1)
        rank = len(shape) + 1
        traced, kept = (
            _axes(trace_axes, rank, "trace_axes"),
            _axes(diagonal_axes, rank, "diagonal_axes"),
        )
        compute: Foreign = functools.partial(empirical_ntk, model, params)
        if isinstance(model, ApplyFn):
            compute = functools.partial(model.finite.ntk, params)
        if len(traced) == len(shape) == 1:
            return compute(x1, x2, outputs="trace") / shape[0]
        whole = compute(x1, x2, outputs="full")
        return _reduced(whole.reshape(*whole.shape[:2], *shape, *shape), rank, traced, kept)

    return kernel_fn


def _output(f: Foreign, params: Any, x: Any) -> tuple[int, ...]:
    found = jax.eval_shape(f, params, x[:1])
    return tuple(found.shape[1:])


def empirical_nngp_fn(
    f: Foreign, trace_axes: Axes = (-1,), diagonal_axes: Axes = ()
) -> Callable[..., Any]:
    """The product of one network's outputs, averaged over traced axes; it does not converge with the width.

    `wl.finite(net).nngp` is the covariance over the last layer, which does.

    Args:
        f: A function of (params, points).
        trace_axes: Axes of the outputs over which is averaged.
        diagonal_axes: Axes of the outputs of which only equal pairs are kept.

    Returns:
        A function of (x1, x2, params).
    """

    def kernel_fn(x1: Any, x2: Any, params: Any, **options: Any) -> Any:
        first = f(params, x1, **options)
        second = first if x2 is None else f(params, x2, **options)
        traced = _axes(trace_axes, first.ndim, "trace_axes")
        kept = _axes(diagonal_axes, first.ndim, "diagonal_axes")
        letters = "bcdefghijklm"[: first.ndim - 1], "nopqrstuvwxy"[: first.ndim - 1]
        numbers = jnp if isinstance(first, jax.Array) else np
        whole = numbers.einsum(f"a{letters[0]},z{letters[1]}->az{''.join(letters)}", first, second)
        return _reduced(whole, first.ndim, traced, kept)

    return kernel_fn


def empirical_kernel_fn(
    f: Foreign,
    trace_axes: Axes = (-1,),
    diagonal_axes: Axes = (),
    vmap_axes: Any = None,
    implementation: NtkImplementation | int = NtkImplementation.JACOBIAN_CONTRACTION,
    **_: Any,
) -> Callable[..., Any]:
    """Both of the above: a function of (x1, x2, get, params).

    Args:
        f: A function of (params, points).
        trace_axes: Axes of the outputs over which is averaged.
        diagonal_axes: Axes of the outputs of which only equal pairs are kept.
        vmap_axes: Not needed.
        implementation: Not needed.

    Returns:
        A function that gives a matrix for "nngp" or "ntk", a named tuple for several.
    """
    rules = {
        "nngp": empirical_nngp_fn(f, trace_axes, diagonal_axes),
        "ntk": empirical_ntk_fn(f, trace_axes, diagonal_axes),
    }

    def kernel_fn(x1: Any, x2: Any, get: Any, params: Any, **options: Any) -> Any:
        names = (get,) if isinstance(get, str) else tuple(get or ("nngp", "ntk"))
        found = {name: rules[name](x1, x2, params, **options) for name in names}
        if isinstance(get, str):
            return found[get]
        return collections.namedtuple("EmpiricalKernel", names)(**found)

    return kernel_fn


def empirical_ntk_vp_fn(
    f: Foreign, x1: Any, x2: Any, params: Any, **options: Any
) -> Callable[[Any], Any]:
    """`lambda v: wl.empirical_ntk_matvec(f, params, x1, x2, v)`."""
    model = functools.partial(f, **options) if options else f
    return lambda v: empirical_ntk_matvec(model, params, x1, x2, v)


def linearize(f: Foreign, params: Any) -> Foreign:
    """`wl.linearise(f, params)`; further arguments are handed on."""
    return _expanded(lambda model: linearise(model, params), f)


def taylor_expand(f: Foreign, params: Any, degree: int) -> Foreign:
    """`wl.taylor(f, params, order=degree)`; further arguments are handed on."""
    if degree == 0:
        return lambda _, x, **options: f(params, x, **options)
    return _expanded(lambda model: taylor(model, params, degree), f)


def _expanded(make: Callable[[Foreign], Foreign], f: Foreign) -> Foreign:
    plain = make(f)

    def expanded(params: Any, x: Any, *args: Any, **options: Any) -> Any:
        if not args and not options:
            return plain(params, x)
        return make(lambda p, points: f(p, points, *args, **options))(params, x)

    return expanded


def monte_carlo_kernel_fn(
    init_fn: Foreign,
    apply_fn: Foreign,
    key: Any,
    n_samples: int | Iterable[int],
    batch_size: int = 0,
    device_count: int = -1,
    store_on_device: bool = True,
    trace_axes: Axes = (-1,),
    diagonal_axes: Axes = (),
    vmap_axes: Any = None,
    implementation: NtkImplementation | int = NtkImplementation.JACOBIAN_CONTRACTION,
    **_: Any,
) -> Callable[..., Any]:
    """The mean of empirical kernels over random networks; `wl.monte_carlo_kernels` has standard errors too.

    Args:
        init_fn: A function of (key, input_shape) with values (output_shape, params).
        apply_fn: A function of (params, points).
        key: A JAX key.
        n_samples: The number of networks, or increasing numbers: then there is one answer for each.
        batch_size: Not needed.
        device_count: Not needed.
        store_on_device: Not needed.
        trace_axes: Axes of the outputs over which is averaged.
        diagonal_axes: Axes of the outputs of which only equal pairs are kept.
        vmap_axes: Not needed.
        implementation: Not needed.

    Returns:
        A function of (x1, x2, get).
    """
    kernel_fn = empirical_kernel_fn(apply_fn, trace_axes, diagonal_axes)
    stops = [n_samples] if isinstance(n_samples, int) else list(n_samples)
    keys = jax.random.split(key, max(stops))

    def means(x1: Any, x2: Any, get: Any, options: dict[str, Any]) -> Iterator[Any]:
        total: Any = None
        for i, one in enumerate(keys, 1):
            _, params = init_fn(one, x1.shape)
            found = kernel_fn(x1, x2, get, params, **options)
            total = found if total is None else jax.tree.map(lambda a, b: a + b, total, found)
            if i in stops:
                yield jax.tree.map(lambda a, i=i: a / i, total)

    def sampled(x1: Any, x2: Any = None, get: Any = None, **options: Any) -> Any:
        found = means(x1, x2, get, options)
        return next(found) if isinstance(n_samples, int) else found

    return sampled


def batch(
    kernel_fn: Foreign, batch_size: int = 0, device_count: int = -1, store_on_device: bool = True
) -> Foreign:
    """Not needed for kernels of this library, which run over tiles; other functions are called block by block.

    Args:
        kernel_fn: A function of (x1, x2, ...).
        batch_size: Rows and columns of a block, for functions of others; 0: all at once.
        device_count: Not needed.
        store_on_device: Not needed.

    Returns:
        A function of the same arguments.
    """
    if isinstance(kernel_fn, KernelFn) or batch_size <= 0:
        return kernel_fn

    def blocks(x1: Any, x2: Any = None, *args: Any, **options: Any) -> Any:
        second = x1 if x2 is None else x2
        cuts = lambda x: [x[i : i + batch_size] for i in range(0, len(x), batch_size)]
        one = lambda i, j, a, b: kernel_fn(
            a, None if x2 is None and i == j else b, *args, **options
        )
        rows = [
            _joined([one(i, j, a, b) for j, b in enumerate(cuts(second))], 1)
            for i, a in enumerate(cuts(x1))
        ]
        return _joined(rows, 0)

    return blocks


def _joined(parts: list[Any], axis: int) -> Any:
    glue = lambda *a: (jnp if isinstance(a[0], jax.Array) else np).concatenate(a, axis)
    return jax.tree.map(glue, *parts)
