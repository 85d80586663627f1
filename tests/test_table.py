"""Tables for functions without a closed form: right between their nodes, near duplicates included."""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

import widelimit as wl
from widelimit.activations import Activation, Cov, How, second_moment, table_for, transform

softsign = Activation("softsign", lambda z: z / (1 + jnp.abs(z)), breaks=(0.0,), parity="odd")
ACTIVATIONS = {"elu": wl.Phi("elu").activation, "softsign": softsign}
LOW, HIGH = 0.8, 2.5


@pytest.fixture(scope="module", params=ACTIVATIONS)
def tabulated(request):
    act = ACTIVATIONS[request.param]
    spec = table_for(act, [LOW, HIGH], 1e-13)
    assert spec is not None
    return act, How(0, (spec,))


MINUS = [0.0, 1e-12, 1e-4, 0.3, 1.4, 1.999]


@pytest.fixture(scope="module")
def pairs():
    """Every correlation with variances that are equal, nearly equal and different."""
    rng = np.random.default_rng(5)
    q = np.exp(rng.uniform(np.log(LOW), np.log(HIGH), (2, 1, 3)))
    q[1, 0, 0] = q[0, 0, 0]
    q[1, 0, 1] = q[0, 0, 1] * (1 + 1e-7)
    with jax.enable_x64(True):
        minus = jnp.broadcast_to(jnp.asarray(MINUS)[:, None], (len(MINUS), 3))
        return Cov(*jnp.asarray(q), minus, 2 - minus)


def _moved(act, how, cov):
    with jax.enable_x64(True):
        t1, t2 = (second_moment(act, q) for q in (cov.q1, cov.q2))
        return [np.asarray(a) for a in transform(act, cov, t1, t2, how)]


def test_it_is_the_quadrature(tabulated, pairs):
    act, how = tabulated
    found, exact = (_moved(act, h, pairs) for h in (how, How(0)))
    for value, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=2e-13)
    minus, plus, _ = found
    assert minus[0, 0] == 0  # equal inputs stay equal
    assert plus[0, 0] == 2
    assert np.all(minus[0, 1:] > 0)


def _elu_product(q1, q2, rho):
    """E[elu(u) elu(v)] in 20 digits: the mean of elu(v) given u is closed, what is left is a line integral."""
    edges = [-12, -4, -1, -0.1, 0, 0.1, 1, 4, 12]
    elu = lambda v: v if v > 0 else mp.expm1(v)
    with mp.workdps(20):
        if rho == 1:
            return float(mp.quad(lambda z: elu(mp.sqrt(q1) * z) ** 2 * mp.npdf(z), edges))
        s1, s2, rest = mp.sqrt(q1), mp.sqrt(q2), mp.sqrt(1 - mp.mpf(rho) ** 2)

        def integrand(z):
            mean, spread = s2 * rho * z, s2 * rest
            t = mean / spread
            above = mean * mp.ncdf(t) + spread * mp.npdf(t)
            below = mp.exp(mean + spread**2 / 2) * mp.ncdf(-t - spread) - mp.ncdf(-t)
            return elu(s1 * z) * (above + below) * mp.npdf(z)

        return float(mp.quad(integrand, edges))


@pytest.mark.parametrize("tabulated", ["elu"], indirect=True)
@pytest.mark.parametrize(("q1", "q2", "rho"), [(0.9, 2.3, 0.8), (1.7, 1.1, -0.5)])
def test_it_is_right_to_twelve_digits(tabulated, q1, q2, rho):
    act, how = tabulated
    with jax.enable_x64(True):
        one = lambda value: jnp.full((1, 1), value)
        cov = Cov(one(q1), one(q2), one(1 - rho), one(1 + rho))
    minus, _, _ = _moved(act, how, cov)
    norms = np.sqrt([_elu_product(q, q, 1) for q in (q1, q2)])
    exact = 1 - _elu_product(q1, q2, rho) / norms.prod()
    np.testing.assert_allclose(minus[0, 0], exact, rtol=0, atol=1e-12)


def test_what_a_table_does_not_serve():
    elu = ACTIVATIONS["elu"]
    assert table_for(elu, [1e-4, 1e4], 1e-13) is None  # too wide
    off_centre = Activation("f", lambda z: jax.nn.elu(z - 1), breaks=(1.0,))
    assert table_for(off_centre, [1.0, 2.0], 1e-13) is None
    hidden = Activation("f", lambda z: jax.nn.relu(z - 1))  # a kink that nobody declared
    assert table_for(hidden, [1.0, 2.0], 1e-13) is None


def test_a_matrix_of_unequal_norms_takes_no_quadrature():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(90, 6)) * rng.uniform(0.8, 1.6, (90, 1))
    net = wl.mlp(2, "elu", b_std=0.2)
    kernel = wl.kernels(net, x)
    some = np.ix_([0, 89], [1, 77])
    with jax.enable_x64(True):
        rows, columns = jnp.asarray(x[[0, 89]]), jnp.asarray(x[[1, 77]])
        exact = jax.jit(lambda a, b: wl.kernels(net, a, b))(
            rows, columns
        )  # nothing is known inside
    np.testing.assert_allclose(kernel.nngp[some], exact.nngp, atol=1e-12)
    np.testing.assert_allclose(kernel.ntk[some], exact.ntk, atol=1e-12)
    single = wl.kernels(net, x.astype(np.float32))
    np.testing.assert_allclose(single.ntk, kernel.ntk, atol=5e-6)


def test_the_slope_is_the_derivative(tabulated, pairs):
    act, how = tabulated
    with jax.enable_x64(True):
        t1, t2 = (second_moment(act, q) for q in (pairs.q1, pairs.q2))
        one = jnp.ones_like(pairs.minus)
        out = lambda m, p: transform(act, pairs.at(m, p), t1, t2, how)
        (_, _, slope), (change, _, _) = jax.jvp(out, (pairs.minus, pairs.plus), (one, -one))
    np.testing.assert_allclose(change, slope, rtol=1e-8, atol=1e-10)
