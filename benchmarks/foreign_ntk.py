"""The tangent kernel of a model that nothing is known of: both methods, and neural-tangents beside them.

Run as: python benchmarks/foreign_ntk.py [--width 512] [--predecessor PYTHON]

The second takes the interpreter of an environment with neural-tangents (`predecessor.py` builds one).
CPU seconds of the second call, 16 x 16 points, 3072 features, 8 outputs, two hidden layers.
"""

import argparse
import json
import subprocess
import sys
import time

MODEL = """
import sys, time, json, jax, jax.numpy as jnp
width, d, k, n = int(sys.argv[1]), 3072, 8, 16
keys = jax.random.split(jax.random.key(0), 5)
shapes = [(d, width), (width, width), (width, k)]
params = [jax.random.normal(key, shape) for key, shape in zip(keys, shapes)]
x1, x2 = (jax.random.normal(key, (n, d)) for key in keys[3:])
def apply(params, x):
    for w in params[:-1]:
        x = jax.nn.relu(x @ w / len(w) ** 0.5)
    return x @ params[-1] / width**0.5
def timed(f):
    f().block_until_ready()
    times = []
    for _ in range(2):
        start = time.process_time()
        f().block_until_ready()
        times.append(time.process_time() - start)
    return min(times)
"""
OURS = """
import widelimit as wl
found = {m: timed(lambda: wl.empirical_ntk(apply, params, x1, x2, method=m)) for m in ("products", "jacobian")}
print(json.dumps(found))
"""
THEIRS = """
import neural_tangents as nt
found = {}
for name, kind in (("products", "NTK_VECTOR_PRODUCTS"), ("jacobian", "JACOBIAN_CONTRACTION")):
    how = getattr(nt.NtkImplementation, kind)
    f = jax.jit(nt.empirical_ntk_fn(apply, trace_axes=(), vmap_axes=0, implementation=how))
    found[name] = timed(lambda: f(x1, x2, params))
print(json.dumps(found))
"""


def measure(python, program, width):
    run = subprocess.run(
        [python, "-c", MODEL + program, str(width)], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--predecessor", help="a Python that has neural-tangents")
    options = parser.parse_args()
    start = time.perf_counter()
    ours = measure(sys.executable, OURS, options.width)
    theirs = measure(options.predecessor, THEIRS, options.width) if options.predecessor else {}
    for method, seconds in ours.items():
        other = theirs.get(method)
        beside = f"; neural-tangents {other:.2f} s, ratio {other / seconds:.1f}" if other else ""
        print(f"width {options.width}, {method}: {seconds:.2f} CPU s{beside}")
    print(f"{time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main()
