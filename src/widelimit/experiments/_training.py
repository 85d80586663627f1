"""Training the same network from several initialisations, and the smoothness of what it learnt."""

from typing import Any, NamedTuple

import jax
import numpy as np

from widelimit.analysis import smoothness
from widelimit.finite import FiniteNetwork
from widelimit.training import optimise_many

from ._result import Progress

POINTS = 1024  # N for finite networks: they are evaluated in single precision


class Trained(NamedTuple):
    """Networks after training.

    Attributes:
        start: Their outputs before training, shape (networks, points).
        outputs: Their outputs after it.
        loss: Their training losses.
    """

    start: np.ndarray
    outputs: np.ndarray
    loss: np.ndarray


class Counter:
    """Counts work done and reports it."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def add(self, work: int = 1) -> None:
        """So much more is done."""
        self.done += work
        if self.progress is not None:
            self.progress(min(self.done, self.total), self.total)


def train_all(
    network: FiniteNetwork,
    x: np.ndarray,
    y: np.ndarray,
    probe: np.ndarray,
    *,
    networks: int,
    seed: int,
    counter: Counter,
    work: int = 1,
    keep_best: bool = False,
    **options: Any,
) -> Trained:
    """Train a network from several initialisations.

    Args:
        network: The finite network.
        x: Training points.
        y: Labels.
        probe: Points at which the outputs are wanted.
        networks: How many initialisations.
        seed: Of the first of them.
        counter: Told of each network.
        work: What a network counts.
        keep_best: Whether to take the parameters of least training loss.
        **options: Of `widelimit.optimise`.

    Returns:
        Outputs and losses.
    """
    # On a GPU all at once; on a CPU side by side gains nothing, and one by one shows progress.
    chunk = networks if jax.default_backend() == "gpu" else 1
    start, outputs, loss = [], [], []
    for first in range(0, networks, chunk):
        keys = [1000 * seed + i for i in range(first, min(first + chunk, networks))]
        runs = optimise_many(network, x, y, keys, probe=probe, keep_best=keep_best, **options)
        for run in runs:
            _check(run)
            outputs_over_time = np.asarray(run.outputs)
            start.append(outputs_over_time[0])
            if keep_best:
                best = network.apply(run.best_params, probe.astype(np.float32))
                outputs.append(np.asarray(best)[:, 0])
                loss.append(run.best_loss)
            else:
                outputs.append(outputs_over_time[-1])
                loss.append(run.loss[-1])
        counter.add(work * len(keys))
    as_array = lambda values: np.asarray(values, dtype=np.float64)
    return Trained(as_array(start), as_array(outputs), as_array(loss))


def _check(run: Any) -> None:
    if run.outcome == "diverged":
        raise ValueError(f"Training diverged at step {run.last_step}; choose a smaller rate.")


def bends(outputs: np.ndarray) -> np.ndarray:
    """mu_D2 of each network on the circle."""
    return np.array([float(smoothness.second_derivative(f, check=False)) for f in outputs])


def clearly_below(second: np.ndarray, first: np.ndarray) -> bool:
    """Whether the second mean is smaller by more than the standard error of the difference."""
    variances = [v.var(ddof=1) / len(v) for v in (first, second) if len(v) > 1]
    return bool(first.mean() - second.mean() > np.sqrt(sum(variances)))


def spread(values: Any) -> str:
    """Mean and standard deviation in words."""
    values = np.asarray(values)
    return f"{values.mean():.4g} ± {values.std(ddof=1) if len(values) > 1 else 0:.2g}"
