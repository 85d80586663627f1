"""The empirical tangent kernel of any differentiable function of a parameter tree."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, PyTree
from numpy.typing import ArrayLike

from widelimit._base.arrays import (
    Inputs,
    check_finite,
    convention,
    float_dtype,
    is_jax,
    is_transformed,
)
from widelimit._base.names import unknown
from widelimit._base.scalars import as_count
from widelimit._base.types import Tensor

from ._tangent import OUTPUTS

_METHODS = ("jacobian", "products")
_MEMORY = 2**29  # bytes of Jacobian rows that are held at once

Model = Callable[[PyTree, Tensor], Tensor]
Trainable = PyTree[Float[Tensor, "..."]]
Block = Callable[["_Task", Trainable, Tensor, Tensor | None], Array]


class _Task(NamedTuple):
    """One kernel to be computed: the function of trainable leaves, and the sizes that decide how."""

    apply: Model
    frozen: PyTree
    outputs: str
    k: int

    def one(self, params: Trainable, x: Tensor) -> Float[Array, " k"]:
        """The outputs of a single point, shape (k,)."""
        return self.apply(eqx.combine(params, self.frozen), x[None])[0].reshape(-1)


def empirical_ntk(
    apply: Model,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    outputs: str = "full",
    method: str | None = None,
    batch_size: int | None = None,
) -> Float[Tensor, "n1 n2 *outputs"]:
    r"""The tangent kernel $\hat\Theta(x,x')=\partial_\theta f(x)\,\partial_\theta f(x')^\top$ of any model.

    For a `FiniteNetwork` its method `ntk` is much faster; this function needs to know nothing of
    the model.

    Args:
        apply: A function of (params, points) with outputs of shape (points,) or (points, k). The
            output of a point must not depend on the other points.
        params: Any pytree; its floating point arrays are what is differentiated.
        x1: Points, shape (n1, ...).
        x2: Points, shape (n2, ...); None stands for `x1`.
        outputs: For several outputs: "full" (n1, n2, k, k), "diagonal" (n1, n2, k), or "trace"
            (n1, n2), the sum over the outputs.
        method: "jacobian" contracts Jacobians; "products" multiplies the kernel with unit vectors
            (a pull-back and a push-forward each), which is cheaper for many outputs. None estimates
            the operations of both and takes the cheaper.
        batch_size: Points whose gradients are held at once; None: as many as fit into 512 MiB.

    Returns:
        The kernel; of shape (n1, n2) for a single output. NumPy in, NumPy out.

    Example:
        >>> import widelimit as wl
        >>> model = lambda params, x: x @ params["w"] + params["b"]  # a linear model
        >>> params = {"w": jnp.zeros(2), "b": jnp.zeros(())}
        >>> wl.empirical_ntk(model, params, jnp.array([[1.0, 2.0], [3.0, 4.0]]))  # x x^T + 1
        Array([[ 6., 12.],
               [12., 26.]], dtype=float32)

    Reference:
        Novak, Sohl-Dickstein and Schoenholz (2022), Fast finite width neural tangent kernel.
    """
    inputs = _settle(params, x1, x2)
    if outputs not in OUTPUTS:
        raise ValueError(unknown("value of outputs", outputs, OUTPUTS))
    if method is not None and method not in _METHODS:
        raise ValueError(unknown("method", method, _METHODS))
    with convention(inputs):
        live, frozen = eqx.partition(params, eqx.is_inexact_array)
        task = _Task(apply, frozen, outputs, _check_model(apply, params, inputs.x1))
        method = method or _cheaper(task, live, inputs)
        size = _batch(task, live, inputs) if batch_size is None else batch_size
        size = as_count(size, "batch_size", minimum=1)
        kernel = _fill(task, live, inputs, size, _jacobian if method == "jacobian" else _products)
        single = outputs != "trace" and task.k == 1
        return inputs.answer(kernel.reshape(kernel.shape[:2]) if single else kernel)


def _settle(params: PyTree, x1: ArrayLike, x2: ArrayLike | None) -> Inputs:
    """Points of any rank in the dtype of the parameters, unless they are integers (tokens)."""
    numpy = not (is_jax(x1) or is_jax(x2) or is_transformed(params))
    dtype = float_dtype(params)
    dtype = dtype if numpy else jax.dtypes.canonicalize_dtype(dtype)
    first = _points(x1, "x1", dtype)
    second = None if x2 is None else _points(x2, "x2", dtype)
    if second is not None and first.shape[1:] != second.shape[1:]:
        raise ValueError(
            f"Points of x1 have shape {first.shape[1:]}, points of x2 {second.shape[1:]}; "
            "a kernel compares points of one space, so they must agree."
        )
    return Inputs(first, second, numpy, dtype)


def _points(x: ArrayLike, name: str, dtype: DTypeLike) -> Tensor:
    array = x if isinstance(x, jax.Array) else np.asarray(x)
    if array.dtype == object or array.ndim == 0 or len(array) == 0:
        raise ValueError(
            f"{name} must be a non-empty array whose first axis counts the points, got {x!r}."
        )
    check_finite(array, name)
    return array.astype(dtype) if jnp.issubdtype(array.dtype, jnp.floating) else array


def _check_model(apply: Model, params: PyTree, x: Tensor) -> int:
    shape = eqx.filter_eval_shape(apply, params, x[:1])
    if not isinstance(shape, jax.ShapeDtypeStruct) or len(shape.shape) not in (1, 2):
        raise ValueError(
            f"apply must return one array of shape (points,) or (points, outputs), got {shape}. "
            "Wrap the model in a function that does; models of single points with jax.vmap."
        )
    if shape.shape[0] != 1:
        raise ValueError(
            f"apply maps one point to {shape.shape[0]}; the first axis of its output must count the "
            "points. Wrap a model of single points with jax.vmap."
        )
    return math.prod(shape.shape[1:])


def _count(live: Trainable) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(live))


def _batch(task: _Task, live: Trainable, inputs: Inputs) -> int:
    row = task.k * _count(live) * np.dtype(inputs.dtype).itemsize
    return max(1, _MEMORY // (2 * row))


def _cheaper(task: _Task, live: Trainable, inputs: Inputs) -> str:
    """Compare the operations: contraction n1 n2 k^2 P against n1 n2 k passes through the model."""
    if task.k == 1 or is_transformed((live, inputs.x1, inputs.x2)):
        return "jacobian"
    cost = jax.jit(task.one).lower(live, jnp.asarray(inputs.x1[0])).compile().cost_analysis()
    flops = (cost or {}).get("flops", 0.0)
    n1 = len(inputs.x1)
    n2 = n1 if inputs.x2 is None else len(inputs.x2)
    outer = task.k**2 if task.outputs == "full" else task.k
    jacobian = (n1 + n2) * task.k * 2 * flops + 2 * n1 * n2 * outer * _count(live)
    products = n2 * task.k * (2 + 2 * n1) * flops
    return "products" if 0 < products < jacobian else "jacobian"


def _fill(
    task: _Task, live: Trainable, inputs: Inputs, size: int, block: Block
) -> Float[Array, "n1 n2 *outputs"]:
    """One pair of batches at a time; of a symmetric kernel the lower half is a transpose."""
    firsts = [inputs.x1[i : i + size] for i in range(0, len(inputs.x1), size)]
    if inputs.x2 is not None:
        seconds = [inputs.x2[i : i + size] for i in range(0, len(inputs.x2), size)]
        rows = [[block(task, live, a, b) for b in seconds] for a in firsts]
        return jnp.concatenate([jnp.concatenate(row, axis=1) for row in rows], axis=0)
    upper = {
        (i, j): block(task, live, a, None if i == j else b)
        for i, a in enumerate(firsts)
        for j, b in enumerate(firsts)
        if i <= j
    }
    swap = (1, 0, 3, 2) if task.outputs == "full" else (1, 0, 2)
    flip = lambda k: k.transpose(swap[: k.ndim])
    pick = lambda i, j: upper[i, j] if i <= j else flip(upper[j, i])
    count = range(len(firsts))
    return jnp.concatenate([jnp.concatenate([pick(i, j) for j in count], 1) for i in count], 0)


@eqx.filter_jit
def _jacobian(
    task: _Task, live: Trainable, x1: Tensor, x2: Tensor | None
) -> Float[Array, "n1 n2 *outputs"]:
    with jax.default_matmul_precision("highest"):
        rows = jax.vmap(jax.jacrev(task.one), (None, 0))
        first = rows(live, x1)
        second = first if x2 is None else rows(live, x2)
        swap = OUTPUTS[task.outputs].replace("ip", "pi").replace("jq", "qj").replace("iq", "qi")
        flat = lambda g: g.reshape(g.shape[0], task.k, -1)
        pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
        return functools.reduce(jnp.add, (jnp.einsum(swap, flat(a), flat(b)) for a, b in pairs))


@eqx.filter_jit
def _products(
    task: _Task, live: Trainable, x1: Tensor, x2: Tensor | None
) -> Float[Array, "n1 n2 *outputs"]:
    with jax.default_matmul_precision("highest"):
        all_of = jax.vmap(task.one, (None, 0))
        seconds = x1 if x2 is None else x2

        def column(x: Tensor, unit: Float[Array, " k"]) -> Float[Array, "n1 k"]:
            # the unit vector is that of one output at one point of the second set
            (tangent,) = jax.vjp(lambda p: task.one(p, x), live)[1](unit)
            return jax.jvp(lambda p: all_of(p, x1), (live,), (tangent,))[1]

        units = jnp.eye(task.k, dtype=jnp.result_type(*jax.tree.leaves(live)))
        point = lambda x: jax.lax.map(lambda u: column(x, u), units)
        full = jax.lax.map(point, seconds).transpose(2, 0, 3, 1)  # (n1, n2, k, k)
        if task.outputs == "full":
            return full
        diagonal = jnp.diagonal(full, axis1=2, axis2=3)
        return diagonal if task.outputs == "diagonal" else diagonal.sum(-1)
