"""Finite width to first order: identities, known values, laws of fourth moments, and sampled networks."""

import json
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl
from conftest import GOLDEN
from widelimit import Dense, Phi, Residual, Scale, Sum, testing
from widelimit._base.compile import quick_jit
from widelimit.activations import Cov, How, fourth_in_plane, fourth_moments
from widelimit.width import drift_tensors, kink_drift

PAIRS = {"00": 0, "01": 1, "11": 2}
SKEW = np.array([[1.0, 0.5, -0.3], [0.2, 1.1, 0.7]])
RELU = 2**0.5  # w_std that keeps the norm


def at_angle(degrees, length=0.8):
    t = math.radians(degrees)
    return 3**0.5 * np.array([[1, 0, 0], [length * math.cos(t), length * math.sin(t), 0]])


def described(text):
    """The network and the inputs of a line of the table."""
    numbers = {name: float(value) for name, value in re.findall(r"(\w+)=([\d.]+)", text)}
    kind, activation = text.split()[:2]
    depth, w_std = int(numbers["L"]), numbers["w"]
    if kind == "mlp":
        # Not exactly 0, but of square 0: the same program as with a bias.
        net = wl.mlp(depth, activation, w_std=w_std, b_std=numbers["b"] or 1e-200)
    else:
        net = wl.resnet(depth, numbers["alpha"], activation, w_std=w_std, v_std=numbers["v"])
    return net, SKEW if "X:" in text else at_angle(numbers["t"])


def known():
    table = {}
    for text, quantity, value in json.loads((GOLDEN / "width.json").read_text()):
        table.setdefault(text, {})[quantity] = value
    return table


KNOWN = known()
# One network of each kind and activation; the others' programs take their time to compile.
LEFT_OUT = "mlp erf", "mlp tanh", "mlp gelu L=2", "resnet gelu"
STILL = [text for text in KNOWN if "X:" not in text and not text.startswith(LEFT_OUT)]


def quantity(name, fl, pair):
    kind, *places = re.match(r"(\D+)(\d\d)(?:,(\d\d))?$", name).groups()
    (i, j), p = map(int, places[0]), PAIRS[places[0]]
    if kind in ("K", "Theta", "dK", "dTheta"):
        source = {"K": fl.nngp, "Theta": fl.ntk, "dK": fl.nngp_shift, "dTheta": fl.ntk_shift}
        return source[kind][i, j]
    (k, l), q = map(int, places[1]), PAIRS[places[1]]
    if kind == "VTheta":
        return pair.cov[3 + p, 3 + q] + pair.b[i, j, k, l] + pair.b[i, j, l, k]
    extra = pair.f[i, j, k, l] + pair.f[j, i, k, l] if kind == "ffT" else 0
    return pair.cov[p, q if kind == "V" else 3 + q] + extra


@pytest.mark.parametrize("text", STILL)
def test_known_values(text):
    """Values that agree with Monte Carlo over 400,000 networks, given to ten digits."""
    net, x = described(text)
    fl = wl.fluctuations(net, x)
    pair = fl.pair_covariance()
    for name, value in KNOWN[text].items():
        assert quantity(name, fl, pair) == pytest.approx(value, rel=1e-9), name
    entry = pair.cov[4, 4] + pair.b[0, 1, 0, 1] + pair.b[0, 1, 1, 0]
    assert fl.ntk_var[0, 1] == pytest.approx(entry, rel=1e-12)
    assert np.linalg.eigvalsh(pair.cov).min() > -1e-9 * pair.cov.max()


@pytest.mark.parametrize("text", [text for text in KNOWN if "X:" in text])
def test_known_drifts(text):
    net, x = described(text)
    for name, value in KNOWN[text].items():
        if name.startswith("drift"):
            found = wl.ntk_drift(net, x, [1.0, -0.5])[int(name[5]), int(name[6])]
        else:
            place = tuple(map(int, re.findall(r"\d", name[2:])))
            found = getattr(drift_tensors(net, x), name[:2])[place]
        assert found == pytest.approx(value, rel=1e-8), name


# --- identities --------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 2, 6, 40])
def test_one_relu_input_has_polynomials(depth):
    """n Var K/K^2 = 5 L, n Var Theta/Theta^2 = L (11 L + 7)/(3 (L + 1)), and no shift."""
    fl = wl.fluctuations(wl.mlp(depth, w_std=RELU), SKEW)
    k, theta, at = np.diag(fl.nngp), np.diag(fl.ntk), np.diag
    np.testing.assert_allclose(at(fl.nngp_var) / k**2, 5 * depth, rtol=1e-12)
    share = depth * (11 * depth + 7) / (3 * (depth + 1))
    np.testing.assert_allclose(at(fl.ntk_var) / theta**2, share, rtol=1e-12)
    np.testing.assert_allclose(at(fl.cross), 3 * depth * (depth + 1) * k**2, rtol=1e-12)
    np.testing.assert_allclose(at(fl.ntk_between_var), at(fl.ntk_var - fl.ntk_common_var) / 2)
    np.testing.assert_array_equal([at(fl.nngp_shift), at(fl.ntk_shift)], 0)
    np.testing.assert_allclose(fl.kurtosis(100), 15 * depth / 100, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_one_relu_input_of_a_resnet(alpha):
    fl = wl.fluctuations(wl.resnet(7, alpha), SKEW)
    g = alpha**2
    share = 2 + 7 * (2 * g + 7 * g**2 / 4) / (1 + g / 2) ** 2
    np.testing.assert_allclose(np.diag(fl.nngp_var) / np.diag(fl.nngp) ** 2, share, rtol=1e-12)
    np.testing.assert_allclose(np.diag(fl.ntk_shift) / np.diag(fl.ntk), 0, atol=1e-13)


def test_widths_enter_by_their_inverses():
    """Of a ReLU network V = 5 K^2 times the sum of 1/nu; stated widths say the same."""
    ratios = [1.0, 4.0, 0.5]
    fl = wl.fluctuations(wl.mlp(3, w_std=RELU), SKEW, widths=ratios)
    np.testing.assert_allclose(np.diag(fl.nngp_var) / np.diag(fl.nngp) ** 2, 5 * 3.25, rtol=1e-12)
    stated = Dense(8, w_std=RELU) >> Phi("relu")
    for width in (32, 4):
        stated = stated >> Dense(width, w_std=RELU) >> Phi("relu")
    other = wl.fluctuations(stated >> Dense(w_std=RELU), SKEW)
    np.testing.assert_allclose(other.ntk_var, fl.ntk_var, rtol=1e-12)
    assert other.reference == 8
    np.testing.assert_allclose(other.nngp_std() * 8**0.5, other.nngp_var**0.5)


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_a_first_layer_shifts_nothing(activation):
    fl = wl.fluctuations(wl.mlp(1, activation, w_std=1.4, b_std=0.3), SKEW)
    np.testing.assert_allclose([fl.nngp_shift, fl.ntk_shift], 0, atol=1e-13)


def test_odd_functions_of_orthogonal_inputs_are_not_shifted():
    """Without biases the sign of one input is a symmetry; with it K_01 and Theta_01 change theirs."""
    fl = wl.fluctuations(wl.mlp(3, "erf", w_std=1.4), np.diag([1.0, 0.7]))
    np.testing.assert_allclose([fl.nngp_shift[0, 1], fl.ntk_shift[0, 1]], 0, atol=1e-14)
    assert (np.abs(np.diag(fl.ntk_shift)) > 0.01).all()


def test_exchange_duplicates_and_order():
    """Rows against columns, an input twice, and every pair of a matrix by itself."""
    net = wl.mlp(3, w_std=RELU, b_std=0.2)
    x = np.concatenate([SKEW, SKEW[:1], -SKEW[:1], 0 * SKEW[:1], 1e-3 * SKEW, 1e8 * SKEW[:1]])
    fl, across = wl.fluctuations(net, x), wl.fluctuations(net, x, x)
    names = ["nngp_var", "ntk_var", "cross", "nngp_shift", "ntk_shift", "ntk_between_var"]
    for name in names:
        values = getattr(fl, name)
        size = np.sqrt(np.outer(np.diag(fl.ntk), np.diag(fl.ntk))) ** (
            1 + name.endswith(("var", "cross"))
        )
        assert np.isfinite(values).all()
        np.testing.assert_allclose(values / size, values.T / size, atol=1e-8)
        np.testing.assert_allclose(values / size, getattr(across, name) / size, atol=1e-8)
        assert values[0, 2] == pytest.approx(values[0, 0], rel=1e-12)
    np.testing.assert_array_equal(fl.ntk, wl.ntk(net, x))


def test_nearly_equal_inputs_approach_one():
    """Towards angle 0 the entry becomes the diagonal's, smoothly."""
    net, gaps = wl.mlp(4, w_std=RELU), np.array([1.0, 1e-1, 1e-2, 1e-3, 1e-5, 1e-8, 0.0])
    x = np.stack([np.cos(np.radians(gaps)), np.sin(np.radians(gaps))], axis=1)
    fl = wl.fluctuations(net, x, x[-1:])
    radians = np.radians(gaps)
    np.testing.assert_array_less(abs(fl.ntk_var[:, 0] / fl.ntk_var[-1, 0] - 1), 5 * radians + 1e-14)
    np.testing.assert_array_less(abs(fl.ntk_shift[:, 0] / fl.ntk[-1, 0]), 5 * radians + 1e-300)
    slope = fl.ntk_shift[1:-1, 0] / radians[1:-1]
    np.testing.assert_allclose(slope, slope[-1], rtol=1e-2)


def test_programs_agree(monkeypatch):
    """Operation by operation, as one quick program, and as one that runs fast, in threads."""
    net, x, seen = wl.mlp(3, w_std=RELU), np.random.default_rng(0).standard_normal((20, 3)), []
    found = [wl.fluctuations(net, x)]
    for name in ("STEPS", "FEW"):
        monkeypatch.setattr(f"widelimit.width._evaluate.{name}", 0)
        found.append(
            wl.fluctuations(net, x, progress=lambda done, total: seen.append((done, total)))
        )
    for other in found[1:]:
        np.testing.assert_allclose(other.ntk_var, found[0].ntk_var, rtol=1e-12)
        np.testing.assert_allclose(other.ntk_shift, found[0].ntk_shift, rtol=1e-9, atol=1e-12)
    assert seen == [(1, 3), (2, 3), (3, 3)] * 2


# --- sampled networks --------------------------------------------------------------------------------


def test_sampled_networks_agree(seed):
    """20,000 networks of width 64, as anyone can draw them."""
    testing.check_width(wl.resnet(2, 1.0), seed)


def test_sums_of_branches(seed):
    """Branches beside each other, biases, two outputs."""
    first = Sum(Dense(w_std=1.1, b_std=0.2), Dense() >> Phi("relu") >> Dense(w_std=1.3), Scale(0.7))
    net = Dense(w_std=1.2) >> first >> Sum(Dense(), Dense()) >> Phi("relu") >> Dense(2, w_std=1.4)
    testing.check_width(net, seed, samples=6_000)


def test_a_wrong_width_is_seen(monkeypatch):
    """The law fails where predictions are those of another network."""
    other = wl.fluctuations
    wrong = lambda net, x, width: other(wl.resnet(2, 0.8), x, width=width)
    monkeypatch.setattr("widelimit.testing._width_laws.fluctuations", wrong)
    with pytest.raises(AssertionError, match="last-layer kernel"):
        testing.check_width(wl.resnet(2, 1.0), samples=1_000)


def test_networks_in_law_are_networks(seed):
    """Means and spreads without weight matrices are those with them, dependent inputs included."""
    net = wl.finite(
        Dense(w_std=1.2) >> Residual(Dense(b_std=0.3) >> Phi("relu") >> Dense(), 0.7) >> Dense(), 6
    )
    x = np.concatenate([SKEW, 2 * SKEW[:1]]).astype(np.float32)
    drawn = wl.monte_carlo_kernels(net, x, samples=8_000, key=seed, method="law")
    built = wl.monte_carlo_kernels(net, x, samples=400, key=seed + 1)
    for one, other in zip(drawn, built, strict=True):
        error = np.hypot(one.stderr, other.stderr)
        assert (abs(one.mean - other.mean) <= 4 * error + 1e-6).all()
        near = abs(one.std - other.std) < 0.3 * other.std + 1e-6
        assert near.all()
    with pytest.raises(ValueError, match="NTK parameterisation"):
        wl.monte_carlo_kernels(wl.finite(wl.mlp(1), 9, "standard"), x, method="law")
    with pytest.raises(ValueError, match="method"):
        wl.monte_carlo_kernels(net, x, method="magic")


# --- what is asked of it -----------------------------------------------------------------------------


def test_the_papers_networks_need_different_widths():
    x = SKEW / np.linalg.norm(SKEW, axis=1, keepdims=True)
    deep = wl.fluctuations(wl.mlp(5, w_std=RELU), x)
    residual = wl.fluctuations(wl.resnet(5, 0.1), x)
    assert deep.width_for(0.1) == 1723
    assert residual.width_for(0.1) == 110
    assert residual.width_for(0.1, "nngp") == 210
    assert "needs width 110" in repr(residual)
    with pytest.warns(UserWarning, match="log-normal"):
        deep.ntk_std(20)
    for wrong in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="rtol"):
            deep.width_for(wrong)
    with pytest.raises(ValueError, match="states no widths"):
        deep.ntk_std()


def test_jax_in_jax_out_and_single_precision():
    net, x = wl.mlp(2, w_std=RELU), SKEW.astype(np.float32)
    fl = wl.fluctuations(net, jnp.asarray(x))
    assert isinstance(fl.ntk_var, jax.Array)
    assert fl.ntk_var.dtype == fl.ntk.dtype == jnp.float32
    exact = wl.fluctuations(net, SKEW)
    np.testing.assert_allclose(fl.ntk_var, exact.ntk_var, rtol=1e-5)
    assert wl.fluctuations(net, x).ntk_shift.dtype == np.float32
    with pytest.raises(TypeError, match="outside of jit"):
        jax.jit(lambda x: wl.fluctuations(net, x).ntk_var)(jnp.asarray(x))


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (Dense() >> Residual(Phi("relu") >> Dense()) >> Dense(), "neurons are not independent"),
        (Dense() >> Residual(Dense()) >> Phi("relu") >> Dense(), "put a Dense"),
        (Dense() >> Phi("relu"), "Add `>> Dense"),
        (wl.mlp(1, "sign"), "tangent kernel"),
        (Dense(8) >> Phi("relu") >> Dense() >> Phi("relu") >> Dense(), "widths=\\[...\\]"),
    ],
)
def test_what_is_not_derived_is_refused(net, words):
    with pytest.raises(ValueError, match=words):
        wl.fluctuations(net, SKEW)


def test_wrong_widths_are_refused():
    with pytest.raises(ValueError, match="3 positive numbers"):
        wl.fluctuations(wl.mlp(3), SKEW, widths=[1, 2])
    with pytest.raises(ValueError, match="relative widths"):
        wl.fluctuations(wl.resnet(1), SKEW, widths=[1, 1, 2])


def test_drifts():
    """One training input against values of trained networks' theory, its start, and what is refused."""
    net = wl.mlp(1, "tanh", w_std=1.3, b_std=0.2)
    for time, value in ((0.5, -0.09957723), (4.0, -0.7380619)):
        np.testing.assert_allclose(wl.ntk_drift(net, SKEW[:1], [1.5], time), [[value]], rtol=1e-6)
    np.testing.assert_allclose(wl.ntk_drift(net, SKEW, [1.0, -0.5], 0.0), 0)
    assert kink_drift(wl.mlp(1, w_std=RELU), SKEW[:1], 2.0, 3.0) == pytest.approx(-0.8519, abs=1e-4)
    swapped = wl.ntk_drift(net, SKEW[::-1], [-0.5, 1.0], 2.0)[::-1, ::-1]
    np.testing.assert_allclose(swapped, wl.ntk_drift(net, SKEW, [1.0, -0.5], 2.0), rtol=1e-10)
    for wrong, words in (
        ((wl.mlp(1), SKEW, [1.0, 0.0]), "n\\^\\(-1/2\\)"),
        ((net, np.eye(3), np.ones(3)), "at most two"),
        ((net, SKEW, [1.0]), "2 finite numbers"),
        ((net, SKEW[[0, 0]], [1.0, 0.0]), "singular"),
        (
            (Dense(4) >> Phi("erf") >> Dense(8) >> Phi("erf") >> Dense(), SKEW, [1.0, 0.0]),
            "one width",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            wl.ntk_drift(*wrong)
    for wrong in (
        (wl.mlp(2), SKEW[:1], 1.0),
        (wl.mlp(1), SKEW, [1.0, 2.0]),
        (wl.mlp(1, "erf"), SKEW[:1], 1.0),
    ):
        with pytest.raises(ValueError, match="one"):
            kink_drift(*wrong)


# --- fourth moments ----------------------------------------------------------------------------------


RHO = np.array([[0.5, -0.3], [0.9, 0.2]])
Q1, Q2 = np.array([[0.8], [1.3]]), np.array([[1.1, 0.4]])


def moments(act):
    with jax.enable_x64(True):
        cov = Cov(*map(jnp.asarray, (Q1, Q2, 1 - RHO, 1 + RHO)))
        return quick_jit(fourth_moments, (0, 2))(act, cov, How()), cov


def test_a_formula_agrees_with_the_quadrature():
    act = wl.activations.get("two_slopes(-0.5, 2)")
    found, cov = moments(act)
    with jax.enable_x64(True):
        other = quick_jit(fourth_in_plane)(act, cov)
    for one, two in zip(jax.tree.leaves(found), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(one, two, atol=2e-12)


def test_a_coarse_width_is_decided_by_the_shift():
    x = np.array([[1.0, 0.2], [0.3, 1.0]])
    found = wl.fluctuations(wl.mlp(3), x)
    size = np.sqrt(np.outer(np.diag(found.ntk), np.diag(found.ntk)))
    scatter, shift = np.max(found.ntk_var / size**2), np.max(np.abs(found.ntk_shift) / size)
    coarse = 4 * scatter / shift  # where the scatter is smaller than the shift
    for rtol in (0.1, coarse):
        needed = max(scatter / rtol**2, shift / rtol)
        assert found.width_for(rtol) == max(1, math.ceil(needed * (1 - 1e-12)))
    assert shift / coarse > scatter / coarse**2
