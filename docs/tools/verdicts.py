"""Keep the verdicts and figures of a reproduction for the site: `python docs/tools/verdicts.py FOLDER`.

FOLDER is what `widelimit reproduce --mnist DIR` wrote. Figures that `docs/full` has in the papers' own sizes are taken
from there.
"""

import json
import sys
from pathlib import Path

from PIL import Image

from widelimit.experiments import EXPERIMENTS

DOCS = Path(__file__).parents[1]
OUT = DOCS / "verdicts"


def main(folder):
    """Read all parts, write `verdicts.json` and small pictures."""
    OUT.mkdir(exist_ok=True)
    parts = []
    for name, experiment in EXPERIMENTS.items():
        file = folder / name / "result.json"
        if not file.exists():
            continue
        verdicts = json.loads(file.read_text())["verdicts"]
        figures = []
        for picture in sorted((folder / name).glob("*.png")):
            if (DOCS / "full" / picture.name).exists():
                figures.append(f"full/{picture.name}")
                continue
            image = Image.open(picture).convert("RGB")
            image.thumbnail((1400, 1400))
            image.quantize(96).save(OUT / picture.name, optimize=True)
            figures.append(f"verdicts/{picture.name}")
        entry = {
            "name": name,
            "title": experiment.title,
            "source": experiment.source,
            "caption": experiment.caption,
        }
        parts.append({**entry, "figures": figures, "verdicts": verdicts})
    (OUT / "verdicts.json").write_text(
        json.dumps({"parts": parts}, indent=1, ensure_ascii=False) + "\n"
    )
    print(sum(len(p["verdicts"]) for p in parts), "verdicts of", len(parts), "parts")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
