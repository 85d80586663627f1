"""The figures of a result, drawn as its experiment declares."""

from pathlib import Path
from typing import Any

from widelimit.plot import Animation, save, style

from ._experiment import EXPERIMENTS
from ._result import Result


def draw(result: Result) -> dict[str, Any]:
    """The figures of an experiment.

    Args:
        result: What an experiment returned.

    Returns:
        Form to figure (or `widelimit.plot.Animation`); the main form has the empty name.
    """
    with style():
        return {form: make(result) for form, make in EXPERIMENTS[result.name].draws.items()}


def write_figures(result: Result, folder: Path) -> list[str]:
    """Draw a result into files, and say which of them are to be shown."""
    files, about = [], f"{EXPERIMENTS[result.name].title}; {result.size}"
    for form, drawn in draw(result).items():
        still = form and not isinstance(drawn, Animation)  # an animation has an ending of its own
        stem = folder / (f"{result.name}_{form}" if still else result.name)
        files.append(save(drawn, stem, about))
    return files
