"""Build the site: `python docs/tools/build.py`, or `make docs`.

Pages are gathered in `build/docs`: those of `docs/`, the changelog and its neighbours, the benchmarks, and what is made
here: the gallery (every example runs), the API, the tables. Their code runs as doctests. Then Zensical builds
`build/site`, strictly: a warning is an error. Nothing that a page needs is fetched from the network.
"""

import doctest
import json
import re
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).parent))
import api
import gallery
import tables

ROOT = Path(__file__).parents[2]
PAGES, BUILD = ROOT / "docs", ROOT / "build"
OUT, CACHE = BUILD / "docs", BUILD / "cache"
REPOSITORY = "https://github.com/widelimit/widelimit"
EXPLORER = """<iframe class="explorer" src="assets/explorer.html" title="The explorer"></iframe>

[Open it by itself](assets/explorer.html)"""
RENAMED = {"width": "how_wide.md", "full": "sizes.md", "tables": "small_tables.md"}
TAKEN = {  # files of the tree that are pages, too
    "CHANGELOG.md": "changelog.md",
    "NOTATION.md": "notation.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}


def gather():
    """Copy the pages that are written by hand, and pictures and fonts."""
    shutil.rmtree(OUT, ignore_errors=True)
    wanted = {".md", ".png", ".svg", ".css", ".js", ".woff2"}
    for file in PAGES.rglob("*"):
        if file.suffix in wanted and "tools" not in file.relative_to(PAGES).parts:
            target = OUT / file.relative_to(PAGES)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    for source, name in TAKEN.items():
        (OUT / name).write_text(relinked((ROOT / source).read_text(), ""))
    (OUT / "benchmarks").mkdir(exist_ok=True)
    for file in sorted((ROOT / "benchmarks").glob("*.md")):
        if file.stem == "accuracy":  # has a page of its own
            continue
        (OUT / "benchmarks" / file.name).write_text(relinked(file.read_text(), "../"))
    shutil.copyfile(ROOT / "src/widelimit/explorer/page.html", OUT / "assets" / "explorer.html")
    for folder, name in RENAMED.items():  # a README would be the page of a section
        (OUT / folder / "README.md").rename(OUT / folder / name)
    for file in OUT.rglob("*.md"):
        text = file.read_text()
        for folder, name in RENAMED.items():
            text = text.replace(f"{folder}/README.md", f"{folder}/{name}")
        file.write_text(text)
    explorer = OUT / "explorer.md"  # the page itself, in place of its picture
    explorer.write_text(re.sub(r"!\[.*\]\(explorer\.png\)", EXPLORER, explorer.read_text()))


def relinked(text, up):
    """Links of a file at the top of the tree, as they are on the site."""

    def link(found):
        label, target = found[1], found[2]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        plain = target.removeprefix("../").split("#")[0].rstrip("/")
        if plain in TAKEN:
            return f"[{label}]({up}{TAKEN[plain]})"
        if plain.startswith("docs/") and (ROOT / plain).is_dir():
            return f"[{label}]({up}{plain.removeprefix('docs/')}/README.md)"
        if plain.startswith("docs/"):
            return f"[{label}]({up}{plain.removeprefix('docs/')})"
        return f"[{label}]({REPOSITORY}/blob/main/{plain})"

    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", link, text)


def run_code():
    """Run the examples of all pages as doctests; what has passed is not run again until something changes."""
    library, failed = gallery.hash_of_library(), 0
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    for file in sorted([*PAGES.glob("*.md"), *PAGES.glob("coming_from/*.md")]):
        mark = CACHE / f"doctest-{file.stem}-{gallery.key_of(file, library)}"
        if ">>>" not in file.read_text() or mark.exists():
            continue
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = doctest.testfile(str(file), module_relative=False, optionflags=options)
        print(
            f"  {file.name}: {found.attempted} lines, {time.perf_counter() - start:.0f} s",
            flush=True,
        )
        failed += found.failed
        if not found.failed:
            CACHE.mkdir(parents=True, exist_ok=True)
            mark.touch()
    if failed:
        raise SystemExit(f"{failed} lines of the pages do not print what they say.")


def configuration(examples, parts):
    """`mkdocs.yml`, with the pages that were made here."""
    settings = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    more = {
        "gallery/index.md": [{title: f"gallery/{name}.md"} for name, title in examples.items()],
        "api/index.md": [{title: page} for title, page in parts],
    }
    for entry in settings["nav"]:
        for section in entry.values():
            if isinstance(section, list) and str(section[0]) in more:
                section += more[section[0]]
    settings.update(docs_dir="docs", site_dir="site")
    handlers = settings["plugins"][-1]["mkdocstrings"]["handlers"]["python"]
    handlers["paths"] = [str(ROOT / "src")]
    handlers["options"]["extensions"] = [str(ROOT / "docs" / "tools" / "examples.py")]
    file = BUILD / "mkdocs.yml"
    file.write_text(yaml.safe_dump(settings, sort_keys=False, allow_unicode=True))
    return file


def bundle(site):
    """The one script that the theme would fetch, for the search of pages opened from a disk, comes from here."""
    for file in site.rglob("*.html"):
        up = "../" * len(file.relative_to(site).parent.parts)
        text = file.read_text()
        file.write_text(
            text.replace("https://unpkg.com/iframe-worker/shim", f"{up}assets/iframe-worker.js")
        )


def main():
    """Everything, in order."""
    start = time.perf_counter()
    step = lambda what: print(f"[{time.perf_counter() - start:5.0f} s] {what}", flush=True)
    step("pages")
    gather()
    tables.make(OUT)
    step("gallery")
    examples = gallery.make(sorted((ROOT / "examples").glob("[0-9]*.py")), OUT / "gallery", CACHE)
    step("code of the pages")
    run_code()
    step("API")
    parts = api.make(OUT / "api")
    config = configuration(examples, parts)
    step("site")
    shutil.rmtree(BUILD / "site", ignore_errors=True)
    zensical = Path(sys.executable).parent / "zensical"
    command = [str(zensical), "build", "--strict", "--clean", "--config-file", str(config)]
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr)
    if done.returncode or re.search(r"warning", done.stdout + done.stderr, re.IGNORECASE):
        raise SystemExit("The site has warnings.")
    bundle(BUILD / "site")
    for kind in ("ipynb", "py"):  # whatever the generator thinks of them, they can be downloaded
        for file in (OUT / "gallery").glob(f"*.{kind}"):
            shutil.copyfile(file, BUILD / "site" / "gallery" / file.name)
    pages = len(list((BUILD / "site").rglob("*.html")))
    step(f"{pages} pages: {BUILD.relative_to(ROOT) / 'site' / 'index.html'}")
    (BUILD / "pages.json").write_text(
        json.dumps({"pages": pages, "seconds": time.perf_counter() - start})
    )


if __name__ == "__main__":
    main()
