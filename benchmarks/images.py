"""Kernels of convolutional networks: nanoseconds for each pair of pixels and layer, beside the bound of the machine.

The bound counts 64 (float32) or 95 (float64) operations for each pair of pixels and layer of a 3 x 3 window: two
polynomials with a root each, window sums, and shares; 16 or 8 lanes at 3 GHz make 1.5 or 4.5 ns on one core.
With neural-tangents installed, its time on the same images in the same run is shown too:
`python benchmarks/images.py [--images 32] [--side 16] [--depth 4]`.
"""

import argparse
import importlib.util
import time

import numpy as np

import widelimit as wl

BOUND = {"float32": 1.5, "float64": 4.5}


def best(run, repetitions):
    """The shortest of several runs, after one that compiles."""
    start = time.process_time()
    run()
    first = time.process_time() - start
    times = []
    for _ in range(repetitions):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return first, min(times)


def theirs(depth, readout, x):
    """The same kernels by neural-tangents."""
    import jax
    from neural_tangents import stax

    layers = [stax.Conv(1, (3, 3), padding="SAME", W_std=2**0.5), stax.Relu()] * depth
    last = stax.Flatten() if readout == "flatten" else stax.GlobalAvgPool()
    kernel = jax.jit(stax.serial(*layers, last, stax.Dense(1))[2], static_argnums=(2,))
    return lambda: jax.block_until_ready(kernel(x, None, ("nngp", "ntk")))


def main():
    """Print a line for each read-out and precision."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--side", type=int, default=16)
    parser.add_argument("--depth", type=int, default=4)
    options = parser.parse_args()
    shape = (options.images, options.side, options.side, 3)
    known = importlib.util.find_spec("neural_tangents") is not None
    for readout in ("flatten", "pool"):
        net = wl.cnn(depth=options.depth, readout=readout)
        for dtype, bound in BOUND.items():
            x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
            first, seconds = best(lambda net=net, x=x: wl.kernels(net, x), 5)
            each = seconds / wl.cost(net, x).entries * 1e9
            line = f"{readout:8s} {dtype}: first call {first:.1f} s of CPU, then {seconds * 1e3:.1f} ms; "
            line += f"{each:.2f} ns each, {each / bound:.1f} times the bound of one core"
            if known:
                _, other = best(theirs(options.depth, readout, x), 2)
                line += f"; neural-tangents {other * 1e3:.0f} ms, ratio {other / seconds:.0f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()
