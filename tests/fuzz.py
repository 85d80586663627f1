"""Random calls of the public functions, misuse included; what is found is shrunk to a line.

`python tests/fuzz.py CALLS SEED` prints the findings: an exception that is no ValueError, TypeError or
NotImplementedError with a sentence of ours, NaN from a call that was accepted, a Gram matrix that is not
symmetric or not positive semidefinite, a correlation above 1, a call of more than a minute.
"""

import decimal
import random
import re
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import widelimit as wl
from widelimit.estimators import NTKClassifier, NTKRegressor

# Kind to its forms, the simplest first; {name} stands for a form of that kind. A form that begins with
# a number and a colon is so many times as frequent.
GRAMMAR = {
    "call": [
        "6:gram(wl.nngp, {net}, {x})",
        "6:gram(wl.ntk, {net}, {x})",
        "2:wl.ntk({net}, {x}, {x})",
        "wl.kernels({net}, {x})",
        "{diagonal}",
        "8:wl.from_text({text})",
        "8:wl.from_json({json})",
        "3:comes_back(wl.from_text, wl.to_text, {net})",
        "3:comes_back(wl.from_json, wl.to_json, {net})",
        "4:wl.ntk({wrong_net}, {x})",
        "4:wl.ntk({net}, {wrong_x})",
        "4:{wrong_net}",
        "wl.latex({net})",
        "wl.shape({net}, {count}, {count})",
        "2:wl.posterior({learner}, {data}, x3(4), noise={any_number}).variance",
        "2:wl.ridge({learner}, {data}, {any_number}).predict(x3(4))",
        "2:wl.train({learner}, {data}).predict(x3(4), t={any_number})",
        "wl.ensemble({learner}, {data}, x3(4), t={any_number}).variance",
        "3:{estimator}.fit({data}).predict(x3(4))",
        "NTKClassifier({parameter}={any_number}).fit(x3(6), [0, 1] * 3).predict_proba(x3(4))",
        "3:wl.optimise(wl.finite({learner}, 4), {data}, {options})",
        "wl.finite({net}, {count}).num_params({count})",
    ],
    "diagonal": ["wl.prepare({net}).diagonal({x})"],
    "net": [
        "4:wl.mlp({depth}, {activation}, w_std={size}, b_std={bias})",
        "3:wl.resnet({depth}, {size}, {activation}, w_std={size})",
        "wl.Dense(w_std={size}, b_std={bias}) >> wl.Phi({activation}) >> wl.Dense()",
        "wl.Dense() >> wl.Scale({size}) >> wl.Phi({activation}) >> wl.Dense()",
    ],
    "learner": ["wl.mlp(2, 'erf', b_std=0.5)", "wl.mlp(1, 'relu', w_std=1.5, b_std=0.1)"],
    "depth": ["1", "2", "0", "5", "30"],
    "activation": ["'relu'", "'erf'"],
    "size": ["1.0", "1.5", "0.5", "np.float32(1.25)", "2", "1e-3", "jnp.asarray(0.75)"],
    "bias": ["0.0", "0.5", "0.1"],
    "x": [
        "3:x3({few})",
        "x3({few}, 1e3)",
        "x3({few}, 1e-5)",
        "x3({few}).astype(np.float32)",
        "twins({few})",
        "np.zeros(({few}, 3))",
        "np.vstack([x3({few}), np.zeros(3)])",
        "-np.eye(3)",
        "jnp.asarray(x3({few}), jnp.float32)",
        "np.arange(6).reshape(2, 3)",
        "x3({few}).tolist()",
    ],
    "few": ["2", "1", "5", "9"],
    "data": ["x3(6), x3(6)[:, 0]", "x3(6), x3(6)", "x3(6), np.zeros(6)", "twins(6), x3(6)[:, 0]"],
    "wrong_x": [
        "None",
        "3",
        "'abc'",
        "[]",
        "x3(2)[0]",
        "x3(2)[None]",
        "np.full((2, 3), np.nan)",
        "[[10**400, 1]]",
        "[[1, 2], [3]]",
        "x3(2) + 1j",
        "np.ma.masked_array(x3(2), x3(2) > 0)",
        "np.full((2, 3), '1e4000').astype(np.longdouble)",
        "np.array([[None, 1]])",
        "{{}}",
        "np.datetime64('2020-01-01')",
    ],
    "wrong_net": [
        "None",
        "'relu'",
        "wl.mlp({any_number})",
        "wl.mlp(2, w_std={any_number})",
        "wl.mlp(2, {any_number})",
        "wl.Repeat({any_number}, 2)",
        "wl.Residual(wl.Phi('relu'), alpha={any_number})",
        "wl.Scale({any_number})",
        "wl.Dense({any_number})",
        "wl.Dense() >> {any_number}",
        "wl.Phi('relu') >> wl.Phi('erf')",
        "wl.Sum()",
        "wl.mlp(1, np.arctan)",
        "wl.mlp(1, lambda v: 1 / v)",
        "wl.mlp(1, lambda v: None)",
        "wl.mlp(1, 'relu_power(1e9)')",
    ],
    "any_number": [
        "1.0",
        "0",
        "0.1",
        "-1",
        "None",
        "'1'",
        "float('nan')",
        "float('inf')",
        "10**400",
        "2**31",
        "1j",
        "[]",
        "{{}}",
        "...",
        "True",
        "np.ones(3)",
        "jnp.asarray(-1.0)",
        "jnp.asarray(1j)",
        "jnp.ones(2)",
        "decimal.Decimal(1)",
        "np.longdouble('1e4000')",
        "object()",
    ],
    "count": ["3", "1", "7", "{any_number}"],
    "estimator": [
        "NTKRegressor({parameter}={any_number})",
        "NTKRegressor(architecture='resnet', {parameter}={any_number})",
        "NTKRegressor(network={text})",
    ],
    "parameter": [
        "depth",
        "w_std",
        "b_std",
        "alpha",
        "ridge",
        "activation",
        "kernel",
        "time",
        "solver",
    ],
    "options": [
        "steps=3",
        "steps={any_number}",
        "steps=3, record={any_number}",
        "steps=3, batch_size={any_number}",
        "steps=3, learning_rate=-1",
        "steps=3, tolerance={any_number}",
        "steps=3, params={any_number}",
        "steps=3, key={any_number}",
        "steps=3, probe={wrong_x}",
        "steps=3, optimiser={any_number}",
        "epochs={any_number}",
        "step=3",
    ],
    "text": ["'{words}'", "'{words}' * {times}", "{any_number}"],
    "words": [
        "3:{word}",
        "2:{word} >> {words}",
        "{word} + {words}",
        "({words})",
        "Residual({words}, alpha={literal})",
        "Repeat({words}, {literal})",
        "{word}{words}",
    ],
    "word": [
        "Dense()",
        "Phi(\\'relu\\')",
        "Dense(w_std={literal})",
        "Dense({literal}, {literal})",
        "Phi({literal})",
        "Scale({literal})",
        "Identity()",
        "Dense(**{{}})",
        "Dense(",
        ")",
        "(",
        "[",
        "-",
        ",",
        "\\\\",
        "#",
        "lambda: 0",
        "__import__(\\'os\\')",
    ],
    "literal": [
        "1",
        "0.5",
        "-2",
        "1e999",
        "nan",
        "None",
        "\\'relu\\'",
        "\\'relu_power(99)\\'",
        "9" * 400,
        "()",
    ],
    "times": ["1", "2", "1000", "20000"],
    "json": [
        "document('{object}')",
        "document('{object}')[:-{times}]",
        "document('{object}') * 2",
        "'[' * {times}",
        "{any_number}",
        "wl.to_json({net}).replace('1.0', '{number}')",
    ],
    "object": [
        '{{"layer": "Dense"}}',
        '{{"layer": "{name}", "{field}": {object}}}',
        '{{"layer": "{name}", "{field}": [{object}, {object}]}}',
        '{{"layer": "{name}", "body": {object}, "{field}": {number}}}',
        '{{"layer": "{name}", "{field}": {number}}}',
        "{number}",
    ],
    "name": ["Dense", "Serial", "Sum", "Repeat", "Residual", "Phi", "Scale", "_Loop", "None"],
    "field": ["layers", "w_std", "body", "times", "activation", "alpha", "branches", "width", "x"],
    "number": [
        "1",
        "0.5",
        "-3",
        "null",
        "NaN",
        "Infinity",
        "1e999",
        "true",
        '"relu"',
        "[]",
        "1" + "0" * 400,
    ],
}
# What `make fuzz` draws from besides: programs for it take long to compile.
WIDER = {
    "activation": [
        *("'gelu'", "'sin'", "'leaky_relu(0.1)'", "'abs'", "'monomial(2)'"),
        *("'tanh'", "'sigmoid'", "'softplus'", "'silu'"),
    ],
    "size": ["0.0", "10.0"],
    "depth": ["100"],
    "x": ["x3({few}, 1e8)", "x3({few}, 1e100)", "x3({few}, 1e-100)", "x3(40)"],
}
# Sentences of Python and NumPy that say nothing about the call.
RAW = re.compile(
    r"The truth value of|\w+\(\) argument must|unsupported operand|'.*' not supported|'\w+' object "
    r"(is not|has no)|only 0-dim|matmul|could not convert|operands could not|int too large"
)
FINE = ValueError, TypeError, NotImplementedError


class Tree(NamedTuple):
    """A form of some kind, and the trees in its places."""

    kind: str
    form: str
    parts: tuple["Tree", ...]

    def __str__(self) -> str:
        parts = iter(map(str, self.parts))
        filled = re.sub(r"(?<!\{)\{(\w+)\}(?!\})", lambda _: next(parts), self.form)
        return filled.replace("{{", "{").replace("}}", "}")


def places(form: str) -> list[str]:
    return re.findall(r"(?<!\{)\{(\w+)\}(?!\})", form)


def forms(kind: str, grammar: dict[str, list[str]]) -> tuple[list[str], list[int]]:
    split = [re.fullmatch(r"(?:(\d+):)?(.*)", form, re.DOTALL) for form in grammar[kind]]
    return [m[2] for m in split if m], [int(m[1] or 1) for m in split if m]


def draw(kind: str, choose: random.Random, grammar: dict[str, list[str]], depth: int = 0) -> Tree:
    known, weights = forms(kind, grammar)
    form = known[0] if depth > 8 else choose.choices(known, weights)[0]
    return Tree(kind, form, tuple(draw(k, choose, grammar, depth + 1) for k in places(form)))


def simpler(tree: Tree, grammar: dict[str, list[str]]) -> Iterator[Tree]:
    """The same call with one part in a simpler form."""
    known, _ = forms(tree.kind, grammar)
    least = random.Random(0)
    if tree.kind != "call":
        for form in known[: known.index(tree.form)]:
            yield Tree(tree.kind, form, tuple(draw(k, least, grammar, 9) for k in places(form)))
    yield from (part for part in tree.parts if part.kind == tree.kind)
    for i, part in enumerate(tree.parts):
        for less in simpler(part, grammar):
            yield tree._replace(parts=(*tree.parts[:i], less, *tree.parts[i + 1 :]))


def x3(n: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(n).standard_normal((n, 3))


def twins(n: int) -> np.ndarray:
    """Points, nearly the same points, and their antipodes."""
    x = x3(n)
    return np.concatenate([x, x * (1 + 1e-9), -x])[: max(n, 2)]


def document(text: str) -> str:
    return f'{{"widelimit": 1, "network": {text}}}'


def comes_back(read, write, net) -> bool:
    return read(write(net)) == net


def gram(kernel, net, x):
    """A kernel matrix that is one: symmetric, positive, with correlations up to 1."""
    found = kernel(net, x)
    k = np.asarray(found, np.float64)
    size = np.sqrt(np.diag(k))
    if np.isfinite(k).all() and size.any():
        slack = 1e-10 if found.dtype == np.float64 else 1e-4
        rho = k / np.where(size > 0, size, 1)[:, None] / np.where(size > 0, size, 1)
        assert np.array_equal(k, k.T), "asymmetric"
        assert np.abs(rho).max() <= 1 + slack, "correlation above 1"
        assert np.linalg.eigvalsh(rho)[0] >= -slack * len(k), "not positive semidefinite"
    return found


NAMES = {
    "np": np,
    "jnp": jnp,
    "wl": wl,
    "NTKRegressor": NTKRegressor,
    "NTKClassifier": NTKClassifier,
    "decimal": decimal,
    "x3": x3,
    "twins": twins,
    "document": document,
    "comes_back": comes_back,
    "gram": gram,
}


def finding(line: str) -> str:
    """What is wrong with a call, in a word; empty if nothing is."""
    started = time.monotonic()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = eval(line, NAMES)
    except FINE as error:
        text = str(error)
        raw = len(text) < 12 or " " not in text or RAW.match(text)
        if raw or type(error).__module__.startswith("jax"):
            return f"{type(error).__name__}: {text[:80]}"
        only_value = line.startswith(("wl.from_text(", "wl.from_json("))
        own = traceback.extract_tb(error.__traceback__)[-1].filename
        if only_value and not isinstance(error, ValueError) and "<string>" not in own:
            return f"{type(error).__name__} instead of ValueError"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    else:
        if value is False:
            return "did not come back"
        leaves = [a for a in jax.tree.leaves(value) if isinstance(a, np.ndarray | jax.Array)]
        if any(
            np.isnan(np.asarray(a)).any() for a in leaves if jnp.issubdtype(a.dtype, jnp.inexact)
        ):
            return "NaN"
    return "slow" if time.monotonic() - started > 60 else ""


def shrunk(tree: Tree, what: str, grammar: dict[str, list[str]]) -> Tree:
    """The simplest call with the same finding that replacing parts one by one leads to."""
    word = what.split(":")[0]
    for _ in range(40):
        found = (t for t in simpler(tree, grammar) if finding(str(t)).split(":")[0] == word)
        less = next(found, None)
        if less is None:
            break
        tree = less
    return tree


def fuzz(calls: int, seed: int, *, wider: bool = False) -> list[str]:
    """Findings in so many random calls, a line each."""
    more = {kind: GRAMMAR[kind] + forms for kind, forms in WIDER.items()}
    grammar = GRAMMAR | (more if wider else {})
    choose = random.Random(seed)
    found = {}
    for number in range(calls):
        if number and number % 100 == 0:
            print(f"{number} calls, {len(found)} findings", file=sys.stderr, flush=True)
        tree = draw("call", choose, grammar)
        what = finding(str(tree))
        if what and len(found) < 30:
            least = shrunk(tree, what, grammar)
            line = f"{finding(str(least))}  <-  {least}"[:400]
            if line not in found:
                print(line, flush=True)
            found[line] = None
    return list(found)


if __name__ == "__main__":
    count, start = int(sys.argv[1]), int(sys.argv[2])
    lines = fuzz(count, start, wider="--few-programs" not in sys.argv)
    print(f"{len(lines)} findings in {count} calls with the seed {start}.")
    sys.exit(bool(lines))
