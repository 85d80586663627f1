"""Writes `tests/golden.json`: kernels and flow predictions by the library, which the page must reproduce.

python explorer/golden.py
"""

import json
import math
from pathlib import Path

import numpy as np

import widelimit as wl

TARGET = Path(__file__).parent / "tests" / "golden.json"
CLOSED = ["relu", "leaky_relu(0.1)", "abs", "erf", "gelu", "gaussian", "sin", "cos", "identity"]
TABLES = ["tanh", "silu", "softplus", "sigmoid"]


def network(kind: str, act: str, depth: int, w: float, b: float, alpha: float) -> wl.Layer:
    """The page's family: a bias, where there is one, in each branch and in the output."""
    if kind == "mlp":
        return wl.mlp(depth, act, w, b)
    if b == 0:
        return wl.resnet(depth, alpha, act, w)
    block = wl.Dense(w_std=w, b_std=b) >> wl.Phi(act) >> wl.Dense()
    output = wl.Dense(w_std=w, b_std=b)
    return wl.Dense() >> wl.Repeat(wl.Residual(block, alpha=alpha), depth) >> output


def settings() -> list[dict]:
    """Networks all over the sliders, a hundred of them; the tables only where they are certified."""
    rng = np.random.default_rng(14)
    found = []
    for act in [*CLOSED, *TABLES]:
        table = act in TABLES
        for k in range(8):
            kind = "mlp" if k % 2 else "resnet"
            found.append(
                {
                    "kind": kind,
                    "act": act,
                    "depth": int([1, 2, 3, 5, 10, 20, 50, 100][k]),
                    "w": round(float(rng.uniform(0.6, 1.3 if table or k > 5 else 2.2)), 2),
                    "b": round(float(rng.choice([0.0, 0.1, 0.5, 1.0])), 2),
                    "alpha": round(float(10 ** rng.uniform(-3, -0.5 if k > 4 else 0.3)), 3),
                }
            )
    return found


def points(angle: np.ndarray) -> np.ndarray:
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def write() -> dict:
    angle = np.array([0.0, 1e-4, 0.01, 0.1, 0.5, 1.0, math.pi / 2, 2.0, 3.0, 3.1415])
    line = [[-1.5, 1.0], [-0.2, 1.0], [-0.19, 1.0], [0.0, 1.0], [0.7, 1.0], [2.0, 1.0]]
    kernels, flows = [], []
    for net in settings():
        made = network(**net)
        both = wl.kernels(made, points(np.zeros(1)), points(angle))
        entry = {"net": net, "ntk": both.ntk[0].tolist(), "nngp": both.nngp[0].tolist()}
        if net["act"] in CLOSED:
            entry["line"] = wl.ntk(made, np.array(line[:1]), np.array(line))[0].tolist()
        kernels.append(entry)
    rng = np.random.default_rng(15)
    for k in range(10):
        act = [*CLOSED[:5], *CLOSED[6:7], *TABLES][k]
        net = {"kind": "mlp", "act": act, "depth": 3, "w": 2.0, "b": 0.1, "alpha": 0.5}
        net["kind"] = "resnet" if k % 3 == 1 else "mlp"
        # Few points far apart: errors of the kernel are multiplied by the condition number.
        b = (np.arange(4) * math.pi / 2 - 3 + rng.uniform(0, 1, 4)).round(4)
        y = rng.uniform(-1, 1, 4).round(4)
        test = rng.uniform(-math.pi, math.pi, 5).round(4)
        model = wl.train(network(**net), points(b), y)
        times = [0.1, 3.0, 100.0, None]
        flows.append(
            {
                "net": net,
                "b": b.tolist(),
                "y": y.tolist(),
                "test": test.tolist(),
                "t": times,
                "f": [np.asarray(model.predict(points(test), t)).tolist() for t in times],
                "condition": model.condition,
            }
        )
    found = {"angle": angle.tolist(), "line": line, "kernels": kernels, "flows": flows}
    return found | {"measures": measures()}


def measures() -> list[dict]:
    """Kink and smoothness of a few networks, for nine samples of the papers' target."""
    b = (-math.pi + 2 * math.pi * np.arange(9) / 9).round(4)
    y = (np.cos(b) / 2 + np.sin(4 * b)).round(3)
    gauss = wl.smoothness.interpolate("gaussian", b, y)
    found = []
    for kind, act, depth, w, bias, alpha in (
        ("mlp", "relu", 5, 1.0, 0.0, 0.1),
        ("resnet", "relu", 5, 1.0, 0.0, 0.1),
        ("resnet", "leaky_relu(0.1)", 10, 1.3, 0.2, 0.5),
        ("mlp", "erf", 5, 1.0, 0.0, 0.1),
        ("mlp", "tanh", 3, 1.5, 0.1, 0.1),
    ):
        net = network(kind, act, depth, w, bias, alpha)
        f = wl.smoothness.interpolate(net, b, y)
        found.append(
            {
                "net": {
                    "kind": kind,
                    "act": act,
                    "depth": depth,
                    "w": w,
                    "b": bias,
                    "alpha": alpha,
                },
                "points": np.stack([b, y], 1).tolist(),
                "kink": wl.spectrum.kink(net),
                "second": float(wl.smoothness.second_derivative(f)),
                "gaussian": float(wl.smoothness.gaussian_rkhs(f, gauss)),
            }
        )
    return found


if __name__ == "__main__":
    out = write()
    count = sum(len(v) for k in out["kernels"] for v in k.values() if isinstance(v, list))
    print(count, "kernel values,", sum(len(f) for g in out["flows"] for f in g["f"]), "predictions")
    TARGET.write_text(json.dumps(out, separators=(",", ":")) + "\n")
    print(TARGET.stat().st_size, [f"{f['condition']:.1e}" for f in out["flows"]])
