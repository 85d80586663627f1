"""The page itself: plain HTML, its style inside, nothing loaded from elsewhere."""

import html
from collections.abc import Mapping, Sequence

from .._experiment import Outcome
from .._result import Verdict
from ._figures import Image, figure, tables
from ._introduction import introduction
from ._prose import plain
from ._style import STYLE

_CLASS = {"holds": "yes", "holds in part": "part", "does not hold": "no"}


def report_html(
    outcomes: Sequence[Outcome],
    images: Mapping[str, Image],
    made: Mapping[str, str] | None = None,
    *,
    full: bool = False,
) -> str:
    """The report as one page.

    Args:
        outcomes: What `widelimit.experiments.reproduce` found.
        images: "figure2/figure2.png" to the picture.
        made: Where the page comes from: version, date, seed, machine, command.
        full: Whether the full size was asked for.

    Returns:
        HTML.
    """
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>widelimit: the papers, reproduced</title>
<style>{STYLE}</style></head><body>
{_contents(outcomes)}<main>
{_opening(outcomes, made or {}, full)}
<section id="introduction"><h2>What is measured here</h2>
{introduction()}</section>
<section id="summary"><h2>Summary</h2>
{"".join(_claims(o) for o in outcomes)}</section>
{"".join(_section(o, images) for o in outcomes)}
{_provenance(made or {})}
</main></body></html>
"""


def _opening(outcomes: Sequence[Outcome], made: Mapping[str, str], full: bool) -> str:
    verdicts = [v for o in outcomes if o.result for v in o.result.verdicts]
    counts = {name: sum(v.verdict == name for v in verdicts) for name in _CLASS}
    tiles = "".join(
        f"<li class='{_CLASS[name]}'><b>{n}</b> {name}</li>" for name, n in counts.items()
    )
    failed = [o for o in outcomes if o.error]
    trouble = (
        f"<p class='error'>{len(failed)} of {len(outcomes)} parts failed: "
        f"{', '.join(_link(o) for o in failed)}.</p>"
        if failed
        else ""
    )
    size = (
        "The papers' own sizes were asked for."
        if full
        else "Where networks are trained, the default size uses fewer and narrower networks than "
        "the papers; each figure says so."
    )
    stamp = " · ".join(
        html.escape(f"{name} {made[name]}" if name in ("widelimit", "seed") else made[name])
        for name in ("widelimit", "date", "seed", "device")
        if name in made
    )
    return f"""<header><h1>The papers, reproduced</h1>
<p>Figures and tables of <i>Kernel-Based Smoothness Analysis of Residual Networks</i> (Tirer, Bruna,
Giryes; preprint 2020, published 2022, and talk) and of <i>Neural Tangent Kernel</i> (Jacot, Gabriel,
Hongler 2018), computed by widelimit. A verdict follows from the stated criterion and the numbers
alone. {size} Computing took {_time(sum(o.seconds for o in outcomes))}.</p>
<ul class="tiles" aria-label="{len(verdicts)} claims">{tiles}</ul>{trouble}
<p class="soft">New to tangent kernels? The next section explains what is drawn. Otherwise go to the
<a href="#summary">summary</a>.</p>
<p class="soft"><a href="#provenance">{stamp}</a></p></header>"""


def _contents(outcomes: Sequence[Outcome]) -> str:
    """The parts beside the page, with a dot for each verdict."""
    dots = lambda o: "".join(
        f"<i class='{_CLASS[v.verdict]}' title='{v.verdict}'></i>"
        for v in (o.result.verdicts if o.result else ())
    )
    rows = "".join(f"<li>{_link(o)}<span>{dots(o)}</span></li>" for o in outcomes)
    return (
        "<nav aria-label='Contents'><ul><li><a href='#introduction'>What is measured here</a></li>"
        f"<li><a href='#summary'>Summary</a></li>{rows}"
        "<li><a href='#provenance'>Provenance</a></li></ul></nav>"
    )


def _claims(o: Outcome) -> str:
    """A part of the summary."""
    head = f"<h3>{_link(o)} <span class='soft'>{plain(o.experiment.title)}</span></h3>"
    if o.result is None:
        return f"<div class='claims'>{head}<p class='error'>failed: {_text(o.error)}</p></div>"
    rows = "".join(f"<li>{_badge(v)}<span>{plain(v.claim)}</span></li>" for v in o.result.verdicts)
    return f"<div class='claims'>{head}<ul>{rows}</ul></div>"


def _section(o: Outcome, images: Mapping[str, Image]) -> str:
    head = (
        f"<section id='{o.experiment.name}'><h2>{_label(o)}: {plain(o.experiment.title)}</h2>"
        f"<p class='soft'>{plain(o.experiment.source)}</p>"
    )
    if o.result is None:
        return f"{head}<p class='error'>This part failed: {_text(o.error)}</p></section>"
    size = f"{o.result.size}. Computed in {_time(o.seconds)}."
    keys = (f"{o.experiment.name}/{file}" for file in o.files)
    pictures = "".join(
        figure(_label(o), o.experiment.title, image, o.experiment.caption, size, first=i == 0)
        for i, image in enumerate(images[key] for key in keys if key in images)
    )
    verdicts = "".join(_verdict(v) for v in o.result.verdicts)
    return f"{head}{pictures}{verdicts}{tables(o.result.tables)}{_again(o.made)}</section>"


def _verdict(v: Verdict) -> str:
    return (
        f"<div class='verdict {_CLASS[v.verdict]}'><p>{_badge(v)} <b>{plain(v.claim)}</b></p>"
        f"<p><span class='soft'>Criterion:</span> {plain(v.criterion)}</p>"
        f"<p><span class='soft'>Numbers:</span> {plain(v.evidence)}.</p></div>"
    )


def _again(made: Mapping[str, str]) -> str:
    """How a part is made again, closed."""
    if not made:
        return ""
    return f"<details><summary>How this was made</summary>{_rows(made)}</details>"


def _provenance(made: Mapping[str, str]) -> str:
    if not made:
        return ""
    return (
        "<section id='provenance'><h2>Provenance</h2><p>Of this page; parts that an earlier run left "
        f"in the same folder say below their numbers how they were made.</p>{_rows(made)}</section>"
    )


def _rows(made: Mapping[str, str]) -> str:
    value = lambda head: (
        f"<code>{_text(made[head])}</code>" if head == "command" else _text(made[head])
    )
    rows = "".join(f"<dt>{_text(head)}</dt><dd>{value(head)}</dd>" for head in made)
    return f"<dl class='made'>{rows}</dl>"


def _label(o: Outcome) -> str:
    name = o.experiment.name
    if name.startswith(("figure", "table")) and name[-1].isdigit():
        return f"{name[:-1].capitalize()} {name[-1]}"
    return name.upper() if name == "mnist" else name.replace("_", " ").capitalize()


def _link(o: Outcome) -> str:
    return f"<a href='#{o.experiment.name}'>{_label(o)}</a>"


def _badge(v: Verdict) -> str:
    return f"<span class='badge {_CLASS[v.verdict]}'>{v.verdict}</span>"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} minutes"


def _text(value: object) -> str:
    return html.escape(str(value))
