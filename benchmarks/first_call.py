"""CPU seconds of the first call of a new structure, in a fresh process each, imports not counted.

Run `python benchmarks/first_call.py [--points 20] [--against SRC]`; SRC is the `src` folder of another
commit, measured beside this one. Set JAX_COMPILATION_CACHE_DIR (and
JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0) to see what JAX's persistent cache leaves of it.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

CASES = {
    "relu MLP": "wl.mlp(3)",
    "relu MLP with bias": "wl.mlp(3, b_std=0.3)",
    "erf MLP with bias": "wl.mlp(3, 'erf', w_std=1.3, b_std=0.3)",
    "tanh MLP with bias": "wl.mlp(3, 'tanh', w_std=1.3, b_std=0.3)",
    "a lambda": "wl.mlp(3, lambda x: jnp.tanh(x) + 0.2 * x, w_std=1.3, b_std=0.3)",
}

CODE = """
import time, numpy as np, jax, jax.numpy as jnp, widelimit as wl
x = np.random.default_rng(0).standard_normal(({points} + 1, 5))
jnp.zeros(3).block_until_ready()
net, times = {net}, []
for n in ({points}, {points} + 1):
    start = time.process_time()
    wl.ntk(net, x[:n])
    times.append(time.process_time() - start)
print(*times)
"""


def seconds(net: str, points: int, source: Path) -> tuple[float, float]:
    """Of the first call, and of one with a point more."""
    run = [sys.executable, "-c", CODE.format(net=net, points=points)]
    env = {**os.environ, "PYTHONPATH": str(source)}
    out = subprocess.run(run, env=env, capture_output=True, text=True, check=True).stdout
    first, more = map(float, out.split())
    return first, more


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--against", type=Path)
    options = parser.parse_args()
    sources = [Path(__file__).parents[1] / "src"]
    if options.against:
        sources.append(options.against)
    print("| | " + " | ".join("first call, one point more" for _ in sources) + " |")
    for name, net in CASES.items():
        cells = [seconds(net, options.points, source) for source in sources]
        print(f"| {name} | " + " | ".join(f"{a:.2f} s, {b:.3f} s" for a, b in cells) + " |")


if __name__ == "__main__":
    main()
