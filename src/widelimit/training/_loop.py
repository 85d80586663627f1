"""The training loop: one compiled program from one record to the next."""

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from widelimit.finite import FiniteNetwork, has_dropout, is_frozen

from ._optimiser import tangent_kernel


class Program(NamedTuple):
    """What is fixed at compile time.

    Attributes:
        model: A `FiniteNetwork` or a function of (params, points).
        loss: Of (outputs, targets), summed over the points.
        optimiser: An Optax optimiser.
        batch: Points in a batch; the last of a pass may have fewer.
        shuffle: Whether each pass has an order of its own.
        path: Whether the length of the path of the parameters is measured.
        lanes: Whether all states have a leading axis of networks that are trained side by side.
    """

    model: Any
    loss: Any
    optimiser: Any
    batch: int
    shuffle: bool
    path: bool
    lanes: bool

    def outputs(self, params: Any, x: Any, key: Any = None) -> Any:
        """Outputs of shape (points, k); with a key, entries are dropped where the network does that."""
        model = self.model
        finite = isinstance(model, FiniteNetwork)
        y = model.apply(params, x, key) if finite else model(params, x)
        return y.reshape(len(x), -1)

    def map(self, f: Any, *axes: int | None) -> Any:
        """`f` for one network, or for all lanes."""
        return jax.vmap(f, axes) if self.lanes else f


class State(NamedTuple):
    """Everything that changes.

    Attributes:
        step: Gradient steps done.
        params: The parameters.
        optimiser: The optimiser's state.
        path: The summed lengths of all steps.
        loss: Of the last batch, before its step.
        bad: The step at which the loss was not finite, or -1.
    """

    step: Any
    params: Any
    optimiser: Any
    path: Any
    loss: Any
    bad: Any


_LANES = State(None, 0, 0, 0, 0, 0)  # type: ignore[arg-type]


@contextlib.contextmanager
def lenient() -> Iterator[None]:
    """JAX's usual promotion: Optax relies on it, whatever the caller has set."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def start(program: Program, params: Any, dtype: Any) -> State:
    """The state before the first step."""
    with lenient():
        optimiser = program.map(program.optimiser.init, 0)(params)
    shape = jax.tree.leaves(params)[0].shape[:1] if program.lanes else ()
    return State(
        jnp.zeros((), jnp.int32),
        jax.tree.map(jnp.array, params),  # a copy: the loop overwrites its state
        jax.tree.map(jnp.array, optimiser),
        jnp.zeros(shape, dtype),
        jnp.full(shape, jnp.inf, dtype),
        jnp.full(shape, -1, jnp.int32),
    )


def _step(program: Program, state: State, x: Any, y: Any, key: Any) -> State:
    """One step of one network."""
    network = program.model if isinstance(program.model, FiniteNetwork) else None
    loss, gradient = _gradient(program, state, x, y, key)
    with lenient():
        updates, optimiser = program.optimiser.update(gradient, state.optimiser, state.params)
    if network is not None:  # an optimiser may move also what has no gradient
        still = lambda path, u: jnp.zeros_like(u) if is_frozen(path) else u
        updates = jax.tree_util.tree_map_with_path(still, updates)
    params = jax.tree.map(lambda p, u: p + u.astype(p.dtype), state.params, updates)
    path = state.path + length(updates) if program.path else state.path
    first = (state.bad < 0) & ~jnp.isfinite(loss)
    bad = jnp.where(first, state.step, state.bad)
    return State(state.step, params, optimiser, path, loss.astype(state.loss.dtype), bad)


def _gradient(program: Program, state: State, x: Any, y: Any, key: Any) -> Any:
    """Loss and gradient on the points of this step; the last step of a pass sees what is left."""
    batches = -(-len(x) // program.batch)
    left = len(x) - (batches - 1) * program.batch
    noise = None
    if isinstance(program.model, FiniteNetwork) and has_dropout(program.model.net):
        noise = jax.random.fold_in(jax.random.fold_in(key, state.step), 1)

    def on(size: int) -> Any:
        xb, yb = _batch(program, x, y, key, state.step, size)
        objective = lambda p: program.loss(program.outputs(p, xb, noise), yb)
        return jax.value_and_grad(objective)(state.params)

    if left == program.batch:
        return on(left)
    last = state.step % batches == batches - 1
    return jax.lax.cond(last, lambda: on(left), lambda: on(program.batch))


def _batch(program: Program, x: Any, y: Any, key: Any, step: Any, size: int) -> Any:
    """The points of this step; the order of a pass depends on the key and the pass alone."""
    if program.batch == len(x):
        return x, y
    batches = -(-len(x) // program.batch)
    order = jnp.arange(len(x))
    if program.shuffle:
        order = jax.random.permutation(jax.random.fold_in(key, step // batches), len(x))
    first = (step % batches) * program.batch
    chosen = jax.lax.dynamic_slice_in_dim(order, first, size)
    return x[chosen], y[chosen]


def length(tree: Any) -> Any:
    """The Euclidean norm of a tree."""
    return jnp.sqrt(functools.reduce(jnp.add, [jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)]))


@functools.partial(jax.jit, static_argnums=0, donate_argnums=4)
def advance(
    program: Program, x: Any, y: Any, key: Any, state: State, stop: Any, goal: Any
) -> State:
    """Steps until `stop`, the goal (on the last batch's loss), or divergence.

    The number of steps is not compiled in: whole and resumed runs execute the same program, hence
    the same rounding.
    """

    def more(state: State) -> Any:
        alive = (state.bad < 0) & (state.loss > goal)
        return (state.step < stop) & jnp.any(alive)

    def body(state: State) -> State:
        one = lambda s, k: _step(program, s._replace(step=state.step), x, y, k)
        each = jax.vmap(one, (_LANES, 0), _LANES) if program.lanes else one
        new = each(state._replace(step=None), key)
        return new._replace(step=state.step + 1)

    return jax.lax.while_loop(more, body, state)


@functools.partial(jax.jit, static_argnums=(0, 6))
def measure(
    program: Program, x: Any, y: Any, probe: Any, state: State, origin: Any, kernel: bool
) -> dict[str, Any]:
    """The record of the present state, by the names of `Training`; `kernel`: with `kernels`."""

    def one(params: Any, start: Any) -> dict[str, Any]:
        row = {
            "loss": program.loss(program.outputs(params, x), y),
            "distance": length(jax.tree.map(jnp.subtract, params, start)),
        }
        if probe is not None:
            row["outputs"] = program.outputs(params, probe)
        return row | {"kernels": tangent_kernel(program.model, params, x)} if kernel else row

    row = program.map(one, 0, 0)(state.params, origin)
    return row | {"path": state.path} if program.path else row


@functools.partial(jax.jit, static_argnums=0)
def full_loss(program: Program, x: Any, y: Any, params: Any) -> Any:
    """The loss on all points."""
    return program.map(lambda p: program.loss(program.outputs(p, x), y), 0)(params)


@functools.partial(jax.jit, static_argnums=0)
def keep(program: Program, better: Any, params: Any, best: Any) -> Any:
    """The better of two sets of parameters, lane by lane."""
    pick = lambda flag, p, b: jax.tree.map(lambda u, v: jnp.where(flag, u, v), p, b)
    return program.map(pick, 0, 0, 0)(better, params, best)
