"""How results show themselves: short lines, well-formed tables, nothing unescaped, no walls of numbers."""

import xml.dom.minidom

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.sin(X[:, 0])
NET = wl.mlp(2, b_std=0.3)
FINITE = wl.finite(NET, width=64)

RESULTS = {
    "a network": lambda: NET,
    "Kernels": lambda: wl.kernels(NET, X),
    "Trace": lambda: wl.trace(NET, X),
    "Profile": lambda: wl.profile(wl.mlp(3)),
    "FiniteNetwork": lambda: FINITE,
    "Training": lambda: wl.optimise(FINITE, X, Y, steps=3, optimiser="momentum"),
    "Trained": lambda: wl.train(NET, X, Y),
    "Posterior": lambda: wl.posterior(NET, X, Y, noise=0.1),
    "Predictive": lambda: wl.posterior(NET, X, Y, X, noise=0.1),
    "Ridge": lambda: wl.ridge(NET, X, Y, 0.1),
    "Problem": lambda: wl.train(None, wl.ntk(NET, X), Y, kernel="precomputed").problem,
    "Spectrum": lambda: wl.spectrum.circle(wl.mlp(2), 40),
    "TaylorModel": lambda: wl.linearise(FINITE.apply, FINITE.init(0, 3)),
    "PhaseDiagram": lambda: wl.signal.phase_diagram("relu", [1.0, 2.0], [0.0, 0.1]),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_line_and_a_table(name):
    result = RESULTS[name]()
    line = repr(result)
    assert len(line) < 500
    assert "\n" not in line
    assert "array(" not in line
    assert line.startswith(("Repeat", type(result).__name__))
    table = xml.dom.minidom.parseString(result._repr_html_())
    rows = table.getElementsByTagName("tr")
    assert 2 <= len(rows) <= 14
    assert "color:#" not in result._repr_html_()


def test_what_a_user_named_is_escaped():
    act = wl.Activation("<script>alert(1)</script>", jnp.tanh)
    text = wl.Phi(act)._repr_html_()
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_traced_values_are_told_by_their_shape():
    seen = []
    jax.jit(lambda x: seen.append(repr(wl.kernels(NET, x))) or x)(jnp.ones((2, 3)))
    assert seen == ["Kernels(nngp: (2, 2) float32, ntk: (2, 2) float32)"]
