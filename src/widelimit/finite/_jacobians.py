"""Two ways to a tangent kernel of a model that nothing is known of: Jacobians, and products.

A Jacobian of n points and k outputs has n k P numbers. It is contracted piece by piece: the rows of one
array of weights that fit into memory, for all points at once, so that no derivative is taken twice; the
passes through the model that each piece repeats cost little beside the contraction.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from widelimit._base.arrays import Inputs, is_transformed
from widelimit._base.types import Tensor

MEMORY = 2**29  # bytes of Jacobian rows that are held at once
_POINTS = 512  # whose signals are held for products

Model = Callable[[PyTree, Tensor], Tensor]
Trainable = PyTree[Float[Tensor, "..."]]
Block = Callable[["Task", Trainable, Tensor, Tensor | None], Array]


class Task(NamedTuple):
    """One kernel to be computed: the function of trainable leaves, and the sizes that decide how."""

    apply: Model
    frozen: PyTree
    outputs: str
    k: int

    def one(self, params: Trainable, x: Tensor) -> Float[Array, " k"]:
        """The outputs of a single point, shape (k,)."""
        return self.all(params, x[None])[0]

    def all(self, params: Trainable, x: Tensor) -> Float[Array, "n k"]:
        """The outputs of some points, shape (n, k)."""
        return jnp.asarray(self.apply(eqx.combine(params, self.frozen), x)).reshape(len(x), -1)


def count(live: Trainable) -> int:
    """The number of trainable numbers."""
    return sum(leaf.size for leaf in jax.tree.leaves(live))


def cheaper(task: Task, live: Trainable, inputs: Inputs) -> str:
    """Compare the operations: contraction n1 n2 k^2 P against n1 n2 k passes through the model."""
    if task.k == 1 or is_transformed((live, inputs.x1, inputs.x2)):
        return "jacobian"
    cost = jax.jit(task.one).lower(live, jnp.asarray(inputs.x1[0])).compile().cost_analysis()
    flops = (cost or {}).get("flops", 0.0)
    n1 = len(inputs.x1)
    n2 = n1 if inputs.x2 is None else len(inputs.x2)
    outer = task.k**2 if task.outputs == "full" else task.k
    jacobian = (n1 + n2) * task.k * 2 * flops + 2 * n1 * n2 * outer * count(live)
    products = n2 * task.k * (2 + n1) * flops
    return "products" if 0 < products < jacobian else "jacobian"


def by_jacobians(
    task: Task, live: Trainable, inputs: Inputs, batch_size: int | None
) -> Float[Array, "n1 n2 *outputs"]:
    """Contract Jacobians: whole ones where they fit, else pieces of them."""
    n1 = len(inputs.x1)
    points = n1 + (0 if inputs.x2 is None else len(inputs.x2))
    byte = np.dtype(inputs.dtype).itemsize
    row = task.k * count(live) * byte
    if batch_size is not None or points * row <= MEMORY:
        return fill(task, live, inputs, batch_size or points, _jacobian)
    widest = max(math.prod(leaf.shape[1:]) for leaf in jax.tree.leaves(live))  # in one row
    size = max(1, min(n1, MEMORY // (16 * task.k * byte * widest)))
    if is_transformed((live, inputs.x1, inputs.x2)) or not _in_pieces(task, live, inputs, size):
        return fill(task, live, inputs, max(1, MEMORY // (2 * row)), _jacobian)
    return fill(task, live, inputs, size, pieces)


def by_products(
    task: Task, live: Trainable, inputs: Inputs, batch_size: int | None
) -> Float[Array, "n1 n2 *outputs"]:
    """Multiply the kernel with unit vectors: one pull-back and one push-forward each."""
    return fill(task, live, inputs, batch_size or _POINTS, _products)


def fill(
    task: Task, live: Trainable, inputs: Inputs, size: int, block: Block
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
    every = range(len(firsts))
    return jnp.concatenate([jnp.concatenate([pick(i, j) for j in every], 1) for i in every], 0)


def _contracted(task: Task, first: Array, second: Array) -> Float[Array, "n1 n2 *outputs"]:
    """Rows of Jacobians times each other, as one product of matrices where that is possible."""
    n1, n2, k = len(first), len(second), task.k
    if task.outputs == "trace":
        return first.reshape(n1, -1) @ second.reshape(n2, -1).T
    if task.outputs == "full":
        product = first.reshape(n1 * k, -1) @ second.reshape(n2 * k, -1).T
        return product.reshape(n1, k, n2, k).transpose(0, 2, 1, 3)
    return jnp.einsum("pic,qic->pqi", first.reshape(n1, k, -1), second.reshape(n2, k, -1))


@eqx.filter_jit
def _jacobian(
    task: Task, live: Trainable, x1: Tensor, x2: Tensor | None
) -> Float[Array, "n1 n2 *outputs"]:
    with jax.default_matmul_precision("highest"):
        rows = jax.vmap(jax.jacrev(task.one), (None, 0))
        first = rows(live, x1)
        second = first if x2 is None else rows(live, x2)
        pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
        return functools.reduce(jnp.add, (_contracted(task, a, b) for a, b in pairs))


@eqx.filter_jit
def _piece(
    task: Task, live: Trainable, x1: Tensor, x2: Tensor | None, leaf: int, size: int, start: Array
) -> Float[Array, "n1 n2 *outputs"]:
    """The part of the kernel that belongs to some rows of one array of weights."""
    leaves, structure = jax.tree.flatten(live)
    whole = leaves[leaf]

    def outputs(part: Array, x: Tensor) -> Float[Array, " k"]:
        moved = jax.lax.dynamic_update_slice_in_dim(whole, part, start, 0) if whole.ndim else part
        mixed = [moved if i == leaf else other for i, other in enumerate(leaves)]
        return task.one(jax.tree.unflatten(structure, mixed), x)

    with jax.default_matmul_precision("highest"):
        part = jax.lax.dynamic_slice_in_dim(whole, start, size, 0) if whole.ndim else whole
        rows = jax.vmap(jax.jacrev(outputs), (None, 0))
        first = rows(part, x1)
        return _contracted(task, first, first if x2 is None else rows(part, x2))


def _cuts(task: Task, live: Trainable, points: int) -> list[tuple[int, int, int]]:
    """(leaf, rows, start) of pieces that fit into memory, as equal as can be."""
    cuts = []
    for i, leaf in enumerate(jax.tree.leaves(live)):
        rows = leaf.shape[0] if leaf.ndim else 1
        byte = points * task.k * math.prod(leaf.shape[1:]) * leaf.dtype.itemsize
        number = -(-rows * byte // MEMORY)
        size = -(-rows // max(number, 1))
        cuts += [(i, min(size, rows - start), start) for start in range(0, rows, max(size, 1))]
    return cuts


def pieces(
    task: Task, live: Trainable, x1: Tensor, x2: Tensor | None
) -> Float[Array, "n1 n2 *outputs"]:
    """A block of the kernel as a sum over pieces of the Jacobian."""
    points = len(x1) + (0 if x2 is None else len(x2))
    parts = (
        _piece(task, live, x1, x2, leaf, size, jnp.asarray(start))
        for leaf, size, start in _cuts(task, live, points)
    )
    return functools.reduce(jnp.add, parts)


def _in_pieces(task: Task, live: Trainable, inputs: Inputs, size: int) -> bool:
    """Whether the compiler makes a piece without the whole, as it does for matrices of weights."""
    second = None if inputs.x2 is None else inputs.x2[:size]
    points = size + (0 if second is None else len(second))
    leaf, rows, start = max(_cuts(task, live, points), key=lambda cut: cut[1])
    whole = points * task.k * jax.tree.leaves(live)[leaf].size * np.dtype(inputs.dtype).itemsize
    if whole <= MEMORY:
        return True
    args = task, live, inputs.x1[:size], second, leaf, rows, jnp.asarray(start)
    lowered: Any = getattr(_piece, "lower")(*args)  # noqa: B009, of Equinox, which its types leave out
    used = lowered.compile().compiled.memory_analysis()
    return used is None or used.temp_size_in_bytes <= 4 * MEMORY


@eqx.filter_jit
def _products(
    task: Task, live: Trainable, x1: Tensor, x2: Tensor | None
) -> Float[Array, "n1 n2 *outputs"]:
    with jax.default_matmul_precision("highest"):
        live = jax.tree.map(jnp.asarray, live)
        _, push = jax.linearize(lambda p: task.all(p, x1), live)
        units = jnp.eye(task.k, dtype=jnp.result_type(*jax.tree.leaves(live)))

        def point(x: Tensor) -> Float[Array, "k n1 k"]:
            # a unit vector is that of one output at one point of the second set
            _, pull = jax.vjp(lambda p: task.one(p, x), live)
            return jax.lax.map(lambda unit: push(pull(unit)[0]), units)

        full = jax.lax.map(point, jnp.asarray(x1 if x2 is None else x2)).transpose(2, 0, 3, 1)
        if task.outputs == "full":
            return full
        diagonal = jnp.diagonal(full, axis1=2, axis2=3)
        return diagonal if task.outputs == "diagonal" else diagonal.sum(-1)


@eqx.filter_jit
def product(
    task: Task, live: Trainable, x1: Tensor, x2: Tensor | None, v: Float[Tensor, "n2 k"]
) -> Float[Array, "n1 k"]:
    """The kernel times a vector: one pull-back and one push-forward through the model."""
    with jax.default_matmul_precision("highest"):
        live = jax.tree.map(jnp.asarray, live)
        second = x1 if x2 is None else x2
        _, pull = jax.vjp(lambda p: task.all(p, second), live)
        (direction,) = pull(jnp.asarray(v))
        return jax.jvp(lambda p: task.all(p, x1), (live,), (direction,))[1]
