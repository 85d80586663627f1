r"""The tangent kernel from derivatives along random directions, for models with very many parameters.

With independent signs $r$ for the parameters, $E[(Jr)(Jr)^\top]=JJ^\top$. A direction costs one push-forward through
the model at each point, and memory for one more copy of the parameters, however many points there are.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from widelimit._base.arrays import Inputs
from widelimit._base.keys import as_key
from widelimit._base.types import Seed, Tensor

from ._jacobians import Task, Trainable
from ._sample import Estimate

_POINTS = 256  # that go through the model together
_DIRECTIONS = 32  # in one call of the program


def by_projection(
    task: Task, live: Trainable, inputs: Inputs, count: int, key: Seed, batch_size: int | None
) -> Estimate:
    """The mean of the kernel over random directions, with its standard error.

    Args:
        task: The model and what is asked of its outputs.
        live: What is trained.
        inputs: The points.
        count: The number of directions, at least 2.
        key: For the directions.
        batch_size: Points that go through the model together.

    Returns:
        The estimate; its arrays have the shape of the kernel.
    """
    size, together = batch_size or _POINTS, min(_DIRECTIONS, count)
    keys = jax.random.split(as_key(key), -(-count // together) * together)
    mean = square = np.zeros(())
    for start in range(0, count, together):
        some = keys[start : start + together]
        first = _moves(task, live, inputs.x1, some, size)
        second = first if inputs.x2 is None else _moves(task, live, inputs.x2, some, size)
        for i, (a, b) in enumerate(zip(first, second, strict=True), start + 1):
            if i > count:
                break
            drawn = _products(task.outputs, a, b)
            step = drawn - mean  # Welford's recursion: no cancellation
            mean = mean + step / i
            square = square + step * (drawn - mean)
    std = np.sqrt(square / (count - 1))
    dtype = np.dtype(inputs.dtype)
    parts = (part.astype(dtype) for part in (mean, std, std / count**0.5))
    return Estimate._make([*(part if inputs.numpy else jnp.asarray(part) for part in parts), count])


def _moves(
    task: Task, live: Trainable, x: Tensor, keys: Key[Array, " directions"], size: int
) -> Float[np.ndarray, "directions n k"]:
    """How the outputs move along some directions."""
    plain = task._replace(outputs="full")  # one program for all
    parts = [_along(plain, live, x[i : i + size], keys) for i in range(0, len(x), size)]
    return np.concatenate([np.asarray(part, np.float64) for part in parts], axis=1)


@eqx.filter_jit
def _along(
    task: Task, live: Trainable, x: Tensor, keys: Key[Array, " directions"]
) -> Float[Array, "directions n k"]:
    leaves, structure = jax.tree.flatten(jax.tree.map(jnp.asarray, live))

    def move(key: Key[Array, ""]) -> Float[Array, "n k"]:
        signs = [
            jax.random.rademacher(jax.random.fold_in(key, i), leaf.shape, leaf.dtype)
            for i, leaf in enumerate(leaves)
        ]
        whole = [jax.tree.unflatten(structure, part) for part in (leaves, signs)]
        return jax.jvp(lambda p: task.all(p, x), whole[:1], whole[1:])[1]

    with jax.default_matmul_precision("highest"):
        return jax.lax.map(move, keys)  # one after another: one direction is held at a time


def _products(outputs: str, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    rule = {"full": "ia,jb->ijab", "diagonal": "ia,ja->ija", "trace": "ia,ja->ij"}
    return np.einsum(rule[outputs], first, second)
