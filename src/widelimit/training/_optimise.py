"""Training of finite networks."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.keys import as_key
from widelimit._base.scalars import as_count
from widelimit.finite import FiniteNetwork, HeldModel, as_model, as_points, has_frozen_parts

from . import _checkpoint as checkpoints
from ._interrupt import stretches
from ._loop import advance, start
from ._options import Options, Progress, as_options
from ._records import Log, Run, Training
from ._setup import initial, precision, prepare

_SIDE_BY_SIDE = {"cpu": 2**26, "gpu": 2**33}  # bytes of states that are trained side by side


def optimise(
    model: FiniteNetwork | Callable[..., Any],
    x: Any,
    y: Any,
    *,
    params: Any = None,
    key: Any = 0,
    checkpoint: str | Path | None = None,
    **options: Any,
) -> Training:
    r"""Train a finite network.

    By default: gradient descent on all points at once, $\theta_{t+1}=\theta_t-\eta\nabla L$,
    $L=\frac12\sum_i|f(x_i)-y_i|^2$; step t of it stands for the time $\eta t$ of gradient flow.

    Args:
        model: A `FiniteNetwork`; a function of (params, points); or an Equinox module of single
            points, which is its own parameters.
        x: Training points, shape (n, d) or (n, *spatial, channels).
        y: Targets, shape (n,) or (n, k).
        params: Initial parameters; None draws them with `key`. Needed for a plain function. Of a tree
            that holds more than weights, an Equinox module say, the floating point arrays are trained.
        key: A JAX key or an integer; decides the weights and the order of the points.
        checkpoint: A .npz file, written at each record and at Ctrl-C. If it exists, the run continues
            from it and gives the same numbers, bit for bit, as a run that was never interrupted. A file
            of another run is refused; one with fewer steps is continued.
        **options: By name, all of them optional except `steps` or `epochs`:
            optimiser: "sgd", "momentum", "nesterov", "adam", "adamw", "rmsprop", or an Optax optimiser.
            learning_rate: With a name; None: half of $2/\lambda_{\max}(\hat\Theta_0)$ for "sgd", 1e-2 with
                momentum, 1e-3 for the others.
            steps: Gradient steps. Give either this or `epochs`.
            epochs: Passes over the points.
            batch_size: Points in a step; the last step of a pass sees what is left. None: all.
            shuffle: Whether every pass has its own random order.
            loss: "squared" (half the sum of squares), "mean" (half the mean of squares over the points and
                outputs of a step: its learning rate is n k times larger), "huber", "logistic",
                "cross-entropy", or a function of (f, y) that sums over the points.
            record: The steps to record, or how many, evenly spaced after the first. None: 0 and the end.
            probe: Points whose outputs are recorded, shaped like those of x.
            path: Whether to record the length of the path of the parameters.
            drift: Whether to record the drift of the tangent kernel.
            keep_best: Whether to keep the parameters of least training loss, compared after each pass.
            tolerance: Stop once the training loss is at most this (compared after each pass).
            dtype: Of the weights where they are drawn; float32 by default.
            progress: Called with (steps done, steps in all) at each record; `progress_bar()` makes one.

    Returns:
        The trained parameters and the records.

    Example:
        >>> import widelimit as wl
        >>> net = wl.finite(wl.mlp(depth=1, activation="erf"), width=256)
        >>> x, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([1.0, -1.0])
        >>> run = wl.optimise(net, x, y, steps=200)
        >>> run.outcome, bool(run.loss[-1] < 1e-6)
        ('finished', True)
        >>> bool(abs(net.apply(run.params, x)[:, 0] - y).max() < 1e-3)
        True

    Reference:
        Lee et al. (2019); Tirer, Bruna and Giryes (2022), section 5.
    """
    chosen, key = as_options(options), as_key(key)
    model, params = as_model(model, params)
    params = initial(model, params, key, x, y, chosen.dtype)
    if isinstance(model, FiniteNetwork) or not has_frozen_parts(params):
        return _alone(model, params, x, y, key, chosen, checkpoint)
    live, rest = eqx.partition(params, eqx.is_inexact_array)
    run = _alone(HeldModel(model, rest), live, x, y, key, chosen, checkpoint)
    best = None if run.best_params is None else eqx.combine(run.best_params, rest)
    return run._replace(params=eqx.combine(run.params, rest), best_params=best)


def _alone(
    model: Any, params: Any, x: Any, y: Any, key: Any, options: Options, file: str | Path | None
) -> Training:
    path = None if file is None else Path(file)
    if path is not None:
        checkpoints.check_place(path)
    with precision(params):
        run = prepare(model, params, x, y, options, lanes=0)
        return _train(run, params, key, path)[0]


def optimise_many(
    model: FiniteNetwork,
    x: Any,
    y: Any,
    keys: Any,
    *,
    side_by_side: bool | None = None,
    **options: Any,
) -> list[Training]:
    """Train one network for each key.

    Args:
        model: A `FiniteNetwork`.
        x: Training points, shape (n, d) or (n, *spatial, channels).
        y: Targets, shape (n,) or (n, k).
        keys: JAX keys or integers, or a number of networks (keys 0, 1, ...).
        side_by_side: Whether all are trained in one program (`jax.vmap`), which is faster for small
            networks and on a GPU, or one after another. None decides by memory. Networks that are
            trained side by side stop at the tolerance together.
        **options: As for `optimise`, except `params`, `key` and `checkpoint`. `progress` counts
            networks where they are trained one after another.

    Returns:
        The runs, in the order of the keys.

    Example:
        >>> import widelimit as wl
        >>> net = wl.finite(wl.mlp(depth=1), width=32)
        >>> runs = wl.optimise_many(net, np.eye(2), np.ones(2), keys=3, steps=50, record=5)
        >>> len(runs), runs[0].loss.shape
        (3, (6,))
    """
    for name in ("params", "key", "checkpoint"):
        if name in options:
            raise TypeError(f"optimise_many draws the networks itself and takes no {name}.")
    if not isinstance(model, FiniteNetwork):
        raise TypeError(f"optimise_many needs a FiniteNetwork, got {type(model).__name__}.")
    chosen = as_options(options)
    if np.ndim(keys) == 0 and not hasattr(keys, "__iter__"):
        keys = range(as_count(keys, "keys", minimum=1))
    keys = [as_key(key) for key in keys]
    shape = as_points(model.net, x).x1.shape[1:]
    count = model.num_params(shape, np.shape(y)[1] if np.ndim(y) == 2 else None)
    if side_by_side is None:
        limit = _SIDE_BY_SIDE.get(jax.default_backend(), 2**33)
        side_by_side = count * len(keys) * 16 <= limit
    if side_by_side and len(keys) > 1:
        return _lanes(model, x, y, keys, chosen)
    quiet = dataclasses.replace(chosen, progress=None)
    runs = []
    for i, key in enumerate(keys):
        params = initial(model, None, key, x, y, chosen.dtype)
        runs.append(_alone(model, params, x, y, key, quiet, None))
        if chosen.progress is not None:
            chosen.progress(i + 1, len(keys))
    return runs


def _lanes(
    model: FiniteNetwork, x: Any, y: Any, keys: list[Any], options: Options
) -> list[Training]:
    drawn = [initial(model, None, key, x, y, options.dtype) for key in keys]
    with precision(drawn[0]):
        run = prepare(model, drawn[0], x, y, options, lanes=len(keys))
        params = jax.tree.map(lambda *leaves: jnp.stack(leaves), *drawn)
        return _train(run, params, jnp.stack(keys), None)


def progress_bar(label: str = "training") -> Progress:
    """A progress callback that draws a bar; needs Rich (`pip install 'widelimit[cli]'`).

    Args:
        label: The text before the bar.

    Returns:
        A function of (done, total).
    """
    try:
        from rich.progress import Progress as Bar
    except ImportError as error:
        raise ImportError(
            "The progress bar needs Rich, which is not installed. "
            "Install it with: pip install 'widelimit[cli]'"
        ) from error
    bar = Bar(transient=True)
    tasks: list[Any] = []

    def show(done: int, total: int) -> None:
        if not tasks:
            bar.start()
            tasks.append(bar.add_task(label, total=total))
        bar.update(tasks[0], completed=done)
        if done >= total:
            bar.stop()

    return show


def _train(run: Run, params: Any, key: Any, file: Path | None) -> list[Training]:
    """Alternate compiled stretches and records."""
    program, progress = run.program, run.options.progress
    state = start(program, params, run.dtype)
    origin = jax.tree.map(jnp.array, params)
    order = (
        jax.vmap(jax.random.fold_in, (0, None))(key, 1)
        if program.lanes
        else jax.random.fold_in(key, 1)
    )
    log = Log(run, origin)
    mark = {} if file is None else checkpoints.identity(run, params, key)
    if file is not None and file.exists():
        trees, log.rows = checkpoints.load(file, mark, {"state": state, "best": log.best}, run)
        state, log.best = jax.tree.map(jnp.array, (trees["state"], trees["best"]))
    target = run.options.goal if run.passes == 1 else -1.0
    onwards = lambda state, stop: advance(program, run.x, run.y, order, state, stop, target)
    with stretches() as cut:
        for stop in _stops(run):
            done = int(state.step)
            if stop < done or (stop == done and stop in log.rows.get("steps", ())):
                continue
            state = cut.run(onwards, state, stop)
            if bool((np.asarray(state.bad) >= 0).all()):
                break
            met = not cut.interrupted and log.look(state, stop)
            if progress is not None and stop in run.record and not cut.interrupted:
                progress(stop, run.total)
            if file is not None and (stop in run.record or cut.interrupted):
                checkpoints.save(file, mark, {"state": state, "best": log.best}, log.rows)
            if cut.interrupted:
                raise KeyboardInterrupt
            if met:
                break
    return log.close(state, params)


def _stops(run: Run) -> list[int]:
    """Where the loop returns: at records, and after passes where the loss must be looked at."""
    stops = set(run.record.tolist())
    if run.options.keep_best or (run.options.goal >= 0 and run.passes > 1):
        stops |= set(range(0, run.total + 1, run.passes))
    return sorted(stops | {run.total})
