"""Kernels of images: nanoseconds for each pair of pixels and layer, beside the machine's bound and neural-tangents.

The bound counts 64 (float32) or 95 (float64) operations for each pair of pixels and layer of a 3 x 3 window: two
polynomials with a root each, window sums, and shares; 16 or 8 lanes at 3 GHz make 1.5 or 4.5 ns on one core.
Each line is measured in fresh processes, one after the other; times are the least of several after the first call.
Those of CPU, in brackets, depend less on what else the machine does.
`python benchmarks/images.py [--theirs PYTHON] [--only 'flatten;pool'] [--write benchmarks/images.md]`, where PYTHON is
an interpreter with neural-tangents. Memory is by how much the process grows in a call after the first; then by how
much it grew in the first, compilation included.
"""

import argparse
import ctypes
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

BOUND = {"float32": 1.5, "float64": 4.5}  # ns for each pair of pixels and layer on one core
SHAPES = {"flatten": (64, 16, 16, 3), "pool": (32, 16, 16, 3)}
SHAPES |= {
    "myrtle-5": (4, 32, 32, 3),
    "attention": (32, 16, 16, 3),
    "attention, few": (8, 12, 12, 3),
}
DEPTH = 4


def ours(case, x):
    """The kernels by widelimit, as a function without arguments."""
    import widelimit as wl

    if case == "myrtle-5":
        net = wl.myrtle(5)
    elif case.startswith("attention"):
        body = wl.Conv(3, w_std=2**0.5) >> wl.Phi("relu") >> wl.Attention() >> wl.Phi("relu")
        net = body >> wl.GlobalAvgPool() >> wl.Dense()
    else:
        net = wl.cnn(depth=DEPTH, readout=case)
    return lambda: wl.kernels(net, x)


def theirs(case, x):
    """The same kernels by neural-tangents."""
    import jax

    jax.config.update("jax_enable_x64", x.dtype == np.float64)
    from neural_tangents import stax

    block = [stax.Conv(1, (3, 3), padding="SAME", W_std=2**0.5), stax.Relu()]
    pool = [stax.AvgPool((2, 2), strides=(2, 2))]
    if case == "myrtle-5":
        layers = [*block, *block, *pool, *block, *pool, *block, *pool * 3, stax.Flatten()]
        layers.append(stax.Dense(1, W_std=2**0.5))
    elif case.startswith("attention"):
        attend = stax.GlobalSelfAttention(1, 1, 1, 1, linear_scaling=True)
        layers = [*block, attend, stax.Relu(), stax.GlobalAvgPool()]
    else:
        layers = block * DEPTH + [stax.Flatten() if case == "flatten" else stax.GlobalAvgPool()]
    last = [] if case == "myrtle-5" else [stax.Dense(1)]
    kernel = jax.jit(stax.serial(*layers, *last)[2], static_argnums=(2,))
    return lambda: jax.block_until_ready(kernel(x, None, ("nngp", "ntk")))


def resident(name):
    """Resident bytes of this process, `VmRSS` or the peak `VmHWM`; not getrusage, whose peak a child inherits."""
    return 1024 * int(re.search(name + r":\s+(\d+)", Path("/proc/self/status").read_text())[1])


def grown(run):
    """By how much the process grows while it runs, beyond what it holds: freed memory is given back first."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmRSS")
    run()
    return resident("VmHWM") - before


def measured(library, case, dtype, images):
    """What one process finds: CPU seconds of the first call, the least time of the others, bytes."""
    shape = (images or SHAPES[case][0], *SHAPES[case][1:])
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    run = {"ours": ours, "theirs": theirs}[library](case, x)
    before, start = resident("VmHWM"), time.process_time()
    values = run()
    first = time.process_time() - start
    with_compiler = resident("VmHWM") - before
    later = max(grown(run) for _ in range(3))  # threads keep some of what they freed
    times, work, began = [], [], time.perf_counter()
    while len(times) < 1000 and (not times or time.perf_counter() - began < 8):
        start, spent = time.perf_counter(), time.process_time()
        run()
        times.append(time.perf_counter() - start)
        work.append(time.process_time() - spent)
    sample = [float(np.asarray(v)[1, 0]) for v in values]
    return {
        "first": first,
        "least": min(times),
        "work": min(work),
        "bytes": with_compiler,
        "later": later,
        "sample": sample,
    }


def in_a_process(python, *spec):
    """`measured` by another interpreter."""
    done = subprocess.run(
        [python, __file__, "--one", json.dumps(spec)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def line(case, dtype, options):
    """One row of the table."""
    import widelimit as wl

    images = options.images
    found = in_a_process(sys.executable, "ours", case, dtype, images)
    shape = (images or SHAPES[case][0], *SHAPES[case][1:])
    cells = [case, " × ".join(map(str, shape)), dtype, f"{found['first']:.1f}"]
    cells.append(f"{found['least'] * 1e3:.3g} ({found['work'] * 1e3:.3g})")
    if case in ("flatten", "pool"):
        net = wl.cnn(depth=DEPTH, readout=case)
        entries = wl.cost(net, np.zeros(shape, dtype)).entries
        each = found["work"] / entries * 1e9
        cells += [f"{each:.2f}", f"{each / BOUND[dtype]:.1f}"]
    else:
        cells += ["", ""]
    if options.theirs:
        other = in_a_process(options.theirs, "theirs", case, dtype, images)
        agree = np.allclose(found["sample"], other["sample"], rtol=1e-4)
        cells += [
            f"{other['first']:.1f}",
            f"{other['least'] * 1e3:.3g} ({other['work'] * 1e3:.3g})",
        ]
        ratios = other["least"] / found["least"], other["work"] / found["work"]
        cells += [f"{ratios[0]:.1f} ({ratios[1]:.1f})", f"{found['later'] / other['later']:.2f}"]
        cells += [f"{found['bytes'] / other['bytes']:.2f}"]
        cells += ["" if agree else f"differ: {found['sample']}, {other['sample']}"]
    return "| " + " | ".join(cells) + " |"


def main():
    """Print a line for each network and precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--theirs", help="an interpreter with neural-tangents")
    parser.add_argument("--only", default=";".join(SHAPES), help="names, with ; between them")
    parser.add_argument("--dtypes", default="float32,float64")
    parser.add_argument("--images", type=int)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measured(*json.loads(options.one))))
        return
    heads = "network | images | precision | first call, s of CPU | ms (of CPU) | ns of CPU each | of the bound"
    if options.theirs:
        heads += " | theirs: first | ms (of CPU) | ratio (of CPU) | our memory of theirs | with compilation | "
    rows = [f"| {heads} |", "|" + "---|" * (heads.count("|") + 1)]
    for row in rows:
        print(row)
    for case in options.only.split(";"):
        for dtype in options.dtypes.split(","):
            rows.append(line(case, dtype, options))
            print(rows[-1], flush=True)
    if options.write:
        write(options.write, rows)


def write(path, rows):
    """The table as a page; lines of other networks that it has already stay."""
    key = lambda row: tuple(cell.strip() for cell in row.split("|")[1:4])
    before = path.read_text().splitlines() if path.exists() else []
    lines = {key(row): row for row in before if row.startswith("| ") and key(row) != key(rows[0])}
    lines |= {key(row): row for row in rows[2:]}
    order = [*SHAPES]
    found = sorted(lines.values(), key=lambda row: (order.index(key(row)[0]), key(row)[2]))
    about = f"{platform.machine()}, {os.cpu_count()} cores. Written by `benchmarks/images.py`."
    text = f"# Kernels of images\n\n{about}\n\n{__doc__.split(chr(10), 2)[2]}\n"
    path.write_text(text + "\n".join([*rows[:2], *found]) + "\n")


if __name__ == "__main__":
    main()
