"""Side by side with neural-tangents 0.6.5, which needs a JAX of its time, hence an environment of its own.

Run `python benchmarks/predecessor.py [--points 2000] [--write benchmarks/predecessor.md]`. The
first run builds the environment in `--environment` (default: a folder in the system's temporary
directory). Both libraries get the same points; each time is the least of several, in this one run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np

PINNED = ["jax==0.5.3", "jaxlib==0.5.3", "numpy<2.3", "scipy<1.16", "frozendict"]
CASES = [
    ("relu MLP, depth 5", "mlp", 5, "relu", 0.0),
    ("relu MLP, depth 15", "mlp", 15, "relu", 0.0),
    ("relu MLP, depth 50", "mlp", 50, "relu", 0.0),
    ("relu MLP with bias, depth 5", "mlp", 5, "relu", 0.3),
    ("erf MLP with bias, depth 5", "mlp", 5, "erf", 0.3),
    ("relu ResNet, depth 15, alpha 0.1", "resnet", 15, "relu", 0.0),
]


def points(n, d=64):
    return np.random.default_rng(0).standard_normal((n, d))


def timed(run):
    start = time.perf_counter()
    first = run()
    wall = time.perf_counter() - start
    times = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return first, wall, min(times)


def theirs(options):
    """Inside the old environment: time every case, keep a corner of each matrix."""
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    from neural_tangents import stax

    def network(kind, depth, act, b_std):
        phi = stax.Relu() if act == "relu" else stax.Erf()
        if kind == "mlp":
            layers = [stax.Dense(1, 1.0, b_std), phi] * depth + [stax.Dense(1, 1.0, b_std)]
            return stax.serial(*layers)[2]
        branch = stax.serial(stax.Dense(1), phi, stax.Dense(1, 0.1))
        block = stax.serial(stax.FanOut(2), stax.parallel(branch, stax.Identity()), stax.FanInSum())
        return stax.serial(stax.Dense(1), *[block] * depth, stax.Dense(1))[2]

    out = {}
    for name, kind, depth, act, b_std in CASES:
        fn = jax.jit(network(kind, depth, act, b_std), static_argnames=("get",))
        for dtype in ("float32", "float64"):
            x = jnp.asarray(points(options.points), dtype)
            run = lambda fn=fn, x=x: fn(x, None, get="ntk").block_until_ready()
            value, first, best = timed(run)
            corner = np.asarray(value[:40, :40], float).tolist()
            out[f"{name} {dtype}"] = {"first": first, "best": best, "corner": corner}
            print(name, dtype, f"{best:.3f} s", file=sys.stderr, flush=True)
    print(json.dumps(out))


def ours(options):
    import jax
    import jax.numpy as jnp

    import widelimit as wl

    out = {}
    for name, kind, depth, act, b_std in CASES:
        net = wl.mlp(depth, act, b_std=b_std) if kind == "mlp" else wl.resnet(depth, alpha=0.1)
        for dtype in ("float32", "float64"):
            with jax.enable_x64(dtype == "float64"):
                x = jnp.asarray(points(options.points), dtype)
                run = lambda net=net, x=x: wl.ntk(net, x).block_until_ready()
                value, first, best = timed(run)
            corner = np.asarray(value[:40, :40], float)
            out[f"{name} {dtype}"] = {"first": first, "best": best, "corner": corner}
    return out


def build(folder):
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=True)
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, *PINNED], check=True)
        subprocess.run([*pip, "--no-deps", "neural-tangents==0.6.5"], check=True)
        (part,) = folder.glob("lib/python*/site-packages/neural_tangents/experimental/__init__.py")
        part.write_text("")  # the only one that needs TensorFlow
    return folder / "bin" / "python"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=2000)
    default = Path(tempfile.gettempdir()) / "widelimit-neural-tangents"
    parser.add_argument("--environment", type=Path, default=default)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        theirs(options)
        return
    python = build(options.environment)
    command = [python, __file__, "--inside", "--points", str(options.points)]
    other = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    own = ours(options)
    lines = [
        f"# Against neural-tangents 0.6.5 (JAX 0.5.3), NTK of {options.points} points, d = 64, CPU",
        "",
        "Seconds, least of 5, after compilation; first calls include it. The difference is the largest "
        "in a 40 x 40 corner, relative to the largest entry. Written by `benchmarks/predecessor.py`.",
        "",
        "| network | theirs | ours | faster | first, theirs | first, ours | difference |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, a in other.items():
        b = own[name]
        gap = np.abs(b["corner"] - np.array(a["corner"])).max() / np.abs(b["corner"]).max()
        lines.append(
            f"| {name} | {a['best']:.3f} | {b['best']:.4f} | {a['best'] / b['best']:.0f}x | "
            f"{a['first']:.1f} | {b['first']:.1f} | {gap:.1g} |"
        )
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
