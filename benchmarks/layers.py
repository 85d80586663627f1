"""Every layer with pixels: errors of its kernels against many digits, and of sampled networks in standard errors.

The networks of `tests/golden/spatial.json`, 76 of them, each with 50-digit kernels of small inputs; a line for each
kind of layer, over all networks in which it stands. Errors are relative to the largest entry. Networks of finite width
are drawn anew; the largest of all deviations of their mean from the limit, in standard errors, is that of some hundred
numbers, and the root of the mean square says whether the limit is met: about 1. Attention weights of finite networks
are random, which moves the mean by a multiple of 1/width, several standard errors for weights that are not bounded
(relu), also in the lines of the layers beside them; the line of two widths is of twice the mean at twice the width
less that at the width, from which it has gone.
`python benchmarks/layers.py [--write benchmarks/layers.md]`: five minutes.
"""

import argparse
import collections
import json
import sys
from pathlib import Path

import numpy as np

import widelimit as wl

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests"))
from spatial_networks import network  # noqa: E402

FILE = json.loads((HERE.parent / "tests" / "golden" / "spatial.json").read_text())
SIMILAR = ("near duplicates pool then relu", "near duplicates gap then relu")  # 1e-8 is asked for
KINDS = ("nngp", "ntk")
ATTENTION, TWO_WIDTHS = "attention linear", "attention linear, two widths"


def kinds(records):
    """Of a network, which kinds of layers stand in it."""
    for record in records:
        name = record["layer"]
        if name in ("conv", "conv_transpose"):
            yield f"{name} {record['padding'].lower()}"
            if np.max(record.get("stride") or 1) > 1:
                yield f"{name} strided"
        elif name == "phi":
            yield f"phi {record['activation']}"
        elif name == "attention":
            yield f"attention {record.get('scaling', 'linear')}"
        else:
            yield name
        for branch in (record.get("body", []), *record.get("branches", [])):
            yield from kinds(branch)


def inputs(case, dtype):
    """The first inputs, and all of them."""
    given = FILE["inputs"][case["inputs"]]
    x1, x2 = (np.array(given[key], dtype) for key in ("x1", "x2"))
    return x1, np.concatenate([x1, x2])


def golden(case, kind):
    """The kernel of the first inputs with all."""
    return np.concatenate([case[f"{kind}_x1_x1"], case[kind]], axis=1)


def error(case, dtype):
    """The larger of both kernels' errors."""
    x1, x = inputs(case, dtype)
    found = wl.kernels(network(case["network"]), x)
    worst = 0.0
    for kind in KINDS:
        exact = golden(case, kind)
        value = getattr(found, kind)[: len(x1)].reshape(exact.shape)
        worst = max(worst, np.abs(value - exact).max() / np.abs(exact).max())
    return worst


def deviations(case, widths, samples):
    """Of both kernels of sampled networks, in standard errors; of two widths, without what falls as 1/width."""
    x1, x = inputs(case, np.float32)
    net = network(case["network"])
    draw = lambda key, n: wl.monte_carlo_kernels(net, x, width=n, samples=samples, key=key)
    drawn = [draw(key, n) for key, n in enumerate(widths)]
    factors = (1,) if len(widths) == 1 else (-1, 2)  # the second width is twice the first
    for kind in KINDS:
        exact = golden(case, kind)
        met = [(f, getattr(d, kind)) for f, d in zip(factors, drawn, strict=True)]
        mean = sum(f * np.asarray(v.mean, float)[: len(x1)] for f, v in met)
        square = sum((f * np.asarray(v.stderr, float)[: len(x1)]) ** 2 for f, v in met)
        mean, stderr = mean.reshape(exact.shape), np.sqrt(square).reshape(exact.shape)
        known = stderr > 1e-6 * np.abs(exact).max()  # the others do not scatter
        yield ((mean - exact) / np.where(known, stderr, 1))[known]


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    double, single = collections.defaultdict(dict), collections.defaultdict(dict)
    scores = {kind: collections.defaultdict(dict) for kind in KINDS}
    for number, case in enumerate(FILE["cases"], 1):
        print(f"\r{number} of {len(FILE['cases'])}: {case['name']:50}", end="", file=sys.stderr)
        name, errors = case["name"], (error(case, np.float64), error(case, np.float32))
        layers, n = {*kinds(case["network"]), "all"}, options.width
        z = list(deviations(case, (n,), options.samples))
        for layer in layers:
            double[layer][name], single[layer][name] = errors
            for kind, some in zip(KINDS, z, strict=True):
                scores[kind][layer][name] = some
        if ATTENTION in layers:
            z = deviations(case, (n, 2 * n), options.samples)
            double[TWO_WIDTHS][name], single[TWO_WIDTHS][name] = errors
            for kind, some in zip(KINDS, z, strict=True):
                scores[kind][TWO_WIDTHS][name] = some
    print(file=sys.stderr)
    rows = [
        "| layer | networks | float64 | the two similar ones | float32 | nngp: largest z, rms | ntk: largest z, rms |",
        "|---|---|---|---|---|---|---|",
    ]
    for layer in sorted(double, key=lambda layer: (layer == "all", layer)):
        near = [v for name, v in double[layer].items() if name in SIMILAR]
        cells = [layer, str(len(double[layer]))]
        cells.append(
            f"{max((v for k, v in double[layer].items() if k not in SIMILAR), default=0):.1e}"
        )
        cells += [f"{max(near):.1e}" if near else "", f"{max(single[layer].values()):.1e}"]
        for kind in KINDS:
            z = np.concatenate([v.ravel() for v in scores[kind][layer].values()])
            cells.append(f"{np.abs(z).max():.1f}, {np.sqrt(np.mean(z**2)):.2f}")
        rows.append("| " + " | ".join(cells) + " |")
    print("\n".join(rows))
    if options.write:
        about = __doc__.split("\n\n", 1)[1].strip()
        drawn = f"Networks of width {options.width}, {options.samples} of each."
        text = f"# Layers with pixels\n\n{about}\n\n{drawn}\n\n" + "\n".join(rows) + "\n"
        options.write.write_text(text)


if __name__ == "__main__":
    main()
