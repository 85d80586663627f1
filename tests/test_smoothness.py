"""The measures against golden values, the published table, closed forms and finite differences."""

import math
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widelimit as wl
from widelimit import plot, smoothness

B = -np.pi + 2 * np.pi * np.arange(4096) / 4096


def target(b):
    return np.cos(b) / 2 + np.sin(4 * b)


def network(model, depth, alpha=None):
    return wl.mlp(depth=depth) if model == "mlp" else wl.resnet(depth=depth, alpha=alpha)


def golden_cases(regression):
    """All networks on samples of 6 and 10 points at both depths, and 20 points at one."""
    sets = {s["name"]: s for s in regression["sets"]}
    for case in regression["results"]:
        count, depth = int(case["set"].split("-")[1]), case["L"]
        if (count in (6, 10) and depth in (5, 15)) or (count == 20 and depth == 5):
            yield case, sets[case["set"]], network(case["model"], case["L"], case.get("alpha"))


# The first table: smaller is smoother.


def test_second_derivative_of_golden_interpolants(golden):
    """To 1e-9, and 1e-8 where weights of size 1e6 cancel to a function of size 1 (alpha = 0.01)."""
    strict = 0
    for case, data, net in golden_cases(golden["regression"]):
        f = smoothness.interpolate(net, data["betas"], data["y"])
        tolerance = 1e-8 if case["cond"] > 1e5 else 1e-9
        strict += tolerance == 1e-9
        assert float(smoothness.second_derivative(f)) == pytest.approx(case["mu004"], rel=tolerance)
        assert f.condition == pytest.approx(case["cond"], rel=1e-3)
    assert strict >= 24


PUBLISHED = {
    (5, 6): (58.36, 13.99, 4.090, 1.012, 1.000),
    (5, 10): (191.3, 158.7, 145.3, 110.2, 105.1),
    (15, 6): (292.4, 60.23, 14.72, 1.104, 1.000),
    (15, 10): (421.7, 205.4, 162.5, 118.6, 102.8),
}


@pytest.mark.parametrize(("depth", "count"), PUBLISHED)
def test_published_table(depth, count):
    """Tirer, Bruna and Giryes (2022): samples at both ends of the period, jitter 1e-10, N = 4096."""
    b = -np.pi + 2 * np.pi * np.linspace(0, 1, count)
    nets = [wl.mlp(depth=depth), *(wl.resnet(depth=depth, alpha=a) for a in (1, 0.5, 0.1, 0.01))]
    for net, published in zip(nets, PUBLISHED[depth, count], strict=True):
        f = smoothness.interpolate(net, b, target(b), jitter=1e-10)
        mu = smoothness.second_derivative(f)
        assert float(mu) == pytest.approx(published, rel=1e-3)
        assert (mu.N, mu.direction) == (4096, "smaller is smoother")


def test_published_table_for_erf():
    resnet = wl.resnet(depth=5, alpha=1, activation="erf")
    for count, published in ((6, 1.016), (10, 22.36)):
        b = -np.pi + 2 * np.pi * np.linspace(0, 1, count)
        f = smoothness.interpolate(resnet, b, target(b), jitter=1e-10)
        assert float(smoothness.second_derivative(f)) == pytest.approx(published, rel=1e-3)


def sphere_interpolant(net, shape):
    b, xi = np.linspace(-np.pi, np.pi, shape[0]), np.linspace(0, np.pi, shape[1])
    y = (target(b)[:, None] * np.sin(xi)[None, :]).ravel()
    return smoothness.interpolate(net, smoothness.sphere_points(b, xi), y, jitter=1e-10)


def test_two_dimensions_is_the_mixed_derivative():
    """A product of harmonics has the product of their measures; the Laplacian would give a sum."""
    b, xi = B[::32], np.pi * np.arange(64) / 64
    values = np.sin(3 * b)[:, None] * np.cos(2 * 2 * xi)[None, :]  # wave numbers 3 and 2
    assert float(smoothness.second_derivative(values)) == pytest.approx(9 * 4, rel=1e-11)
    mixed = np.sin(3 * b)[:, None] * np.cos(4 * xi)[None, :] + np.cos(b)[:, None]
    power = 1 / 4 + 1 / 2
    assert float(smoothness.second_derivative(mixed)) == pytest.approx(
        36 * math.sqrt(1 / 4 / power), rel=1e-11
    )


def test_sphere_grid_of_a_model_by_brute_force():
    net = wl.resnet(depth=2, alpha=0.5)
    f = sphere_interpolant(net, (6, 3))
    mu = smoothness.second_derivative(f, on="sphere", points=(32, 16))
    b, xi = -np.pi + 2 * np.pi * np.arange(32) / 32, np.pi * np.arange(16) / 16
    rows = [[np.cos(p) * np.sin(t), np.sin(p) * np.sin(t), np.cos(t)] for p in b for t in xi]
    values = f.predict(np.array(rows)).reshape(32, 16)
    values /= np.sqrt(np.mean(values**2))
    total = 0.0
    for k1 in range(-16, 16):
        for k2 in range(-8, 8):
            wave = np.exp(
                -2j * np.pi * (k1 * np.arange(32)[:, None] / 32 + k2 * np.arange(16) / 16)
            )
            total += (k1 * k2) ** 4 * abs(np.sum(values * wave)) ** 2
    assert float(mu) == pytest.approx(math.sqrt(total) / (32 * 16), rel=1e-10)
    assert mu.N == (32, 16)


def plain_resnet_ntk(x1, x2, depth, alpha):
    """The recursion with arccos, layer by layer: independent of the library's evaluation."""
    k = x1 @ x2.T / x1.shape[1]
    q, g, psi = 1 / x1.shape[1], alpha**2, k
    for _ in range(depth):
        rho = np.clip(k / q, -1, 1)
        angle = np.arccos(rho)
        dual = q / (2 * np.pi) * (rho * (np.pi - angle) + np.sqrt(1 - rho**2))
        dot = (np.pi - angle) / (2 * np.pi)
        k, psi, q = k + g * dual, psi * (1 + g * dot) + g * (dual + k * dot), q * (1 + g / 2)
    return k + psi


def test_sphere_at_the_published_setting_against_a_plain_computation():
    """10 x 5 samples with both ends, jitter 1e-10, 256 x 128 grid, L = 15, alpha = 0.1."""
    b, xi = np.linspace(-np.pi, np.pi, 10), np.linspace(0, np.pi, 5)
    x, y = smoothness.sphere_points(b, xi), np.outer(target(b), np.sin(xi)).ravel()
    grid = smoothness.sphere_points(B[::16], np.pi * np.arange(128) / 128)
    gram = plain_resnet_ntk(x, x, 15, 0.1) + 1e-10 * np.eye(50)
    values = plain_resnet_ntk(grid, x, 15, 0.1) @ np.linalg.solve(gram, y)
    power = np.abs(np.fft.fft2(values.reshape(256, 128))) ** 2 / np.sum(values**2) / values.size
    k1, k2 = np.fft.fftfreq(256, 1 / 256), np.fft.fftfreq(128, 1 / 128)
    expected = math.sqrt(np.sum(np.outer(k1, k2) ** 4 * power))
    mu = smoothness.second_derivative(
        sphere_interpolant(wl.resnet(depth=15, alpha=0.1), (10, 5)), on="sphere"
    )
    assert float(mu) == pytest.approx(expected, rel=1e-6)
    assert mu.N == (256, 128)


def test_ordering_on_the_sphere():
    nets = wl.mlp(depth=15), wl.resnet(depth=15, alpha=1), wl.resnet(depth=15, alpha=0.1)
    mu = [
        smoothness.second_derivative(sphere_interpolant(net, (6, 3)), on="sphere", points=(64, 32))
        for net in nets
    ]
    assert mu[2].smoother_than(mu[1])
    assert mu[1].smoother_than(mu[0])


@settings(max_examples=20, deadline=None)
@given(
    k=st.integers(1, 40),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-3, 3),
)
def test_a_harmonic_measures_its_squared_wave_number(k, scale, shift):
    mu = smoothness.second_derivative(lambda b: scale * np.sin(k * (b - shift)), points=128)
    assert float(mu) == pytest.approx(k**2, rel=1e-10)


def test_kinks_grow_with_the_root_of_n_and_smooth_functions_do_not():
    kink = [float(smoothness.second_derivative(lambda b: np.abs(b), points=n)) for n in (256, 4096)]
    assert kink[1] / kink[0] == pytest.approx(4, rel=0.02)
    smooth = [
        float(smoothness.second_derivative(lambda b: np.exp(np.cos(b)), points=n))
        for n in (256, 4096)
    ]
    assert smooth[1] == pytest.approx(smooth[0], rel=1e-9)


def test_kink_energy_of_the_interpolant(golden):
    """mu/sqrt(N) for 6 equispaced samples, L = 5, at four resolutions."""
    data = golden["regression"]["sets"][0]
    f = smoothness.interpolate(wl.mlp(depth=5), data["betas"], data["y"])
    for n, value in ((256, 1.317), (1024, 1.311), (4096, 1.310)):
        mu = float(smoothness.second_derivative(f, points=n))
        assert mu / math.sqrt(n) == pytest.approx(value, abs=6e-4)


def test_arrays_functions_and_models_agree():
    b = np.array([-2.0, -0.5, 1.0, 2.2])
    f = smoothness.interpolate(wl.mlp(depth=3), b, target(b))

    class Trained:
        def predict(self, x, t=None):
            return f.predict(x)[:, None]

    values = f.predict(smoothness.circle_points(B))
    expected = float(smoothness.second_derivative(values))
    for form in (f, Trained()):
        assert float(smoothness.second_derivative(form)) == expected
    for on_circle in (lambda x: f.predict(x), f):
        assert float(smoothness.second_derivative(on_circle, on="circle")) == expected
    of_angle = smoothness.second_derivative(
        lambda b: f.predict(smoothness.circle_points(b)), grid=B
    )
    assert float(of_angle) == expected
    assert float(smoothness.second_derivative(values.tolist(), grid=B)) == expected
    with jax.enable_x64(True):
        assert float(smoothness.second_derivative(jnp.asarray(values))) == expected


def test_float32_values_announce_their_noise():
    with pytest.warns(UserWarning, match="float32"):
        mu = smoothness.second_derivative(np.cos(B).astype(np.float32))
    assert mu.noise > 0.05
    rough = smoothness.second_derivative(np.abs(B).astype(np.float32))
    assert float(rough) == pytest.approx(float(smoothness.second_derivative(np.abs(B))), rel=0.01)


# The second measure: larger is smoother.


def test_gaussian_measure_of_golden_interpolants(golden):
    regression = golden["regression"]
    step = 1 if os.environ.get("WIDELIMIT_ALL") else 2
    for case, data, net in [*golden_cases(regression)][::step]:
        f = smoothness.interpolate(net, data["betas"], data["y"])
        cond = data["gauss_gram_cond"]
        if cond > 1e13:
            with pytest.warns(UserWarning, match="condition number"):
                g = smoothness.interpolate("gaussian", data["betas"], data["y"])
        else:
            g = smoothness.interpolate("gaussian", data["betas"], data["y"])
        for tau, value in zip(regression["tau"], case["mu002_floor"], strict=True):
            mu = smoothness.gaussian_rkhs(f, g, tau=tau)
            assert float(mu) == pytest.approx(value, rel=1e-6)
            assert (mu.floor, mu.N, mu.direction) == (tau, 4096, "larger is smoother")
        tolerance = 1e-7 if case["cond"] > 1e5 else 1e-8
        for k_max, value in zip(regression["kmax"], case["mu002_band"], strict=True):
            mu = smoothness.gaussian_rkhs(f, g, k_max=k_max)
            assert float(mu) == pytest.approx(value, rel=tolerance)
            assert mu.source == "exact coefficients"


def test_band_limit_from_a_transform_is_close_to_the_exact_one(golden):
    data = golden["regression"]["sets"][1]
    f = smoothness.interpolate(wl.mlp(depth=5), data["betas"], data["y"])
    g = smoothness.interpolate("gaussian", data["betas"], data["y"])
    exact = smoothness.gaussian_rkhs(f, g, k_max=8)
    plain = smoothness.gaussian_rkhs(f.predict(smoothness.circle_points(B)), g, k_max=8)
    assert float(plain) == pytest.approx(float(exact), rel=1e-4)
    assert plain.source == "grid values"


def test_fourier_coefficients_of_an_interpolant():
    """Against a fine Riemann sum, which converges like N^-2 at the kinks."""
    f = smoothness.interpolate(wl.resnet(depth=4, alpha=0.7), [-2.0, 0.3, 1.1], [1.0, -1.0, 0.5])
    n = 2**15
    b = -np.pi + 2 * np.pi * np.arange(n) / n
    values = f.predict(smoothness.circle_points(b))
    c = f.fourier(5)
    for k in range(-5, 6):
        assert c[k + 5] == pytest.approx(np.mean(values * np.exp(-1j * k * b)), abs=1e-8)


def test_squared_and_scaling_laws():
    f, g = np.sin(4 * B) + np.cos(B), np.cos(B)
    one = float(smoothness.gaussian_rkhs(f, g))
    assert float(smoothness.gaussian_rkhs(f, g, squared=True)) == pytest.approx(one**2, rel=1e-14)
    assert float(smoothness.gaussian_rkhs(5 * f, 5 * g)) == pytest.approx(one, rel=1e-14)
    assert float(smoothness.gaussian_rkhs(f, f)) == 1.0


def test_published_recipe_is_round_off(golden):
    """It falls with N where the floored measure stands still; sizes as in float32 scripts."""
    data = golden["regression"]["sets"][0]
    f = smoothness.interpolate(wl.mlp(depth=5), data["betas"], data["y"])
    g = smoothness.interpolate("gaussian", data["betas"], data["y"])
    with pytest.warns(UserWarning, match="round-off"):
        coarse, fine = (
            float(smoothness.gaussian_rkhs(f, g, recipe="published", points=n)) for n in (256, 4096)
        )
    assert coarse == pytest.approx(0.0056, rel=0.1)
    assert fine == pytest.approx(0.0031, rel=0.1)
    floored = [float(smoothness.gaussian_rkhs(f, g, points=n)) for n in (4096, 16384)]
    assert floored[0] == pytest.approx(floored[1], rel=2e-5)


def test_gaussian_norm_of_the_gaussian_interpolant(golden):
    """y' K^-1 y equals the sum over harmonics: the two norms of the definition are one."""
    data = golden["regression"]["sets"][0]
    g = smoothness.interpolate("gaussian", data["betas"], data["y"])
    k = np.arange(-40, 41)
    norm = np.sum(np.abs(g.fourier(40)) ** 2 / smoothness.gaussian_eigenvalues(k))
    assert norm == pytest.approx(data["gauss_norm_squared"], rel=1e-12)
    assert g.weights @ np.array(data["y"]) == pytest.approx(data["gauss_norm_squared"], rel=1e-12)


# Any dimension.


def test_total_variation_and_second_differences_of_known_functions():
    start, end = np.zeros((2, 3)), np.array([[1.0, 0, 0], [0, 2.0, 0]])
    f = lambda x: np.sin(2 * np.pi * x[:, 0]) + x[:, 1] ** 2
    tv = smoothness.total_variation(f, start, end, points=4001)
    assert tv.each == pytest.approx([4.0, 4.0], rel=1e-6)
    assert float(tv) == pytest.approx(4.0, rel=1e-6)
    slope = smoothness.second_differences(f, start, end, points=4001)
    assert slope.each == pytest.approx([8 * np.pi, 4.0], rel=1e-3)
    rms = smoothness.second_differences(f, start, end, points=4001, norm="rms")
    assert rms.each == pytest.approx([(2 * np.pi) ** 2 / math.sqrt(2), 2.0], rel=1e-3)


def test_lines_through_data_rank_the_networks():
    rng = np.random.default_rng(3)
    x = rng.standard_normal((20, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.standard_normal(20)
    start, end = smoothness.data_lines(x, count=24, key=1)
    assert np.all(np.any(start != end, axis=1))
    rough, smooth = (
        smoothness.second_differences(smoothness.interpolate(net, x, y), start, end, points=65)
        for net in (wl.mlp(depth=10), wl.resnet(depth=10, alpha=0.1))
    )
    assert smooth.smoother_than(rough)


@pytest.mark.parametrize("kernel", ["ntk", "nngp", "gaussian"])
def test_input_gradient_against_finite_differences(kernel):
    rng = np.random.default_rng(0)
    x, y, z = rng.standard_normal((6, 3)), rng.standard_normal(6), rng.standard_normal((4, 3))
    net = "gaussian" if kernel == "gaussian" else wl.resnet(depth=3, alpha=0.5)
    f = smoothness.interpolate(net, x, y, kernel=kernel)
    out = smoothness.input_gradient(f, z)
    assert out.gradients.dtype == np.float64
    for i, direction in enumerate(np.eye(3)):
        step = 1e-5 * direction
        central = (f.predict(z + step) - f.predict(z - step)) / 2e-5
        assert out.gradients[:, i] == pytest.approx(central, abs=1e-8)
    assert out.maximum == np.linalg.norm(out.gradients, axis=1).max()
    assert out.mean == pytest.approx(np.linalg.norm(out.gradients, axis=1).mean())


def test_input_gradient_at_a_training_point_is_the_mean_slope():
    b = np.array([-2.0, -0.5, 1.0, 2.2])
    f = smoothness.interpolate(wl.mlp(depth=3), b, target(b))
    x = smoothness.circle_points(b)
    out = smoothness.input_gradient(f, x)
    for i, direction in enumerate(np.eye(2)):
        step = 1e-6 * direction
        central = (f.predict(x + step) - f.predict(x - step)) / 2e-6
        assert out.gradients[:, i] == pytest.approx(central, abs=1e-5)


def test_input_gradient_is_jax_in_jax_out():
    f = smoothness.interpolate(wl.mlp(depth=2), [0.0, 1.0], [1.0, 2.0])
    out = smoothness.input_gradient(f, jnp.ones((3, 2), jnp.float32))
    assert isinstance(out.norms, jax.Array)
    assert out.norms.dtype == jnp.float32


def test_trained_models_are_measured_and_differentiated_at_any_time():
    b = np.array([-2.0, -0.5, 1.0, 2.2])
    x, net = smoothness.circle_points(b), wl.mlp(depth=3)
    model, f = wl.train(net, x, target(b)), smoothness.interpolate(net, b, target(b))
    mu = float(smoothness.second_derivative(f))
    assert float(smoothness.second_derivative(model)) == pytest.approx(mu, rel=1e-9)
    forever = smoothness.input_gradient(model, x)
    assert forever.gradients == pytest.approx(smoothness.input_gradient(f, x).gradients, rel=1e-9)
    early = smoothness.input_gradient(model, x + 0.1, t=3.0)
    for i, direction in enumerate(np.eye(2)):
        step = 1e-5 * direction
        up, down = (model.predict(x + 0.1 + s, t=3.0) for s in (step, -step))
        assert early.gradients[:, i] == pytest.approx((up - down) / 2e-5, abs=1e-8)


# Bad input.


def test_grids_that_are_not_a_period():
    b = np.linspace(-np.pi, np.pi, 65)
    with pytest.raises(ValueError, match="both ends"):
        smoothness.second_derivative(np.cos(b), grid=b)
    half = np.linspace(0, np.pi, 64, endpoint=False)
    with pytest.raises(ValueError, match="not one period"):
        smoothness.second_derivative(np.sin(half), grid=half)
    with pytest.raises(ValueError, match="not equispaced"):
        smoothness.second_derivative(np.cos(b**3), grid=b**3)
    with pytest.raises(ValueError, match="The grid has 65"):
        smoothness.second_derivative(np.cos(b[:-1]), grid=b)
    with pytest.raises(ValueError, match="not one period"):
        smoothness.second_derivative(np.cos, grid=half)


def test_values_that_are_not_periodic():
    with pytest.raises(ValueError, match="not periodic"):
        smoothness.second_derivative(lambda b: b)
    with pytest.raises(ValueError, match="not periodic along axis 1"):
        smoothness.second_derivative(np.cos(B[::64])[:, None] * np.linspace(0, 1, 64)[None, :])
    assert float(smoothness.second_derivative(lambda b: b, check=False)) > 1e3
    closed = np.linspace(-np.pi, np.pi, 257)
    with pytest.warns(UserWarning, match="repeats the first"):
        smoothness.second_derivative(np.sin(closed))
    midpoints = B + np.pi / 4096  # symmetric: its first and last values are equal, rightly
    assert float(smoothness.second_derivative(np.cos(midpoints))) == pytest.approx(1, rel=1e-8)


def test_poles_of_different_height_are_announced():
    with pytest.warns(UserWarning, match="poles"):
        smoothness.second_derivative(lambda x: x[:, 2] ** 3 + x[:, 0], on="sphere")


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: smoothness.second_derivative(np.ones(5)), ValueError, "at least 8"),
        (lambda: smoothness.second_derivative(np.cos, points=4), ValueError, "at least 8"),
        (lambda: smoothness.second_derivative(np.zeros(64)), ValueError, "zero everywhere"),
        (lambda: smoothness.second_derivative(3.0), TypeError, "array of values"),
        (lambda: smoothness.second_derivative(np.full(64, np.nan)), ValueError, "NaN"),
        (lambda: smoothness.second_derivative(np.cos, on="torus"), ValueError, "Unknown domain"),
        (lambda: smoothness.second_derivative(np.cos(B), on="circle"), ValueError, "already"),
        (
            lambda: smoothness.second_derivative(np.cos(B), points=64),
            ValueError,
            "points=64|points=\\(64",
        ),
        (lambda: smoothness.second_derivative(lambda b: np.ones((len(b), 2))), ValueError, "shape"),
        (lambda: jax.jit(smoothness.second_derivative)(jnp.ones(64)), TypeError, "outside jit"),
        (lambda: smoothness.gaussian_rkhs(np.cos(B), np.cos(B), tau=0), ValueError, "positive"),
        (lambda: smoothness.gaussian_rkhs(np.cos(B), np.cos(B[::2])), ValueError, "same grid"),
        (lambda: smoothness.gaussian_rkhs(np.cos, np.cos, k_max=500), ValueError, "at most 140"),
        (
            lambda: smoothness.gaussian_rkhs(np.cos, np.cos, recipe="exact"),
            ValueError,
            "Unknown recipe",
        ),
        (
            lambda: smoothness.gaussian_rkhs(np.cos, np.cos, recipe="band"),
            ValueError,
            "needs k_max",
        ),
        (lambda: smoothness.gaussian_rkhs(np.cos, np.cos, on="sphere"), ValueError, "circle"),
        (lambda: smoothness.gaussian_rkhs(0 * B, np.cos(B)), ValueError, "zero"),
        (lambda: smoothness.total_variation(np.sum, [0.0], [0.0]), ValueError, "distinct"),
        (
            lambda: smoothness.second_differences(np.sum, [0.0], [1.0], points=2),
            ValueError,
            "at least 3",
        ),
        (lambda: smoothness.as_interpolant(np.cos), TypeError, "widelimit.train"),
        (lambda: smoothness.input_gradient(jnp.sum, [[1.0]], t=1.0), ValueError, "no time"),
        (
            lambda: smoothness.as_interpolant(
                wl.train(wl.mlp(depth=1), np.eye(2), [1.0, -1.0], loss="huber")
            ),
            ValueError,
            "squared loss",
        ),
        (lambda: smoothness.data_lines([[1.0], [1.0]]), ValueError, "two distinct"),
        (lambda: smoothness.interpolate("gauss", [0.0], [1.0]), TypeError, "network or 'gaussian'"),
        (
            lambda: smoothness.interpolate(wl.mlp(depth=1), [0.0, 0.0], [1.0, 1.0]),
            ValueError,
            "singular",
        ),
        (lambda: smoothness.interpolate(wl.mlp(depth=1), [0.0, 1.0], [1.0]), ValueError, "label"),
        (
            lambda: smoothness.interpolate(wl.mlp(depth=1), [0.0], [1.0], jitter=-1),
            ValueError,
            "jitter",
        ),
        (
            lambda: smoothness.interpolate(wl.mlp(depth=1), [[2.0, 0.0]], [1.0]).fourier(3),
            ValueError,
            "unit circle",
        ),
        (
            lambda: smoothness.input_gradient(lambda x: np.asarray(x)[:, 0], [[1.0]]),
            TypeError,
            "differentiated",
        ),
        (
            lambda: smoothness.input_gradient(lambda x: x @ x.T, [[1.0], [2.0]]),
            ValueError,
            "one value",
        ),
    ],
)
def test_refusals(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_values_of_different_resolution_are_not_compared():
    a = smoothness.second_derivative(np.cos, points=64)
    b = smoothness.second_derivative(np.cos, points=128)
    with pytest.raises(ValueError, match="cannot be compared"):
        a.smoother_than(b)
    assert "N = 64" in str(a)


# Figures.


def test_plots():
    b = np.array([-2.0, -0.5, 1.0, 2.2])
    fits = {
        name: smoothness.interpolate("gaussian", b, f(b))
        for name, f in (("target", target), ("sine", np.sin))
    }
    fig = plot.smoothness(fits, samples=(b, target(b)), points=512)
    labels = [t.get_text() for t in fig.axes[0].get_legend().get_texts()]
    mu = float(smoothness.second_derivative(fits["target"], points=512))
    assert any(f"{mu:.4g}" in label for label in labels)
    x = smoothness.circle_points(b)
    assert len(plot.along_lines(fits, x[:3], x[1:], points=512).axes) == 3
    norms = plot.gradient_norms(fits, points=512)
    line = norms.axes[0].lines[0].get_ydata()
    assert line[5] == pytest.approx(
        smoothness.input_gradient(fits["target"], smoothness.circle_points(B[::8])).norms[5]
    )
