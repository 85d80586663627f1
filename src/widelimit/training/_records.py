"""What is kept of a training run."""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.shown import shown

from ._loop import Program, State, full_loss, keep, measure, start
from ._options import Options


@shown("a finished run of a finite network")
class Training(NamedTuple):
    r"""A finished run.

    Attributes:
        params: The parameters after the last step.
        best_params: Those of least training loss, if asked for, else None.
        best_loss: Their loss.
        best_step: Their step.
        steps: The recorded steps, shape (records,).
        loss: The loss on all training points.
        outputs: $f_t$ on the probe points, shape (records, points), or (records, points, k) where
            the targets had shape (n, k); None without probe points.
        distance: $\lVert\theta_t-\theta_0\rVert$.
        path: $\sum_j\lVert\theta_j-\theta_{j-1}\rVert$; None unless asked for.
        drift: $\lVert\hat\Theta_t-\hat\Theta_0\rVert_F$ on the training points; None unless asked for.
        kernels: $\hat\Theta_t$ on the training points, shape (records, n, n), or (records, n, n, k, k);
            None unless the drift was asked for.
        outcome: "finished", "tolerance" or "diverged".
        last_step: The number of steps done; of a diverged run the step whose loss was not finite.
    """

    params: Any
    best_params: Any
    best_loss: float | None
    best_step: int | None
    steps: np.ndarray
    loss: np.ndarray
    outputs: np.ndarray | None
    distance: np.ndarray
    path: np.ndarray | None
    drift: np.ndarray | None
    kernels: np.ndarray | None
    outcome: str
    last_step: int

    def summary(self) -> dict[str, object]:
        """What is shown of a run: never its weights."""
        last = lambda values: None if values is None or not len(values) else float(values[-1])
        span = None
        if len(self.loss):
            span = f"{float(self.loss[0]):.4g} at first, {float(self.loss[-1]):.4g} at last"
        return {
            "outcome": self.outcome,
            "steps": self.last_step,
            "loss": span,
            "best loss": None
            if self.best_loss is None
            else f"{self.best_loss:.4g} at step {self.best_step}",
            "weights": self.params,
            "distance": last(self.distance),
            "path": last(self.path),
            "drift": last(self.drift),
            "outputs": self.outputs,
            "records": len(self.steps),
        }


class Run(NamedTuple):
    """A checked run: arrays in the dtype of the parameters, steps, and what is recorded."""

    program: Program
    options: Options
    x: Any
    y: Any
    probe: Any
    total: int
    record: np.ndarray
    passes: int  # steps in a pass over the points
    flat: bool  # targets of shape (n,): outputs are handed out without the last axis
    dtype: Any


class Log:
    """What is known of a run so far."""

    def __init__(self, run: Run, origin: Any) -> None:
        self.run, self.origin = run, origin
        self.rows: dict[str, Any] = {}
        self.kernel: Any = None
        shape = np.shape(jax.tree.leaves(origin)[0])[:1] if run.program.lanes else ()
        copy = jax.tree.map(jnp.array, origin) if run.options.keep_best else None
        self.best: Any = (jnp.full(shape, jnp.inf, run.dtype), jnp.zeros(shape, jnp.int32), copy)

    def look(self, state: State, stop: int) -> bool:
        """Record if it is time to, keep the best, and say whether the goal is met."""
        run = self.run
        met = int(state.step) < stop  # the loop itself has seen the goal or lost every lane
        if run.options.keep_best or (run.options.goal >= 0 and run.passes > 1):
            loss = full_loss(run.program, run.x, run.y, state.params)
            met = met or bool((loss <= run.options.goal).all())
            better = loss < self.best[0]
            if run.options.keep_best and bool(better.any()):
                params = keep(run.program, better, state.params, self.best[2])
                step = jnp.where(better, state.step, self.best[1])
                self.best = (jnp.where(better, loss, self.best[0]), step, params)
        if stop in run.record or met:
            self._record(state)
        return met

    def _record(self, state: State) -> None:
        run = self.run
        args = (run.program, run.x, run.y, run.probe)
        row = jax.tree.map(np.asarray, measure(*args, state, self.origin, run.options.drift))
        if "outputs" in row and run.flat:
            row["outputs"] = row["outputs"][..., 0]
        if run.options.drift:
            if self.kernel is None:
                begin = start(run.program, self.origin, run.dtype)
                self.kernel = np.asarray(measure(*args, begin, self.origin, True)["kernels"])
            axes = tuple(range(int(run.program.lanes), row["kernels"].ndim))
            row["drift"] = np.sqrt(((row["kernels"] - self.kernel) ** 2).sum(axes))
        for name, value in (row | {"steps": np.asarray(state.step)}).items():
            old = self.rows.get(name)
            self.rows[name] = value[None] if old is None else np.concatenate([old, value[None]])

    def close(self, state: State, params: Any) -> list[Training]:
        """The finished runs, one for each lane, in the caller's kind of array."""
        numpy = isinstance(jax.tree.leaves(params)[0], np.ndarray) or self.run.dtype == np.float64
        hand = np.array if numpy else jnp.asarray
        if not self.run.program.lanes:
            return [
                self._one(jax.tree.map(hand, state), jax.tree.map(hand, self.best), lambda a: a)
            ]
        count = len(np.asarray(state.bad))
        runs = []
        for i in range(count):
            lane = jax.tree.map(lambda a, i=i: hand(a[i]), state._replace(step=None))
            best = jax.tree.map(lambda a, i=i: hand(a[i]), self.best)
            pick = lambda a, i=i: a[:, i]
            runs.append(self._one(lane._replace(step=state.step), best, pick))
        return runs

    def _one(self, state: State, best: Any, pick: Any) -> Training:
        steps = np.asarray(self.rows.get("steps", np.zeros(0, int)))
        bad, last = int(state.bad), int(state.step)
        rows = {name: pick(value) for name, value in self.rows.items() if name != "steps"}
        outcome = "finished"
        if bad >= 0:
            outcome, last = "diverged", bad
            fine = (steps <= bad) & np.isfinite(rows.get("loss", np.zeros(len(steps))))
            steps, rows = steps[fine], {name: value[fine] for name, value in rows.items()}
            _warn_diverged(bad, rows)
        elif last < self.run.total or (
            self.run.options.goal >= 0 and rows["loss"][-1] <= self.run.options.goal
        ):
            outcome = "tolerance"
        loss, step, params = best if self.run.options.keep_best else (None, None, None)
        return Training(
            params=state.params,
            best_params=params,
            best_loss=None if loss is None else float(loss),
            best_step=None if step is None else int(step),
            steps=steps,
            loss=rows.get("loss", np.zeros(0)),
            distance=rows.get("distance", np.zeros(0)),
            **{name: rows.get(name) for name in ("outputs", "path", "drift", "kernels")},
            outcome=outcome,
            last_step=last,
        )


def _warn_diverged(step: int, rows: dict[str, Any]) -> None:
    losses = rows.get("loss", ())
    first = f" (it began at {float(losses[0]):.3g})" if len(losses) else ""
    warnings.warn(
        f"Training diverged: the loss at step {step} is not finite{first}. The records end before "
        "it. Choose a smaller learning rate; widelimit.optimise without one takes a stable rate.",
        stacklevel=7,
    )
