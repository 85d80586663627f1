"""How moments without a closed form are evaluated at pixels: decided where the variances are known."""

import collections
from typing import NamedTuple

import numpy as np

from widelimit._base.arrays import is_traced, value_of
from widelimit._base.thresholds import MANY, MOST_CHOICES, PATIENCE, SHORT_SERIES, WIDEST_CHOICE
from widelimit.activations import Activation, How, table_for, terms_needed
from widelimit.layers import Layer, Phi

from ._pair import Pair


class _Choice(NamedTuple):
    """What serves all variances between two."""

    low: float
    high: float
    how: How


# The latest ones of each activation and precision: groups of pairs whose variances differ a little share a program.
_made: collections.OrderedDict[tuple[Activation, str, bool], list[_Choice]] = (
    collections.OrderedDict()
)


def series_for(layer: Layer, pair: Pair, entries: int) -> How | None:
    """The series that an activation needs for the variances that it meets; None where there is no choice.

    `entries`: how many pairs of pixels there are, in groups such as this.
    """
    if not isinstance(layer, Phi) or layer.activation.closed_form or is_traced((pair.q1, pair.q2)):
        return None
    act, dtype = layer.activation, str(pair.minus.dtype)
    found = np.concatenate([np.ravel(value_of(q)) for q in (pair.q1, pair.q2)])
    found = found[found > 0]
    low, high = (float(found.min()), float(found.max())) if len(found) else (1.0, 1.0)
    known = _made.setdefault((act, dtype, entries >= MANY), [])
    _made.move_to_end((act, dtype, entries >= MANY))
    for choice in known:
        near = choice.high / choice.low <= WIDEST_CHOICE * (high / low)
        if choice.low <= low and high <= choice.high and near:
            return choice.how
    ends = low / 2, 2 * high  # so that it serves other inputs too
    how = _chosen(act, ends, dtype, entries)
    if how is None:
        ends = low, high
        how = _chosen(act, ends, dtype, entries)
    if how is None:
        raise ValueError(
            f"{entries} pairs of pixels with the activation {act.name!r} would need a two-dimensional "
            "quadrature each. Put LayerNorm() before the activation, so that all variances are 1, or use one "
            "with a closed form, such as 'relu', 'gelu' or 'erf'."
        )
    known[:] = [_Choice(*ends, how), *known[: MOST_CHOICES - 1]]
    while len(_made) > MOST_CHOICES:
        _made.popitem(last=False)
    return how


def _chosen(act: Activation, ends: tuple[float, float], dtype: str, entries: int) -> How | None:
    """What serves all variances between these; None where only quadratures would, and they are too many."""
    values = [*ends]
    tolerance = 1e-13 if dtype == "float64" else 1e-8
    terms = terms_needed(act, values, tolerance)
    if act.breaks or not 0 < terms <= SHORT_SERIES:
        table = table_for(act, values, tolerance)
        if table is not None:
            return How(terms, (table,))
    if terms == 0 and entries >= MANY:
        terms = terms_needed(act, values, 1e-9)
    if (terms == 0 or act.breaks) and entries * 2e4 > PATIENCE:
        return None
    return How(terms=terms)
