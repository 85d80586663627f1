"""What a run on images leaves: a page, and accuracy against the number of images as a picture."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from widelimit._base.files import write_file
from widelimit.plot import COLOURS, figure, save, style

from ._images import MODELS, Scored

_TICKS = [m * 10.0**k for k in range(-3, 2) for m in (1, 1.5, 2, 3, 4, 6, 8)]  # % of errors
_APART = 1.8  # times the number before, for its name to have room
_HEAD = ("network", "kernel", "images", "accuracy %", "ridge", "kernels s", "solving s")


def image_rows(scores: Sequence[Scored]) -> list[tuple[str, ...]]:
    """The table of a run, a row for each kernel and number of images."""
    return [
        (
            MODELS[s.model].title,
            s.kind.upper(),
            f"{s.images}",
            f"{100 * s.accuracy:.2f}",
            f"{s.ridge:g}",
            f"{s.kernel_seconds:.0f}",
            f"{s.solve_seconds:.1f}",
        )
        for s in scores
    ]


def write_images_page(out: Path, scores: Sequence[Scored]) -> None:
    """Write `README.md`, `images.png` and `images.csv`.

    Args:
        out: The folder.
        scores: Of a run.
    """
    rows = image_rows(scores)
    lines = [_HEAD, ("---", "---", *["---:"] * (len(_HEAD) - 2)), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    tests = {MODELS[s.model].title: s.tests for s in scores}
    most = max(tests.values())
    fewer = "; ".join(f"{name}: the first {n}" for name, n in tests.items() if n < most)
    text = (
        "# Kernel regression on images\n\n"
        f"Accuracy on {most} test images{f' ({fewer})' if fewer else ''}. "
        "The ridge, in units of the kernel's mean diagonal, is chosen "
        "on a sixth of the training images. Seconds of the kernels are for the largest number of images, "
        f"both kinds together.\n\n{table}\n\n![Accuracy](images.png)\n"
    )
    write_file(out / "README.md", text)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(Scored._fields)
    writer.writerows(scores)
    write_file(out / "images.csv", file.getvalue())
    save(draw_images(scores), out / "images")


def draw_images(scores: Sequence[Scored]) -> Any:
    """Errors against the number of training images, a line for each kernel.

    Args:
        scores: Of a run.

    Returns:
        The figure.
    """
    with style():
        fig, panels = figure(width=4.6, height=3.2)
        _lines(panels[0, 0], scores)
    return fig


def _lines(panel: Any, scores: Sequence[Scored]) -> None:
    names = list(dict.fromkeys(s.model for s in scores))
    for name, kind in dict.fromkeys((s.model, s.kind) for s in scores):
        line = [s for s in scores if (s.model, s.kind) == (name, kind)]
        panel.plot(
            [s.images for s in line],
            [100 * max(1 - s.accuracy, 0.5 / s.tests) for s in line],
            "o-" if kind == "ntk" else "s--",
            ms=3.5,
            color=COLOURS[names.index(name) % len(COLOURS)],
            label=f"{MODELS[name].title}, {kind.upper()}",
        )
    panel.set(
        xscale="log", yscale="log", xlabel="training images", ylabel="errors, % of test images"
    )
    low, high = panel.get_ylim()
    errors = [e for e in _TICKS if low <= e <= high]
    panel.set_yticks(errors, [f"{e:g}" for e in errors])
    panel.set_yticks([], minor=True)
    sizes = _apart(sorted({s.images for s in scores}))
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.set_xticks([], minor=True)
    panel.legend()


def _apart(sizes: list[int]) -> list[int]:
    """Those of some numbers whose names do not overlap on a logarithmic axis."""
    kept = sizes[:1]
    for size in sizes[1:]:
        if size >= _APART * kept[-1]:
            kept.append(size)
    return kept
