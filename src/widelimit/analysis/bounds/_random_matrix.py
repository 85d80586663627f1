"""Singular values of Gaussian matrices: the lemma behind the Jacobian bounds."""

import math
from typing import NamedTuple

import numpy as np

from widelimit._base.keys import as_generator
from widelimit._base.renamed import renamed_argument
from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit._base.types import Seed


class SingularValues(NamedTuple):
    """An interval that contains all singular values of a Gaussian matrix.

    Attributes:
        low: The smallest singular value is at least this.
        high: The largest is at most this.
        probability: With at least this probability.
        t: The deviation that was allowed.
    """

    low: float
    high: float
    probability: float
    t: float

    @property
    def failure(self) -> float:
        r"""$2e^{-t^2/2}$, one minus the probability, also where that rounds to 1."""
        return min(1.0, 2 * math.exp(-(self.t**2) / 2))


@shown("singular values of drawn matrices")
class SingularValueCheck(NamedTuple):
    """The lemma against drawn matrices.

    Attributes:
        lemma: What it promises.
        inside: The share of matrices whose singular values all lie inside.
        smallest: The smallest singular value of each matrix, shape (draws,).
        largest: The largest of each, shape (draws,).
    """

    lemma: SingularValues
    inside: float
    smallest: np.ndarray
    largest: np.ndarray


def singular_values(
    rows: int, columns: int, *, t: float | None = None, probability: float | None = None
) -> SingularValues:
    r"""Singular values of a matrix with independent N(0,1) entries, with high probability.

    $\sqrt{m}-\sqrt{n}-t\le s_{min}\le s_{max}\le\sqrt m+\sqrt n+t$ with probability at least $1-2e^{-t^2/2}$,
    $m\ge n$ the two sizes.

    Args:
        rows: One size.
        columns: The other.
        t: The deviation; by default the square root of the larger size, as in the Jacobian bounds.
        probability: Instead of t: the probability wanted.

    Returns:
        The interval and its probability.

    Example:
        >>> singular_values(400, 100, t=2.0)
        SingularValues(low=8.0, high=32.0, probability=0.7293..., t=2.0)

    Reference:
        Vershynin (2012), Introduction to the non-asymptotic analysis of random matrices,
        Corollary 5.35; Tirer, Bruna and Giryes (2022), Lemma 3.
    """
    rows, columns = as_count(rows, "rows", minimum=1), as_count(columns, "columns", minimum=1)
    if t is not None and probability is not None:
        raise ValueError("Give t or probability, not both: one determines the other.")
    if probability is not None:
        if not 0 <= probability < 1:
            raise ValueError(f"probability must lie in [0, 1), got {probability!r}.")
        t = math.sqrt(2 * math.log(2 / (1 - probability)))
    t = math.sqrt(max(rows, columns)) if t is None else float(t)
    if not (math.isfinite(t) and t >= 0):
        raise ValueError(f"t must be at least 0, got {t!r}.")
    large, small = math.sqrt(max(rows, columns)), math.sqrt(min(rows, columns))
    chance = max(0.0, 1 - 2 * math.exp(-(t**2) / 2))
    return SingularValues(max(0.0, large - small - t), large + small + t, chance, t)


@renamed_argument(seed="key")
def check_singular_values(
    rows: int, columns: int, *, t: float = 2.0, draws: int = 100, key: Seed = 0
) -> SingularValueCheck:
    """Draw Gaussian matrices and count how many the lemma's interval contains.

    Args:
        rows: One size.
        columns: The other.
        t: The deviation.
        draws: How many matrices.
        key: Chooses them.

    Returns:
        The lemma, the share inside, and the extreme singular values.

    Example:
        >>> check = check_singular_values(60, 20, t=2.0, draws=50)
        >>> check.inside >= check.lemma.probability
        True
    """
    lemma = singular_values(rows, columns, t=t)
    draws = as_count(draws, "draws", minimum=1)
    rng = as_generator(key)
    values = [
        np.linalg.svd(rng.standard_normal((rows, columns)), compute_uv=False) for _ in range(draws)
    ]
    smallest, largest = (np.array([f(v) for v in values]) for f in (np.min, np.max))
    inside = float(np.mean((smallest >= lemma.low) & (largest <= lemma.high)))
    return SingularValueCheck(lemma, inside, smallest, largest)
