"""The pages: the migration table is complete and true, and whatever else is cheap to hold them to."""

import re
from pathlib import Path

import pytest

import widelimit as wl

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "migrating.md"

# Public names of neural-tangents 0.6.5, as `dir` lists them.
THEIRS = {
    "neural_tangents": """
        Kernel NtkImplementation batch empirical_kernel_fn empirical_nngp_fn empirical_ntk_fn
        empirical_ntk_vp_fn experimental linearize monte_carlo_kernel_fn predict stax taylor_expand
    """,
    "neural_tangents.stax": """
        ABRelu Abs Aggregate AggregateImplementation AttentionMechanism AvgPool Bool Conv ConvLocal
        ConvTranspose Cos Dense Diagonal DotGeneral Dropout Elementwise ElementwiseNumerical Erf Exp
        ExpNormalized FanInConcat FanInProd FanInSum FanOut Flatten Gabor Gaussian Gelu GlobalAvgPool
        GlobalSelfAttention GlobalSumPool Hermite Identity ImageResize Index LayerNorm LeakyRelu MaskedArray
        Monomial Padding Polynomial PositionalEmbedding Rbf RectifiedMonomial Relu Sigmoid_like Sign Sin Slice
        SumPool layer parallel repeat requires serial supports_masking unmask_fn
    """,
    "neural_tangents.predict": """
        Gaussian ODEState gp_inference gradient_descent gradient_descent_mse gradient_descent_mse_ensemble
        max_learning_rate
    """,
}
# Words in code that are arguments, or fields.
KEYWORDS = {
    "where",
    "diagonal_axes",
    "trace_axes",
    "eps",
    "nngp",
    "ntk",
    "mean",
    "covariance",
    "std",
    "sample",
    "rate",
}
METHODS = (wl.FiniteNetwork, wl.PreparedKernel, wl.Trained, wl.Predictive, wl.extend.State)


def rows_of(module):
    """The rows of a module's table: the names on the left, the text on the right."""
    section = PAGE.read_text().split(f"## `{module}`\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| (.*?) \| (.*) \|$", section, re.MULTILINE)
    rows = [(re.findall(r"`(\w+)`", left), right) for left, right in found]
    return [(names, right) for names, right in rows if names]


@pytest.mark.parametrize("module", THEIRS)
def test_every_name_of_neural_tangents_is_translated_once(module):
    listed = [name for names, _ in rows_of(module) for name in names]
    assert sorted(listed) == sorted(THEIRS[module].split())


def exists(path):
    """Whether a dotted name is one of ours, a method or a field of ours."""
    thing = wl
    for part in path.split("."):
        if not hasattr(thing, part):
            return any(hasattr(owner, part) for owner in METHODS)
        thing = getattr(thing, part)
    return True


@pytest.mark.parametrize("module", THEIRS)
def test_our_names_in_the_table_exist(module):
    ours = set()
    for names, right in rows_of(module):
        code = re.findall(r"`([^`]+)`", right)
        called = [
            c for span in code for c in re.findall(r"(?<![\w.\"])([A-Za-z_][\w.]*)(?=\()", span)
        ]
        plain = [span for span in code if re.fullmatch(r"[A-Za-z_][\w.]*", span)]
        assert called or plain or "left out" in right or "none" in right, names
        ours |= set(called)
        ours |= {p for p in plain if p not in KEYWORDS}
    ours -= {"lambda", "sqrt", "jnp.exp", "jnp.sin"}
    missing = sorted(name for name in ours if not exists(name))
    assert not missing


def activations_in_the_table():
    text = PAGE.read_text()
    return sorted(set(re.findall(r'Phi\("(\w+(?:\([^")]*\))?)"\)', text)))


def test_activations_in_the_table_are_known():
    filled = {
        "a": "0.5",
        "b": "0.7",
        "c": "0.3",
        "n": "2",
        "s": "1.2",
        "c0": "1",
        "c1": "0.5",
        "c2": "0.2",
    }
    for name in activations_in_the_table():
        real = re.sub(r"\b([a-z]\d?)\b", lambda m: filled[m[1]], name.partition("(")[2])
        head = name.partition("(")[0]
        assert wl.activations.get(f"{head}({real}" if real else head)
