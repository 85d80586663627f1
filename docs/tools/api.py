"""Pages of the API, one for each part of the library: every public name once, under the shortest path that leads to it.

`make(folder)` reads the public names from `tests/public_names.txt`, so that a name which is added there is documented
without further work. mkdocstrings reads the docstrings from the sources.
"""

import importlib
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Part of the library: title, and a sentence. Parts that are not named here get a page under their own name.
PARTS = {
    "layers": ("Networks", "The description language: layers, and networks made of them."),
    "activations": ("Activations", "Functions with their Gaussian moments; `wl.activations`."),
    "describe": ("Descriptions", "Checks, shapes, text, JSON, LaTeX and citations of a network."),
    "infinite": ("Kernels", "Exact kernels of infinitely wide networks."),
    "width": ("Finite width, in theory", "What width n costs, to first order in 1/n."),
    "finite": ("Finite networks", "Weights, outputs, empirical kernels, sampling, linearisation."),
    "regression": ("Regression", "Ridge regression, Gaussian processes, evidence: one engine."),
    "dynamics": ("Training of the limit", "Gradient flow and descent of the infinite network."),
    "training": ("Training of finite networks", "Optimisers, records, stability."),
    "estimators": ("Estimators", "scikit-learn: `pip install 'widelimit[estimators]'`."),
    "linalg": ("Linear algebra", "Tiles, factorisations, conjugate gradients, matrices on disk."),
    "analysis": ("Analysis", "Smoothness, spectrum, learning curves, bounds, signals."),
    "plot": ("Figures", "Matplotlib: `pip install 'widelimit[plot]'`."),
    "experiments": ("Experiments", "The papers' experiments, their verdicts and the report."),
    "explorer": ("Explorer", "The page of `widelimit explore`."),
    "extend": ("Extending", "What authors of layers, activations and questions import."),
    "testing": ("Laws", "What every activation, layer and network must obey."),
}
# Parts whose own modules are for the library's authors: of these only what `widelimit` itself offers is shown.
INSIDE = ("describe", "infinite", "layers", "interpret", "cli")


def public_names():
    """Every public name, the module that it comes from, and the part it belongs to; each object once."""
    listed = (ROOT / "tests" / "public_names.txt").read_text().split()
    found, seen = {}, set()
    for name in sorted(listed, key=lambda n: (n.count("."), n)):
        path, _, last = name.rpartition(".")
        part = name.split(".")[1]
        try:
            thing = getattr(importlib.import_module(path), last)
        except ImportError:  # an extra that is not installed: documented from its sources
            found[name] = part
            continue
        if inspect.ismodule(thing) or name in (
            "widelimit.plot.papers",
            "widelimit.experiments.papers",
        ):
            continue
        known = isinstance(thing, type) or callable(thing)
        if known and id(thing) in seen and part != "extend":
            continue
        seen.add(id(thing))
        home = getattr(thing, "__module__", path) or path
        if path == "widelimit":
            part = home.split(".")[1] if home.startswith("widelimit.") else part
            part = "infinite" if part.startswith("_") else part
        elif part in INSIDE:
            continue
        found[name] = part
    return found


def make(folder):
    """Write the pages; titles and files, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    names = public_names()
    parts = [*PARTS, *sorted(set(names.values()) - set(PARTS))]
    index, pages = [INTRODUCTION], []
    for part in parts:
        members = sorted((n for n, p in names.items() if p == part), key=_order)
        if not members:
            continue
        title, sentence = PARTS.get(part, (f"widelimit.{part}", _first_sentence(part)))
        lines = [f"# {title}", "", sentence, ""]
        for name in members:
            lines += [f"::: {name}", ""]
        (folder / f"{part}.md").write_text("\n".join(lines))
        pages.append((title, f"api/{part}.md"))
        short = [f"[`{n.removeprefix('widelimit.')}`]({part}.md#{n})" for n in members]
        index += [f"## [{title}]({part}.md)", "", sentence, "", " · ".join(short), ""]
    (folder / "index.md").write_text("\n".join(index))
    return pages


INTRODUCTION = """# API

Every public name, by part. `import widelimit as wl` is assumed: `wl.ntk` is `widelimit.ntk`. Names that begin with an
underscore, and modules inside a part, may change without notice; see the [deprecation policy](../policy.md).
"""


def _order(name):
    """Modules below one another, functions before classes, then by name."""
    path, _, last = name.rpartition(".")
    return path.count(".") > 1, path, last[0].isupper(), last


def _first_sentence(part):
    file = ROOT / "src" / "widelimit" / part / "__init__.py"
    file = file if file.exists() else file.parent.with_suffix(".py")
    found = (
        re.match(r'r?"""(.*?)(?:\n\n|""")', file.read_text(), re.DOTALL) if file.exists() else None
    )
    return " ".join(found[1].split()) if found else ""
