"""What an experiment returns: numbers, tables, and verdicts that are computed from them."""

import dataclasses
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

HOLDS = "holds"
IN_PART = "holds in part"
FAILS = "does not hold"
VERDICTS = (HOLDS, IN_PART, FAILS)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of numbers.

    Attributes:
        title: What it shows.
        columns: The heads.
        rows: The entries, strings or numbers; None where there is no value.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A claim and what the numbers say about it.

    Attributes:
        claim: The claim, in our words.
        criterion: What was demanded of the numbers.
        verdict: "holds", "holds in part" or "does not hold".
        evidence: The numbers that decided.
    """

    claim: str
    criterion: str
    verdict: str
    evidence: str


def judge(claim: str, criterion: str, checks: Mapping[str, Any], evidence: str) -> Verdict:
    """All checks true: holds; none: does not hold; otherwise in part, and it says where it fails.

    Args:
        claim: The claim.
        criterion: What each check demands.
        checks: Name of a case to whether it meets the criterion.
        evidence: The numbers.

    Returns:
        The verdict.

    Example:
        >>> judge("all are positive", "x > 0", {"a": True, "b": False}, "1, -1").verdict
        'holds in part'
    """
    met = {name: bool(value) for name, value in checks.items()}
    if not met:
        raise ValueError(f"No check was made for the claim {claim!r}.")
    verdict = HOLDS if all(met.values()) else IN_PART if any(met.values()) else FAILS
    if verdict == IN_PART:
        broken = [name for name, value in met.items() if not value]
        shown = ", ".join(broken[:6]) + (", ..." if len(broken) > 6 else "")
        evidence = f"{evidence}. Met in {sum(met.values())} of {len(met)} cases; not in: {shown}"
    return Verdict(claim, criterion, verdict, evidence)


def numbers(values: Iterable[float], form: str = ".4g") -> str:
    """Numbers in a row, for the evidence of a verdict."""
    return ", ".join(format(v, form) for v in values)


def by_case(cases: Mapping[Any, Iterable[float]], form: str = ".4g") -> str:
    """The numbers of each case.

    Example:
        >>> by_case({"L=5": (1.0, 2.5), "L=15": (3.0,)})
        'L=5: 1, 2.5; L=15: 3'
    """
    return "; ".join(f"{case}: {numbers(values, form)}" for case, values in cases.items())


def falling(values: Iterable[float]) -> bool:
    """Whether each is smaller than the one before."""
    return all(a > b for a, b in itertools.pairwise(values))


class Found(NamedTuple):
    """What the function of an experiment computes; with name and settings it is a `Result`.

    Attributes:
        data: The curves behind the figure.
        tables: Numbers to read.
        verdicts: The claims.
        size: How it was computed, in words.
    """

    data: dict[str, Any]
    tables: tuple[Table, ...]
    verdicts: tuple[Verdict, ...]
    size: str


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of an experiment.

    Attributes:
        name: Of the experiment.
        settings: Everything that the numbers depend on.
        data: The curves behind the figure: numbers, strings, arrays, and mappings of them.
        tables: Numbers to read.
        verdicts: The claims.
        size: The numbers of networks, widths and steps, in words; empty for closed forms.
    """

    name: str
    settings: dict[str, Any]
    data: dict[str, Any]
    tables: tuple[Table, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    size: str = ""

    def to_json(self) -> str:
        """As JSON; arrays become lists and come back as arrays."""
        return json.dumps(plain(dataclasses.asdict(self)), indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Result":
        """From what `to_json` wrote.

        Example:
            >>> old = Result("x", {"seed": 0}, {"curve": np.arange(3.0)})
            >>> Result.from_json(old.to_json()).data["curve"].tolist()
            [0.0, 1.0, 2.0]
        """
        read = json.loads(text)
        return cls(
            read["name"],
            read["settings"],
            _arrays(read["data"]),
            tuple(
                Table(t["title"], tuple(t["columns"]), tuple(map(tuple, t["rows"])))
                for t in read["tables"]
            ),
            tuple(Verdict(**v) for v in read["verdicts"]),
            read["size"],
        )


def plain(value: Any) -> Any:
    """Numbers, strings, lists and mappings only; a number that is not finite becomes None."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _arrays(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _arrays(v) for k, v in value.items()}
    if isinstance(value, list) and not any(isinstance(v, str) for v in value):
        return np.array(value, dtype=float)
    return value
