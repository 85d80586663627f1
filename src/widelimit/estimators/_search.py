"""Options chosen from the data: each candidate costs one kernel matrix, and must be better for certain."""

import copy
from typing import Any

import numpy as np

from widelimit._base.watch import say

from ._trial import FEW, Options, Trial, gain, per_row, quick_fit

_SEVERAL = 10  # values up to which a column counts as a category, where that is tried


def check_search(options: Options) -> bool:
    """Whether to search; a search that has nothing to vary is refused."""
    if options.search is None:
        return False
    if options.search not in ("network", "auto"):
        raise ValueError(f"search must be None, 'network' or 'auto', got {options.search!r}.")
    if options.network is not None:
        raise ValueError(
            f"search={options.search!r} varies depth, activation and kernel of the network that the options "
            "describe, but a network was given. Leave network= out, or set search=None."
        )
    return True


def search(options: Options, trial: Trial, t: float) -> tuple[Options, list[dict[str, Any]]]:
    """The options as they are, or with the one change that lowers the leave-one-out error most.

    A change is taken only if the errors fall by more than 2.5 standard errors of their differences, row by
    row, and one per cent: among several candidates on few rows the best is else the luckiest.

    Args:
        options: As they were given.
        trial: The table.
        t: Training time.

    Returns:
        The options to use, and what was tried: "change", "error", "gain", "margin" (what the gain must
        exceed) and "taken".
    """
    part = trial.some()
    start = _errors(options, part, t)
    tried: list[dict[str, Any]] = [_line({}, start, start) | {"margin": 0.0}]
    for change in candidates(options) if len(start) >= FEW else []:
        changed = copy.copy(options)
        vars(changed).update(change)
        errors = _errors(changed, part, t)
        if len(errors) != len(start):  # other rows are equal: not to be compared row by row
            continue
        tried.append(_line(change, start, errors))
        say(f"{_text(change)}: error {tried[-1]['error']:.4g}", options.verbose)
    certain = [line["gain"] - line["margin"] for line in tried]
    taken = int(np.argmax(certain))
    for i, line in enumerate(tried):
        line["taken"] = i == taken
    best = copy.copy(options)
    vars(best).update(tried[taken]["change"])
    return best, tried


def candidates(options: Options) -> list[dict[str, Any]]:
    """Single changes of the options."""
    changes: list[dict[str, Any]] = [{"depth": depth} for depth in (1, 2, 4)]
    changes += [{"activation": name} for name in ("relu", "erf")]
    changes += [{"kernel": name} for name in ("ntk", "nngp")]
    if options.standardise:
        changes += [{"squash": not options.squash}]
        changes += [{"categories": 0 if options.categories else _SEVERAL}]
    return [c for c in changes if any(getattr(options, k) != v for k, v in c.items())]


def _errors(options: Options, trial: Trial, t: float) -> np.ndarray:
    problem, _ = trial.problem(options)
    return per_row(quick_fit(problem, options.ridge, t))


def _line(change: dict[str, Any], before: np.ndarray, after: np.ndarray) -> dict[str, Any]:
    fell, margin = gain(before, after)
    return {"change": change, "error": float(after.mean()), "gain": fell, "margin": margin}


def _text(change: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in change.items())
