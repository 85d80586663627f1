"""Kernel regression at N = 8000 against SciPy's bare factorisation; N = 30000 without a matrix.

Run: python benchmarks/linalg.py [--points 8000] [--eigen] [--large 30000] [--steps 100]

Ratios are printed for wall time and for processor time; on a machine that does other work the second
is the one to trust.
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

NET = wl.mlp(3, w_std=2**0.5)


def kernel(a: np.ndarray, b: np.ndarray | None = None) -> np.ndarray:
    return wl.ntk(NET, a, b)


def clock() -> np.ndarray:
    return np.array([time.perf_counter(), time.process_time()])


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def data(n: int, d: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    return x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2] / 2 + 0.1 * rng.standard_normal(n)


def regression(x: np.ndarray, y: np.ndarray, x_test: np.ndarray) -> list[np.ndarray]:
    marks = [clock()]
    factor = cholesky(TiledGram(kernel, x).dense(), 1e-2, overwrite=True)
    marks.append(clock())
    dual = factor.solve(y)
    cross = wl.ntk(NET, x_test, x)
    mean = cross @ dual
    half = factor.half_solve(cross.T, overwrite=True)
    prior = 8 * (x_test**2).mean(1)  # Theta(x, x) = (L + 1) 2 |x|^2 / d
    std = np.sqrt(prior - np.einsum("ij,ij->j", half, half))
    marks.append(clock())
    del cross, half
    errors = leave_one_out(factor, dual)
    marks.append(clock())
    print(f"  mean {mean.mean():.4f}, std {std.mean():.4f}, rms {np.sqrt((errors**2).mean()):.4f}")
    return marks


def bare(x: np.ndarray) -> np.ndarray:
    gram = x @ x.T
    gram[np.diag_indices(len(x))] += len(x)
    rhs = np.random.default_rng(1).standard_normal((len(x), 1000))
    start = clock()
    x @ x.T
    scipy.linalg.cho_solve(scipy.linalg.cho_factor(gram), rhs)
    return clock() - start


def small(n: int, eigen: bool) -> None:
    x, y = data(n + 1000)
    x, x_test, y = x[:n], x[n:], y[:n]
    count = -(-n // 2048)
    TiledGram(kernel, x[: 2 * -(-n // count)]).dense()  # compile
    wl.ntk(NET, x_test, x)
    before = peak()
    marks = regression(x, y, x_test)
    used = (peak() - before) / (n**2 * 8 / 2**30)
    base = bare(x)
    fit, predicted, errors = (m - marks[0] for m in marks[1:])
    print(
        f"N = {n}: SciPy {base[0]:.1f} s, fit {fit[0]:.1f} s, with prediction {predicted[0]:.1f} s"
    )
    print(f"  ratio {predicted[0] / base[0]:.2f} wall, {predicted[1] / base[1]:.2f} processor")
    print(
        f"  and leave-one-out: {errors[0] / base[0]:.2f} wall, {errors[1] / base[1]:.2f} processor"
    )
    print(f"  memory beyond the start: {used:.2f} matrices")
    if eigen:
        start = clock()
        spectrum = eigh(TiledGram(kernel, x).dense(), overwrite=True)
        middle = clock()
        path = ridge_path(spectrum, y, np.logspace(-4, 2, 20))
        one, twenty = middle - start, clock() - middle
        print(
            f"  eigendecomposition {one[0]:.1f} s, 20 ridges {twenty[0]:.1f} s, best {path.ridge:.3g}"
        )


def large(n: int, steps: int) -> None:
    x, y = data(n)
    start = clock()

    def tick(k: int) -> None:
        wall, cpu = clock() - start
        print(f"  step {k}: {wall:.0f} s, processor {cpu:.0f} s, peak {peak():.2f} GiB", flush=True)

    s = conjugate_gradients(TiledGram(kernel, x), y, 1e-1, callback=tick, max_steps=steps)
    print(f"N = {n}: converged {s.converged}, {s.steps} steps, residual {s.residual:.1e}")
    print(f"  {(clock() - start)[0]:.0f} s, peak {peak():.2f} GiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=8000)
    parser.add_argument("--large", type=int, default=0)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--eigen", action="store_true")
    options = parser.parse_args()
    if options.points:
        small(options.points, options.eigen)
    if options.large:
        large(options.large, options.steps)
