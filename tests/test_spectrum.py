"""Eigenvalues against 50-digit values, quadrature, closed forms, and the theory of their decay."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import widelimit as wl


def network(case):
    if case["model"] == "mlp":
        return wl.mlp(depth=case["L"], activation=case.get("act", "relu"))
    return wl.resnet(
        depth=case["L"], alpha=case.get("alpha", 1.0), activation=case.get("act", "relu")
    )


def on_the_circle(n):
    angle = 2 * np.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], 1)


def test_circle_matches_high_precision_fourier_coefficients(golden):
    cases = golden["circle_shapes"]["cases"]
    cases = [c for c in cases if c["model"] in ("mlp", "resnet") and c["L"] in (5, 15)]
    assert len(cases) == 8
    for case in cases:
        exact = np.array(case["fourier"])
        found = wl.spectrum.circle(network(case), len(exact) - 1)
        assert np.all(np.abs(found.values - exact) < 2e-15 * found.peak), case["model"]
        assert np.all(np.abs(found.values - exact) < 1e-8 * exact), case["model"]
        assert np.all(np.abs(found.values - exact) <= found.error)


def test_circle_explains_the_fft_of_the_papers_figure(golden):
    for case in golden["figure7_fft"]:
        size, k = case["N"], np.array(case["k"])
        exact = wl.spectrum.circle(network(case), 1000).values
        # A DFT folds all frequencies jN +- k onto k; those decay like 1/k^2, each parity for itself.
        tail = np.where(k % 2 == 0, exact[1000] * 1000**2, exact[999] * 999**2)
        k1 = np.where(
            k == 0, 1.0, k
        )  # the sum over j of 1/(jN + k)^2 without j = 0, in closed form
        folded = exact[k] + tail * ((np.pi / size / np.sin(np.pi * k1 / size)) ** 2 - 1 / k1**2)
        magnitude = np.array(case["magnitude"]) / size
        assert np.all(np.abs(folded - magnitude) < 1e-3 * tail / size**2 + 1e-12 * magnitude)


def slow_kernel(depth, alpha, theta):
    """The tangent kernel by the textbook recursion in mpmath; alpha None is the MLP, d = 1."""
    t = lambda q, k: q * (mpmath.sqrt(1 - (k / q) ** 2) + (mpmath.pi - a(q, k)) * k / q)
    a = lambda q, k: mpmath.acos(k / q)
    q, k = mpmath.mpf(1), mpmath.cos(theta)
    total = k
    for _ in range(depth):
        value, slope = t(q, k) / (2 * mpmath.pi), (mpmath.pi - a(q, k)) / (2 * mpmath.pi)
        if alpha is None:
            q, k, total = q / 2, value, value + slope * total
        else:
            g = mpmath.mpf(alpha) ** 2
            total = total * (1 + g * slope) + g * (value + k * slope)
            q, k = q * (1 + g / 2), k + g * value
    return total if alpha is None else total + k


@pytest.mark.parametrize("dim", [2, 3, 10])
@pytest.mark.parametrize("alpha", [None, 0.1])
def test_sphere_matches_adaptive_quadrature_in_mpmath(dim, alpha):
    depth = 3
    net = wl.mlp(depth) if alpha is None else wl.resnet(depth, alpha)
    found = wl.spectrum.sphere(net, dim, 12)
    assert np.isclose(found.multiplicities @ found.values + found.tail, found.peak, rtol=1e-14)
    with mpmath.workdps(25):
        measure = lambda t: mpmath.sin(t) ** (dim - 2)
        total = mpmath.quad(measure, [0, mpmath.pi])
        for k in (0, 1, 2, 3, 7, 12):
            if dim == 2:
                zonal = lambda t, k=k: mpmath.cos(k * t)
            else:
                index = mpmath.mpf(dim - 2) / 2
                zonal = lambda t, k=k, index=index: (
                    mpmath.gegenbauer(k, index, mpmath.cos(t)) / mpmath.gegenbauer(k, index, 1)
                )
            integrand = lambda t, zonal=zonal: slow_kernel(depth, alpha, t) * zonal(t) * measure(t)
            exact = float(mpmath.quad(integrand, [0, mpmath.pi / 2, mpmath.pi]) / total / dim)
            error = abs(found.values[k] - exact)
            assert error < 1e-8 * exact or (exact < 1e-8 * found.values[0] and error < 1e-4 * exact)


@pytest.mark.parametrize("dim", [2, 3, 10])
@pytest.mark.parametrize(
    "net",
    [wl.mlp(15), wl.resnet(15, 0.1), wl.mlp(2, "erf", 1.5, 0.3)],
    ids=["mlp", "resnet", "erf"],
)
def test_float64_agrees_with_many_digits_over_twelve_orders(net, dim):
    fast = wl.spectrum.sphere(net, dim, 150)
    exact = wl.spectrum.sphere(net, dim, 150, digits=40)
    size, error = exact.values / exact.values[0], np.abs(fast.values - exact.values)
    assert np.all(error[size > 1e-8] < 1e-8 * exact.values[size > 1e-8])
    assert np.all(error[size > 1e-12] < 1e-4 * exact.values[size > 1e-12])
    assert np.all(error <= fast.error)


def test_many_digits_reach_where_float64_cannot():
    found = wl.spectrum.sphere(wl.mlp(3, "erf"), 3, 41, digits=60)
    odd = found.values[1::2]
    assert np.all(odd > 0)
    assert odd[-1] < 1e-20 * odd[0]
    assert np.all(np.diff(np.log(odd)) < 0)
    assert np.all(found.values[::2] == 0)


def test_gaussian_kernel_on_the_circle_has_bessel_coefficients():
    # The exponential activation has the dual exp(q + k): a Gaussian kernel, whose coefficients are
    # modified Bessel functions.
    found = wl.spectrum.circle(wl.mlp(1, "exp"), 8, kernel="nngp")
    exact = math.exp(0.5) * special.iv(np.arange(9), 0.5)
    assert np.allclose(found.values, exact, rtol=1e-9, atol=1e-16)
    precise = wl.spectrum.circle(wl.mlp(1, "exp"), 30, kernel="nngp", digits=50).values
    assert np.allclose(precise, math.exp(0.5) * special.iv(np.arange(31), 0.5), rtol=1e-12, atol=0)


def test_structural_zeros_are_exact_and_nothing_else_is():
    zero = lambda net: set(np.flatnonzero(wl.spectrum.sphere(net, 3, 9).values == 0))
    odd, even = {3, 5, 7, 9}, {0, 2, 4, 6, 8}
    assert zero(wl.mlp(1)) == odd
    assert zero(wl.resnet(1, 0.3)) == odd
    assert zero(wl.mlp(1, b_std=0.5)) == set()
    assert zero(wl.mlp(2)) == set()
    assert zero(wl.mlp(3, "erf")) == even
    assert zero(wl.mlp(1, "relu_power(2)")) == {4, 6, 8}
    assert zero(wl.mlp(2, "abs")) == {1, 3, 5, 7, 9}
    assert zero(wl.mlp(2, "polynomial(1, 1, 1)")) == {5, 6, 7, 8, 9}


@pytest.mark.parametrize("act", ["relu", "relu_power(2)", "abs"])
def test_structural_zeros_vanish_numerically_too(act):
    # The same integral without the structural rule, by a trapezium rule on the whole circle.
    size, net = 256, wl.mlp(1, act)
    row = wl.ntk(net, on_the_circle(size)[:1], on_the_circle(size))[0]
    dft = np.fft.rfft(row).real[:12] / size
    values = wl.spectrum.circle(net, 11).values
    assert np.any(values == 0)
    assert np.all(np.abs(dft[values == 0]) < 1e-14 * row[0])
    assert np.all(np.abs(dft[values != 0]) > 1e-8 * row[0])


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("kernel", ["ntk", "nngp"])
def test_decay_on_circle_and_sphere_is_that_of_theory(dim, kernel):
    for net in (wl.resnet(5, 0.1), wl.mlp(1)):
        digits = None if kernel == "ntk" else 40
        found = wl.spectrum.decay(wl.spectrum.sphere(net, dim, 1000, kernel=kernel, digits=digits))
        theory = wl.spectrum.decay_theory(net, dim, kernel=kernel)
        assert theory == (dim if kernel == "ntk" else dim + 2)
        assert abs(found.even / theory - 1) < 0.02
        assert found.odd is None if net == wl.mlp(1) else abs(found.odd / theory - 1) < 0.02


def test_decay_in_ten_dimensions_needs_digits_and_says_so():
    net = wl.resnet(5, 0.1)
    with pytest.raises(ValueError, match="digits=50"):
        wl.spectrum.decay(wl.spectrum.sphere(net, 10, 1000))
    found = wl.spectrum.decay(wl.spectrum.sphere(net, 10, 1000, digits=50))
    assert abs(found.even / 10 - 1) < 0.02
    assert abs(found.odd / 10 - 1) < 0.02
    assert wl.spectrum.decay_theory(wl.mlp(2, "gelu"), 10) == math.inf
    assert wl.spectrum.decay_theory(wl.mlp(2, "elu"), 3) == 5.0
    assert wl.spectrum.decay_theory(wl.mlp(2, "relu_power(2)"), 3) == 5.0


def test_leading_asymptotics_follow_from_the_two_kinks():
    for net in (wl.mlp(3), wl.resnet(5, 0.1)):
        same, opposite = wl.spectrum.expansion(net)
        k = np.arange(800, 1001)
        found = wl.spectrum.circle(net, 1000).values[k]
        # The slope at pi is measured in pi - theta.
        sign = np.where(k % 2 == 0, 1, -1)
        assert np.allclose(found, (-sign * opposite.slope - same.slope) / (np.pi * k**2), rtol=1e-4)


def test_kink_matches_golden_slopes_closed_forms_and_derivatives(golden):
    for case in golden["circle_shapes"]["cases"]:
        if case["model"] in ("mlp", "resnet"):
            assert math.isclose(
                wl.spectrum.kink(network(case)), -case["slope_at_0_normalised"], rel_tol=1e-12
            )
    assert math.isclose(wl.spectrum.kink(wl.mlp(7)), wl.spectrum.kink_mlp(7), rel_tol=1e-13)
    net = wl.mlp(3, "leaky_relu(0.3)", 1.3, 0.4)
    same, _ = wl.spectrum.expansion(net, dim=3)
    assert math.isclose(wl.spectrum.kink(net, 3), -same.slope / same.value, rel_tol=1e-8)
    clipped = wl.Activation("clip", lambda x: x.clip(-0.5, 0.8), breaks=(-0.5, 0.8))
    net = wl.Dense() >> wl.Phi(clipped) >> wl.Dense(b_std=0.2)
    angle = np.array([0.0, 1e-4])
    row = wl.ntk(net, [[1.0, 0.0]], np.stack([np.cos(angle), np.sin(angle)], 1))[0]
    assert math.isclose(wl.spectrum.kink(net), (1 - row[1] / row[0]) / 1e-4, rel_tol=1e-3)


@settings(deadline=None, max_examples=8)
@given(
    depth=st.integers(1, 8),
    alpha=st.floats(0.01, 10),
    w_std=st.floats(0.2, 3),
    v_std=st.floats(0.2, 3),
)
def test_a_resnet_has_a_weaker_kink_than_the_mlp(depth, alpha, w_std, v_std):
    net = wl.resnet(depth, alpha, w_std=w_std, v_std=v_std)
    closed = wl.spectrum.kink_resnet(depth, alpha, w_std, v_std)
    assert math.isclose(wl.spectrum.kink(net), closed, rel_tol=1e-10)
    assert closed < wl.spectrum.kink_mlp(depth) + (1e-12 if depth > 1 else 0)


def test_expansion_of_one_hidden_layer_is_elementary():
    # 4 Theta = (sin t + 2 (pi - t) cos t)/pi on the unit circle
    same, opposite = wl.spectrum.expansion(wl.mlp(1))
    assert np.allclose(np.array(same) * 4, [2, -1 / np.pi, -2], atol=1e-7)
    assert np.allclose(np.array(opposite) * 4, [0, -1 / np.pi, 0], atol=1e-7)


def test_singular_grams_are_detected(golden):
    for case in golden["degenerate_grams"]:
        found = wl.spectrum.condition(wl.ntk(network(case), on_the_circle(6)))
        assert found.rank == case["exact_rank"]
        assert found.number == math.inf
        assert math.isclose(found.eigenvalues[0], case["lambda_max"], rel_tol=1e-12)
        assert math.isclose(
            found.eigenvalues[found.rank - 1], case["smallest_nonzero"], rel_tol=1e-9
        )
    diagonal = wl.spectrum.condition(np.diag([4.0, 1.0, 0.5]))
    assert (diagonal.rank, diagonal.number) == (3, 8.0)


def test_equispaced_points_sample_the_exact_eigenvalues_folded():
    net, size = wl.mlp(4), 32
    found = wl.spectrum.empirical(net, on_the_circle(size))
    exact = wl.spectrum.circle(net, 4000).values
    # The eigenvalue k of a circulant Gram matrix over n is the sum over k + jn.
    folded = [sum(exact[abs(k + j * size)] for j in range(-120, 121)) for k in range(size)]
    assert np.allclose(found.sampled, np.sort(folded)[::-1], rtol=2e-3)
    assert np.all(found.sampled[:3] >= found.exact[:3])


def test_effective_dimension_of_a_sphere_tends_to_that_of_a_large_sample(seed):
    net, ridge = wl.resnet(3, 1.0), 0.02
    spectrum = wl.spectrum.sphere(net, 3, 100)
    x = np.random.default_rng(seed).normal(size=(800, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    sampled = wl.spectrum.effective_dimension(wl.ntk(net, x) / len(x), ridge)
    exact = wl.spectrum.effective_dimension(spectrum, ridge)
    assert abs(sampled / exact - 1) < 0.05
    assert wl.spectrum.effective_dimension(spectrum, 2 * ridge) < exact


def test_radius_and_dimension_enter_through_the_variance():
    net = wl.mlp(2, "erf", 1.2, 0.3)
    a = wl.spectrum.sphere(net, 3, 5, radius=math.sqrt(3.0))
    b = wl.spectrum.sphere(net, 2, 0, radius=math.sqrt(2.0))
    assert math.isclose(a.peak, b.peak, rel_tol=1e-14)
    homogeneous = [wl.spectrum.circle(wl.mlp(2), 5, radius=r).values for r in (1.0, 3.0)]
    assert np.allclose(9 * homogeneous[0], homogeneous[1], rtol=1e-12, atol=1e-16)


def test_multiplicities_count_polynomials():
    for dim in (2, 3, 5, 10):
        total = sum(wl.spectrum.multiplicity(dim, k) for k in range(6))
        assert total == math.comb(dim + 4, 5) + math.comb(dim + 3, 4)


def test_bad_input_is_refused_with_a_remedy():
    net = wl.mlp(1)
    with pytest.raises(ValueError, match="kernel must be"):
        wl.spectrum.circle(net, kernel="gram")
    with pytest.raises(ValueError, match="at least 2"):
        wl.spectrum.sphere(net, 1)
    with pytest.raises(ValueError, match="radius"):
        wl.spectrum.circle(net, radius=0.0)
    with pytest.raises(ValueError, match="fewer degrees"):
        wl.spectrum.sphere(net, 2000, 1000)
    with pytest.raises(ValueError, match="Leave `digits` out"):
        wl.spectrum.circle(wl.mlp(1, "mish"), 5, digits=30)
    with pytest.raises(ValueError, match="at most 40"):
        wl.spectrum.circle(wl.mlp(1, "tanh"), 5, digits=50)
    with pytest.raises(ValueError, match="must lie on a sphere"):
        wl.spectrum.empirical(net, [[1.0, 0.0], [0.0, 2.0]])
    with pytest.raises(ValueError, match="square"):
        wl.spectrum.condition(np.ones((2, 3)))
    with pytest.raises(ValueError, match="symmetric"):
        wl.spectrum.condition([[1.0, 0.5], [0.0, 1.0]])
    with pytest.raises(ValueError, match="degrees=1000"):
        wl.spectrum.decay(wl.spectrum.circle(net, 10))
    with pytest.raises(ValueError, match="tangent kernel"):
        wl.spectrum.circle(wl.mlp(1, "sign"))
