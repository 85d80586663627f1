"""Errors of kernels against the recursions in many digits, for every closed-form activation.

Run `python benchmarks/accuracy.py [--write benchmarks/accuracy.md] [--only tanh,silu]`. Errors are relative to
sqrt(k(x, x) k(y, y)); the inputs are an input, one close by in angle and norm, its opposite, twice itself, and one
across. In float32, pairs with |rho| > 1 - 1e-3 are left out.
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import widelimit as wl
from widelimit import testing

# Activation, weights near its edge of chaos, norms at which the kernel is representable.
CASES = {
    "relu": (2**0.5, (1e-150, 1.0, 1e150)),
    "leaky_relu(0.1)": (1.4, (1e-150, 1.0, 1e150)),
    "abs": (1.0, (1e-150, 1.0, 1e150)),
    "erf": (1.2, (1e-150, 1e-3, 1.0, 1e3, 1e8)),
    "gelu": (1.4, (1e-150, 1e-3, 1.0, 1e3, 1e150)),
    "gaussian": (1.2, (1e-150, 1.0, 1e3)),
    "sin": (1.2, (1e-150, 1e-3, 1.0, 30.0)),
    "cos": (1.2, (1e-150, 1e-3, 1.0, 30.0)),
    "tanh": (1.2, (1.0, 30.0, 1e3)),
    "sigmoid": (2.0, (1.0, 30.0, 1e3)),
    "softplus": (1.0, (1.0, 30.0, 1e3)),
    "silu": (1.4, (1.0, 30.0, 1e3)),
}
SUMS = ("tanh", "sigmoid", "softplus", "silu")  # whose oracle adds a thousand terms for each moment


def points(radius):
    a, b = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    return radius * np.stack([a, (a + 1e-5 * b) * (1 + 1e-5), -a, 2 * a, b])


def errors(activation, w_std, radius, depth):
    """The largest errors of both kernels in float64 and in float32."""
    x = points(radius)
    pairs = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 4)]
    digits = 30 if activation in SUMS else 60 if 1e-20 < radius < 1e20 else 700
    setting = {"depth": depth, "activation": activation, "w_std": w_std, "digits": digits}
    exact = lambda i, j: np.array(testing.mpmath_ntk(x[i], x[j], **setting))
    own = [exact(i, i) for i in range(len(x))]
    size = [np.maximum(k, 1e-300) for k in own]  # what is smaller is 0
    net = wl.mlp(depth, activation, w_std=w_std)
    with np.errstate(over="ignore", under="ignore"):
        double = np.stack(wl.kernels(net, x))
        fits = radius in (1.0, 1e3) and depth in (1, 10)  # each compiles a program
        small = jnp.asarray(x, jnp.float32)
        compiled = jax.jit(
            lambda x: tuple(wl.kernels(net, x))
        )  # small matrices are in float64 else
        single = np.stack([np.asarray(k) for k in compiled(small)]) if fits else None
    worst, rough = 0.0, 0.0
    for i, j in pairs:
        want, root = exact(i, j), np.sqrt(size[i]) * np.sqrt(size[j])
        worst = max(worst, *(np.abs(double[:, i, j] - want) / root))
        apart = 1 - abs(x[i] @ x[j]) / np.linalg.norm(x[i]) / np.linalg.norm(x[j]) > 1e-3
        if single is not None and apart:
            rough = max(rough, *(np.abs(single[:, i, j] - want) / root))
    diagonal = [
        np.abs(double[:, i, i] - k) / s for i, (k, s) in enumerate(zip(own, size, strict=True))
    ]
    return max(worst, np.max(diagonal)), rough if fits else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--only", default=",".join(CASES))
    options = parser.parse_args()
    lines = ["# Errors against many digits", "", __doc__.split("\n\n")[1].replace("\n", " "), ""]
    lines += ["| activation | norm | depth | float64 | float32 |", "|---|---|---|---|---|"]
    for name, (w_std, radii) in CASES.items():
        for radius in radii if name in options.only else ():
            for depth in (1,) if name in SUMS else (1, 100) if radius != 1 else (1, 10, 100):
                double, single = errors(name, w_std, radius, depth)
                single = "" if single is None else f"{single:.1e}"
                lines.append(f"| {name} | {radius:g} | {depth} | {double:.1e} | {single} |")
                print(lines[-1], flush=True)
    if options.write:
        options.write.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", False)
    main()
