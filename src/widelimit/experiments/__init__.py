"""The experiments of the papers, each a function that returns its data, tables and verdicts.

An experiment is one file in `papers/`: the function, decorated by `experiment`, and its figure.
All of them are names of this module, and `EXPERIMENTS` lists them.
"""

from collections.abc import Callable

from widelimit._base.folder import FolderError as FolderError

from . import papers as papers
from ._demo import demo as demo
from ._draw import draw as draw
from ._experiment import EXPERIMENTS as EXPERIMENTS
from ._experiment import Experiment as Experiment
from ._experiment import Outcome as Outcome
from ._experiment import choose as choose
from ._experiment import experiment as experiment
from ._experiment import find as find
from ._result import Found as Found
from ._result import Result as Result
from ._result import Table as Table
from ._result import Verdict as Verdict
from ._result import judge as judge
from ._run import reproduce as reproduce
from ._setting import Setting as Setting
from ._setting import angles as angles
from ._setting import networks as networks
from ._setting import target as target


def _functions() -> dict[str, Callable[..., Result]]:
    return {e.run.__name__: e.run for e in EXPERIMENTS.values()}


def __getattr__(name: str) -> Callable[..., Result]:
    """An experiment by the name of its function."""
    try:
        return _functions()[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *_functions()})
