"""Make the figures of this folder again: `python docs/full/make.py [PART ...]`, on a machine with a GPU.

Without names all parts are made, in about twelve minutes on one H200. Finished parts are kept in
`reproduction/full`, so a run that was interrupted continues; the figures and `made.json` are
written, and the README renewed, after each part.
"""

import json
import shutil
import sys
from pathlib import Path

from widelimit.experiments import reproduce

HERE = Path(__file__).parent
MADE = HERE / "made.json"
# Short ones first, so that an interruption loses little.
PARTS = [
    "descent",
    "ellipse",
    "figure8",
    "figure9",
    "figure3",
    "stability",
    "convergence",
    "figure1",
]
README = """# The papers' own sizes

Figures of `widelimit reproduce --full`; `python docs/full/make.py` makes them again. Finite networks multiply in
full float32, on GPUs too.

| part | seconds | claims | size | device | made with |
|---|---|---|---|---|---|
{rows}
"""
ROW = "| [{name}]({name}.png) | {seconds} | {claims} | {size} | {device} | widelimit {widelimit}, {software}, {date} |"


def make(name: str, out: Path) -> None:
    """Compute a part and keep its figure here."""
    (outcome,) = reproduce(out, figures=[name], full=True)
    if outcome.error or outcome.result is None:
        sys.exit(f"{name} failed: {outcome.error}")
    for file in outcome.files:
        if file == f"{name}.png":
            shutil.copy(out / name / file, HERE / file)
    verdicts = [v.verdict for v in outcome.result.verdicts]
    claims = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
    known = json.loads(MADE.read_text()) if MADE.exists() else {}
    known[name] = dict(outcome.made) | {"seconds": round(outcome.seconds), "claims": claims}
    known[name] |= {"size": outcome.result.size}
    known[name].pop("command")  # the path of the folder is nobody's business
    MADE.write_text(json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    rows = [ROW.format(name=part, **known[part]) for part in sorted(known)]
    (HERE / "README.md").write_text(README.format(rows="\n".join(rows)))
    print(
        f"{name}: {outcome.seconds:.0f} s{' (kept)' if outcome.kept else ''}; {claims}", flush=True
    )


if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        make(part, HERE.parents[1] / "reproduction" / "full")
