"""What a run on tables leaves: a page, a picture, and the numbers of each set as CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from widelimit._base.files import write_file
from widelimit.plot import COLOURS, figure, save, style

from ._methods import METHODS
from ._protocols import PROTOCOLS, Chosen, choose, common_sets, standings
from ._tables import Done

Choices = dict[str, dict[str, Chosen]]  # method to set to what was chosen
_HEAD = ("accuracy %", "± over sets", "± over folds", "rank", "P90 %", "P95 %", "PMA %", "best on")


def chosen_by(results: Sequence[Done], protocol: str) -> Choices:
    """What a protocol chooses, from method to set.

    Args:
        results: Of a run.
        protocol: A key of `PROTOCOLS`.

    Returns:
        The choices, methods in their usual order.
    """
    found: Choices = {}
    for done in results:
        found.setdefault(done.method, {})[done.name] = choose(done.scores, PROTOCOLS[protocol])
    return {method: found[method] for method in METHODS if method in found}


def rows_of(choices: Choices) -> list[tuple[str, ...]]:
    """The table of a protocol, a row for each method, the best first."""
    found = sorted(standings(choices).items(), key=lambda item: -item[1].accuracy)
    return [
        (
            METHODS[method].title,
            f"{100 * s.accuracy:.2f}",
            f"{100 * s.deviation:.1f}",
            f"{100 * s.folds:.1f}",
            f"{s.rank:.2f}",
            f"{100 * s.p90:.1f}",
            f"{100 * s.p95:.1f}",
            f"{100 * s.pma:.2f}",
            str(s.wins),
        )
        for method, s in found
    ]


def write_page(out: Path, results: Sequence[Done]) -> None:
    """Write `README.md`, `tables.png` and a CSV file for each protocol.

    Args:
        out: The folder.
        results: Of a run.
    """
    parts = ["# Small tables\n"]
    by_protocol = {name: chosen_by(results, name) for name in PROTOCOLS}
    sets = common_sets(next(iter(by_protocol.values())))
    parts.append(
        f"{len(sets)} sets of the collection of Fernández-Delgado et al. (2014), their official four "
        "folds. Rank: mean place among the methods of the table (Friedman); P90, P95: share of sets "
        "with at least 90, 95 % of the best method's accuracy; PMA: mean share of the best accuracy.\n"
    )
    for name, choices in by_protocol.items():
        protocol = PROTOCOLS[name]
        sees = "" if protocol.honest else " The choice sees the folds that it is judged by."
        parts.append(f"## {protocol.title.capitalize()} ({protocol.reference})\n")
        if sees:
            parts.append(sees.strip() + "\n")
        parts.append(_markdown(("method", *_HEAD), rows_of(choices)))
        write_file(out / f"{name}.csv", _csv(choices))
    parts.append("![Accuracies](tables.png)\n")
    parts.append("## Time\n")
    parts.append(_markdown(("method", "minutes of one core"), _times(results)))
    write_file(out / "README.md", "\n".join(parts))
    save(draw(by_protocol), out / "tables")


def _times(results: Sequence[Done]) -> list[tuple[str, ...]]:
    sums: dict[str, float] = {}
    for done in results:
        sums[done.method] = sums.get(done.method, 0.0) + done.seconds
    return [(METHODS[m].title, f"{sums[m] / 60:.1f}") for m in METHODS if m in sums]


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _csv(choices: Choices) -> str:
    """For each set and method: the accuracy, the folds, the candidate."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["set", "method", "accuracy", "fold 1", "fold 2", "fold 3", "fold 4", "chosen"])
    for method, by in choices.items():
        for name, c in sorted(by.items()):
            folds = [f"{v:.6f}" for v in c.folds]
            writer.writerow([name, method, f"{c.accuracy:.6f}", *folds, c.candidate])
    return file.getvalue()


def draw(by_protocol: Mapping[str, Choices]) -> Any:
    """How far each method is behind the best, and the mean accuracies.

    Args:
        by_protocol: From protocol to its choices.

    Returns:
        The figure.
    """
    with style():
        fig, panels = figure(1, 2, width=4.3, height=3.2)
        _profile(panels[0, 0], by_protocol["one_split"])
        _means(panels[0, 1], by_protocol)
    return fig


def _profile(panel: Any, choices: Choices) -> None:
    sets = common_sets(choices)
    values = {m: np.array([by[s].accuracy for s in sets]) for m, by in choices.items()}
    best = np.max(list(values.values()), axis=0)
    shown = [method for method in values if not METHODS[method].within]
    for i, (method, value) in enumerate((method, values[method]) for method in shown):
        behind = np.sort(100 * (best - value))
        style = {"ls": "-" if METHODS[method].ours else "--", "color": COLOURS[i % len(COLOURS)]}
        share = np.arange(1, len(sets) + 1) / len(sets)
        panel.step(behind, share, where="post", label=METHODS[method].title, **style)
    panel.set(
        xlabel="points behind the best method",
        ylabel="share of the sets",
        xlim=(0, 12),
        ylim=(0, 1.01),
        title=PROTOCOLS["one_split"].title,
    )
    panel.legend(loc="lower right")


def _means(panel: Any, by_protocol: Mapping[str, Choices]) -> None:
    first = standings(by_protocol["one_split"])
    order = sorted(first, key=lambda method: first[method].accuracy)
    for (name, choices), mark in zip(by_protocol.items(), ("o", "s"), strict=True):
        found = standings(choices)
        at = [100 * found[method].accuracy for method in order]
        fill = {"mfc": "none"} if name == "all_folds" else {}
        panel.plot(at, range(len(order)), mark, label=PROTOCOLS[name].title, **fill)
    panel.set_yticks(range(len(order)), [METHODS[method].title for method in order])
    panel.set(xlabel="mean accuracy, %", ylim=(-0.6, len(order) + 0.4))
    panel.legend(loc="upper left")
