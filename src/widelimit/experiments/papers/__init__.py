"""The experiments: a file holds numbers, verdicts and figure; every file of this folder is loaded."""

import importlib
import pkgutil

from .._experiment import EXPERIMENTS
from ._circle import kernel_at as kernel_at
from ._panels import inside as inside
from ._panels import lines as lines

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

_in_order = sorted(EXPERIMENTS.values(), key=lambda e: (e.order, e.name))
EXPERIMENTS.clear()
EXPERIMENTS.update({e.name: e for e in _in_order})
