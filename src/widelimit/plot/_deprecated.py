"""Names that have moved, kept for one version."""

import importlib
import warnings
from typing import Any


def papers(result: Any) -> dict[str, Any]:
    """The figures of an experiment; use `widelimit.experiments.draw`.

    Args:
        result: What a function of `widelimit.experiments` returned.

    Returns:
        Form to figure; the main form has the empty name.
    """
    warnings.warn(
        "widelimit.plot.papers is now widelimit.experiments.draw; the old name goes with the next "
        "version.",
        DeprecationWarning,
        stacklevel=2,
    )
    # By name: the experiments stand above this folder and draw with it.
    return importlib.import_module("widelimit.experiments").draw(result)
