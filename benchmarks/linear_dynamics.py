"""How fast do finite networks approach the linear theory as they get wider?

Run `python benchmarks/linear_dynamics.py [--seeds 32] [--widths 250 500 1000 2000] [--networks "ReLU ResNet"]
[--write FILE]`. Each
network is trained by gradient descent with half of the rate that the stability theorem allows; its
outputs are compared, at every record, with the closed form that starts from the network's own
function: once with the network's own kernel at the start, once with the limiting one. The error is the
largest over the records of the norm over the training points, in units of the norm at the start.
"""

import argparse
import time
from pathlib import Path

import numpy as np

import widelimit as wl

NETWORKS = {
    "ReLU ResNet": wl.resnet(2, alpha=0.7),
    "erf ResNet": wl.resnet(2, alpha=0.7, activation="erf"),
    "ReLU MLP": wl.mlp(2, w_std=2**0.5),
    "erf MLP": wl.mlp(2, "erf", w_std=2**0.5),
}


def circle(points):
    b = -np.pi + 2 * np.pi * np.arange(points) / points + 0.1 * np.sin(np.arange(points))
    return np.stack([np.cos(b), np.sin(b)], 1), np.cos(b) / 2 + np.sin(4 * b)


def linear(kernel, start, y, rate, steps):
    """Gradient descent on the linear model, after each of the given steps."""
    values, vectors = np.linalg.eigh(np.asarray(kernel, float))
    error = vectors.T @ (start - y)
    return np.array([y + vectors @ ((1 - rate * values) ** t * error) for t in steps])


def measure(net, widths, seeds, steps):
    x, y = circle(6)
    limit = wl.ntk(net, x)
    values = np.linalg.eigvalsh(limit)
    rate = 1 / (values[0] + values[-1])
    own, limiting, drift = (np.zeros((len(widths), seeds)) for _ in range(3))
    for i, n in enumerate(widths):
        options = {"learning_rate": rate, "steps": steps, "probe": x, "record": 10, "drift": True}
        runs = wl.optimise_many(wl.finite(net, n), x, y, seeds, **options)
        for j, run in enumerate(runs):
            start = np.asarray(run.outputs[0], float)
            size = np.linalg.norm(start - y)
            for kernel, out in ((run.kernels[0], own), (limit, limiting)):
                gap = run.outputs - linear(kernel, start, y, rate, run.steps)
                out[i, j] = np.linalg.norm(gap, axis=1).max() / size
            drift[i, j] = run.drift.max()
    return rate, own, limiting, drift


def exponent(widths, values):
    """The slope of the mean logarithm, with the standard error from the spread over seeds."""
    log, at = np.log(values), np.log(widths) - np.log(widths).mean()
    weights = at / (at**2).sum()
    spread = log.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    return weights @ log.mean(axis=1), np.sqrt(((weights * spread) ** 2).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--widths", type=int, nargs="+", default=[250, 500, 1000, 2000])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    lines = [
        f"# Linear dynamics, {options.seeds} networks of each width, {options.steps} steps",
        "",
        "Median over networks of the largest relative error, and the exponent in the width. "
        "Written by `benchmarks/linear_dynamics.py`.",
        "",
        "| network | compared with | "
        + " | ".join(f"n = {n}" for n in options.widths)
        + " | exponent |",
        "|---|---|" + "---|" * (len(options.widths) + 1),
    ]
    for name in options.networks:
        start = time.perf_counter()
        _, *found = measure(NETWORKS[name], options.widths, options.seeds, options.steps)
        for what, values in zip(("own kernel", "limit", "(drift)"), found, strict=True):
            slope, stderr = exponent(options.widths, values)
            row = " | ".join(f"{v:.3g}" for v in np.median(values, axis=1))
            lines.append(f"| {name} | {what} | {row} | {slope:.2f} ± {stderr:.2f} |")
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
