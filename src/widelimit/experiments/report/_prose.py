"""Words with formulas as HTML, and plain text of verdicts with its formulas recognised."""

import html
import re
from typing import Any

from ._math import mathml

_MARKS = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>.+?)\$|\*(?P<em>[^*]+)\*", re.DOTALL)

# How claims, criteria and tables, which a terminal shows too, spell formulas; and their LaTeX.
_SPELLED = tuple(
    (re.compile(pattern), latex)
    for pattern, latex in (
        (
            r"\|e_t\| <= \(1 - eta lambda_min/3\)\^t \|e_0\|",
            r"$|e_t|\\le(1-\\eta\\lambda_{\\min}/3)^t|e_0|$",
        ),
        (r"2/\(lambda_min \+ lambda_max\)", r"$2/(\\lambda_{\\min}+\\lambda_{\\max})$"),
        (r"\|e_(t|0)\|", r"$|e_\1|$"),
        (r"\bn\^\(([-+]?[\d./]+)\)", r"$n^{\1}$"),
        (r"\bsqrt\((\w)\)", r"$\\sqrt{\1}$"),
        (r"\bf\(x\) f\(y\)", r"$f(x)\\,f(y)$"),
        (r"\bResNet (\d+(?:\.\d+)?)", r"ResNet $\\alpha=\1$"),
        (r"\bmu_(D2|G)\b", r"$\\mu_{\\mathrm{\1}}$"),
        (r"\blambda_(min|max)\b", r"$\\lambda_{\\\1}$"),
        (r"\b(alpha|mu|eta) = (-?\d+(?:\.\d+)?)(?![\de])", r"$\\\1=\2$"),
        (r"\b(alpha|mu|eta|lambda)\b", r"$\\\1$"),
        (r"\b([LNkn]) ?= ?(\d+)\b(?!\.\d)", r"$\1=\2$"),
        (r"\b([LNkn]) ?>= ?(\d+)\b(?!\.\d)", r"$\1\\ge\2$"),
        (r"\b([LNkn]) ?<= ?(\d+)\b(?!\.\d)", r"$\1\\le\2$"),
        (r"\b(\d+) x (\d+)\b", r"$\1\\times\2$"),
        (r"(?<![\w.])1e\+?(-?)0*(\d+)\b", r"$10^{\1\2}$"),
        (r"(?<![\w.])(-?\d+(?:\.\d+)?)e\+?(-?)0*(\d+)\b", r"$\1\\times10^{\2\3}$"),
    )
)
_ANY = re.compile("|".join(f"(?P<p{i}>{p.pattern})" for i, (p, _) in enumerate(_SPELLED)))
_BESIDE = re.compile(r"(\(?)(<math>.*?</math>)([,.;:)]*)", re.DOTALL)
_SIGNS = {"&lt;=": "≤", "&gt;=": "≥", "-&gt;": "→"}


def prose(text: str) -> str:
    """Text with formulas between dollars and *emphasis*, as HTML.

    Example:
        >>> prose("a < *b*")
        'a &lt; <em>b</em>'
    """
    out, at = [], 0
    for found in _MARKS.finditer(text):
        out.append(html.escape(text[at : found.start()]))
        at = found.end()
        if found["em"]:
            out.append(f"<em>{html.escape(found['em'])}</em>")
        else:
            out.append(mathml(found["display"] or found["inline"], display=bool(found["display"])))
    return _BESIDE.sub(_together, "".join([*out, html.escape(text[at:])]))


def _together(found: re.Match[str]) -> str:
    """A formula and the punctuation beside it, which no line break may part."""
    before, formula, after = found.groups()
    return f"<span class='k'>{found.group()}</span>" if before or after else formula


def plain(value: Any) -> str:
    """Plain text as HTML: escaped, what it spells as formulas set as formulas.

    Example:
        >>> plain("n <= 3 & more")[-10:], plain("x > 1")
        ('&amp; more', 'x &gt; 1')
    """
    text, out, at = str(value), [], 0
    for found in _ANY.finditer(text):
        out.append(_escaped(text[at : found.start()]))
        at = found.end()
        pattern, written = _SPELLED[int(str(found.lastgroup)[1:])]  # the outermost group
        out.append(prose(pattern.sub(written, found.group())))
    return _BESIDE.sub(_together, "".join([*out, _escaped(text[at:])]))


def _escaped(text: str) -> str:
    safe = html.escape(text)
    for sign, drawn in _SIGNS.items():
        safe = safe.replace(sign, drawn)
    return safe


def number(value: Any) -> str:
    """An entry of a table: five digits, powers of ten as such.

    Example:
        >>> number(14722.3), number(0.000123456), number(None), number(True)
        ('14722', '0.00012346', '–', 'yes')
    """
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, float):
        return plain(value)
    if value == 0 or not 1e-4 <= abs(value) < 1e6:
        digits = f"{value:.5g}"
        if "e" not in digits:
            return digits.replace("-", "−")
        mantissa, exponent = f"{value:.4g}".split("e")
        return f"{mantissa} × 10<sup>{int(exponent)}</sup>".replace("-", "−")
    places = max(0, 4 - int(f"{value:e}".split("e")[1]))
    digits = f"{value:.{places}f}"
    return (digits.rstrip("0").rstrip(".") if "." in digits else digits).replace("-", "−")
