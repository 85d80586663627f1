"""Tables that follow from the library and from stored measurements: activations, laws, accuracy, benchmarks, verdicts.

`make(folder)` fills the places in braces of the gathered pages, and writes the pages of benchmarks and reproduction.
"""

import html
import inspect
import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def activations():
    """Every named activation: its formula, how its moments are known, its properties, its works."""
    import widelimit as wl

    works = bibliography()
    rows = [
        "| name | function | moments | tangent kernel | properties | reference |",
        "|---|---|---|---|---|---|",
    ]
    for act in sorted(wl.activations.examples(), key=lambda a: a.name):
        known = "closed form" if act.closed_form else "integrated"
        facts = [f"homogeneous of degree {act.degree:g}"] if act.degree else []
        facts += [act.parity] if act.parity else []
        cited = "; ".join(works[key] for key in act.cites if key in works)
        name = act.name.replace("|", r"\|")
        formula = re.sub(r"(?<!\\)\|", r"\\vert ", act.latex or r"\varphi")
        has = "yes" if act.has_ntk else "no"
        rows.append(f"| `{name}` | ${formula}$ | {known} | {has} | {', '.join(facts)} | {cited} |")
    return "\n".join(rows)


def bibliography():
    """Author and year of each work that a network may cite."""
    from widelimit.describe._cite import BIBLIOGRAPHY

    found = {}
    for key, (_, authors, _, _, year) in BIBLIOGRAPHY.items():
        last = [name.split(",")[0].strip("{} ") for name in authors.split(" and ")]
        named = (
            last[0]
            if len(last) == 1
            else " and ".join(last)
            if len(last) == 2
            else f"{last[0]} et al."
        )
        found[key] = f"{named} ({year})"
    return found


def laws():
    """The laws of activations and networks, each with its sentence."""
    from widelimit import testing

    def rows(title, table):
        checks = table.values() if isinstance(table, dict) else table
        lines = [f"| {title} | |", "|---|---|"]
        return lines + [
            f"| `{law.__name__}` | {(inspect.getdoc(law) or '').splitlines()[0].replace('|', chr(92) + '|')} |"
            for law in checks
        ]

    parts = (
        rows("law of activations", testing.ACTIVATION_LAWS),
        rows("law of networks", testing.NETWORK_LAWS),
    )
    return "\n\n".join("\n".join(part) for part in parts)


def accuracy():
    """The measured tables, without their introduction, which the page has."""
    text = (ROOT / "benchmarks" / "accuracy.md").read_text()
    start = text.find("- **widelimit")
    return text[start if start >= 0 else text.index("| activation") :]


BENCHMARKS = """# Benchmarks

Times are ratios measured in one run, never asserted by a test; each table names the command that makes it. On your
own machine: `make benchmarks`.

| table | what is measured |
|---|---|
"""
ABOUT = {
    "kernels": "kernel matrices against `x @ x.T`: both precisions, depths, first calls, memory",
    "predecessor": "the same matrices by neural-tangents 0.6.5, in an environment of its own",
    "bundled_sets": "the estimators with their defaults on four tables, beside SVM and forest",
    "linear_dynamics": "trained finite networks against their linearisation and their limit, by width",
    "logistic": "tanh, sigmoid, softplus and silu against erf",
    "accuracy": "errors against many digits, beside neural-tangents",
}


def benchmarks(folder):
    """The page that leads to the tables of `benchmarks/`."""
    rows = []
    for file in sorted((ROOT / "benchmarks").glob("*.md")):
        title = file.read_text().splitlines()[0].removeprefix("# ")
        link = "../accuracy.md" if file.stem == "accuracy" else file.name
        rows.append(f"| [{title}]({link}) | {ABOUT.get(file.stem, '')} |")
    (folder / "benchmarks" / "overview.md").write_text(BENCHMARKS + "\n".join(rows) + "\n")


def verdicts():
    """What was claimed, what the numbers say, and the figure, part by part; from the stored run."""
    parts = json.loads((ROOT / "docs" / "verdicts" / "verdicts.json").read_text())["parts"]
    every = [v["verdict"] for part in parts for v in part["verdicts"]]
    count = ", ".join(
        f"{every.count(kind)} {kind}" for kind in ("holds", "holds in part", "does not hold")
    )
    lines = [f"{len(every)} claims of {len(parts)} parts: {count}.", ""]
    cell = lambda text: (
        html.escape(text.replace("\n", " "), quote=False)
        .replace("|", "&#124;")
        .replace("*", "&#42;")
    )
    for part in parts:
        lines += [f"### {part['title']}", "", f"*{part['source']}*", ""]
        lines += ["| verdict | claim | evidence |", "|---|---|---|"]
        for v in part["verdicts"]:
            lines.append(f"| **{v['verdict']}** | {cell(v['claim'])} | {cell(v['evidence'])} |")
        lines += [""] + [f"![{part['title']}]({figure})\n" for figure in part["figures"]]
        lines += [cell(part["caption"]), ""]
    return "\n".join(lines)


def make(folder):
    """Fill in what the pages leave open."""
    places = {"activations": activations, "laws": laws, "accuracy": accuracy, "verdicts": verdicts}
    for page in ("layers.md", "extending.md", "accuracy.md", "reproduction.md"):
        file = folder / page
        text = file.read_text()
        for name, table in places.items():
            if "{" + name + "}" in text:
                text = text.replace("{" + name + "}", table())
        file.write_text(text)
    benchmarks(folder)
