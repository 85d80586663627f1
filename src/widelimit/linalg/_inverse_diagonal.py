r"""The diagonal of an inverse that is known by its products, and leave-one-out errors from it."""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from jaxtyping import Float

from widelimit._base.keys import as_generator
from widelimit._base.shown import shown
from widelimit._base.types import Seed

from ._cg import System
from ._solution import Solution


@shown("an estimate of the diagonal of an inverse")
@dataclasses.dataclass(frozen=True)
class InverseDiagonal:
    r"""$\mathrm{diag}(A^{-1})$ for $A=K+\mathrm{diag}(\mathrm{ridge})$, from solutions with few right-hand sides.

    Attributes:
        samples: Independent estimates without bias, shape (n, m); where a row was solved for, its value m times.
        least: $1/A_{ii}$, below which no entry lies.
        most: 1/ridge, above which none lies.
        outcome: Of the solver.
        beside: Solutions of what was solved for besides, shape (n, k).
    """

    samples: Float[np.ndarray, "n m"]
    least: Float[np.ndarray, " n"]
    most: Float[np.ndarray, " n"]
    outcome: Solution
    beside: Float[np.ndarray, "n k"]

    def summary(self) -> dict[str, object]:
        """What is shown."""
        n, m = self.samples.shape
        return {"rows": n, "estimates of each": m}

    def moments(
        self, skip: int | None = None
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """The mean of the samples, within the bounds, and its relative variance; `skip` leaves one out."""
        samples = self.samples if skip is None else np.delete(self.samples, skip, axis=1)
        first = samples[:, :1]
        around = samples - first  # equal samples have no variance, to the last digit
        mean = np.clip(first[:, 0] + around.mean(1), self.least, self.most)
        # Divided before it is squared: kernels of 1e200 have an inverse whose square is 0.
        return mean, (around / mean[:, None]).var(1) / (samples.shape[1] - 1)

    def leave_one_out(
        self, dual: Float[np.ndarray, "n k"], skip: int | None = None
    ) -> Float[np.ndarray, "n k"]:
        r"""$\alpha_i/(A^{-1})_{ii}$, made smaller so that the mean of squares has no bias to first order.

        Of an estimate $d$ with relative variance $v$, $1/d^2$ is too large by $1+3v$.

        Args:
            dual: $\alpha=A^{-1}y$.
            skip: A sample that is left out.

        Returns:
            The errors.
        """
        mean, variance = self.moments(skip)
        return dual / (mean * np.sqrt(1 + 3 * np.minimum(variance, 1)))[:, None]


def inverse_diagonal(
    system: System,
    probes: int = 16,
    *,
    tolerance: float = 1e-3,
    key: Seed = 0,
    callback: Callable[[int], None] | None = None,
    beside: Float[np.ndarray, "n k"] | None = None,
) -> InverseDiagonal:
    r"""Estimate the diagonal of an inverse by random signs, all solved for together.

    For $z$ of independent signs $E[z\odot Bz]=\mathrm{diag}(B)$. This is used for $B=A^{-1}-P^{-1}$, where the
    preconditioner $P^{-1}$ has a diagonal that is known: what it knows of $A^{-1}$ makes no noise. Rows with
    the largest entries on the diagonal, as many as there are probes, are solved for by themselves: isolated points
    would be lost in the noise of all others.

    Args:
        system: $A$.
        probes: The number of random vectors, at least 3.
        tolerance: Of the relative residual.
        key: Of the signs.
        callback: Called with the number of steps done.
        beside: Further right-hand sides, solved for in the same iteration.

    Returns:
        The estimate; exact (to the tolerance) up to twice as many rows as probes.

    Example:
        >>> import numpy as np
        >>> from widelimit.linalg import System, TiledGram, inverse_diagonal
        >>> kernel = lambda a, b=None: np.exp(-np.abs(a - (a if b is None else b).T))
        >>> x = np.linspace(0, 30, 200)[:, None]
        >>> found, variance = inverse_diagonal(System(TiledGram(kernel, x), 0.1), 32).moments()
        >>> exact = np.diag(np.linalg.inv(kernel(x) + 0.1 * np.eye(200)))
        >>> bool(np.abs(found / exact - 1).mean() < 0.1)
        True

    Reference:
        Hutchinson (1990), A stochastic estimator of the trace of the influence matrix; Bekas, Kokiopoulou and
        Saad (2007), An estimator for the diagonal of a matrix.
    """
    if int(probes) != probes or probes < 3:
        raise ValueError(f"probes is a number of random vectors, at least 3; got {probes!r}.")
    n = system.gram.size
    whole = np.asarray(system.gram.diagonal(), np.float64) + system.ridge
    few = n <= 2 * probes
    alone = np.sort(np.argsort(whole, kind="stable")[-(n if few else probes) :])
    signs = as_generator(key).choice(np.array([-1.0, 1.0]), (n, 0 if few else probes))
    units = np.zeros((n, len(alone)))
    units[alone, np.arange(len(alone))] = 1
    system.settle()  # the errors of nearly equal points hang on their difference
    rough = system.roughly()
    beside = np.zeros((n, 0)) if beside is None else beside
    right = np.concatenate([units, signs, beside], axis=1)
    outcome = rough.solve(right, tolerance=tolerance, callback=callback)
    solved = outcome.x[:, len(alone) :]
    found = outcome.x[alone, np.arange(len(alone))]
    if few:
        samples = np.repeat(found[:, None], 3, axis=1)
    else:
        samples = signs * (solved[:, :probes] - _known(rough, signs)) + _diagonal(rough)
        samples[alone] = found[:, None]
    with np.errstate(divide="ignore"):
        rest = solved[:, signs.shape[1] :]
        return InverseDiagonal(samples, 1 / whole, 1 / system.ridge, outcome, rest)


def _known(system: System, signs: Float[np.ndarray, "n m"]) -> Float[np.ndarray, "n m"]:
    """What the preconditioner knows of the solutions."""
    if system.preconditioner is None:
        return np.zeros_like(signs)
    with jax.enable_x64(True):
        return np.asarray(system.inverse(system.gram.vector(signs)))


def _diagonal(system: System) -> Float[np.ndarray, "n 1"]:
    if system.preconditioner is None:
        return np.zeros((system.gram.size, 1))
    return np.asarray(system.preconditioner.diagonal())[:, None]
