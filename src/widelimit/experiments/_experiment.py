"""What an experiment is: declared once, at the function that computes it."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from widelimit._base.names import unknown

from ._result import Found, Result, plain
from ._setting import Setting, check_samples

Draw = Callable[[Result], Any]  # to a figure or an animation, whose types only Matplotlib knows
PAPER = "Tirer, Bruna, Giryes"
_ALWAYS = {"samples": "authors", "seed": 0}
_COMMON = {field.name for field in dataclasses.fields(Setting)}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A figure or table of the papers.

    Attributes:
        name: As on the command line.
        title: What it shows.
        source: Where it is in the papers.
        run: The function that computes it.
        seconds: On two CPU cores, in the default size; the unit of the progress bar.
        seconds_full: In the full size, on one GPU.
        seconds_cpu: In the full size without a GPU.
        full: Arguments of the full size, where they differ from the defaults.
        draws: Form to the function that draws it; the form (talk) becomes part of the
            file's name.
        order: Its place in lists and in the report.
        caption: What to see in the figure, for a reader who sees it for the first time; formulas in
            LaTeX between dollars.
        needs: Options without which it cannot run, each with the function that refuses a wrong
            value.
    """

    name: str
    title: str
    source: str
    run: Callable[..., Result]
    seconds: int
    seconds_full: int
    seconds_cpu: int
    full: Mapping[str, Any]
    draws: Mapping[str, Draw]
    order: int
    caption: str = ""
    needs: Mapping[str, Callable[[Any], object]] = dataclasses.field(default_factory=dict)

    def arguments(
        self,
        *,
        full: bool = False,
        samples: str | None = None,
        seed: int = 0,
        given: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The keyword arguments of `run` in one of the two sizes.

        Args:
            full: The papers' settings instead of the quick ones.
            samples: The kind of samples; None for the experiment's own.
            seed: Of everything random.
            given: Options of all experiments, of which it takes what it needs.

        Returns:
            Those that differ from the defaults.
        """
        chosen = {} if samples is None else {"samples": check_samples(samples)}
        chosen |= {key: value for key, value in (given or {}).items() if key in self.needs}
        return {"seed": int(seed), **chosen, **(self.full if full else {})}

    def all_arguments(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """Those chosen and the defaults of the others: what a result is computed with."""
        known = inspect.signature(self.run).parameters.items()
        return {k: p.default for k, p in known if k != "progress"} | dict(chosen)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of an experiment.

    Attributes:
        experiment: The experiment.
        result: Its numbers, or None after a failure.
        seconds: What computing it took.
        kept: Whether it was there already.
        error: What went wrong, or None.
        files: The names of its figures, in its folder.
        made: With what it was computed: version, date, machine, command.
    """

    experiment: Experiment
    result: Result | None
    seconds: float
    kept: bool = False
    error: str | None = None
    files: tuple[str, ...] = ()
    made: Mapping[str, str] = dataclasses.field(default_factory=dict)


EXPERIMENTS: dict[str, Experiment] = {}


def experiment(
    *,
    title: str,
    source: str,
    seconds: Sequence[int],
    draws: Draw | Mapping[str, Draw],
    takes: Mapping[str, Any],
    full: Mapping[str, Any] | None = None,
    ignores: Sequence[str] = (),
    name: str | None = None,
    order: int = 100,
    caption: str = "",
    needs: Mapping[str, Callable[[Any], object]] | None = None,
) -> Callable[[Callable[..., Found]], Callable[..., Result]]:
    """Declare an experiment at the function that computes it; nothing else needs to know of it.

    The function takes a `Setting` and keywords of its own. What it becomes takes keywords only: the
    fields of the setting named in `takes`, samples, seed, progress, and its own.

    Args:
        title: What it shows.
        source: Where it is in the papers.
        seconds: In the default size on two CPU cores; in the full size on a GPU; and, where that is
            much more, in the full size without a GPU.
        draws: The function that draws a result, or several by the name of the form.
        takes: The fields of the setting that it takes, with their defaults.
        full: Arguments of the full size.
        ignores: Those of samples and seed without effect.
        name: On the command line; by default the function's.
        order: Its place in lists and in the report.
        caption: What to see in the figure; formulas in LaTeX between dollars.
        needs: Keywords without a default that the user must give, with the function that refuses a
            wrong value before any work starts; without them the experiment is left out.

    Returns:
        The decorator.
    """

    def declare(function: Callable[..., Found]) -> Callable[..., Result]:
        called = name or function.__name__
        run = _by_keywords(function, called, takes, ignores)
        run.__doc__ = f"{run.__doc__}\n\nReturns:\n    The result.\n\nReference:\n    {source}.\n"
        forms = draws if isinstance(draws, Mapping) else {"": draws}
        usual, gpu, *cpu = seconds
        EXPERIMENTS[called] = Experiment(
            name=called,
            title=title,
            source=source,
            run=run,
            seconds=usual,
            seconds_full=gpu,
            seconds_cpu=max((gpu, *cpu)),
            full=full or {},
            draws=forms,
            order=order,
            caption=caption,
            needs=needs or {},
        )
        return run

    return declare


def _by_keywords(
    function: Callable[..., Found], name: str, takes: Mapping[str, Any], ignores: Sequence[str]
) -> Callable[..., Result]:
    """The function of a setting and keywords as one of keywords only, with name and settings."""
    Setting(**takes)  # refuses, when declared, what is no field of the setting
    own = list(inspect.signature(function).parameters.values())[1:]
    defaults = {**_ALWAYS, **takes, "progress": None} | {p.name: p.default for p in own}

    @functools.wraps(function)
    def run(**keywords: Any) -> Result:
        for key in keywords.keys() - defaults.keys():
            raise TypeError(unknown(f"argument of {function.__name__}", key, tuple(defaults)))
        chosen = defaults | keywords
        setting = Setting(**{k: v for k, v in chosen.items() if k in _COMMON})
        found = function(setting, **{k: v for k, v in chosen.items() if k not in _COMMON})
        settings = {k: v for k, v in chosen.items() if k not in (*ignores, "progress")}
        return Result(name, plain(settings), *found)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(k, keyword, default=v) for k, v in defaults.items()]
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]
    common = ", ".join(f"{k}={v!r}" for k, v in defaults.items() if k in _COMMON)
    run.__doc__ = f"{inspect.getdoc(function)}\n\nThe setting (fields of `Setting`): {common}."
    return run


def choose(names: Iterable[str | int], given: Mapping[str, Any]) -> dict[str, Experiment]:
    """The experiments asked for, if what they need is given; without names all that can run.

    Args:
        names: Names or numbers; empty for all.
        given: Options such as mnist; None stands for one that is not given.

    Returns:
        Name to experiment, each once.
    """
    options = {key for key, value in given.items() if value is not None}
    asked = {e.name: e for e in map(find, names)}
    chosen = asked or {n: e for n, e in EXPERIMENTS.items() if e.needs.keys() <= options}
    for e in chosen.values():
        for key in e.needs.keys() - options:
            raise ValueError(
                f"The part {e.name} needs --{key} DIR (in Python {key}=...), a folder that you bring."
            )
        for key, refuse in e.needs.items():
            refuse(given[key])
    for key in options - {key for e in chosen.values() for key in e.needs}:
        user = ", ".join(n for n, e in EXPERIMENTS.items() if key in e.needs)
        raise ValueError(f"--{key} is for {user} only: ask for it too, with --figure {user}.")
    return chosen


def find(name: str | int) -> Experiment:
    """An experiment by its name or number.

    Args:
        name: "figure2", "2", "table1", "ellipse", ...

    Returns:
        The experiment.

    Example:
        >>> find("2").name, find("Table1").name
        ('figure2', 'table1')
    """
    plain = str(name).strip().lower().replace("-", "_").replace(" ", "")
    plain = f"figure{plain}" if plain.isdigit() else plain
    if plain not in EXPERIMENTS:
        raise ValueError(
            f"There is no figure {name!r}. Known: {', '.join(EXPERIMENTS)} (a number N stands for "
            "figureN)."
        )
    return EXPERIMENTS[plain]
