"""The gallery: every example runs; its prints and figures become a page and a notebook.

`make(examples, folder, cache)` writes `index.md`, one page, one notebook and one thumbnail for each example. What an
example printed is kept in `cache` under the hash of the example and of the library, so that only what changed runs
again. An example is a plain script: `# %% [markdown]` starts text, `# %%` starts code, as editors and Jupytext read it.
"""

import ast
import base64
import concurrent.futures
import contextlib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).parents[2]
REPOSITORY = "widelimit/widelimit"


# Reading -------------------------------------------------------------------------------------------------------------


def cells_of(source):
    """The cells of a script: pairs of "markdown" or "code", and text."""
    cells, kind, lines = [], "code", []

    def close():
        text = "\n".join(lines).strip("\n")
        if kind == "markdown":
            text = "\n".join(re.sub(r"^# ?", "", line) for line in text.splitlines()).strip()
        if text.strip():
            cells.append((kind, text))
        lines.clear()

    rows = iter(source.splitlines())
    for line in rows:
        mark = re.match(r"# %%\s*(.*)$", line)
        if not mark:
            if kind == "title" and not line.startswith("#"):  # the text after # %% has ended
                kind = "markdown"
                close()
                kind = "code"
            lines.append(line)
            continue
        kind = "markdown" if kind == "title" else kind
        close()
        said = mark[1]
        kind = "markdown" if said == "[markdown]" else "title" if said else "code"
        if kind == "title":
            lines.append(f"# {said}")
    kind = "markdown" if kind == "title" else kind
    close()
    return _without_docstring(cells)


def _without_docstring(cells):
    """A leading docstring becomes text; where a heading follows anyway, it is left out."""
    kind, text = cells[0]
    if kind != "code":
        return cells
    tree = ast.parse(text)
    first = tree.body[0]
    if not (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)):
        return cells
    words = ast.get_docstring(tree) or ""
    rest = "\n".join(text.splitlines()[first.end_lineno :]).strip("\n")
    head = (
        []
        if any(t.startswith("# ") for k, t in cells if k == "markdown")
        else [("markdown", f"# {words}")]
    )
    return head + ([("code", rest)] if rest else []) + cells[1:]


def title_and_summary(cells):
    """The heading of an example and its first sentence."""
    text = next(t for k, t in cells if k == "markdown")
    head, _, body = text.partition("\n")
    title, _, more = head.removeprefix("# ").partition(": ")
    body = f"{more} {body}" if more and len(title) < 24 else body
    title = title if len(title) < 24 and more else head.removeprefix("# ")
    sentence = re.split(r"(?<=[.!?])\s", " ".join(body.split()))[0]
    return title.rstrip("."), sentence[:1].upper() + sentence[1:]


# Running -------------------------------------------------------------------------------------------------------------


def run(path):
    """Run an example cell by cell; the outputs of each code cell. Called in a process and a folder of its own."""
    import matplotlib

    matplotlib.use("agg")
    import warnings

    from matplotlib import figure

    warnings.simplefilter("error")
    Path("figures").mkdir(exist_ok=True)
    outputs, seen, draw = [], set(), figure.Figure.savefig

    def picture(fig):
        if id(fig) in seen:
            return
        seen.add(id(fig))
        keep.append(fig)
        held = io.BytesIO()
        draw(fig, held, format="png", dpi=144, bbox_inches="tight")
        flush()
        outputs.append({"png": base64.b64encode(held.getvalue()).decode()})

    def flush():
        if said.getvalue():
            outputs.append({"text": said.getvalue()})
            said.seek(0)
            said.truncate()

    keep = []  # so that no id is used twice
    figure.Figure.savefig = lambda fig, *args, **kwargs: picture(fig)
    names, told = {"__name__": "__main__", "__file__": str(path)}, []
    sys.argv, source = [str(path)], Path(path).read_text()
    for kind, text in cells_of(source):
        if kind != "code":
            continue
        outputs, said, tree = [], io.StringIO(), ast.parse(text)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(said):
            exec(compile(tree, str(path), "exec"), names)
            value = (
                eval(compile(ast.Expression(last.value), str(path), "eval"), names)
                if last
                else None
            )
            if isinstance(value, figure.Figure):
                picture(value)
            elif value is not None:
                print(repr(value))
            for drawn in [v for v in names.values() if isinstance(v, figure.Figure)]:
                picture(drawn)
        flush()
        told.append(outputs)
    return told


def key_of(path, library):
    """The name under which an example's outputs are kept."""
    return hashlib.sha256(path.read_bytes() + library + Path(__file__).read_bytes()).hexdigest()[
        :20
    ]


def hash_of_library():
    """One hash of all sources of the library."""
    whole = hashlib.sha256()
    for file in sorted((ROOT / "src").rglob("*.py")):
        whole.update(file.read_bytes())
    return whole.digest()


def outputs_of(path, library, cache):
    """The outputs of an example, from the cache or by running it."""
    kept = cache / f"{path.stem}-{key_of(path, library)}.json"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as folder:
            paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
            compiled = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(cache / "compiled"))
            env = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join(paths),
                "JAX_COMPILATION_CACHE_DIR": compiled,
            }
            command = [
                sys.executable,
                __file__,
                "--run",
                str(path.resolve()),
                str(Path(folder) / "out.json"),
            ]
            done = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, check=False
            )
            if done.returncode == 3:  # needs what is not installed here
                return None
            if done.returncode:
                raise SystemExit(f"{path.name} failed:\n{done.stderr[-4000:]}")
            for old in cache.glob(f"{path.stem}-*.json"):
                old.unlink()
            kept.write_text((Path(folder) / "out.json").read_text())
        print(f"  ran {path.name}", flush=True)
    return json.loads(kept.read_text())


# Writing -------------------------------------------------------------------------------------------------------------


def page(name, cells, outputs, folder):
    """The page of one example, as Markdown; pictures go beside it."""
    colab = (
        f"https://colab.research.google.com/github/{REPOSITORY}/blob/gh-pages/gallery/{name}.ipynb"
    )
    links = f"[Notebook]({name}.ipynb){{ download }} · [Script]({name}.py){{ download }} · [Open in Colab]({colab})"
    parts, told, count = [], iter(outputs), 0
    for kind, text in cells:
        if kind == "markdown":
            parts.append(text)
            if links:
                parts[-1] = (
                    text.replace("\n", f"\n\n{links}\n\n", 1)
                    if "\n" in text
                    else f"{text}\n\n{links}"
                )
                links = ""
            continue
        parts.append(f"```python\n{text}\n```")
        for output in next(told):
            if "png" in output:
                count += 1
                file = f"{name}-{count}.png"
                (folder / file).write_bytes(base64.b64decode(output["png"]))
                parts.append(f"![Figure {count} of this example]({file})")
            else:
                parts.append(f"```{{ .text .output }}\n{output['text'].rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def notebook(name, cells, outputs):
    """The same as a notebook with its outputs (nbformat 4.5)."""
    lines = lambda text: text.splitlines(keepends=True)
    entries, told = [], iter(outputs)
    install = "%pip install --quiet 'widelimit[all]'"
    entries.append(
        {"cell_type": "code", "source": [install], "outputs": [], "execution_count": None}
    )
    for number, (kind, text) in enumerate(cells):
        if kind == "markdown":
            entries.append({"cell_type": "markdown", "source": lines(text)})
            continue
        out = [
            {"output_type": "display_data", "data": {"image/png": o["png"]}, "metadata": {}}
            if "png" in o
            else {"output_type": "stream", "name": "stdout", "text": lines(o["text"])}
            for o in next(told)
        ]
        entries.append(
            {
                "cell_type": "code",
                "source": lines(text),
                "outputs": out,
                "execution_count": number + 1,
            }
        )
    for number, entry in enumerate(entries):
        entry.update(id=f"{name[:20]}-{number}", metadata={})
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {
        "cells": entries,
        "metadata": {"kernelspec": python},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1) + "\n"


def thumbnail(outputs, cells, file):
    """A small picture: the example's first figure, or what it printed."""
    from PIL import Image

    pictures = [o["png"] for cell in outputs for o in cell if "png" in o]
    if pictures:
        image = Image.open(io.BytesIO(base64.b64decode(pictures[-1]))).convert("RGB")
    else:
        from matplotlib.figure import Figure

        said = "\n".join(o["text"] for cell in outputs for o in cell if "text" in o)
        rows = [
            textwrap.shorten(row, 52, placeholder=" …") for row in said.splitlines() if row.strip()
        ][:9]
        fig = Figure(figsize=(4.8, 2.7), facecolor="white")
        fig.text(
            0.04,
            0.94,
            "\n".join(rows).replace("$", r"\$"),
            va="top",
            family="monospace",
            size=8.5,
            color="#333",
        )
        held = io.BytesIO()
        fig.savefig(held, dpi=100)
        image = Image.open(held).convert("RGB")
    image.thumbnail((560, 315))
    canvas = Image.new("RGB", (560, 315), "white")
    canvas.paste(image, ((560 - image.width) // 2, (315 - image.height) // 2))
    canvas.save(file, optimize=True)


INTRODUCTION = """# Gallery

Every example is a script of the tree that ran when this page was made: what is printed and drawn here is what it
printed and drew. Each can be taken as a script or as a notebook.

<div class="grid cards gallery" markdown>
"""


def make(examples, folder, cache, workers=2):
    """Run what changed, and write the gallery into a folder; the titles by name."""
    folder.mkdir(parents=True, exist_ok=True)
    library = hash_of_library()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        everything = list(pool.map(lambda path: outputs_of(path, library, cache), examples))
    cards, titles = [INTRODUCTION], {}
    for path, outputs in zip(examples, everything, strict=True):
        if outputs is None:
            print(f"  left out {path.name}: what it needs is not installed")
            continue
        name, cells = path.stem, cells_of(path.read_text())
        titles[name], summary = title_and_summary(cells)
        (folder / f"{name}.md").write_text(page(name, cells, outputs, folder))
        (folder / f"{name}.ipynb").write_text(notebook(name, cells, outputs))
        (folder / f"{name}.py").write_text(path.read_text())
        thumbnail(outputs, cells, folder / f"{name}-thumbnail.png")
        cards.append(
            f"-   [![{titles[name]}]({name}-thumbnail.png)]({name}.md)\n\n"
            f"    **[{titles[name]}]({name}.md)**\n\n    {summary}\n"
        )
    (folder / "index.md").write_text("\n".join([*cards, "</div>\n"]))
    return titles


if __name__ == "__main__":
    _, _, script, target = sys.argv
    try:
        found = run(script)
    except ModuleNotFoundError as error:
        print(error, file=sys.stderr)
        sys.exit(3 if error.name in ("torch", "gpytorch", "botorch", "gpjax") else 1)
    Path(target).write_text(json.dumps(found))
