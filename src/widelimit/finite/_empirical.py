"""The empirical tangent kernel of any differentiable function of a parameter tree."""

import math
from typing import overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float, PyTree
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
from widelimit._base.types import Seed, Tensor

from ._foreign import as_model
from ._jacobians import Model, Task, by_jacobians, by_products, cheaper, product
from ._project import by_projection
from ._sample import Estimate
from ._tangent import OUTPUTS
from ._where import Where, trained

_METHODS = {"jacobian": by_jacobians, "products": by_products}


@overload
def empirical_ntk(
    apply: Model,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    outputs: str = "full",
    method: str | None = None,
    batch_size: int | None = None,
    where: Where | None = None,
    project: None = None,
    key: Seed = 0,
) -> Float[Tensor, "n1 n2 *outputs"]: ...
@overload
def empirical_ntk(
    apply: Model,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    outputs: str = "full",
    method: str | None = None,
    batch_size: int | None = None,
    where: Where | None = None,
    project: int,
    key: Seed = 0,
) -> Estimate: ...
def empirical_ntk(
    apply: Model,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    outputs: str = "full",
    method: str | None = None,
    batch_size: int | None = None,
    where: Where | None = None,
    project: int | None = None,
    key: Seed = 0,
) -> Float[Tensor, "n1 n2 *outputs"] | Estimate:
    r"""The tangent kernel $\hat\Theta(x,x')=\partial_\theta f(x)\,\partial_\theta f(x')^\top$ of any model.

    For a `FiniteNetwork` its method `ntk` is much faster; this function needs to know nothing of
    the model.

    Args:
        apply: A function of (params, points) with outputs of shape (points,), (points, k), or of any rank
            (points, ...). The output of a point must not depend on the other points. Or, with None for
            params, an Equinox module of single points.
        params: Any pytree; its floating point arrays are what is differentiated. Flax's running averages
            ("batch_stats") are such arrays too: leave them out by `where`.
        x1: Points, shape (n1, ...).
        x2: Points, shape (n2, ...); None stands for `x1`.
        outputs: For several outputs: "full" (n1, n2, k, k), "diagonal" (n1, n2, k), or "trace"
            (n1, n2), the sum over the outputs; for outputs of higher rank k stands for all their axes.
        method: "jacobian" contracts Jacobians; "products" multiplies the kernel with unit vectors
            (a pull-back and a push-forward each), which is cheaper for many outputs. None estimates
            the operations of both and takes the cheaper.
        batch_size: Points that are looked at together; None: as many as memory allows (512 MiB of
            Jacobians, which are contracted in pieces).
        where: Picks the part of `params` that is trained, as `lambda p: p["params"]["Dense_2"]`: the kernel
            of one layer. That of the last one is the empirical NNGP kernel. Or a tree of truth values, shaped like
            `params`; or text, which picks the arrays whose path contains it ("adapter"). None: all.
        project: For very many parameters: gradients are projected to this many random numbers. It costs one
            push-forward through the model for each, and the memory of one more copy of the parameters. The answer is
            then an estimate of which the standard error is known, about
            $\sqrt{(\hat\Theta_{ii}\hat\Theta_{jj}+\hat\Theta_{ij}^2)/\mathrm{project}}$.
        key: For `project`.

    Returns:
        The kernel; of shape (n1, n2) for a single output. NumPy in, NumPy out. With `project` a record with `mean`,
        `std` (of one direction), `stderr` and `samples`, which differ from the kernel by chance alone.

    Example:
        >>> import widelimit as wl
        >>> model = lambda params, x: x @ params["w"] + params["b"]  # a linear model
        >>> params = {"w": jnp.zeros(2), "b": jnp.zeros(())}
        >>> wl.empirical_ntk(model, params, jnp.array([[1.0, 2.0], [3.0, 4.0]]))  # x x^T + 1
        Array([[ 6., 12.],
               [12., 26.]], dtype=float32)
        >>> found = wl.empirical_ntk(model, params, jnp.array([[1.0, 2.0]]), project=1000)
        >>> bool(abs(found.mean[0, 0] - 6) < 4 * found.stderr[0, 0])
        True

    Reference:
        Novak, Sohl-Dickstein and Schoenholz (2022), Fast finite width neural tangent kernel.
    """
    task, live, inputs, shape = _task(apply, params, x1, x2, outputs, where)
    if method is not None and method not in _METHODS:
        raise ValueError(unknown("method", method, _METHODS))
    size = None if batch_size is None else as_count(batch_size, "batch_size", minimum=1)
    tail = () if outputs == "trace" or task.k == 1 else shape * (2 if outputs == "full" else 1)
    shaped = lambda kernel: kernel.reshape(*kernel.shape[:2], *tail)
    with convention(inputs):
        if project is not None:
            directions = _directions(project, method, (live, inputs.x1, inputs.x2))
            found = by_projection(task, live, inputs, directions, key, size)
            return Estimate._make([*map(shaped, found[:3]), found.samples])
        method = method or cheaper(task, live, inputs)
        return inputs.answer(shaped(_METHODS[method](task, live, inputs, size)))


def _directions(project: int, method: str | None, given: PyTree) -> int:
    """A number of random directions, where they can be drawn."""
    if method is not None:
        raise ValueError(f"project is a method of its own; leave out method={method!r}.")
    if is_transformed(given):
        raise ValueError(
            "project draws directions one after another and cannot be jitted or differentiated; call it outside."
        )
    return as_count(project, "project", minimum=2)


def empirical_ntk_matvec(
    apply: Model,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None,
    v: ArrayLike,
    *,
    where: Where | None = None,
) -> Tensor:
    r"""$\hat\Theta(x_1,x_2)\,v$ of any model, without the kernel: one pass back and one forward.

    For the largest eigenvalue, conjugate gradients, or one step of training: $-\eta\hat\Theta e$ is how
    outputs move.

    Args:
        apply: As for `empirical_ntk`.
        params: As for `empirical_ntk`.
        x1: Points, shape (n1, ...).
        x2: Points, shape (n2, ...); None stands for `x1`.
        v: A number for each output of each point of `x2`, of the shape of the model's outputs there.
        where: As for `empirical_ntk`.

    Returns:
        A number for each output of each point of `x1`.

    Example:
        >>> import widelimit as wl
        >>> model = lambda w, x: jnp.sin(x @ w)
        >>> w, x = jnp.array([0.3, 0.1]), jnp.array([[1.0, 2.0], [3.0, 4.0], [0.0, 1.0]])
        >>> v = jnp.array([1.0, -1.0, 2.0])
        >>> found = wl.empirical_ntk_matvec(model, w, x, None, v)
        >>> bool(jnp.allclose(found, wl.empirical_ntk(model, w, x) @ v, atol=1e-5))
        True
    """
    task, live, inputs, shape = _task(apply, params, x1, x2, "full", where)
    points = len(inputs.x1 if inputs.x2 is None else inputs.x2)
    vector = v if isinstance(v, jax.Array) else np.asarray(v)
    if vector.shape != (points, *shape):
        raise ValueError(
            f"v has shape {vector.shape}; the model's outputs at these points have "
            f"{(points, *shape)}."
        )
    with convention(inputs):
        column = vector.astype(inputs.dtype).reshape(points, -1)
        out = product(task, live, inputs.x1, inputs.x2, column)
        return inputs.answer(out.reshape(len(inputs.x1), *shape))


def _task(
    apply: Model,
    params: PyTree,
    x1: ArrayLike,
    x2: ArrayLike | None,
    outputs: str,
    where: Where | None,
) -> tuple[Task, PyTree, Inputs, tuple[int, ...]]:
    """The checked arguments: what is computed, what is trained, the points, the shape of an output."""
    apply, params = as_model(apply, params)
    inputs = _settle(params, x1, x2)
    if outputs not in OUTPUTS:
        raise ValueError(unknown("value of outputs", outputs, OUTPUTS))
    with convention(inputs):
        shape = _check_model(apply, params, inputs.x1)
        live, frozen = eqx.partition(params, trained(params, where))
        if not jax.tree.leaves(live):
            raise ValueError(
                "There are no floating point arrays to differentiate in what was picked."
            )
        return Task(apply, frozen, outputs, math.prod(shape)), live, inputs, shape


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


def _check_model(apply: Model, params: PyTree, x: Tensor) -> tuple[int, ...]:
    """The shape of the outputs of one point."""
    hint = "Wrap a model of single points with jax.vmap: lambda p, x: jax.vmap(model)(x)."
    try:
        found = eqx.filter_eval_shape(apply, params, x[:1])
    except Exception as error:
        raise ValueError(
            f"apply(params, x) failed on one point, an array of shape {(1, *x.shape[1:])} "
            f"({type(error).__name__}: {str(error)[:160]}). It must be a function of (params, points), "
            f"the first axis counting the points. {hint}"
        ) from error
    if not isinstance(found, jax.ShapeDtypeStruct) or not found.shape:
        raise ValueError(
            f"apply must return one array of shape (points, ...), got {found}. Wrap the model in a "
            f"function that does. {hint}"
        )
    if found.shape[0] != 1:
        raise ValueError(
            f"apply maps one point to {found.shape[0]}; the first axis of its output must count the "
            f"points. {hint}"
        )
    return found.shape[1:]
