"""tanh and its relatives against erf: nanoseconds an entry and layer, and the ratio, in one run.

Run `python benchmarks/logistic.py [--n 512] [--write benchmarks/logistic.md]`. The inputs have different norms, so
that the layers run for each entry; times are of the process, the least of several.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import widelimit as wl


def least(run, repeats=5):
    run()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=512)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    x = rng.standard_normal((options.n, 30)) * np.exp(rng.standard_normal((options.n, 1)))
    y = rng.standard_normal((options.n, 30))
    lines = [f"# Logistic functions against erf, {options.n} x {options.n} entries, float64", ""]
    lines += ["| activation | ns an entry and layer | times erf |", "|---|---|---|"]
    base = None
    for name in ("erf", "tanh", "sigmoid", "softplus", "silu"):
        one, three = (wl.prepare(wl.mlp(depth, name, b_std=0.1)).by("layers") for depth in (1, 3))
        seconds = least(lambda k=three: k(x, y)) - least(lambda k=one: k(x, y))
        each = 1e9 * seconds / 2 / options.n**2
        base = base or each
        lines.append(f"| {name} | {each:.0f} | {each / base:.0f} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
