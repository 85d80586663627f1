r"""Writes `src/profiles.json`: what one layer of tanh, silu, softplus, sigmoid does to a pair, as a table.

For inputs of one variance $q$ the layer is described by three functions: the second moment $T(q)$ (over $q$ where
$\varphi(0)=0$), the slope kernel $D(\rho,q)=E[\varphi'(u)\varphi'(v)]$, and its mean
$U=(T-E[\varphi(u)\varphi(v)])/(q(1-\rho))$ between $\rho$ and 1, which keeps the digits of $1-\rho'$ at $\rho=1$. All
are Chebyshev series in $v=\sin\frac\theta2-\cos\frac\theta2$, as in a `Profile`, and in
$w=2\sqrt q/(c+\sqrt q)/w_{max}-1$. The error is measured against the Hermite series between the nodes, all over the
range, and written down; the page refuses variances outside of it.

    python explorer/profiles.py
"""

import base64
import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from widelimit import activations
from widelimit._base.quadrature import hermite_basis

RANGES = {"tanh": 16.0, "sigmoid": 40.0, "silu": 40.0, "softplus": 40.0}  # largest variance
TERMS, NODES = 1000, 1200
IN_V, IN_Q = 72, 64  # Chebyshev nodes
CUT = 2e-13
CERTIFIED = 1e-11
TARGET = Path(__file__).parent / "src" / "profiles.json"


def halves(v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1 - rho and 1 + rho."""
    root = np.sqrt(2 - v**2)
    return (root + v) ** 2 / 2, (root - v) ** 2 / 2


def layer(name: str, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T, U and D by a Hermite series of 1000 terms, all of them positive sums near rho = 1."""
    act = activations.get(name)
    z, basis = hermite_basis(TERMS, NODES)
    with jax.enable_x64(True):
        values = np.asarray(act.fn(jnp.asarray(z[:, None] * np.sqrt(q))))
    square = (basis @ values) ** 2
    minus, plus = halves(v)
    rho = (plus - minus) / 2
    mean, slope = np.zeros((len(v), len(q))), np.zeros((len(v), len(q)))
    power, total = np.ones_like(v), np.ones_like(v)  # rho^(n-1) and 1 + rho + ... + rho^(n-1)
    for n in range(1, TERMS):
        mean += total[:, None] * square[n]
        slope += (n * power)[:, None] * square[n]
        power = power * rho
        total = 1 + rho * total
    return square.sum(axis=0), mean / q, slope / q


def chebyshev(values: np.ndarray, axis: int) -> np.ndarray:
    """Values at Chebyshev nodes to coefficients along an axis."""
    n = values.shape[axis]
    i = np.arange(n)
    turn = 2 / n * np.cos(math.pi * np.outer(i, i + 0.5) / n)
    turn[0] /= 2
    return np.moveaxis(np.tensordot(turn, values, (1, axis)), 0, axis)


def nodes(n: int) -> np.ndarray:
    return np.cos(math.pi * (np.arange(n) + 0.5) / n)


def packed(table: np.ndarray) -> dict:
    """Rows cut where their coefficients vanish; large ones in 64 bits, small ones in 32."""
    size = np.abs(table).max()
    rows, wide, narrow = [], [], []
    for row in np.atleast_2d(table):
        keep = np.nonzero(np.abs(row) > CUT * size)[0]
        row = row[: keep[-1] + 1] if keep.size else row[:0]
        split = np.nonzero(np.abs(row) > 1e-6 * size)[0]
        first = int(split[-1]) + 1 if split.size else 0
        rows.append([first, len(row) - first])
        wide += row[:first].tolist()
        narrow += row[first:].tolist()
    while rows and rows[-1] == [0, 0]:
        rows.pop()
    code = lambda a, t: base64.b64encode(np.asarray(a, t).tobytes()).decode()
    return {"rows": rows, "wide": code(wide, "<f8"), "narrow": code(narrow, "<f4")}


def unpacked(table: dict) -> np.ndarray:
    wide = np.frombuffer(base64.b64decode(table["wide"]), "<f8")
    narrow = np.frombuffer(base64.b64decode(table["narrow"]), "<f4").astype(float)
    out = np.zeros((len(table["rows"]), max(sum(r) for r in table["rows"])))
    for row, (a, b) in zip(out, table["rows"], strict=True):
        row[:a], wide = wide[:a], wide[a:]
        row[a : a + b], narrow = narrow[:b], narrow[b:]
    return out


def profile(name: str) -> dict:
    largest, centre = RANGES[name], 1.0
    act = activations.get(name)
    at_zero = float(act.fn(jnp.zeros(())))
    w_max = math.sqrt(largest) / (centre + math.sqrt(largest))
    to_q = lambda w: (centre * (x := (w + 1) / 2 * w_max) / (1 - x)) ** 2
    w, v = nodes(IN_Q), nodes(IN_V)
    moment, mean, slope = layer(name, np.maximum(to_q(w), 1e-12), v)
    scaled = moment if at_zero else moment / np.maximum(to_q(w), 1e-12)
    tables = {
        "T": packed(chebyshev(scaled, 0)),
        "U": packed(chebyshev(chebyshev(mean, 0), 1)),
        "D": packed(chebyshev(chebyshev(slope, 0), 1)),
    }
    rng = np.random.default_rng(0)
    w, v = np.sort(rng.uniform(-1, 1, 40)), np.sort(rng.uniform(-1, 1, 60))
    w, v = np.append(w, [-0.999, 1.0]), np.append(v, [-1.0, 1.0])
    truth = layer(name, to_q(w), v)
    value = np.polynomial.chebyshev
    found = (
        value.chebval(w, unpacked(tables["T"])[0]) * (1 if at_zero else to_q(w)),
        value.chebgrid2d(v, w, unpacked(tables["U"])),
        value.chebgrid2d(v, w, unpacked(tables["D"])),
    )
    error = max(
        float(np.abs(f - t).max() / np.abs(t).max()) for f, t in zip(found, truth, strict=True)
    )
    print(f"{name}: error {error:.1e}, {len(json.dumps(tables)) / 1000:.0f} kB")
    assert error < CERTIFIED, (name, error)
    return {
        "name": name,
        "latex": act.latex,
        "zero": at_zero,
        "largest": largest,
        "centre": centre,
        "error": float(f"{error:.1e}"),
        **tables,
    }


if __name__ == "__main__":
    out = {"schema": "widelimit.layer-profiles/1", "layers": [profile(name) for name in RANGES]}
    TARGET.write_text(json.dumps(out, separators=(",", ":")) + "\n")
    print(TARGET, TARGET.stat().st_size)
