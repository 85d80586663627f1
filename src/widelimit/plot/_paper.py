"""Which figure belongs to which experiment."""

from pathlib import Path
from typing import Any

from . import _paper_closed as closed
from . import _paper_trained as trained
from ._style import _STYLE as STYLE
from ._style import pyplot

_BOTH = {
    "": lambda r: closed.interpolation(r, "mu"),
    "preprint": lambda r: closed.interpolation(r, "mu_gauss"),
}
_ADAM = {"": trained.adam_together, "talk": trained.adam_apart}

# Experiment to its figures; the name of a form (preprint, talk) becomes part of the file name.
FORMS: dict[str, dict[str, Any]] = {
    "figure1": {"": trained.finite_and_limit},
    "figure2": _BOTH,
    "figure3": {"": trained.outside_the_regime},
    "figure4": _BOTH,
    "figure5": {"": closed.gaussian},
    "figure6": _BOTH,
    "figure7": {"": closed.transforms},
    "figure8": _ADAM,
    "figure9": _ADAM,
    "table1": {"": closed.table_of_mu},
    "table2": {"": closed.sphere},
    "random_sets": {"": closed.shares},
    "digits": {"": closed.digits},
    "erf": {"": closed.erf},
    "measures": {"": closed.measures},
    "bounds": {"": closed.bounds},
    "convergence": {"": trained.convergence},
    "descent": {"": trained.descent},
    "stability": {"": trained.stability},
    "ellipse": {"": trained.ellipse},
}


def papers(result: Any) -> dict[str, Any]:
    """The figures of an experiment.

    Args:
        result: What a function of `widelimit.experiments` returned.

    Returns:
        Form to figure; the main form has the empty name.
    """
    with pyplot().rc_context(STYLE):
        return {form: make(result) for form, make in FORMS[result.name].items()}


def animate(result: Any, folder: Path) -> list[str]:
    """Write the animations of an experiment, and say their file names."""
    if result.name != "ellipse":
        return []
    with pyplot().rc_context(STYLE | {"savefig.bbox": None}):
        trained.ellipse_animation(result, folder / "ellipse.gif")
    return ["ellipse.gif"]


def close(fig: Any) -> None:
    """Free the memory of a figure."""
    pyplot().close(fig)
