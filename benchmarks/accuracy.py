"""Errors of the kernels in units in the last place, against many digits, beside neural-tangents.

Run `python benchmarks/accuracy.py --write [--predecessor PYTHON] [--only relu,erf]`: it measures the kernels on the
device that JAX finds, adds them as a column to `benchmarks/accuracy.json`, and writes `benchmarks/accuracy.md` from it.
`--predecessor` takes the Python of an environment with neural-tangents 0.6.5 (`benchmarks/predecessor.py` builds one)
and measures that as well, on the same points. `--exact` computes the many digits anew (`benchmarks/accuracy_exact.npz`;
ten minutes). `--jobs N` measures N activations at a time, each in a process of its own: two minutes on a machine with
16 cores and a GPU.

One unit is eps * sqrt(k(x, x) k(y, y)) with eps = 2^-52 in double and 2^-23 in single precision: on the diagonal the
last place of the value. Inputs and numbers of the networks are representable in single precision, so both are held to
the same digits. What is measured is a matrix of 160 points, which runs the programs for large data.
"""

import argparse
import concurrent.futures
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
EXACT, FOUND, PAGE = HERE / "accuracy_exact.npz", HERE / "accuracy.json", HERE / "accuracy.md"
FAR = (1e-140, 1e140)  # double precision only
HOMOGENEOUS, BOUNDED = (1e-3, 1.0, 1e3, *FAR), (1e-3, 1.0, 1e3, FAR[0])

# Activation: weights near its edge of chaos, depths, norms of inputs at which kernels are representable.
CASES = {
    "relu": (1.4142135, (1, 10, 100), HOMOGENEOUS),
    "leaky_relu(0.125)": (1.4, (1, 10, 100), HOMOGENEOUS),
    "abs": (1.0, (1, 10, 100), HOMOGENEOUS),
    "step": (1.4142135, (1, 10, 100), (1e-3, 1.0, 1e3)),
    "sign": (1.0, (1, 10, 100), (1e-3, 1.0, 1e3)),
    "relu_power(2)": (0.8, (1, 3), (1.0,)),
    "erf": (1.2, (1, 10, 100), (*BOUNDED, 1e8)),
    "gelu": (1.4, (1, 10, 100), HOMOGENEOUS),
    "sin": (1.2, (1, 10, 100), (1e-3, 1.0, 30.0)),
    "cos": (1.2, (1, 10, 100), (1e-3, 1.0, 30.0)),
    "gaussian": (1.2, (1, 10, 100), BOUNDED),
    "exp": (0.5, (1, 3), (1e-3, 1.0)),
    "monomial(3)": (0.5, (1, 2), (1.0,)),
    "hermite(3)": (0.5, (1, 3), (1.0,)),
    "tanh": (1.2, (1, 5), (1.0, 30.0)),
    "sigmoid": (2.0, (1, 5), (1.0, 30.0)),
    "softplus": (1.0, (1, 5), (1.0, 30.0)),
    "silu": (1.4, (1, 5), (1.0, 30.0)),
}
BIASES = (0.0, 0.25)
SUMS = ("tanh", "sigmoid", "softplus", "silu")  # whose exact moments are sums of a thousand terms
WITHOUT_NTK = ("step", "sign")


def cases(only=None):
    """Every network and norm: its key, then activation, w_std, b_std, depth, norm."""
    for name, (w_std, depths, norms) in CASES.items():
        for depth in depths if not only or name in only else ():
            for norm in norms:
                for b_std in BIASES:
                    yield (
                        f"{name}|{depth}|{norm:g}|{b_std:g}",
                        name,
                        float(np.float32(w_std)),
                        b_std,
                        depth,
                        norm,
                    )


def points(name, norm):
    """The inputs that are compared: equal, nearly equal, longer, opposite, across; then three at random."""
    a, b = np.array([0.6, 0.0, 0.8]), np.array([0.0, 1.0, 0.0])
    near, nearer = (a + 1e-2 * b) * 1.01, (a + 1e-5 * b) * (1 + 1e-5)
    rest = np.random.default_rng(7).standard_normal((3, 3))
    x = np.stack([a, nearer, 2 * a, b, -a, near, *rest])[: 5 if name in SUMS else 9]
    if norm in FAR:
        return x.astype(np.float32).astype(float) * 2.0 ** round(np.log2(norm))  # exact
    return (norm * x).astype(np.float32).astype(float)


def filled(x, size=160):
    """The same with others of like norms behind, up to a size at which the programs for large data run."""
    rng = np.random.default_rng(3)
    more = rng.standard_normal((size - len(x), x.shape[1]))
    more *= (
        np.linalg.norm(x[0])
        * rng.uniform(1, 2, (len(more), 1))
        / np.linalg.norm(more, axis=1)[:, None]
    )
    return np.concatenate([x, more])


def exact_matrix(name, w_std, b_std, depth, norm):
    """NNGP and NTK of all pairs by the recursions in many digits, each as two doubles that add up to it."""
    import mpmath as mp

    from widelimit.activations import exact_dual, get

    digits = 30 if name in SUMS else 700 if norm in FAR else 60
    x = points(name, norm)
    with mp.workdps(digits):
        dual = _steps(mp, name) if name in WITHOUT_NTK else exact_dual(get(name))
        w2, b2 = mp.mpf(w_std) ** 2, mp.mpf(b_std) ** 2
        inner = lambda u, v: sum(mp.mpf(s) * mp.mpf(t) for s, t in zip(u, v, strict=True)) / len(u)
        start = lambda u, v: w2 * inner(u, v) + b2
        chains = []  # variances layer by layer
        for u in x:
            chain = [start(u, u)]
            for _ in range(depth):
                chain.append(w2 * dual(chain[-1], chain[-1], chain[-1])[0] + b2)
            chains.append(chain)
        out = {"nngp": [], "ntk": []}
        for i in range(len(x)):
            for j in range(i, len(x)):
                k = theta = start(x[i], x[j])
                for a, b in zip(chains[i][:-1], chains[j][:-1], strict=True):
                    value, slope = dual(a, b, k)
                    k = w2 * value + b2
                    theta = k + w2 * slope * theta
                for kind, number in (("nngp", k), ("ntk", theta)):
                    high = float(number)
                    low = float(number - mp.mpf(high)) if np.isfinite(high) else 0.0
                    out[kind].append([high, low])
    if name in WITHOUT_NTK:
        del out["ntk"]
    return out


def _steps(mp, name):
    """The moments of the step and of the sign, which have no tangent kernel."""
    angle = lambda a, b, c: mp.acos(min(max(c / mp.sqrt(a * b), mp.mpf(-1)), mp.mpf(1)))
    if name == "step":
        return lambda a, b, c: ((mp.pi - angle(a, b, c)) / (2 * mp.pi), mp.mpf(0))
    return lambda a, b, c: (1 - 2 * angle(a, b, c) / mp.pi, mp.mpf(0))


def make_exact(only):
    known = dict(np.load(EXACT)) if EXACT.exists() else {}
    for key, *case in cases(only):
        for kind, numbers in exact_matrix(*case).items():
            known[f"{key}|{kind}"] = np.array(numbers)
        print(key, flush=True)
    wanted = {key for key, *_ in cases()}
    np.savez_compressed(EXACT, **{k: v for k, v in known.items() if k.rsplit("|", 1)[0] in wanted})


def our_kernels(name, w_std, b_std, depth, x, dtype):
    import jax
    import jax.numpy as jnp

    import widelimit as wl

    net = wl.mlp(depth, name, w_std=w_std, b_std=b_std)
    with jax.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        array = jnp.asarray(filled(x), dtype)
        both = (wl.nngp(net, array),) if name in WITHOUT_NTK else wl.kernels(net, array)
        return [np.asarray(k, float)[: len(x), : len(x)] for k in both]


def their_kernels(name, w_std, b_std, depth, x, dtype):
    import jax
    import jax.numpy as jnp
    from jax.experimental import enable_x64
    from neural_tangents import stax

    phi = {
        "relu": stax.Relu,
        "leaky_relu(0.125)": lambda: stax.LeakyRelu(0.125),
        "abs": stax.Abs,
        "step": lambda: stax.RectifiedMonomial(0),
        "sign": stax.Sign,
        "relu_power(2)": lambda: stax.RectifiedMonomial(2),
        "erf": stax.Erf,
        "gelu": stax.Gelu,
        "sin": stax.Sin,
        "cos": stax.Cos,
        "gaussian": stax.Gaussian,
        "exp": stax.Exp,
        "monomial(3)": lambda: stax.Monomial(3),
        "hermite(3)": lambda: stax.Hermite(3),
        "tanh": lambda: stax.ElementwiseNumerical(jnp.tanh, 25),
        "sigmoid": lambda: stax.ElementwiseNumerical(jax.nn.sigmoid, 25),
        "softplus": lambda: stax.ElementwiseNumerical(jax.nn.softplus, 25),
        "silu": lambda: stax.ElementwiseNumerical(jax.nn.silu, 25),
    }[name]()
    dense = stax.Dense(1, w_std, b_std)
    kernel = stax.serial(*[dense, phi] * depth, dense)[2]
    wanted = ("nngp",) if name in WITHOUT_NTK else ("nngp", "ntk")
    with enable_x64(dtype == "float64"), np.errstate(all="ignore"):  # else double is used anyway
        found = kernel(jnp.asarray(x, dtype), None, wanted)
        assert all(k.dtype == dtype for k in found)
        return [np.asarray(k, float) for k in found]


def units(found, want, dtype):
    """The errors of all pairs in units in the last place."""
    n = len(found)
    i, j = np.triu_indices(n)
    high, low = want.T
    diagonal = np.sqrt(np.abs(high[i == j]))
    with np.errstate(all="ignore"):
        error = np.abs((found[i, j] - high) - low) / (diagonal[i] * diagonal[j])
    zero = (diagonal[i] * diagonal[j] == 0) & (found[i, j] == 0)  # smaller than any number
    error[zero] = 0.0
    return error / np.finfo(dtype).eps


def measure(kernels, only):
    """For each activation, depth, precision and kernel: the errors of all norms, biases and pairs."""
    exact, out = np.load(EXACT), {}
    for key, name, w_std, b_std, depth, norm in cases(only):
        x = points(name, norm)
        for dtype in ("float64",) if norm in FAR or norm > 1e6 else ("float64", "float32"):
            every = kernels(name, w_std, b_std, depth, x, dtype)
            for kind, found in zip(("nngp", "ntk"), every, strict=False):
                where = f"far {dtype}" if norm in FAR or norm > 1e6 else dtype
                errors = units(found, exact[f"{key}|{kind}"], dtype)
                out.setdefault(f"{kind}|{where}|{name}|{depth}", []).extend(errors.tolist())
        print(key, file=sys.stderr, flush=True)
    return {key: summary(np.array(errors)) for key, errors in out.items()}


def summary(errors):
    fine = errors[np.isfinite(errors)]
    worst, mean = (float(fine.max()), float(fine.mean())) if fine.size else (0.0, 0.0)
    return {
        "max": worst,
        "mean": mean,
        "cases": errors.size,
        "not finite": int(errors.size - fine.size),
    }


def device():
    import jax

    first = jax.devices()[0]
    return "CPU" if first.platform == "cpu" else first.device_kind


def inside(only, jobs):
    """In a process of its own: the errors of one library, printed as JSON."""
    if jobs:
        print(json.dumps({"errors": measure(our_kernels, only)}))
        return

    import jax

    made = f"neural-tangents 0.6.5, JAX {jax.__version__}, {platform.machine()}"
    print(json.dumps({"made": made, "errors": measure(their_kernels, only)}))


def ours(only, jobs):
    """Our errors, by several processes if asked for."""
    names = only or list(CASES)
    if jobs == 1:
        return measure(our_kernels, names)
    environment = {**os.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}

    def one(name):
        command = [sys.executable, __file__, "--inside", "--jobs", "1", "--only", name]
        told = subprocess.run(
            command, check=True, stdout=subprocess.PIPE, text=True, env=environment
        )
        return json.loads(told.stdout)["errors"]

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:  # the longest first
        found = dict(zip(names[::-1], pool.map(one, names[::-1]), strict=True))
    parts = [found[name] for name in names]
    kinds = [
        kind for kind in TITLES if any(k.startswith(f"{kind}|") for part in parts for k in part)
    ]
    return {
        k: v
        for kind in kinds
        for part in parts
        for k, v in part.items()
        if k.startswith(f"{kind}|")
    }


def cell(column, key):
    found = column["errors"].get(key)
    if found is None:
        return "–"
    if found["not finite"] == found["cases"]:
        return "not finite"
    number = lambda v: f"{v:.2g}" if v < 1e4 else f"{v:.0e}"
    text = f"{number(found['max'])} ({number(found['mean'])})"
    return f"{text}, {found['not finite']} not finite" if found["not finite"] else text


TITLES = {
    "ntk|float64": "Tangent kernel, double precision",
    "nngp|float64": "NNGP kernel, double precision",
    "ntk|float32": "Tangent kernel, single precision",
    "nngp|float32": "NNGP kernel, single precision",
    "ntk|far float64": "Tangent kernel, double precision, norms of 1e-140, 1e8 and 1e140",
    "nngp|far float64": "NNGP kernel, double precision, norms of 1e-140, 1e8 and 1e140",
}


def page(columns):
    names = sorted(columns, key=lambda c: (not c.startswith("widelimit"), c != "widelimit, CPU", c))
    lines = ["# Errors in units in the last place", ""]
    lines += [
        "Largest error, and in parentheses the mean. " + __doc__.split("\n\n")[2].replace("\n", " ")
    ]
    lines += [
        "",
        "The oracle is the recursion of Jacot, Gabriel and Hongler (2018) in 60 digits (700 for far norms; 30 for "
        "tanh, sigmoid, softplus and silu), with the moments in closed form. A case is a pair of inputs of a network: "
        "equal, nearly equal in angle and in norm (1e-5 and 1e-2), one twice the other, opposite, across, at random; "
        "norms from 1e-3 to 1e3; without bias and with b_std = 0.25. neural-tangents has no closed form for the last "
        "four activations: there stands its `ElementwiseNumerical(fn, deg=25)`, a rule of 25 nodes that large "
        "variances outgrow; its `Hermite` is meant for inputs of unit norm, as it says. "
        "Written by `benchmarks/accuracy.py`.",
        "",
        *(f"- **{name}**: {columns[name]['made']}" for name in names),
    ]
    for kind, title in TITLES.items():
        rows = [k for k in columns[names[0]]["errors"] if k.rsplit("|", 2)[0] == kind]
        lines += ["", f"## {title}", "", f"| activation | depth | cases | {' | '.join(names)} |"]
        lines += ["|---|---|---|" + "---|" * len(names)]
        for row in rows:
            name, depth = row.split("|")[2:]
            count = columns[names[0]]["errors"][row]["cases"]
            cells = " | ".join(cell(columns[c], row) for c in names)
            lines.append(f"| {name} | {depth} | {count} | {cells} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--write", nargs="?", type=Path, const=HERE, help="folder, default: benchmarks"
    )
    parser.add_argument("--predecessor", help="the Python of an environment with neural-tangents")
    parser.add_argument("--only", type=lambda s: s.split(","), help="activations, default: all")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--exact", action="store_true", help="compute the many digits anew")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        inside(options.only, options.jobs)
        return
    if options.exact:
        make_exact(options.only)
        return
    import jax

    import widelimit as wl

    other = None
    if options.predecessor:  # beside ours
        command = [options.predecessor, __file__, "--inside", "--jobs", "0"]
        command += ["--only", ",".join(options.only)] if options.only else []
        other = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    made = f"widelimit {wl.__version__}, JAX {jax.__version__}, {platform.machine()}"
    found = {"made": made, "errors": ours(options.only, options.jobs)}
    text = keep(f"widelimit, {device()}", found, options)
    if other:
        told, _ = other.communicate()
        if other.returncode:
            raise SystemExit("neural-tangents could not be measured.")
        text = keep("neural-tangents, CPU", json.loads(told), options)
    print(text)


def keep(name, column, options):
    """Add a column to what is stored, and write the page; its text."""
    columns = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    old = columns.get(name, {"errors": {}})["errors"] if options.only else {}
    columns[name] = {"made": column["made"], "errors": {**old, **column["errors"]}}
    text = page(columns)
    if options.write:
        (options.write / FOUND.name).write_text(json.dumps(columns, indent=1) + "\n")
        (options.write / PAGE.name).write_text(text)
    return text


if __name__ == "__main__":
    main()
