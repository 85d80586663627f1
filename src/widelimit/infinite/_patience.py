"""How long something will take, and a word before it takes long."""

import warnings

from widelimit._base.thresholds import PATIENCE, PATIENT_SECONDS, SMALL_TILE
from widelimit.activations import How

from ._plan import Form, facts, integrated


def seconds(form: Form, how: How, entries: int) -> float:
    """About what a quickly compiled program takes for so many entries of a small matrix."""
    acts = facts(form).activations
    cost = max((2e4 if a in integrated(form, how) else a.cost for a in acts), default=1.0)
    return 1e-7 * cost * entries * facts(form).evaluated


def warn_if_slow(form: Form, entries: int, how: How) -> None:
    """A quadrature for each of many entries is announced."""
    slow = integrated(form, how)
    if slow and entries * 2e4 > PATIENCE:
        warnings.warn(
            f"{entries} kernel entries with the activation {slow[0].name!r} need a two-dimensional "
            "quadrature each, since the inputs have different norms. Scale the inputs to one norm "
            "and the same matrix takes seconds.",
            stacklevel=7,
        )


def warn_if_deep(form: Form, entries: int) -> None:
    """A compiled loop over layers does not hear Ctrl-C, so its length is told before."""
    taken = 1e-2 * seconds(form, How(), max(entries, SMALL_TILE**2))
    if taken > PATIENT_SECONDS:
        warnings.warn(
            f"A network of {facts(form).evaluated} activations takes about {taken / 3600:.2g} hours "
            f"for {entries} kernel entries, and cannot be interrupted.",
            stacklevel=5,
        )
