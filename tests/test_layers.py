"""The description language."""

import pickle

import jax
import numpy as np
import pytest

import widelimit as wl
from widelimit import Dense, Identity, Phi, Repeat, Residual, Scale, Serial

RESNET = Dense() >> Repeat(Residual(Dense() >> Phi("relu") >> Dense(), alpha=0.1), 5) >> Dense()


def test_models_are_the_expressions_of_the_papers():
    assert wl.resnet(depth=5, alpha=0.1) == RESNET
    assert wl.mlp(depth=2) == Repeat(Dense() >> Phi("relu"), 2) >> Dense()


def test_serial_is_flat_and_associative():
    a, b, c = Dense(), Phi("erf"), Dense(w_std=2)
    assert (a >> b) >> c == a >> (b >> c) == Serial(a, b, c)


def test_equality_hash_and_repr():
    again = wl.resnet(depth=5, alpha=0.1)
    assert again == RESNET
    assert hash(again) == hash(RESNET)
    assert wl.resnet(depth=5, alpha=0.2) != RESNET
    assert eval(repr(RESNET), vars(wl)) == RESNET
    assert len({RESNET, again}) == 1


@pytest.mark.parametrize(
    "net",
    [
        RESNET,
        wl.mlp(3, "leaky_relu(0.2)", w_std=1.5, b_std=0.1),
        Dense(width=64) >> (Identity() + Scale(0.5) + (Phi("erf") >> Dense(width=64))) >> Dense(),
        Dense(b_std=1e-3) >> Repeat(Phi("tanh") >> Dense(), 4),
    ],
    ids=repr,
)
def test_round_trips(net):
    assert wl.from_text(wl.to_text(net)) == net
    assert wl.from_json(wl.to_json(net)) == net
    assert pickle.loads(pickle.dumps(net)) == net


def test_layers_are_frozen():
    with pytest.raises(AttributeError):
        Dense().w_std = 2.0


def test_numbers_are_leaves():
    assert jax.tree.leaves(wl.mlp(3, w_std=1.5, b_std=0.2)) == [1.5, 0.2, 1.5, 0.2]


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: Dense(w_std=-1.0), ValueError, "w_std must be at least 0"),
        (lambda: Dense(b_std=float("nan")), ValueError, "finite"),
        (lambda: Dense(w_std="1"), TypeError, "real number"),
        (lambda: Dense(width=0), ValueError, "at least 1"),
        (lambda: wl.mlp(depth=2.0), TypeError, "integer"),
        (lambda: wl.mlp(depth=-1), ValueError, "at least 0"),
        (lambda: Repeat(Dense(), True), TypeError, "integer"),
        (lambda: Dense() >> "relu", TypeError, r"Phi\('relu'\)"),
        (lambda: Residual("relu"), TypeError, "layer was expected"),
        (lambda: wl.from_text("Dens() >> Phi('relu')"), ValueError, "Did you mean 'Dense'"),
        (lambda: wl.from_text("__import__('os')"), ValueError, "Unknown layer"),
        (lambda: wl.from_text("_Loop(Dense(), 3)"), ValueError, "Unknown layer"),
        (lambda: wl.from_text("Dense("), ValueError, "not the text"),
        (lambda: wl.from_json("{}"), ValueError, "not a network"),
        (lambda: wl.from_json("x"), ValueError, "not JSON"),
    ],
)
def test_bad_descriptions(make, error, match):
    with pytest.raises(error, match=match):
        make()


@pytest.mark.parametrize(
    ("net", "match"),
    [
        (Phi("relu") >> Dense(), "applied to the data"),
        (Dense() >> Phi("relu") >> Phi("erf") >> Dense(), "not Gaussian"),
        (Dense() >> Residual(Dense() >> Phi("relu")) >> Dense(), "End the branch with a Dense"),
        (Dense() >> (Identity() + Phi("relu")) >> Dense(), "correlated"),
        (Residual(Dense() >> Phi("relu") >> Dense()), "skip path carries the data"),
        (
            Dense(width=8) >> Residual(Phi("relu") >> Dense(width=9)) >> Dense(),
            "states the width 9, but its place asks for 8",
        ),
    ],
)
def test_networks_without_known_limit_are_refused(net, match):
    with pytest.raises(ValueError, match=match):
        wl.ntk(net, np.eye(2))


def test_not_a_network():
    with pytest.raises(TypeError, match="A network was expected"):
        wl.ntk("relu", np.eye(2))


def test_correlated_paths_are_combined_before_squaring():
    x = np.random.default_rng(0).standard_normal((4, 3))
    double = wl.kernels(Dense() >> (Identity() + Identity()) >> Phi("erf") >> Dense(), x)
    scaled = wl.kernels(Dense() >> Scale(2.0) >> Phi("erf") >> Dense(), x)
    for a, b in zip(double, scaled, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    vanishing = Dense() >> (Identity() + Scale(-1.0)) >> Dense()
    assert np.all(wl.ntk(vanishing, x)[0, 1:] == wl.nngp(vanishing, x)[0, 1:])


def test_independent_branches_add():
    x = np.random.default_rng(0).standard_normal((4, 3))
    one, two = Dense(w_std=1.5), Dense(w_std=0.5, b_std=0.3)
    both = wl.kernels(one + two, x)
    parts = wl.kernels(one, x), wl.kernels(two, x)
    np.testing.assert_allclose(both.nngp, parts[0].nngp + parts[1].nngp, rtol=1e-14)
    np.testing.assert_allclose(both.ntk, parts[0].ntk + parts[1].ntk, rtol=1e-14)


def test_shape_counts_parameters():
    n, d, depth = 50, 3, 4
    assert wl.shape(wl.resnet(depth), d, n).num_params == n + 2 * depth * n**2 + n * d
    mlp = wl.shape(wl.mlp(depth, b_std=0.1), d, n, output_dim=2)
    assert mlp.widths == (n, n, n, n, 2)
    assert mlp.num_params == n * d + n + 3 * (n * n + n) + 2 * n + 2
    wide = wl.shape(Dense(width=7) >> Phi("relu") >> Dense(), 3, 50)
    assert wide == ((7, 1), 7 * 3 + 7)


@pytest.mark.parametrize(
    ("net", "widths"),
    [
        (Dense(10) >> Residual(Dense() >> Phi("relu") >> Dense()) >> Dense(), (10, 100, 10, 1)),
        (Dense() >> Residual(Dense() >> Phi("relu") >> Dense()), (1, 100, 1)),
        (Dense() >> (Identity() + (Phi("erf") >> Dense(30))) >> Dense(), (30, 30, 1)),
        (Repeat(Dense() >> Phi("relu"), 3), (100, 100, 1)),
        ((Dense() + (Dense(20) >> Phi("relu") >> Dense())) >> Dense(4), (100, 20, 100, 4)),
    ],
    ids=repr,
)
def test_widths_are_inferred_once_for_all(net, widths):
    outputs = widths[-1]
    found = wl.shape(net, 2, 100, outputs)
    assert found.widths == widths
    assert wl.finite(net, 100).num_params(2) == found.num_params
    assert wl.bounds.jacobian(net, width=100, input_dim=2, outputs=outputs).value > 0


def test_latex_and_citations_of_every_part():
    net = Dense(b_std=0.1) >> (Identity() + (Phi("erf") >> Dense())) >> Scale(2.0) >> Dense()
    for text in (wl.latex(net), wl.latex_kernels(net), wl.latex(RESNET), wl.latex_kernels(RESNET)):
        assert text.startswith("\\begin{aligned}")
        assert text.count("{") == text.count("}")
    assert "tirer2022kernel" in wl.cite(RESNET)
    assert "cho2009kernel" in wl.cite(RESNET)
    assert "williams1997computing" in wl.cite(net)
