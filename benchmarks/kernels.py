"""Kernel matrices against `x @ x.T`, against the layer-by-layer path, and the textbook recursion.

Run `python benchmarks/kernels.py [--n 4000] [--d 64] [--write benchmarks/kernels.md]`. All ratios come from
one run; each time is the least of several.
"""

import argparse
import platform
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import widelimit as wl

DEPTHS = (2, 5, 15, 50, 200)


def least(run, repeats=7):
    run()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def textbook(depth):
    """ReLU MLP, layer by layer, with arctan2: the form that other libraries use."""

    def ntk(x, b_std):
        q = jnp.sum(x**2, axis=1) / x.shape[1] + b_std**2
        k = x @ x.T / x.shape[1] + b_std**2
        theta = k
        for _ in range(depth):
            prod = q[:, None] * q[None, :]
            sine = jnp.sqrt(jnp.maximum(prod - k**2, 0))
            angle = jnp.arctan2(sine, k)
            dot = (jnp.pi - angle) / (2 * jnp.pi)
            k = sine / (2 * jnp.pi) + dot * k + b_std**2
            theta = k + dot * theta
            q = q / 2 + b_std**2
        return theta

    return jax.jit(ntk)


def first_call(code):
    """Seconds of the first call in a fresh process, compilation included, imports not."""
    setup = (
        "import time, numpy as np, jax, jax.numpy as jnp, widelimit as wl\n"
        "x = jnp.asarray(np.random.default_rng(0).standard_normal((4000, 64)), jnp.float32)\n"
        "(x @ x.T).block_until_ready()\nstart = time.perf_counter()\n"
    )
    run = setup + code + "\nprint(time.perf_counter() - start)"
    return float(subprocess.run([sys.executable, "-c", run], capture_output=True, text=True).stdout)


def peak_memory(n, d):
    """Peak resident memory of one call beyond that of the process before it, in results."""
    code = (
        "import re, numpy as np, jax, jax.numpy as jnp, widelimit as wl\n"
        # not getrusage, whose peak a child inherits from its parent
        "peak = lambda: 1024 * int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        f"x = jnp.asarray(np.random.default_rng(0).standard_normal(({n}, {d})), jnp.float32)\n"
        "wl.ntk(wl.mlp(15), x[:300]).block_until_ready()\nbefore = peak()\n"
        "wl.ntk(wl.mlp(15), x).block_until_ready()\n"
        f"print((peak() - before) / ({n} * {n} * 4))"
    )
    return float(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    )


def measure(n, d, dtype):
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.standard_normal((n, d)), dtype)
    sphere = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    product = jax.jit(lambda x: jnp.matmul(x, x.T, precision="highest"))
    base = least(lambda: product(x).block_until_ready())
    rows = [("x @ x.T", base, 1.0)]

    def add(name, run):
        seconds = least(run)
        rows.append((name, seconds, seconds / base))

    cases = [(f"relu MLP, depth {L}", wl.mlp(L), x) for L in DEPTHS]
    cases.append(("relu ResNet, depth 15, alpha 0.1", wl.resnet(15, alpha=0.1), x))
    cases.append(("tanh MLP on the sphere, depth 15", wl.mlp(15, "tanh", 1.2, 0.1), sphere))
    for name, net, points in cases:
        add(name, lambda net=net, points=points: wl.ntk(net, points).block_until_ready())
    for depth in (5, 15):
        biased = wl.mlp(depth, w_std=1.0, b_std=0.3)
        add(
            f"relu MLP with bias, depth {depth}, layer by layer",
            lambda net=biased: wl.ntk(net, x).block_until_ready(),
        )
        slow = textbook(depth)
        add(f"the same by arctan2, depth {depth}", lambda f=slow: f(x, 0.3).block_until_ready())
    plain = wl.prepare(wl.mlp(15), "ntk").by("layers")
    add(
        "relu MLP, depth 15, layer by layer",
        lambda: plain(x).block_until_ready(),
    )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--d", type=int, default=64)
    parser.add_argument("--write", type=Path)
    options = parser.parse_args()
    device = jax.devices()[0]
    lines = [
        f"# Kernels, N = {options.n}, d = {options.d}",
        "",
        f"{device.device_kind} ({device.platform}), {platform.machine()}, JAX {jax.__version__}. "
        "Least of 7 runs; ratios to `x @ x.T` in the same run. Written by `benchmarks/kernels.py`.",
    ]
    for dtype in (jnp.float32, jnp.float64):
        with jax.enable_x64(dtype == jnp.float64):
            rows = measure(options.n, options.d, dtype)
        lines += ["", f"## {np.dtype(dtype).name}", "", "| | ms | ratio |", "|---|---|---|"]
        lines += [f"| {name} | {1e3 * s:.1f} | {r:.2f} |" for name, s, r in rows]
    if device.platform == "cpu":
        lines += ["", "## First call and memory (float32, fresh process)", ""]
        for depth in (2, 15, 200):
            seconds = first_call(f"wl.ntk(wl.mlp({depth}), x).block_until_ready()")
            lines.append(f"- depth {depth}: {seconds:.2f} s, compilation included")
        lines.append(f"- peak memory: {peak_memory(options.n, options.d):.2f} results")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        options.write.write_text(text)


if __name__ == "__main__":
    main()
