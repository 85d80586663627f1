"""Learning curves: exact cases, the equations themselves, and measurements on the sphere."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widelimit as wl


def spectrum(values, multiplicities, tail=0.0):
    values, number = np.array(values, float), np.array(multiplicities, float)
    peak = float(values @ number) + tail
    return wl.spectrum.Spectrum(3, np.arange(len(values)), values, number, 0 * values, peak, "ntk")


@settings(deadline=None, max_examples=30)
@given(
    n=st.floats(1, 500), ridge=st.floats(1e-6, 10), noise=st.floats(0, 2), slope=st.floats(0.5, 4)
)
def test_the_equations_hold(n, ridge, noise, slope):
    k = np.arange(40)
    values, number = (k + 1.0) ** -slope, 2 * k + 1.0
    power = 1 / (1 + k)
    curve = wl.learning_curve.predict(
        spectrum(values, number), power, [n], ridge=ridge, noise=noise
    )
    kappa = curve.kappa[0]
    learnt = values / (values + kappa)
    assert math.isclose(number @ learnt + ridge / kappa, n, rel_tol=1e-9)
    factor = n / (n - number @ learnt**2)
    assert math.isclose(curve.mse[0], factor * ((1 - learnt) ** 2 @ power + noise), rel_tol=1e-9)


def test_equal_eigenvalues_are_linear_regression():
    # p equal modes, no ridge, n > p: everything is learnt; noise is amplified by n/(n - p).
    curve = wl.learning_curve.predict(
        spectrum([0.0, 0.3], [1, 50]), [0, 1.0], [100, 200], noise=0.1
    )
    assert np.allclose(curve.mse, 0.1 * np.array([100 / 50, 200 / 150]), rtol=1e-12)
    # n < p: L = n/p, and mse = (1 - n/p) without noise.
    curve = wl.learning_curve.predict(spectrum([0.0, 0.3], [1, 50]), [0, 1.0], [10])
    assert math.isclose(curve.mse[0], 1 - 10 / 50, rel_tol=1e-12)


def test_the_unresolved_tail_acts_like_the_modes_it_replaces():
    net = wl.mlp(3)
    power = [0.0, *(1 / k for k in range(1, 20))]
    full, short = (wl.spectrum.sphere(net, 3, degrees) for degrees in (800, 150))
    sizes = [10, 100, 1000]
    exact = wl.learning_curve.predict(full, power, sizes).mse
    assert np.allclose(wl.learning_curve.predict(short, power, sizes).mse, exact, rtol=2e-3)
    cut = short._replace(peak=float(short.multiplicities @ short.values))
    assert not np.allclose(wl.learning_curve.predict(cut, power, sizes).mse, exact, rtol=2e-3)


def test_target_has_exactly_the_power_asked_for():
    power = np.array([0.3, 1.0, 0.0, 0.5])
    f = wl.learning_curve.target(3, power, key=4)
    # Gauss-Legendre times equispaced longitudes integrates harmonics exactly.
    z, w = np.polynomial.legendre.leggauss(12)
    phi = 2 * np.pi * np.arange(24) / 24
    r = np.sqrt(1 - z**2)[:, None]
    x = np.stack([r * np.cos(phi), r * np.sin(phi), np.repeat(z[:, None], 24, 1)], -1)
    values = f(x.reshape(-1, 3)).reshape(12, 24)
    mean = lambda v: np.sum(w[:, None] * v) / 48
    assert math.isclose(mean(values**2), power.sum(), rel_tol=1e-12)
    assert math.isclose(mean(values) ** 2, power[0], rel_tol=1e-12)
    opposite = f(-x.reshape(-1, 3)).reshape(12, 24)
    assert math.isclose(mean(((values - opposite) / 2) ** 2), 1.5, rel_tol=1e-12)


@pytest.mark.parametrize("net", [wl.mlp(3), wl.resnet(5, 0.1)], ids=["mlp", "resnet"])
def test_theory_meets_measurement_on_the_sphere(net):
    f = wl.learning_curve.target(3, [0.0, *(1 / k for k in range(1, 61))])
    sizes = np.array([10, 20, 30, 100, 300, 1000])
    found = wl.learning_curve.compare(net, f, sizes, draws=20)
    slack = 2 * found.measured.error / found.measured.mse  # what 20 draws cannot tell
    limit = np.where(sizes < 30, 0.2, 0.1)
    assert np.all(np.abs(found.deviation) < np.maximum(limit, slack))
    assert np.all(np.abs(found.deviation[sizes >= 30]) < 0.1)


def test_theory_meets_measurement_with_noise_and_ridge_on_the_circle():
    f = wl.learning_curve.target(2, [0.0, 1.0, 0.5, 0.25])
    found = wl.learning_curve.compare(wl.mlp(2), f, [30, 100, 300], noise=0.5, ridge=0.5, draws=20)
    assert np.all(np.abs(found.deviation) < 0.1)


def test_a_singular_gram_still_interpolates():
    f = wl.learning_curve.target(3, [0.0, 1.0])
    found = wl.learning_curve.measure(wl.mlp(1, "identity"), f, [2, 50], draws=3, test_points=100)
    assert np.all(found.draws[:, 1] < 1e-20)
    assert np.all(found.draws[:, 0] > 1e-6)


def test_bad_input_is_refused():
    s = spectrum([1.0, 0.1], [1, 3])
    for arguments in (([1.0], []), ([1.0], [0]), ([-1.0], [5]), ([0, 0, 1.0], [5])):
        with pytest.raises(ValueError, match=r"sizes|power|More|more"):
            wl.learning_curve.predict(s, *arguments)
    with pytest.raises(ValueError, match="ridge"):
        wl.learning_curve.predict(s, [1.0], [5], ridge=-1)
    with pytest.raises(ValueError, match="positive integers"):
        wl.learning_curve.measure(wl.mlp(1), wl.learning_curve.target(3, [0, 1.0]), [1.5])
    with pytest.raises(ValueError, match="mean square"):
        wl.learning_curve.target(3, [-1.0])
