"""Kernel regression at N = 8000 against SciPy's bare factorisation; N = 30000 without a matrix.

Run: python benchmarks/linalg.py [--points 8000] [--large 30000] [--skip-small] [--eigen]
"""

import argparse
import resource
import time

import numpy as np
import scipy.linalg

import widelimit as wl
from widelimit.linalg import (
    TiledGram,
    cholesky,
    conjugate_gradients,
    eigh,
    leave_one_out,
    ridge_path,
)


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def data(n: int, d: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    return x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2] / 2 + 0.1 * rng.standard_normal(n)


def small(n: int, eigen: bool) -> None:
    net = wl.mlp(3, w_std=2**0.5)
    kernel = lambda a, b=None: wl.ntk(net, a, b)
    x, y = data(n + 1000)
    x, x_test, y = x[:n], x[n:], y[:n]
    TiledGram(kernel, x[:4096]).dense()  # compile
    before = peak()
    start = time.perf_counter()
    matrix = TiledGram(kernel, x).dense()
    made = time.perf_counter()
    factor = cholesky(matrix, 1e-2, overwrite=True)
    factored = time.perf_counter()
    dual = factor.solve(y)
    cross = wl.ntk(net, x_test, x)
    scale = 4 * 2 * (x_test**2).mean(1)  # Theta(x, x) = (L + 1) 2 |x|^2 / d
    mean = cross @ dual
    half = factor.half_solve(cross.T, overwrite=True)
    std = np.sqrt(scale - np.einsum("ij,ij->j", half, half))
    del mean, std, half, cross
    end = time.perf_counter()
    print(
        f"matrix {made - start:.2f} s, factor {factored - made:.2f} s, predict {end - factored:.2f} s"
    )
    errors = leave_one_out(factor, dual)
    last = time.perf_counter()
    gib = n**2 * 8 / 2**30
    print(f"leave-one-out {last - end:.2f} s, rms {np.sqrt((errors**2).mean()):.3f}")
    print(f"peak {(peak() - before) / gib:.2f} matrices above the start ({peak():.2f} GiB in all)")
    del matrix, factor, errors
    gram = x @ x.T
    gram[np.diag_indices(n)] += n
    rhs = np.random.default_rng(1).standard_normal((n, 1000))
    start_scipy = time.perf_counter()
    x @ x.T
    scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram), rhs)
    base = time.perf_counter() - start_scipy
    print(
        f"SciPy {base:.2f} s; ratio {(end - start) / base:.2f}, with leave-one-out {(last - start) / base:.2f}"
    )
    if eigen:
        start = time.perf_counter()
        path = ridge_path(
            eigh(TiledGram(kernel, x).dense(), overwrite=True), y, np.logspace(-4, 2, 20)
        )
        print(f"20 ridges {time.perf_counter() - start:.1f} s, best {path.ridge:.3g}")


def large(n: int) -> None:
    net = wl.mlp(3, w_std=2**0.5)
    x, y = data(n)
    start = time.perf_counter()
    tick = lambda k: print(f"  step {k}, {time.perf_counter() - start:.0f} s", flush=True)
    gram = TiledGram(lambda a, b=None: wl.ntk(net, a, b), x)
    s = conjugate_gradients(gram, y, 1e-1, callback=tick)
    print(
        f"N = {n}: {s.steps} steps, residual {s.residual:.1e}, converged {s.converged}, "
        f"{time.perf_counter() - start:.0f} s, peak {peak():.2f} GiB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=8000)
    parser.add_argument("--large", type=int, default=0)
    parser.add_argument("--eigen", action="store_true")
    options = parser.parse_args()
    if options.points:
        small(options.points, options.eigen)
    if options.large:
        large(options.large)
