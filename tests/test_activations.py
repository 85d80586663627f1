"""Activations: the laws, the registry, and functions of a user's own."""

import copy
import functools
import math
import pickle
import zlib

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from jax.scipy.special import erf
from scipy import integrate, special

import widelimit as wl
from widelimit import testing
from widelimit.activations import exact_dual
from widelimit.activations._kolmogorov import RULES, gauss_rule

ALL = wl.activations.examples()


@pytest.mark.parametrize("act", ALL, ids=lambda act: act.name)
def test_laws(act):
    testing.check_activation(act, key=zlib.crc32(act.name.encode()))


@pytest.mark.parametrize("act", ALL, ids=lambda act: act.name)
def test_is_a_value(act):
    assert pickle.loads(pickle.dumps(act)) == act
    assert copy.deepcopy(act) is act
    assert wl.activations.get(act.name) == act
    assert hash(wl.activations.get(act.name)) == hash(act)


def test_every_closed_form_is_listed():
    for name in ("relu", "abs", "step", "sign", "identity", "erf", "gelu", "sin", "cos", "exp"):
        assert name in wl.activations.names()
    for name in ("gaussian", "tanh", "sigmoid", "silu", "softplus", "elu", "mish"):
        assert name in wl.activations.names()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("ReLU", "relu"),
        ("Leaky-ReLU(0.1)", "leaky_relu(0.1)"),
        ("Swish", "silu"),
        (np.tanh, "tanh"),
        (jnp.tanh, "tanh"),
        (jax.nn.relu, "relu"),
        (jax.scipy.special.erf, "erf"),
        (functools.partial(jax.nn.gelu, approximate=False), "gelu"),
        ("Erf(1, 1)", "erf"),
    ],
)
def test_other_spellings_and_known_functions_are_found(given, name):
    assert wl.Phi(given).activation is wl.activations.get(name)
    assert repr(wl.Phi(given)) == f"Phi({name!r})"


def test_an_approximate_gelu_is_not_taken_for_the_exact_one():
    assert not wl.Phi(jax.nn.gelu).activation.registered


def test_a_function_whose_global_numbers_change_is_another_function():
    """What was compiled for the old number must not answer for the new one."""
    scope = {"jnp": jnp, "scale": 1.0}
    make = lambda: eval("lambda v: jnp.arctan(scale * v)", scope)
    x = np.eye(2)
    before, first = wl.mlp(1, make()), wl.nngp(wl.mlp(1, make()), x)
    assert wl.mlp(1, make()) == before
    scope["scale"] = 3.0
    assert wl.nngp(wl.mlp(1, make()), x)[0, 0] > 2 * first[0, 0]


SCALED = {
    "erf(1.5, 0.5, 0.3)": lambda v: 1.5 * erf(0.5 * v) + 0.3,
    "sin(1.4, 0.7, 0.8)": lambda v: 1.4 * jnp.sin(0.7 * v + 0.8),
    "cos(2, 0.5, 1)": lambda v: 2 * jnp.cos(0.5 * v + 1),
    "exp(0.5, -0.3)": lambda v: 0.5 * jnp.exp(-0.3 * v),
    "gaussian(2, 0.4)": lambda v: 2 * jnp.exp(-((0.4 * v) ** 2)),
    "tanh(1.7159, 0.5)": lambda v: 1.7159 * jnp.tanh(0.5 * v),
}


def many_digits(act):
    """The moments of a scaled tanh are those of tanh; the others have formulas."""
    if not act.name.startswith("tanh"):
        return wl.activations.exact_dual(act)
    base, a, b = wl.activations.exact_dual(wl.activations.get("tanh")), 1.7159, 0.5

    def exact(q1, q2, k):
        value, slope = base(b * b * q1, b * b * q2, b * b * k)
        return a * a * value, (a * b) ** 2 * slope

    return exact


@pytest.mark.parametrize("name", SCALED)
def test_numbers_inside_and_outside(name):
    """The function that the name promises, and its moments in many digits or by quadrature."""
    act = wl.activations.get(name)
    v = np.linspace(-2, 2, 7)
    np.testing.assert_allclose(act.fn(v), SCALED[name](v), rtol=1e-6)
    assert wl.from_text(wl.to_text(wl.Phi(name))) == wl.Phi(name)
    exact = many_digits(act)
    for q1, q2, rho in ((0.8, 1.7, 0.6), (0.3, 40.0, -0.9), (1e-8, 1e-8, 0.5)):
        want = [float(value) for value in exact(q1, q2, rho * (q1 * q2) ** 0.5)]
        with jax.enable_x64(True):
            cov = wl.activations.Cov(*map(jnp.asarray, (q1, q2, 1 - rho, 1 + rho)))
            both = act.dual_and_dot or (lambda c: (act.dual(c), act.dual_dot(c)))
            got = [float(value) for value in both(cov)]
        np.testing.assert_allclose(got, want, rtol=1e-13)
    f = lambda z: np.asarray(SCALED[name](np.sqrt(0.8) * z), float)
    weight = lambda z: f(z) ** 2 * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    assert float(exact(0.8, 0.8, 0.8)[0]) == pytest.approx(
        integrate.quad(weight, -9, 9)[0], rel=1e-5
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [("erf(0)", "constant"), ("erf(1, 2, 3, 4)", "from 0 to 3"), ("exp(1, 0)", "constant")],
)
def test_numbers_that_make_no_activation(name, message):
    with pytest.raises(ValueError, match=message):
        wl.Phi(name)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"Unknown activation 'rellu'.*'relu'"):
        wl.Phi("rellu")
    with pytest.raises(ValueError, match=r"Did you mean 'tanh'"):
        wl.Phi("TANHH")
    with pytest.raises(TypeError, match="An activation is a name"):
        wl.Phi(3.0)


def test_names_are_unique_identifiers():
    with pytest.raises(ValueError, match="taken"):
        wl.activations.register(wl.Activation("relu", jnp.tanh))
    with pytest.raises(ValueError, match="identifier"):
        wl.activations.register(wl.Activation("my relu", jnp.tanh))


@pytest.mark.parametrize("bad", ["relu_power(1)", "relu_power(2.5)", "monomial(0)", "polynomial()"])
def test_families_refuse_what_they_do_not_cover(bad):
    with pytest.raises(ValueError, match=r"needs|at least"):
        wl.Phi(bad)


def test_orders_beyond_floats_are_refused_at_once():
    with pytest.raises(ValueError, match="at most 64"):
        wl.activations.relu_power(10**5)


def test_step_has_no_tangent_kernel():
    net, x = wl.mlp(depth=2, activation="step"), np.eye(3)
    assert wl.nngp(net, x).shape == (3, 3)
    with pytest.raises(ValueError, match="does not exist"):
        wl.ntk(net, x)


def test_a_users_smooth_function_equals_the_closed_form():
    x = np.random.default_rng(0).standard_normal((5, 3))
    exact = wl.kernels(wl.mlp(3, "sin", w_std=1.2, b_std=0.1), x)
    given = wl.kernels(wl.mlp(3, lambda v: jnp.sin(v), w_std=1.2, b_std=0.1), x)
    for a, b in zip(exact, given, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12 * np.abs(a).max())


def test_a_kink_costs_accuracy_unless_declared():
    x = np.random.default_rng(1).standard_normal((4, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    relu = lambda u: jnp.maximum(u, 0)
    exact = wl.ntk(wl.mlp(2, "relu"), x)
    declared = wl.ntk(wl.mlp(2, wl.Activation("mine", relu, breaks=(0.0,))), x)
    np.testing.assert_allclose(declared, exact, rtol=1e-12)


def test_breaks_away_from_zero():
    """A hard tanh, against SciPy's adaptive integration."""
    hard = wl.Activation("hard", lambda u: jnp.clip(u, -1, 1), breaks=(-1.0, 1.0), parity="odd")
    rho, q = 0.7, 1.5
    x, y = np.sqrt(2 * q) * np.array([[[1.0, 0.0]], [[rho, np.sqrt(1 - rho**2)]]])
    got = wl.nngp(wl.Dense() >> wl.Phi(hard), x, y)[0, 0]

    def inner(z):
        mean, std = np.sqrt(q) * rho * z, np.sqrt(q * (1 - rho**2))
        f = lambda w: np.clip(mean + std * w, -1, 1) * np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
        points = [p for p in ((-1 - mean) / std, (1 - mean) / std) if abs(p) < 9]
        return integrate.quad(f, -9, 9, points=points, epsabs=1e-12)[0]

    outer = lambda z: np.clip(np.sqrt(q) * z, -1, 1) * inner(z) * np.exp(-(z**2) / 2)
    edge = 1 / np.sqrt(q)
    want = integrate.quad(outer, -9, 9, points=[-edge, edge], epsabs=1e-11)[0] / np.sqrt(2 * np.pi)
    assert abs(got - want) < 1e-9


def test_large_variances_switch_to_quadrature():
    """tanh of a steep argument is nearly a sign; the series would be off in the third digit."""
    x = 200 * np.array([[1.0, 0.0], [0.8, 0.6]])
    got = wl.nngp(wl.Dense() >> wl.Phi(jnp.tanh), x)[0, 1]
    sign = wl.nngp(wl.Dense() >> wl.Phi("sign"), x)[0, 1]
    assert abs(got - sign) < 0.01
    with jax.enable_x64(True):
        z = jnp.linspace(-8.5, 8.5, 4001)
        u, v = jnp.meshgrid(z, z, indexing="ij")
        density = jnp.exp(-(u**2 + v**2) / 2) / (2 * jnp.pi) * (z[1] - z[0]) ** 2
        root = np.sqrt(200**2 / 2)
        brute = jnp.sum(jnp.tanh(root * u) * jnp.tanh(root * (0.8 * u + 0.6 * v)) * density)
    assert abs(got - float(brute)) < 3e-6


@pytest.mark.parametrize(("dtype", "nodes"), [("float64", 14), ("float32", 7)])
def test_the_rule_for_logistic_functions_is_the_gauss_rule(dtype, nodes):
    want = np.array([[float(k), float(w)] for k, w in gauss_rule(nodes, 30)])
    np.testing.assert_allclose(RULES[dtype], want, rtol=3e-16)
    k, w = want.T
    x = np.linspace(-9, 9, 19)[:, None]
    got = (w * special.erf(x / (math.sqrt(2) * k))).sum(axis=1)
    np.testing.assert_allclose(got, np.tanh(x[:, 0]), atol=1e-10 if nodes == 14 else 2e-6)


def test_logistic_moments_are_integrals():
    """Two-dimensional sums in float64, which share nothing with the mixture."""
    q1, q2, rho = 1.3, 2.2, 0.6
    z = np.arange(-9, 9, 0.15)
    a, b = np.meshgrid(z, z)
    density = np.exp(-(a**2 + b**2) / 2) / (2 * np.pi) * 0.15**2
    u, v = math.sqrt(q1) * a, math.sqrt(q2) * (rho * a + math.sqrt(1 - rho**2) * b)
    sigmoid = lambda x: 1 / (1 + np.exp(-x))
    functions = {"tanh": np.tanh, "sigmoid": sigmoid, "silu": lambda x: x * sigmoid(x)}
    functions["softplus"] = lambda x: np.log1p(np.exp(x))
    for name, f in functions.items():
        want = (density * f(u) * f(v)).sum()
        with mpmath.workdps(16):
            exact = exact_dual(wl.activations.get(name))(q1, q2, rho * math.sqrt(q1 * q2))[0]
        assert abs(float(exact) - want) < 1e-13


@pytest.mark.parametrize("name", ["tanh", "erf", "sin"])
def test_tiny_inputs_see_the_slope_at_zero(name):
    x = np.random.default_rng(0).standard_normal((4, 3))
    linear, slope = x @ x.T / 3, float(jax.grad(wl.activations.get(name).fn)(0.0))
    for size in (1e-100, 1e-150):
        found = wl.nngp(wl.mlp(1, name, w_std=1.0), size * x) / size**2
        np.testing.assert_allclose(found, slope**2 * linear, rtol=1e-6, atol=0)
        np.testing.assert_allclose(found / found[0, 0], linear / linear[0, 0], rtol=1e-13)
