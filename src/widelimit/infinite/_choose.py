"""How moments without a closed form are evaluated at pixels: decided where the variances are known."""

import numpy as np

from widelimit._base.arrays import is_traced, value_of
from widelimit._base.thresholds import MANY, PATIENCE, SHORT_SERIES
from widelimit.activations import How, table_for, terms_needed
from widelimit.layers import Layer, Phi

from ._pair import Pair


def series_for(layer: Layer, pair: Pair) -> How | None:
    """The series that an activation needs for the variances that it meets; None where there is no choice."""
    if not isinstance(layer, Phi) or layer.activation.closed_form or is_traced((pair.q1, pair.q2)):
        return None
    act = layer.activation
    found = np.concatenate([np.ravel(value_of(q)) for q in (pair.q1, pair.q2)])
    found = found[found > 0]
    values = [float(found.min()), float(found.max())] if len(found) else [1.0]
    entries = pair.minus.size
    tolerance = 1e-13 if pair.minus.dtype == np.float64 else 1e-8
    terms = terms_needed(act, values, tolerance)
    if act.breaks or not 0 < terms <= SHORT_SERIES:
        table = table_for(act, values, tolerance)
        if table is not None:
            return How(terms, (table,))
    if terms == 0 and entries >= MANY:
        terms = terms_needed(act, values, 1e-9)
    if (terms == 0 or act.breaks) and entries * 2e4 > PATIENCE:
        raise ValueError(
            f"{entries} pairs of pixels with the activation {act.name!r} would need a two-dimensional "
            "quadrature each. Put LayerNorm() before the activation, so that all variances are 1, or use one "
            "with a closed form, such as 'relu', 'gelu' or 'erf'."
        )
    return How(terms=terms)
