"""Products without the matrix, matrices written out, and solutions, on whatever JAX computes with.

Times of matrices are ratios to `x @ x.T` at full precision; those of products are seconds for each of the n^2 entries,
with the error in some rows against float64. On one H200 it takes two minutes, `--solve 1000000` four more.

Run: python benchmarks/scale.py [--points 131072] [--matrix 32768] [--solve 100000 500000x784x16 ...] [--once 10000000]

`--solve` takes points, points x features or points x features x outputs; `--once` measures two products of so many
points, with what it takes to begin; 0 leaves a part out.
"""

import argparse
import functools
import json
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import widelimit as wl

NET = wl.mlp(5)
KERNEL = wl.prepare(NET, "ntk")


def say(**row: object) -> None:
    """One line."""
    tidy = lambda v: float(f"{v:.4g}") if isinstance(v, float) else v
    print(json.dumps({name: tidy(v) for name, v in row.items()}), flush=True)


def timed(function: Callable[[], Any], repeats: int = 5) -> float:
    """The median of some runs after the first, in seconds."""
    jax.block_until_ready(function())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(function())
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def sphere(n: int, d: int) -> np.ndarray:
    """Unit vectors."""
    x = np.random.default_rng(0).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def products(n: int) -> None:
    """K v for one and for 16 vectors."""
    for d in (32, 128, 784):
        x = sphere(n, d)
        operator = KERNEL.operator(x, "float32")
        rows = np.unique(np.linspace(0, n - 1, 256).astype(int))
        for k in (1, 16):
            v = np.random.default_rng(1).standard_normal((n, k))
            exact = KERNEL(x[rows], x) @ v
            with jax.enable_x64(True):
                there = jnp.asarray(v)
                found = np.asarray(operator @ there)[rows]
                seconds = timed(functools.partial(operator.__matmul__, there), 3)
            error = float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
            say(what="product", n=n, d=d, outputs=k, seconds_an_entry=seconds / n**2, error=error)


def matrices(n: int) -> None:
    """The matrix written out, JAX arrays in and out."""
    radii = np.random.default_rng(2).uniform(0.5, 2, (n, 1))
    for dtype in ("float32", "float64"):
        with jax.enable_x64(True):
            x = jnp.asarray(sphere(n, 128), dtype)
            bare = timed(functools.partial(jnp.matmul, x, x.T, precision="highest"))
            nets = {"profile, any depth": (NET, x)}
            for depth in (5, 15):
                name = f"layer by layer, biases, depth {depth}"
                nets[name] = (wl.mlp(depth, b_std=0.1), x * radii.astype(dtype))
            for name, (net, z) in nets.items():
                seconds = timed(functools.partial(wl.ntk, net, z))
                say(
                    what="matrix",
                    n=n,
                    dtype=dtype,
                    path=name,
                    ms=1e3 * seconds,
                    ratio=seconds / bare,
                )


def solutions(problems: list[str]) -> None:
    """Kernel ridge regression on noisy teachers, twice: the first run compiles; then to 1e-10."""
    for text in problems:
        n, d, k = (*map(int, text.split("x")), *(32, 1)[text.count("x") :])
        rng, x = np.random.default_rng(0), sphere(n, d)
        y = np.maximum(x @ rng.standard_normal((d, 64)), 0) @ rng.standard_normal((64, k))
        y = (y - y.mean(0)) / y.std(0) + 0.1 * rng.standard_normal((n, k))
        for tolerance in (1e-6, 1e-6, 1e-10) if n <= 200_000 else (1e-6, 1e-10):
            start = time.perf_counter()
            done = wl.ridge(NET, x, y, 1e-3, solver="cg", tolerance=tolerance).outcome
            assert done is not None
            say(
                what="solution",
                n=n,
                features=d,
                outputs=k,
                seconds=time.perf_counter() - start,
                steps=done.steps,
                rounds=done.rounds,
                residual=done.residual,
                rank=done.rank,
            )


def once(n: int) -> None:
    """Two products of many points."""
    x, start = sphere(n, 32).astype(np.float32), time.perf_counter()
    operator = KERNEL.operator(x, "float32")
    say(what="operator", n=n, seconds=time.perf_counter() - start)
    with jax.enable_x64(True):
        v = jnp.asarray(np.random.default_rng(1).standard_normal((n, 1)))
        for _ in range(2):
            start = time.perf_counter()
            jax.block_until_ready(operator @ v)
            seconds = time.perf_counter() - start
            say(what="product", n=n, seconds=seconds, seconds_an_entry=seconds / n**2)


def main() -> None:
    """Print one line for each measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=131072)
    parser.add_argument("--matrix", type=int, default=32768)
    parser.add_argument("--solve", nargs="*", default=["100000"])
    parser.add_argument("--once", type=int, default=0)
    options = parser.parse_args()
    say(device=jax.devices()[0].device_kind, jax=jax.__version__)
    solutions(options.solve)
    for measure, size in (
        (products, options.points),
        (matrices, options.matrix),
        (once, options.once),
    ):
        if size:
            measure(size)


if __name__ == "__main__":
    main()
