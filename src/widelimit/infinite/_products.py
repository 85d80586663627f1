"""What needs no whole matrix: diagonals, and products with vectors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from widelimit._base.arrays import Inputs, is_transformed
from widelimit._base.thresholds import DIAGONAL_CHUNK, MATVEC_ENTRIES
from widelimit._base.types import Tensor

from ._correlation import as_points
from ._evaluate import (
    Answer,
    Request,
    choose_series,
    evaluate,
    fill_up,
    for_device,
    scope_of,
    sizes_of,
)
from ._host import capacity, host_sizes
from ._layered import ByLayers, diagonal_of_sizes
from ._matrix import gram
from ._plan import Numbers, Plan, facts, join, known, looped, without_widths
from ._tile import Extra


def diagonal(request: Request, inputs: Inputs) -> tuple[Answer, ...]:
    """The kernels of each input with itself, at a cost that grows with their number."""
    request = request._replace(form=without_widths(request.form))
    x = inputs.x1
    with jax.enable_x64(True):
        scope = scope_of(inputs)
        dies = (scope is None or scope.low == 0) and facts(request.form).vanishes
        how = choose_series(request, scope, "float64", len(x))
        fixed = not is_transformed((request.numbers, x))
        form, numbers = request.form, request.numbers
        if fixed:
            form, numbers = looped(form, known(numbers))
        plan = Plan(form, request.wanted, "layers", None, how)
        if not (fixed and inputs.numpy):
            out = _diagonal_on_device(plan, numbers, jnp.asarray(x), jnp.asarray(dies))
            return tuple(m.astype(inputs.dtype) for m in out)
        sizes, zero = host_sizes(np.asarray(x, np.float64))
        step = min(capacity(len(x)), DIAGONAL_CHUNK)
        parts = []
        for start in range(0, len(x), step):
            q = np.ones(step)
            used = sizes[start : start + step]
            q[: len(used)] = used
            done = diagonal_of_sizes(plan, numbers, q)
            parts.append([np.asarray(m)[: len(used)] for m in done])
        kept = ~(zero & dies)
        joined = (np.concatenate(list(column)) for column in zip(*parts, strict=True))
        return tuple((kept * m).astype(inputs.dtype) for m in joined)


@functools.partial(jax.jit, static_argnums=0)
def _diagonal_on_device(
    plan: Plan, numbers: Numbers, x: Float[Array, "n d"], dies: Bool[Array, ""]
) -> tuple[Float[Array, " n"], ...]:
    layers = ByLayers(join(plan.form, numbers), plan, dies)
    exact = layers.diagonal(as_points(x))
    return tuple(exact[name] for name in plan.wanted)


def matvec(request: Request, inputs: Inputs, v: Float[Tensor, " n2 *k"]) -> Answer:
    """The product of the (one) wanted matrix with v, in strips of rows that are not kept."""
    n1, n2 = sizes_of(inputs)
    if n1 * n2 <= MATVEC_ENTRIES:
        return evaluate(request, inputs)[0] @ v
    request = request._replace(form=without_widths(request.form))
    flat = v.reshape(n2, -1)
    with jax.enable_x64(True):
        if inputs.numpy and not is_transformed((request.numbers, v)):
            plan, numbers, x1, x2, extra = fill_up(request, inputs)
            below = len(x1 if x2 is None else x2) - n2
            flat = np.concatenate([flat, np.zeros((below, flat.shape[1]))]).astype(x1.dtype)
            out = np.array(_product(plan, numbers, x1, x2, flat, extra)[:n1])
        else:
            plan, numbers, x1, x2, extra = for_device(request, inputs)
            out = _product(plan, numbers, x1, x2, jnp.asarray(flat, x1.dtype), extra)
        return out.astype(inputs.dtype).reshape((n1, *v.shape[1:]))


@functools.partial(jax.jit, static_argnums=0)
def _product(
    plan: Plan,
    numbers: Numbers,
    x1: Float[Array, "n1 d"],
    x2: Float[Array, "n2 d"] | None,
    v: Float[Array, "n2 k"],
    extra: Extra,
) -> Float[Array, "n1 k"]:
    second = x1 if x2 is None else x2
    n1, n2 = len(x1), len(second)
    strip = min(n1, max(8, MATVEC_ENTRIES // n2))
    used1, used2 = extra.counts or (n1, n2)

    def fill(i: Array, out: Float[Array, "n1 k"]) -> Float[Array, "n1 k"]:
        start = jnp.minimum(i * strip, n1 - strip)
        rows = jax.lax.dynamic_slice_in_dim(x1, start, strip)
        counts = None
        if extra.counts is not None:
            counts = (jnp.clip(used1 - start, 0, strip), used2)
        (matrix,) = gram(plan, numbers, rows, second, extra._replace(counts=counts))
        part = jnp.matmul(matrix, v, precision=jax.lax.Precision.HIGHEST)
        return jax.lax.dynamic_update_slice_in_dim(out, part, start, 0)

    blank = jnp.zeros((n1, v.shape[1]), v.dtype)
    return jax.lax.fori_loop(0, -(-used1 // strip), fill, blank)
