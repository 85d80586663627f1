"""Signal propagation against closed forms, quadrature and brute iteration."""

import math

import numpy as np
import pytest
from scipy import integrate

import widelimit as wl


def gaussian_mean(f, q):
    density = lambda z: f(math.sqrt(q) * z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return integrate.quad(density, -12, 12, limit=200, epsabs=1e-13)[0]


def test_relu_maps_are_elementary():
    net = wl.mlp(4, w_std=1.2, b_std=0.5)
    q = np.array([0.1, 1.0, 7.0])
    assert np.allclose(wl.signal.variance_map(net, q), 0.72 * q + 0.25, rtol=1e-13)
    point = wl.signal.fixed_point(net)
    assert math.isclose(point.q, 0.25 / (1 - 0.72), rel_tol=1e-12)
    assert math.isclose(point.chi, 0.72, rel_tol=1e-12)
    assert (point.phase, point.c) == ("ordered", 1.0)
    assert math.isclose(point.length_c, -1 / math.log(0.72), rel_tol=1e-9)
    c = np.linspace(-1, 1, 9)
    angle = np.arccos(c)
    arc = (np.sin(angle) + (np.pi - angle) * c) / np.pi
    assert np.allclose(
        wl.signal.correlation_map(net, c), (0.72 * point.q * arc + 0.25) / point.q, atol=1e-13
    )


def test_tanh_fixed_point_matches_quadrature_and_iteration():
    w, b = 2.0, 0.3
    point = wl.signal.fixed_point(wl.mlp(4, "tanh", w, b))
    q = 1.0
    for _ in range(60):
        q = w**2 * gaussian_mean(lambda x: math.tanh(x) ** 2, q) + b**2
    assert math.isclose(point.q, q, rel_tol=1e-9)
    chi = w**2 * gaussian_mean(lambda x: math.cosh(x) ** -4, q)
    assert math.isclose(point.chi, chi, rel_tol=1e-9)
    assert point.phase == "chaotic"
    path = wl.signal.trajectory(wl.mlp(4, "tanh", w, b), 120, c=0.9, q=2.0)
    assert math.isclose(path.c[-1], point.c, rel_tol=1e-6)
    assert math.isclose(path.q[-1], point.q, rel_tol=1e-9)
    # The correlation length is the rate at which the trajectory settles.
    gap = np.abs(path.c[20:40] - point.c)
    assert math.isclose(
        -1 / np.polyfit(np.arange(20), np.log(gap), 1)[0], point.length_c, rel_tol=0.02
    )


def test_erf_correlation_map_is_an_arcsine():
    net, w, q = wl.mlp(2, "erf", 1.7, 0.0), 1.7, 0.8
    c = np.linspace(-1, 1, 11)
    t = lambda k: 2 / np.pi * np.arcsin(2 * k / (1 + 2 * q))
    assert np.allclose(wl.signal.correlation_map(net, c, q), t(q * c) / t(q), atol=1e-13)
    assert math.isclose(wl.signal.variance_map(net, q), w**2 * t(q), rel_tol=1e-13)


@pytest.mark.parametrize(
    ("net", "q", "phase"),
    [
        (wl.mlp(2, w_std=2**0.5), 1.0, "critical"),
        (wl.mlp(2, w_std=2**0.5, b_std=0.1), math.inf, "critical"),
        (wl.mlp(2, w_std=2.0), math.inf, "chaotic"),
        (wl.mlp(2, w_std=1.0), 0.0, "ordered"),
        (wl.mlp(2, "tanh", 0.9), 0.0, "ordered"),
    ],
)
def test_vanishing_growing_and_critical_variances(net, q, phase):
    point = wl.signal.fixed_point(net)
    assert (point.q, point.phase, point.c) == (q, phase, 1.0)


def test_residual_blocks():
    relu = wl.signal.fixed_point(wl.resnet(3, alpha=0.5))
    assert (relu.q, relu.c) == (math.inf, 1.0)
    assert math.isclose(relu.chi, 1 + 0.25 / 2, rel_tol=1e-12)  # 1 + g/2, as gradients grow
    bounded = wl.signal.fixed_point(wl.resnet(3, alpha=0.5, activation="erf"))
    assert (bounded.q, bounded.c, bounded.length_c) == (math.inf, None, math.inf)
    c = np.array([-0.5, 0.0, 0.7])
    angle = np.arccos(c)
    arc = (np.sin(angle) + (np.pi - angle) * c) / np.pi
    assert np.allclose(
        wl.signal.correlation_map(wl.resnet(3, alpha=0.5), c),
        (c + arc / 8) / (1 + 1 / 8),
        atol=1e-13,
    )


def test_phase_diagram_agrees_with_fixed_points_and_with_the_edge():
    w, b = np.array([0.8, 1.5, 3.0]), np.array([0.05, 0.6])
    diagram = wl.signal.phase_diagram("tanh", w, b)
    for i, j in ((0, 0), (1, 2)):
        point = wl.signal.fixed_point(wl.mlp(2, "tanh", w[j], b[i]))
        assert math.isclose(diagram.q[i, j], point.q, rel_tol=1e-9)
        assert math.isclose(diagram.chi[i, j], point.chi, rel_tol=1e-9)
    edge_w, edge_b = wl.signal.edge_of_chaos("tanh", [0.05, 0.5, 2.0])
    on_edge = wl.signal.phase_diagram("tanh", edge_w, edge_b)
    assert np.allclose(np.diag(on_edge.chi), 1, atol=1e-9)
    assert np.allclose(np.diag(on_edge.q), [0.05, 0.5, 2.0], rtol=1e-6)
    relu = wl.signal.phase_diagram("relu", [1.0, 2.0], [0.0, 1.0])
    assert np.allclose(relu.chi, [[0.5, 2.0]] * 2)
    assert np.array_equal(relu.q[:, 1], [math.inf, math.inf])
    assert np.allclose(relu.q[:, 0], [0, 2])


def test_depth_degenerates_mlps_and_not_attenuated_resnets():
    deep = wl.signal.depth_effect(lambda l: wl.mlp(l), [2, 200])
    far = deep.angles > np.pi / 2
    assert np.allclose(deep.shape[1, far], 0.25, atol=0.03)
    attenuated = wl.signal.depth_effect(lambda l: wl.resnet(l, alpha=0.02), [2, 200])
    assert attenuated.contrast[1] > 0.8 * attenuated.contrast[0]
    assert deep.contrast[1] < 0.05 * deep.contrast[0]


def test_bad_input_is_refused():
    net = wl.mlp(2)
    with pytest.raises(TypeError, match="network or a block"):
        wl.signal.fixed_point("relu")
    with pytest.raises(ValueError, match="different blocks"):
        wl.signal.fixed_point(net >> wl.Phi("relu") >> net)
    with pytest.raises(ValueError, match="positive"):
        wl.signal.variance_map(net, 0.0)
    with pytest.raises(ValueError, match=r"\[-1, 1\]"):
        wl.signal.correlation_map(net, 1.5)
    with pytest.raises(ValueError, match="chaotic"):
        wl.signal.phase_diagram("sign", [1.0], [0.0])
    with pytest.raises(ValueError, match="standard deviations"):
        wl.signal.phase_diagram("tanh", [-1.0], [0.0])


def test_the_phase_diagram_carries_the_correlation_of_the_fixed_point():
    """Ordered, chaotic with and without a bias, and a variance that grows for ever."""
    assert np.isnan(wl.signal.phase_diagram("exp", [2.0], [0.1]).c).all()  # beyond floats
    for act in ("erf", "relu"):
        w, b = [0.7, 1.3, 2.5], [0.0, 0.3]
        found = wl.signal.phase_diagram(act, w, b).c
        for i, j in ((0, 0), (0, 2), (1, 1), (1, 2)):
            want = wl.signal.fixed_point(wl.mlp(4, act, w_std=w[j], b_std=b[i])).c
            assert found[i, j] == pytest.approx(
                np.nan if want is None else want, abs=1e-9, nan_ok=True
            )
