"""Kernels of images on an accelerator: picoseconds for each pair of pixels and layer, beside the bounds of the machine.

Images of 32 x 32 x 3, float32, NNGP and NTK together: ten 3 x 3 convolutions with a global pool for several sides of
the tile, and Myrtle-5. An H200 (67 TFLOP/s, 4.8 TB/s) is bound by 2 ps where all layers of a slice are one kernel,
3.3 ps where each layer reads and writes its state once, and 10 ps where window sums are kernels of their own; 12 is
asked for.
`python benchmarks/images_gpu.py [--budget 200]`: stops to start new lines after so many seconds. A few entries are
compared with float64.
"""

import argparse
import time

import jax
import numpy as np

import widelimit as wl
from widelimit.infinite import _stage, _tiles

BOUNDS = {"one kernel for all layers": 2.0, "one for each layer": 3.3, "windows apart": 10.0}
ASKED = 12.0


def timed(run, most=3):
    """Seconds of the first call, and the least of some more."""
    start = time.perf_counter()
    values = run()
    first = time.perf_counter() - start
    times, began = [], time.perf_counter()
    while len(times) < most and (not times or time.perf_counter() - began < 10):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return first, min(times), values


def pool(images, depth, pairs):
    """A line for one size of tile."""
    net = wl.cnn(depth=depth, readout="pool")
    x = np.random.default_rng(0).standard_normal((images, 32, 32, 3)).astype(np.float32)
    _tiles.DEVICE_SLICE_PAIRS = pairs
    stage = _stage.staged(net, (32, 32))[0]
    side = _tiles.tile_side(stage, images)
    first, seconds, values = timed(lambda: wl.kernels(net, x))
    entries = wl.cost(net, x).entries
    each = seconds / entries * 1e12
    ratios = ", ".join(f"{each / bound:.1f} x {name}" for name, bound in BOUNDS.items())
    print(
        f"global pool, {depth} layers, {images} images, tiles of {side}: first call {first:.1f} s, "
        f"then {seconds:.3f} s; {each:.2f} ps each ({'reached' if each <= ASKED else 'missed'}: {ASKED:.0f}); {ratios}",
        flush=True,
    )
    return net, x, values


def myrtle(images):
    """Pairs in a second."""
    net = wl.myrtle(5)
    x = np.random.default_rng(1).standard_normal((images, 32, 32, 3)).astype(np.float32)
    first, seconds, values = timed(lambda: wl.kernels(net, x))
    pairs = images * (images + 1) // 2
    print(
        f"Myrtle-5, {images} images: first call {first:.1f} s, then {seconds:.3f} s; "
        f"{pairs / seconds:.0f} pairs a second",
        flush=True,
    )
    return net, x, values


def compared(net, x, values):
    """The largest error of two images, relative, against float64."""
    exact = wl.kernels(net, x[:2].astype(np.float64))
    worst = max(abs(v[:2, :2] - e).max() / abs(e).max() for v, e in zip(values, exact, strict=True))
    print(f"  against float64: {worst:.1e}", flush=True)


def main():
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=200.0)
    parser.add_argument("--depth", type=int, default=10)
    parser.add_argument("--images", type=int, default=64)
    options = parser.parse_args()
    start = time.perf_counter()
    device = jax.devices()[0]
    print(f"{device.device_kind} ({device.platform}), JAX {jax.__version__}", flush=True)
    left = lambda: options.budget - (time.perf_counter() - start)
    lines = [
        lambda: pool(options.images, options.depth, 1024 * options.images**2),
        lambda: myrtle(min(options.images, 32)),
        lambda: pool(options.images // 2, options.depth, 1024 * (options.images // 2) ** 2),
        lambda: pool(options.images * 2, options.depth, 1024 * (options.images * 2) ** 2),
    ]
    for i, line in enumerate(lines):
        if left() < 30 and i:
            print("no time is left for the other lines")
            break
        found = line()
        if i < 2 and left() > 60:
            compared(*found)


if __name__ == "__main__":
    main()
