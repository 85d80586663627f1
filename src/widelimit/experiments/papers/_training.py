"""Training the same network from several initialisations, and the smoothness of what it learnt."""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from widelimit.analysis import smoothness
from widelimit.finite import FiniteNetwork
from widelimit.training import optimise_many

from .._setting import Counter

POINTS = 1024  # N for finite networks: they are evaluated in single precision


class Trained(NamedTuple):
    """Networks after training.

    Attributes:
        start: Their outputs before training.
        outputs: Their outputs after it.
        loss: Their training losses.
    """

    start: Float[np.ndarray, "networks points"]
    outputs: Float[np.ndarray, "networks points"]
    loss: Float[np.ndarray, " networks"]


class Ensemble(NamedTuple):
    """Several initialisations of a network, to be trained alike.

    Attributes:
        networks: How many.
        seed: Of the first of them.
        counter: Told of each network.
        work: What a network counts.
    """

    networks: int
    seed: int
    counter: Counter
    work: int = 1

    def train(
        self,
        network: FiniteNetwork,
        samples: tuple[np.ndarray, np.ndarray],
        probe: np.ndarray,
        *,
        keep_best: bool = False,
        **options: Any,
    ) -> Trained:
        """Train a network from each initialisation.

        Args:
            network: The finite network.
            samples: Training points and labels.
            probe: Points at which the outputs are wanted.
            keep_best: Whether to take the parameters of least training loss.
            **options: Of `widelimit.optimise`.

        Returns:
            Outputs and losses.
        """
        # On a GPU all at once; on a CPU side by side gains nothing, and one by one shows progress.
        chunk = self.networks if jax.default_backend() == "gpu" else 1
        found = []
        for first in range(0, self.networks, chunk):
            last = min(first + chunk, self.networks)
            keys = [1000 * self.seed + i for i in range(first, last)]
            for run in optimise_many(
                network, *samples, keys, probe=probe, keep_best=keep_best, **options
            ):
                if run.outcome == "diverged":
                    raise ValueError(
                        f"Training diverged at step {run.last_step}; choose a smaller rate."
                    )
                outputs = np.asarray(run.outputs)
                end, loss = outputs[-1], run.loss[-1]
                if keep_best:
                    best = network.apply(run.best_params, probe.astype(np.float32))
                    end, loss = np.asarray(best)[:, 0], run.best_loss
                found.append((outputs[0], end, loss))
            self.counter.add(self.work * len(keys))
        return Trained(*(np.asarray(values, np.float64) for values in zip(*found, strict=True)))


def bends(outputs: Float[np.ndarray, "networks points"]) -> Float[np.ndarray, " networks"]:
    """mu_D2 of each network on the circle."""
    return np.array([float(smoothness.second_derivative(f, check=False)) for f in outputs])


def clearly_below(second: np.ndarray, first: np.ndarray) -> bool:
    """Whether the second mean is smaller by more than the standard error of the difference."""
    variances = [v.var(ddof=1) / len(v) for v in (first, second) if len(v) > 1]
    return bool(first.mean() - second.mean() > np.sqrt(sum(variances)))


def spread(values: np.ndarray) -> str:
    """Mean and standard deviation in words."""
    return f"{values.mean():.4g} ± {values.std(ddof=1) if len(values) > 1 else 0:.2g}"
