"""Corrections in 1/width against a slow transcription of their recursion, in 40 digits where that is needed."""

import math
import random

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import widelimit as wl
from widelimit import Dense, Phi, Residual
from widelimit._base.compile import quick_jit
from widelimit.activations import (
    Cov,
    How,
    charted,
    end_of,
    fourth_moments,
    fourth_terms,
    local_moments,
)
from widelimit.width._evaluate import pair_tensors
from widelimit.width._sized import with_widths
from width_oracle import Rule, corrections

mp.mp.dps = 40


def at_angle(degrees, length=0.8, size=1.0):
    t = math.radians(degrees)
    return 3**0.5 * size * np.array([[1, 0], [length * math.cos(t), length * math.sin(t)]])


def built(layers):
    make = {
        "dense": lambda w, b, _: Dense(w_std=w, b_std=b),
        "phi": Phi,
        "residual": lambda alpha, branch: Residual(built(branch), alpha),
    }
    first, *others = (make[name](*numbers) for name, *numbers in layers)
    for layer in others:
        first = first >> layer
    return first


def ratios(layers):
    """The relative widths of all weight matrices, in order."""
    found = []
    for name, *numbers in layers:
        if name != "phi":
            found += [numbers[2]] if name == "dense" else ratios(numbers[1])
    return found


def dense(w=2**0.5, b=0.0, nu=1.0):
    return "dense", w, b, nu


def mlp(depth, b=0.0, name="relu", w=2**0.5):
    return [dense(w, b), *[layer for _ in range(depth) for layer in (("phi", name), dense(w, b))]]


def resnet(depth, alpha=0.5):
    branch = [dense(1.0), ("phi", "relu"), dense(1.0)]
    return [dense(1.0), *[("residual", alpha, branch)] * depth, dense(1.0)]


def errors(layers, x):
    """The largest errors of all tensors, each entry relative to itself; shifts of 01 apart."""
    want = corrections(layers, x)
    net = with_widths(built(layers), ratios(layers)[:-1]).net
    found = pair_tensors(net, x[:1], x[1:])
    relative = lambda a, b: np.abs(a - b) / np.where(b == 0, 1, np.abs(b))
    out = {name: relative(getattr(found, name), want[name]).max() for name in ("cov", "b", "f")}
    assert np.linalg.eigvalsh(found.cov).min() > -1e-13 * np.abs(found.cov).max()
    return out, relative(found.shift, want["shift"]), want


@pytest.mark.parametrize(
    "layers", [mlp(3), mlp(2, b=0.3), resnet(2)], ids=["mlp", "biases", "resnet"]
)
@pytest.mark.parametrize("degrees", [1e-4, 0.1, 1.0, 30.0, 120.0, 179.0, 179.99])
def test_small_and_large_angles(layers, degrees):
    """Every entry relative to itself, although shifts at 0.0001 degrees are 1e-24 of their kernels."""
    found, shift, _ = errors(layers, at_angle(degrees))
    assert max(found.values()) < 1e-11
    assert shift[4] < 1e-11
    assert shift[1] < max(1e-12, 1e-12 / math.radians(degrees))


def test_one_layer_between_opposite_inputs():
    """K_01 is of third order in what is missing to 180 degrees, its variance of fifth."""
    for degrees in (170.0, 179.9):
        found, shift, want = errors(mlp(1), at_angle(degrees))
        assert max(found.values()) < 1e-8
        assert want["cov"][1, 1] < (math.pi - math.radians(degrees)) ** 5
        assert (shift == 0).all()


def composed(rng, depth=1):
    """Layers nested at random, of several widths and activations."""
    numbers = lambda: (rng.uniform(0.8, 1.5), rng.choice([0.0, 0.3]))
    nu = rng.choice([0.5, 1.0, 2.0])
    layers = [dense(*numbers(), nu)]
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.5:
            nu = rng.choice([0.5, 1.0, 2.0])
            fresh = [] if layers[-1][0] == "dense" else [dense(*numbers(), nu)]
            layers += [*fresh, ("phi", rng.choice(["relu", "erf", "sin"])), dense(*numbers(), nu)]
        else:
            branch = composed(rng, depth - 1) if depth else [dense(*numbers())]
            branch[-1] = dense(*branch[-1][1:3], nu)
            layers.append(("residual", rng.uniform(0.2, 1.0), branch))
    return [*layers, dense(*numbers())]


@pytest.mark.parametrize("number", range(5))
def test_random_compositions(number):
    rng = random.Random(number)
    layers = composed(rng)
    degrees = [rng.uniform(1, 179), rng.uniform(1, 4), rng.uniform(176, 179)][number % 3]
    x = at_angle(degrees, rng.uniform(0.3, 2.0), rng.uniform(0.5, 1.5))
    found, shift, want = errors(layers, x)
    assert max(found.values()) < 1e-9
    size = np.abs(want["shift"]).max()
    own = np.abs(want["shift"]) > 1e-6 * size  # a shift may vanish by the balance of its terms
    assert (shift[own] < 1e-9).all()


# --- fourth moments ------------------------------------------------------------------------------------


def table(name, q1, q2, rho):
    """The library's moments, and means by a rule in the plane in the same units."""
    act = wl.activations.get(name)
    with jax.enable_x64(True):
        full = lambda value: jnp.full((1, 1), value)
        cov = Cov(full(q1), full(q2), full(1 - rho), full(1 + rho))
        how = How(fourth_terms(act, [q1, q2]))
        found = quick_jit(fourth_moments, (0, 2))(act, cov, how)
    k = rho * math.sqrt(q1 * q2)
    rule = Rule(name, [[q1, k], [k, q2]])
    t = rule.t[0], rule.t[2]
    unit = [math.sqrt(q / size) for q, size in zip((q1, q2), t, strict=True)]
    slope = lambda i, j: (rule.weight * rule.at[0][i] * rule.at[1][j]).sum()
    for name_of, value in found.slopes._asdict().items():
        i, j = int(name_of[1]), int(name_of[2])
        yield name_of, value, slope(i, j) * q1 ** (i / 2) * q2 ** (j / 2) / math.sqrt(t[0] * t[1])
    for j in (1, 2, 3):
        at = [0] * (4 - j) + [1] * j
        size = t[0] ** ((4 - j) / 2) * t[1] ** (j / 2)
        yield f"x{j}", found.x[j - 1], rule.mean((1, 1, 1, 1), at) / size
        yield (
            f"z{j}",
            found.z[j - 1],
            rule.mean((0, 0, 0, 0), at) * unit[0] ** (4 - j) * unit[1] ** j,
        )
    for i, j in np.ndindex(3, 3):
        at = [0] * (2 - i) + [1] * i + [0] * (2 - j) + [1] * j
        size = t[0] ** ((2 - i) / 2) * t[1] ** (i / 2)
        mean = rule.mean((1, 1, 0, 0), at) * unit[0] ** (2 - j) * unit[1] ** j
        yield f"y{i}{j}", found.y[i][j], mean / size
    for end, alone, q in ((0, found.first, q1), (1, found.second, q2)):
        p = 2 * end
        yield "t1", alone.t1, rule.jt[p][p] * q / t[end]
        yield "t2", alone.t2, rule.ht[p][p][p] * q**2 / t[end]
        yield "dot1", alone.dot1, rule.jtd[p][p] * q**2 / t[end]
        yield "dot2", alone.dot2, rule.htd[p][p][p] * q**3 / t[end]
        yield "x", alone.x, rule.mean((1, 1, 1, 1), [end] * 4) / t[end] ** 2


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("erf", (0.8, 1.3, 0.5)),
        ("erf", (1e-4, 1e-3, -0.7)),
        ("erf", (20.0, 0.01, 0.9)),
        ("erf", (60.0, 40.0, -0.95)),
        ("sin", (0.8, 1.3, -0.9)),
        ("sin", (1e-4, 1e-3, 0.7)),
        ("sin", (0.05, 2.0, 0.5)),
        ("sin", (30.0, 0.02, 0.7)),
        ("cos", (0.3, 2.5, 0.8)),
        ("gelu", (0.8, 1.3, 0.5)),  # by series
        ("gelu", (90.0, 60.0, 0.8)),  # by quadrature
    ],
)
def test_all_moments(name, at):
    """Formulas, series and quadratures against means of written-out derivatives."""
    for what, value, want in table(name, *at):
        assert float(value[0, 0]) == pytest.approx(want, rel=2e-9, abs=1e-13), what


def test_waves_of_high_frequency():
    """sin(30 x): where variances are large only means of what does not oscillate are left."""
    for name, odd in (("sin(1, 30)", True), ("cos(1, 30)", False)):
        act = wl.activations.get(name)
        with jax.enable_x64(True):
            full = lambda value: jnp.full((1, 1), value)
            cov = Cov(full(1.0), full(1.0), full(1e-4), full(2 - 1e-4))
            found = quick_jit(fourth_moments, (0, 2))(act, cov, How())
        near = math.exp(-0.09)  # E[cos(u - v)], u - v of variance 0.18
        assert float(found.slopes.s11[0, 0]) == pytest.approx(900 * near, rel=1e-10)
        assert float(found.x[1][0, 0]) == pytest.approx(1 + math.exp(-0.36) / 2, rel=1e-12)
        assert float(found.first.x[0, 0]) == pytest.approx(1.5, rel=1e-14)
        assert act.parity == ("odd" if odd else "even")


def test_four_error_functions_at_large_variances():
    """E[erf(u)^3 erf(v)] in many digits: given u, the mean of erf(v) is an erf."""
    q1, q2, rho = 3e3, 1e4, 0.97
    lean = rho * mp.sqrt(q2 / mp.mpf(q1)) / mp.sqrt(1 + 2 * q2 * (1 - mp.mpf(rho) ** 2))
    term = lambda u: mp.erf(u) ** 3 * mp.erf(lean * u) * mp.npdf(u, 0, mp.sqrt(q1))
    with mp.workdps(25):
        mean = 2 * mp.quad(term, [0, 0.5, 1, 2, 4, 8, 30, 100, 300, 800])
        second = [2 / mp.pi * mp.asin(mp.mpf(2 * q) / (1 + 2 * q)) for q in (q1, q2)]
        want = float(mean / mp.sqrt(second[0] ** 3 * second[1]))
    with jax.enable_x64(True):
        full = lambda value: jnp.full((1, 1), value)
        cov = Cov(full(q1), full(q2), full(1 - rho), full(1 + rho))
        found = quick_jit(fourth_moments, (0, 2))(wl.activations.get("erf"), cov, How())
    assert float(found.x[0][0, 0]) == pytest.approx(want, rel=1e-12)


@pytest.mark.parametrize("name", ["relu", "erf", "sin"])
def test_extreme_norms_have_numbers(name):
    x = (
        np.array([[1.0, 0.5, -0.3]])
        * np.array([[1, 1, -1, 0, 1e-150, 1e-8, 1 + 1e-12, 1e8, 1e75]]).T
    )
    fl = wl.fluctuations(wl.mlp(2, name, w_std=1.3), x)
    for values in (fl.nngp_var, fl.ntk_var, fl.cross, fl.nngp_shift, fl.ntk_shift):
        assert np.isfinite(values).all()
    size = np.sqrt(np.outer(np.diag(fl.ntk), np.diag(fl.ntk)))
    assert (fl.ntk_var >= -1e-12 * size**2).all()
    np.testing.assert_allclose(fl.ntk_var[0, 1], fl.ntk_var[0, 0], rtol=1e-12)


@pytest.mark.parametrize("name", ["relu", "two_slopes(-0.5, 2)", "abs", "identity"])
def test_charts_say_the_same(name):
    """Coordinates of nearly parallel inputs against linear combinations, where those have digits."""
    act, rho = wl.activations.get(name), np.array([[0.9, 0.3, -0.2, -0.95]])
    with jax.enable_x64(True):
        one = jnp.ones((1, 1))
        cov = Cov(one, jnp.ones((1, 4)), jnp.asarray(1 - rho), jnp.asarray(1 + rho))
        end = end_of(cov.minus, cov.plus)
        own = quick_jit(local_moments, (0, 2))(act, cov, How())
        other = charted(quick_jit(fourth_moments, (0, 2))(act, cov, How()), end)
    for field in ("dot", "dot_third", "dot_bends", "z"):
        for a, b in zip(
            *(jax.tree.leaves(getattr(part, field)) for part in (own, other)), strict=True
        ):
            np.testing.assert_allclose(a, np.broadcast_to(b, a.shape), atol=1e-13)
    # The third coordinate is M - k c, or c where k = 0.
    k = np.asarray(own.chart)
    for a, b, whole in zip(own.third, other.third, (1.0, 0.0, 0.0), strict=True):
        want = np.where(k == 0, b, whole - k * np.asarray(b))
        np.testing.assert_allclose(a, want, atol=1e-13)
