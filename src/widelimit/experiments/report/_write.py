"""Writing the report and the list of verdicts."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from widelimit._base.files import write_file

from .._experiment import Outcome
from ._figures import read_image
from ._html import report_html

_COLUMNS = ("figure", "claim", "verdict", "criterion", "evidence")


def write_report(
    folder: Path,
    outcomes: Sequence[Outcome],
    made: Mapping[str, str] | None = None,
    *,
    full: bool = False,
) -> Path:
    """Write report.html, verdicts.csv and verdicts.json into the folder.

    Args:
        folder: Of the reproduction; the figures are read from it.
        outcomes: What `widelimit.experiments.reproduce` found.
        made: Where the page comes from: version, date, seed, machine, command.
        full: Whether the full size was asked for.

    Returns:
        The path of the report.
    """
    images = {
        f"{o.experiment.name}/{name}": read_image(
            folder / o.experiment.name / name, o.experiment.name
        )
        for o in outcomes
        for name in o.files
        if (folder / o.experiment.name / name).is_file()
    }
    rows = [
        {"figure": o.experiment.name, **{key: getattr(v, key) for key in _COLUMNS[1:]}}
        for o in outcomes
        if o.result is not None
        for v in o.result.verdicts
    ]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    writer.writerows(row.values() for row in rows)
    write_file(folder / "verdicts.csv", text.getvalue())
    write_file(folder / "verdicts.json", json.dumps(rows, indent=1, ensure_ascii=False))
    write_file(folder / "report.html", report_html(outcomes, images, made, full=full))
    return folder / "report.html"
