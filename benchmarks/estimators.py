"""The regressor at N = 8000 against SciPy's bare factorisation, and at N = 30000 without a matrix.

Fit with a fixed ridge and predict 1000 points with standard deviations, in float64, against
`x @ x.T`, `cho_factor` and `cho_solve` for 1000 right-hand sides in the same process, alternating.

Run: python benchmarks/estimators.py [--points 8000] [--repeats 3] [--choose] [--large 30000]
"""

import argparse
import resource
import time

import numpy as np
import scipy.linalg

from widelimit.estimators import NTKRegressor


def peak() -> float:
    """The largest resident memory so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def resident() -> float:
    """The resident memory now, in GiB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**30


class Clock:
    """Wall-clock and processor seconds; on a busy machine the second is the one to compare."""

    def __init__(self) -> None:
        self._start = self._now()

    def __call__(self) -> np.ndarray:
        """Both since the start."""
        return self._now() - self._start

    @staticmethod
    def _now() -> np.ndarray:
        return np.array([time.perf_counter(), time.process_time()])


def data(n: int, d: int = 50) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    return x, np.sin(x[:, 0]) + x[:, 1] * x[:, 2] / 2 + 0.1 * rng.standard_normal(n)


def bare(x: np.ndarray) -> np.ndarray:
    """Seconds of the same work without a network."""
    right = np.random.default_rng(1).standard_normal((len(x), 1000))
    clock = Clock()
    matrix = x @ x.T
    matrix[np.diag_indices(len(x))] += len(x)
    factor = scipy.linalg.cho_factor(matrix, overwrite_a=True)
    scipy.linalg.cho_solve(factor, right)
    return clock()


def ours(x: np.ndarray, y: np.ndarray, x_test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Seconds of fit and prediction, and with the leave-one-out errors."""
    clock = Clock()
    model = NTKRegressor(ridge=1e-2).fit(x, y)
    model.predict(x_test, return_std=True)
    predicted = clock()
    model.leave_one_out(x, y)
    return predicted, clock()


def small(n: int, repeats: int) -> None:
    x, y = data(n + 1000)
    x, x_test, y = x[:n], x[n:], y[:n]
    NTKRegressor(ridge=1e-2).fit(x[:4200], y[:4200]).predict(x_test, return_std=True)  # compile
    before = resident()
    first = ours(x, y, x_test)
    size = n**2 * 8 / 2**30
    print(f"peak {(peak() - before) / size:.2f} matrices above the start ({peak():.2f} GiB in all)")
    for i in range(repeats):
        base = bare(x)
        plain, with_errors = first if i == 0 else ours(x, y, x_test)
        print(f"SciPy {base[0]:.2f} s")
        for name, took in {"fit and predict": plain, "with leave-one-out": with_errors}.items():
            wall, processor = took / base
            print(f"  {name} {took[0]:.2f} s: {wall:.2f} times ({processor:.2f} of the processor)")


def choose(n: int) -> None:
    x, y = data(n)
    start = time.perf_counter()
    model = NTKRegressor(ridge="loo").fit(x, y)
    took = time.perf_counter() - start
    print(f"N = {n}: 20 ridges in {took:.1f} s, best {model.ridge_:.3g}, peak {peak():.2f} GiB")


def large(n: int) -> None:
    x, y = data(n + 1000)
    start = time.perf_counter()
    model = NTKRegressor(ridge=1e-1).fit(x[:n], y[:n])
    took = time.perf_counter() - start
    outcome = model._fit.outcome
    error = float(np.square(model.predict(x[n:]) - y[n:]).mean())
    print(
        f"N = {n}: {outcome.steps} steps, residual {outcome.residual:.1e}, converged "
        f"{outcome.converged}, {took:.0f} s, peak {peak():.2f} GiB, test error {error:.4f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=8000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--large", type=int, default=0)
    options = parser.parse_args()
    if options.large:
        large(options.large)
    if options.points:
        small(options.points, options.repeats)
        if options.choose:
            choose(options.points)
