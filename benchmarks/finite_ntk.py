"""The structured tangent kernel against Jacobian contraction: time, memory, agreement.

Run as: python benchmarks/finite_ntk.py
"""

import resource
import time

import jax
import jax.numpy as jnp
import numpy as np

import widelimit as wl

POINTS, DEPTH, SMALL, LARGE = 65, 5, 500, 2000


def circle(n):
    angles = np.linspace(-np.pi, np.pi, n)
    return jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], 1), jnp.float32)


def best(f, repeats):
    jax.block_until_ready(f())  # compile
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(f())
        times.append(time.perf_counter() - start)
    return min(times)


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main():
    net, x = wl.resnet(depth=DEPTH, alpha=0.1), circle(POINTS)
    large = wl.finite(net, LARGE)
    params = large.init(0, 2)
    seconds = best(lambda: large.ntk(params, x), 3)
    print(f"structured, n = {LARGE}: {seconds:.3f} s, peak memory {peak():.2f} GiB")
    del params
    small = wl.finite(net, SMALL)
    params = small.init(0, 2)
    fast = best(lambda: small.ntk(params, x), 5)
    slow = best(lambda: wl.empirical_ntk(small.apply, params, x, method="jacobian"), 2)
    a, b = small.ntk(params, x), wl.empirical_ntk(small.apply, params, x, method="jacobian")
    error = float(jnp.max(jnp.abs(a - b)) / jnp.max(jnp.abs(b)))
    print(f"structured, n = {SMALL}: {fast:.4f} s")
    print(f"Jacobian contraction, n = {SMALL}: {slow:.3f} s, {slow / fast:.0f} times slower")
    print(f"largest relative difference: {error:.1e}")


if __name__ == "__main__":
    main()
