"""How long something will take, and a word before it takes long."""

import warnings

from widelimit._base.thresholds import PATIENCE, PATIENT_SECONDS, PLANE_SECONDS, SMALL_TILE
from widelimit.activations import How

from ._plan import Form, facts, integrated


def seconds(form: Form, how: How, entries: int) -> float:
    """About what a quickly compiled program takes for so many entries of a small matrix."""
    slow = integrated(form, how)
    acts = facts(form).activations
    each = 6 * PLANE_SECONDS if slow else 1e-7 * max((a.cost for a in acts), default=1.0)
    return each * entries * facts(form).evaluated


def warn_if_slow(form: Form, entries: int, how: How) -> None:
    """A quadrature for each of many entries is announced, with the time that it takes."""
    slow = integrated(form, how)
    taken = PLANE_SECONDS * entries * facts(form).evaluated
    if slow and taken > PATIENCE:
        warnings.warn(
            f"About {entries:.2g} kernel entries with the activation {slow[0].name!r} need a two-dimensional "
            f"quadrature each: about {taken / 60:.2g} minutes. For inputs of one norm a large matrix takes "
            "seconds; so does one with an activation that has a closed form.",
            stacklevel=7,
        )


def warn_if_deep(form: Form, entries: int) -> None:
    """A compiled loop over layers does not hear Ctrl-C, so its length is told before."""
    cost = max((act.cost for act in facts(form).activations), default=1.0)
    taken = 1e-9 * cost * facts(form).evaluated * max(entries, SMALL_TILE**2)
    if taken > PATIENT_SECONDS:
        warnings.warn(
            f"A network of {facts(form).evaluated} activations takes about {taken / 3600:.2g} hours "
            f"for {entries} kernel entries, and cannot be interrupted.",
            stacklevel=5,
        )
