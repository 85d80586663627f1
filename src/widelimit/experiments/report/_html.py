"""The page itself: plain HTML, its style inside, nothing loaded from elsewhere."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._experiment import Outcome
from .._result import Table, Verdict
from ._style import STYLE

_CLASS = {"holds": "yes", "holds in part": "part", "does not hold": "no"}
_FORMS = {"": "", "preprint": "as in the preprint", "talk": "as in the talk"}


def report_html(
    outcomes: Sequence[Outcome], images: Mapping[str, str], *, full: bool = False
) -> str:
    """The report as one page.

    Args:
        outcomes: What `widelimit.experiments.reproduce` found.
        images: "figure2/figure2.png" to a data URL.
        full: Whether the full size was asked for.

    Returns:
        HTML.
    """
    verdicts = [v for o in outcomes if o.result for v in o.result.verdicts]
    counts = {name: sum(v.verdict == name for v in verdicts) for name in _CLASS}
    failed = [o for o in outcomes if o.error]
    lead = ", ".join(f"{n} {_badge(name)}" for name, n in counts.items())
    trouble = (
        f"<p class='error'>{len(failed)} of {len(outcomes)} parts failed: "
        f"{', '.join(_text(o.experiment.name) for o in failed)}.</p>"
        if failed
        else ""
    )
    size = (
        "The papers' own sizes were asked for."
        if full
        else "Where networks are trained, the default size uses fewer and narrower networks than "
        "the papers; each figure says so below its panels."
    )
    seconds = sum(o.seconds for o in outcomes)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>widelimit: the papers, reproduced</title>
<style>{STYLE}</style></head><body><main>
<h1>The papers, reproduced</h1>
<p>Figures and tables of <i>Kernel-Based Smoothness Analysis of Residual Networks</i> (Tirer, Bruna,
Giryes; preprint 2020, published 2022, and talk) and of <i>Neural Tangent Kernel</i> (Jacot, Gabriel,
Hongler 2018), computed by widelimit. A verdict follows from the stated criterion and the numbers
alone. {size} Computing took {_time(seconds)}.</p>
<p class="lead">{len(verdicts)} claims: {lead}.</p>{trouble}
<h2 id="summary">Summary</h2>
{_summary(outcomes)}
{"".join(_section(o, images) for o in outcomes)}
</main></body></html>
"""


def _summary(outcomes: Sequence[Outcome]) -> str:
    rows = []
    for o in outcomes:
        name = o.experiment.name
        link = f"<a href='#{name}'>{_text(_label(name))}</a>"
        if o.result is None:
            rows.append(f"<tr><td>{link}</td><td>failed: {_text(o.error)}</td><td></td></tr>")
            continue
        for i, v in enumerate(o.result.verdicts):
            first = link if i == 0 else ""
            rows.append(
                f"<tr><td>{first}</td><td>{_text(v.claim)}</td><td>{_badge(v.verdict)}</td></tr>"
            )
    head = "<tr><th>Part</th><th>Claim</th><th>Verdict</th></tr>"
    return f"<table class='summary'><thead>{head}</thead><tbody>{''.join(rows)}</tbody></table>"


def _section(o: Outcome, images: Mapping[str, str]) -> str:
    name = o.experiment.name
    head = (
        f"<section id='{name}'><h2>{_text(_label(name))}: {_text(o.experiment.title)}</h2>"
        f"<p class='source'>{_text(o.experiment.source)}</p>"
    )
    if o.result is None:
        return f"{head}<p class='error'>This part failed: {_text(o.error)}</p></section>"
    figures = "".join(_figure(name, file, images) for file in o.files)
    verdicts = "".join(_verdict(v) for v in o.result.verdicts)
    tables = "".join(_table(t) for t in o.result.tables)
    note = f"<p class='source'>{_text(o.result.size)}. Computed in {_time(o.seconds)}.</p>"
    return f"{head}{figures}{note}{verdicts}<details open><summary>Numbers</summary>{tables}</details></section>"


def _figure(name: str, file: str, images: Mapping[str, str]) -> str:
    url = images.get(f"{name}/{file}")
    if url is None:
        return ""
    form = file.rsplit(".", 1)[0].removeprefix(name).strip("_")
    words = "animation" if file.endswith(".gif") else _FORMS.get(form, form)
    caption = f"<figcaption>{_text(_label(name))}, {_text(words)}</figcaption>" if words else ""
    return f"<figure><img alt='{_text(_label(name))} {_text(words)}' src='{url}'>{caption}</figure>"


def _verdict(v: Verdict) -> str:
    return (
        f"<div class='verdict {_CLASS[v.verdict]}'><p>{_badge(v.verdict)} <b>{_text(v.claim)}</b></p>"
        f"<p>Criterion: {_text(v.criterion)}</p><p>Numbers: {_text(v.evidence)}.</p></div>"
    )


def _table(t: Table) -> str:
    head = "".join(f"<th>{_text(c)}</th>" for c in t.columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_text(_number(v))}</td>" for v in row) + "</tr>" for row in t.rows
    )
    return (
        f"<div class='wide'><table><caption>{_text(t.title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _label(name: str) -> str:
    if name.startswith(("figure", "table")):
        return f"{name[:-1].capitalize()} {name[-1]}"
    return name.replace("_", " ").capitalize()


def _badge(verdict: str) -> str:
    return f"<span class='badge {_CLASS[verdict]}'>{verdict}</span>"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} minutes"


def _text(value: Any) -> str:
    """Escaped, with Greek letters where the plain text spells them."""
    plain = html.escape(str(value))
    plain = re.sub(r"\bResNet (\d[\d.]*)", r"ResNet α = \1", plain)
    plain = plain.replace("mu_D2", "μ<sub>D2</sub>").replace("mu_G", "μ<sub>G</sub>")
    return re.sub(r"\bmu\b", "μ", re.sub(r"\balpha\b", "α", plain))
