"""How a candidate is chosen, and how methods are compared over many sets."""

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata

from ._methods import Scores


@dataclasses.dataclass(frozen=True)
class Protocol:
    """A published way to choose a candidate.

    Attributes:
        title: In tables.
        reference: Where it is from.
        honest: Whether the choice does not see the folds that it is judged by.
        merit: What the chosen candidate has most of, from its accuracies on all splits.
    """

    title: str
    reference: str
    honest: bool
    merit: Callable[[list[float]], float]


PROTOCOLS = {
    "one_split": Protocol(
        "tuned on one split",
        "Arora, Du, Li, Salakhutdinov, Wang and Yu (2020)",
        True,
        lambda scores: scores[0],
    ),
    "all_folds": Protocol(
        "tuned on all four folds",
        "Shankar et al. (2020)",
        False,
        lambda scores: float(np.mean(scores[1:])),
    ),
}


@dataclasses.dataclass(frozen=True)
class Chosen:
    """The candidate that a protocol takes for one set.

    Attributes:
        candidate: Its name.
        folds: Its accuracies on the four folds.
    """

    candidate: str
    folds: Float[np.ndarray, " folds"]

    @property
    def accuracy(self) -> float:
        """The mean over the folds."""
        return float(self.folds.mean())


def choose(scores: Scores, protocol: Protocol) -> Chosen:
    """The candidate with the largest merit, the first of equals.

    Args:
        scores: The accuracies of all candidates.
        protocol: The protocol.

    Returns:
        The candidate.
    """
    name = max(scores, key=lambda candidate: protocol.merit(scores[candidate]))
    return Chosen(name, np.array(scores[name][1:]))


@dataclasses.dataclass(frozen=True)
class Standing:
    """A method over many sets.

    Attributes:
        accuracy: Mean accuracy.
        deviation: Its standard deviation over the sets.
        folds: The mean over the sets of the standard deviation over a set's folds.
        rank: The mean rank among the methods, 1 the best, equals share theirs (Friedman).
        p90: The share of sets with at least 90 % of the best method's accuracy.
        p95: The same with 95 %.
        pma: The mean share of the best method's accuracy.
        wins: Sets on which no method is better.
    """

    accuracy: float
    deviation: float
    folds: float
    rank: float
    p90: float
    p95: float
    pma: float
    wins: int


def standings(chosen: Mapping[str, Mapping[str, Chosen]]) -> dict[str, Standing]:
    """All methods compared on the sets that all of them have finished.

    Args:
        chosen: From method to set to what was chosen.

    Returns:
        From method to its standing, in the same order.

    Example:
        >>> import numpy as np
        >>> of = lambda *values: {str(i): Chosen("", np.full(4, v)) for i, v in enumerate(values)}
        >>> found = standings({"a": of(0.9, 0.8), "b": of(0.9, 0.6)})
        >>> found["a"].rank, found["b"].rank, round(found["b"].pma, 3), found["b"].p90
        (1.25, 1.75, 0.875, 0.5)
    """
    sets = common_sets(chosen)
    values = np.array([[by[name].accuracy for name in sets] for by in chosen.values()])
    folds = np.array([[by[name].folds.std() for name in sets] for by in chosen.values()])
    ranks = rankdata(-values, axis=0)
    share = values / values.max(0)
    return {
        method: Standing(
            accuracy=float(values[i].mean()),
            deviation=float(values[i].std(ddof=1)) if len(sets) > 1 else 0.0,
            folds=float(folds[i].mean()),
            rank=float(ranks[i].mean()),
            p90=float(np.mean(share[i] >= 0.9)),
            p95=float(np.mean(share[i] >= 0.95)),
            pma=float(share[i].mean()),
            wins=int(np.sum(values[i] == values.max(0))),
        )
        for i, method in enumerate(chosen)
    }


def common_sets(chosen: Mapping[str, Mapping[str, Chosen]]) -> list[str]:
    """The sets that all methods have, in the first one's order."""
    first, *rest = chosen.values()
    return [name for name in first if all(name in by for by in rest)]
