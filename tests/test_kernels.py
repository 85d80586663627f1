"""The public kernel functions: conventions, derivatives, limits, bad input."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import widelimit as wl
from widelimit import testing
from widelimit._base.arrays import as_inputs
from widelimit.infinite import _layered
from widelimit.infinite._evaluate import Request, for_device
from widelimit.infinite._halved import halved
from widelimit.infinite._plan import split
from widelimit.infinite._whole import _placed, _whole

NETWORKS = [
    wl.mlp(3),
    wl.mlp(2, "erf", w_std=1.3, b_std=0.4),
    wl.mlp(2, "tanh", w_std=1.1, b_std=0.2),
    wl.mlp(2, "relu_power(2)", w_std=0.7),
    wl.mlp(2, "polynomial(0.2, 1, 0.3)", w_std=0.8),
    wl.mlp(0),
    wl.resnet(4, alpha=0.1),
    wl.resnet(3, alpha=0.7, activation="gelu", w_std=1.2, v_std=0.8),
    wl.Dense() >> wl.Phi("erf") >> wl.Dense(b_std=0.5) >> wl.Phi("relu") >> wl.Dense(),
    wl.Dense()
    >> (wl.Identity() + (wl.Phi("relu") >> wl.Dense()) + wl.Dense(b_std=0.2))
    >> wl.Dense(),
]


@pytest.mark.parametrize("net", NETWORKS, ids=repr)
def test_laws(net):
    testing.check_network(net, key=3)


def test_parts_agree_with_a_kink_and_no_closed_form():
    """Quadrature entry by entry; nearly opposite inputs included."""
    parts_agree = next(law for law in testing.NETWORK_LAWS if law.__name__ == "parts_agree")
    parts_agree(wl.mlp(1, "elu", w_std=1.1), np.random.default_rng(3))


# --- against the recursions in 50 digits, at random ------------------------------------------------

numbers = st.floats(0.3, 2.0)
vectors = st.lists(st.floats(-3, 3), min_size=3, max_size=3).filter(
    lambda v: max(map(abs, v)) > 0.01
)


@settings(max_examples=25, deadline=None)
@given(x=vectors, y=vectors, w=numbers, b=st.sampled_from([0.0, 0.3, 1.1]), alpha=numbers)
def test_any_pair_matches_the_recursion(x, y, w, b, alpha):
    for activation in ("relu", "erf"):
        for net, options in (
            (wl.mlp(4, activation, w_std=w, b_std=b), {"b_std": b}),
            (wl.resnet(4, alpha, activation, w_std=w, v_std=0.9), {"alpha": alpha, "v_std": 0.9}),
        ):
            want = testing.mpmath_ntk(x, y, depth=4, activation=activation, w_std=w, **options)
            got = wl.kernels(net, [x], [y])
            size = wl.kernels(net, [x]), wl.kernels(net, [y])
            for i in (0, 1):
                scale = np.sqrt(size[0][i][0, 0] * size[1][i][0, 0])
                assert abs(got[i][0, 0] - want[i]) < 3e-14 * scale


@settings(max_examples=10, deadline=None)
@given(x=vectors, s=st.floats(0.01, 100))
def test_homogeneity_of_bias_free_relu(x, s):
    y = np.array([[0.3, -1.0, 0.5]])
    for net in (wl.mlp(3), wl.resnet(3, alpha=0.5)):
        scaled, plain = wl.ntk(net, [s * np.array(x)], y), s * wl.ntk(net, [x], y)
        size = np.sqrt(wl.ntk(net, [s * np.array(x)]) * wl.ntk(net, y))
        assert abs(scaled - plain) < 1e-13 * size


def test_closed_forms_on_the_diagonal():
    x = np.array([[0.6, -1.1, 0.4]])
    for depth in (1, 5, 50):
        q = 1.2**2 * (x**2).sum() / 3
        ntk = wl.ntk(wl.mlp(depth, w_std=1.2), x)[0, 0]
        np.testing.assert_allclose(ntk, (depth + 1) * q * (1.2**2 / 2) ** depth, rtol=1e-13)
        g = 0.3**2 * 0.8**2 * 1.2**2
        ntk = wl.ntk(wl.resnet(depth, alpha=0.3, w_std=1.2, v_std=0.8), x)[0, 0]
        want = q * (1 + g / 2) ** depth * (2 + depth * g / (1 + g / 2))
        np.testing.assert_allclose(ntk, want, rtol=1e-13)


def test_degenerate_grams_have_their_exact_rank(golden):
    angles = -np.pi + 2 * np.pi * np.arange(6) / 6
    x = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    for case in golden["degenerate_grams"]:
        if case["set"] != "6 equispaced points":
            continue
        net = wl.mlp(case["L"], case["act"])
        if case["model"] == "resnet":
            net = wl.resnet(case["L"], case.get("alpha", 1.0), case["act"])
        eigenvalues = np.linalg.eigvalsh(wl.ntk(net, x))
        rank = int((eigenvalues > 1e-12 * eigenvalues[-1]).sum())
        assert rank == case["exact_rank"]
        np.testing.assert_allclose(eigenvalues[-1], case["lambda_max"], rtol=1e-12)


# --- array kinds and dtypes ------------------------------------------------------------------------


def test_numpy_in_numpy_out_in_double_precision():
    x = np.random.default_rng(0).standard_normal((3, 2))
    k = wl.ntk(wl.mlp(3), x)
    assert type(k) is np.ndarray
    assert k.dtype == np.float64
    assert not jax.config.jax_enable_x64
    k[0, 0] = 1.0  # writable
    assert wl.ntk(wl.mlp(3), x.tolist()).dtype == np.float64
    assert wl.ntk(wl.mlp(3), np.eye(2, dtype=int)).dtype == np.float64
    assert wl.ntk(wl.mlp(3), x.astype(np.float32)).dtype == np.float32
    assert wl.ntk(wl.mlp(3), x.astype(np.float32), x).dtype == np.float64


def test_jax_in_jax_out():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((3, 2)), jnp.float32)
    k = wl.ntk(wl.mlp(3), x)
    assert isinstance(k, jax.Array)
    assert k.dtype == jnp.float32
    with jax.enable_x64(True):
        assert wl.ntk(wl.mlp(3), jnp.asarray(np.eye(3))).dtype == jnp.float64


def test_pandas():
    import pandas as pd

    x = np.random.default_rng(0).standard_normal((3, 2))
    np.testing.assert_array_equal(wl.ntk(wl.mlp(2), pd.DataFrame(x)), wl.ntk(wl.mlp(2), x))


@pytest.mark.parametrize("n", [1, 2, 37])
@pytest.mark.parametrize("d", [1, 2, 40])
def test_any_shape(n, d):
    x = np.random.default_rng(0).standard_normal((n, d))
    assert wl.ntk(wl.mlp(2), x, x[:1]).shape == (n, 1)
    assert wl.ntk(wl.mlp(2), x).shape == (n, n)


def test_zero_vectors():
    x = np.array([[0.0, 0.0], [1.0, 2.0]])
    for net in (wl.mlp(3), wl.resnet(3), wl.mlp(3, "erf"), wl.mlp(2, "gelu"), wl.mlp(2, "tanh")):
        for k in wl.kernels(net, x):
            assert k[0, 0] == k[0, 1] == k[1, 0] == 0
            assert k[1, 1] > 0
    assert np.isfinite(wl.ntk(wl.mlp(3, b_std=0.2), x)).all()
    assert wl.nngp(wl.mlp(2, "cos"), x)[0, 0] > 0


@pytest.mark.parametrize("depth", [1, 100])
def test_single_precision_diagonal_at_any_depth(depth):
    x = np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)
    for net in (
        wl.mlp(depth, w_std=1.43),
        wl.mlp(depth, w_std=1.3, b_std=0.37),
        wl.resnet(depth, alpha=0.1, w_std=1.1),
        wl.mlp(depth, "erf", w_std=1.7, b_std=0.2),
    ):
        single, double = wl.kernels(net, x), wl.kernels(net, x.astype(float))
        traced = jax.jit(lambda x, net=net: wl.kernels(net, x))(jnp.asarray(x))
        for a, b, c in zip(single, double, traced, strict=True):
            np.testing.assert_allclose(np.diag(a), np.diag(b), rtol=1e-6)
            np.testing.assert_allclose(np.diag(c), np.diag(b), rtol=1e-6)


# --- transformations -------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh", "elu"])
def test_gradients_match_finite_differences(activation):
    x = np.random.default_rng(0).standard_normal((3, 2))
    at = {"w": 1.2, "b": 0.3, "alpha": 0.4}

    def total(numbers, a, b):
        w, bias, alpha = numbers["w"], numbers["b"], numbers["alpha"]
        block = wl.Residual(wl.Dense(w_std=w) >> wl.Phi(activation) >> wl.Dense(w_std=0.9), alpha)
        k = wl.kernels(wl.Dense(b_std=bias) >> block >> wl.Dense(w_std=w), a, b)
        return jnp.stack([k.nngp.sum(), k.ntk.sum()])

    with jax.enable_x64(True):
        a, b = jnp.asarray(x), jnp.asarray(x[:2])  # rows that coincide, on the cusp of the kernel
        by_numbers, by_x = jax.jit(jax.jacrev(total, argnums=(0, 1)))(at, a, b)
        h = 1e-6
        for name in at:
            up, down = (total({**at, name: at[name] + s * h}, a, b) for s in (1, -1))
            np.testing.assert_allclose(by_numbers[name], (up - down) / (2 * h), rtol=2e-6)
        for i, j in ((0, 0), (1, 1), (2, 0)):
            e = np.zeros_like(x)
            e[i, j] = h
            slope = (total(at, a + e, b) - total(at, a - e, b)) / (2 * h)
            np.testing.assert_allclose(by_x[:, i, j], slope, rtol=2e-5, atol=1e-7)


def test_gradients_are_finite_at_zero_vectors_and_on_the_diagonal():
    x = jnp.asarray([[0.0, 0.0], [1.0, 2.0], [-1.0, -2.0]], jnp.float32)
    for net in (wl.mlp(2, b_std=0.1), wl.resnet(2, alpha=0.5), wl.mlp(1, "sin")):
        both = jax.grad(lambda x, net=net: sum(k.sum() for k in wl.kernels(net, x)))(x)
        assert jnp.isfinite(both).all()


def test_gradient_in_b_std_at_zero():
    x = jnp.asarray([[1.0, 2.0], [0.5, -1.0]], jnp.float32)
    slope = jax.grad(lambda b: wl.ntk(wl.mlp(2, b_std=b), x).sum())(0.0)
    assert jnp.isfinite(slope)
    assert abs(slope) < 1e-6


def test_vmap():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((4, 5, 3)), jnp.float32)
    net = wl.mlp(2, b_std=0.1)
    batched = jax.vmap(lambda x: wl.ntk(net, x))(x)
    np.testing.assert_allclose(batched[2], wl.ntk(net, x[2]), rtol=1e-5)
    sweep = jax.vmap(lambda w: wl.ntk(wl.mlp(2, w_std=w), x[0]))(jnp.asarray([0.5, 1.0]))
    np.testing.assert_allclose(sweep[0], wl.ntk(wl.mlp(2, w_std=0.5), x[0]), rtol=1e-5)


def test_a_sweep_over_numbers_compiles_once():
    x = np.random.default_rng(0).standard_normal((9, 3))
    wl.ntk(wl.mlp(7, w_std=0.9, b_std=0.05), x)
    before = _layered.stack_of_tiles.program._cache_size()
    for w in (0.5, 1.0, 2.0):
        wl.ntk(wl.mlp(7, w_std=w, b_std=w / 3), x)
    wl.ntk(wl.Repeat(wl.Dense(512, b_std=0.1) >> wl.Phi("relu"), 7) >> wl.Dense(3, b_std=0.1), x)
    assert _layered.stack_of_tiles.program._cache_size() == before


# --- large matrices --------------------------------------------------------------------------------


def large(n, d, seed=0):
    x = np.random.default_rng(seed).standard_normal((n, d))
    x[7] = x[3]
    x[11] = -2 * x[5]
    x[13] = x[5] * (1 + 1e-9) + 1e-7
    return x


@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize(
    "net", [wl.mlp(5), wl.resnet(5, alpha=0.1), wl.mlp(3, b_std=0.2)], ids=repr
)
def test_tiles_and_profiles_agree_with_single_entries(net, d):
    x = large(1501, d)
    whole, across = wl.ntk(net, x), wl.ntk(net, x, x[:300])
    pick = [0, 3, 5, 7, 11, 13, 750, 1500]
    few = wl.ntk(net, x[pick])
    scale = few.max()
    np.testing.assert_allclose(whole[np.ix_(pick, pick)], few, rtol=1e-11, atol=2e-14 * scale)
    inside = [i for i in pick if i < 300]
    part = wl.ntk(net, x[pick], x[inside])
    np.testing.assert_allclose(across[np.ix_(pick, inside)], part, rtol=1e-11, atol=2e-14 * scale)
    np.testing.assert_allclose(whole, whole.T, rtol=1e-12, atol=1e-14 * scale)


def test_many_nearly_parallel_inputs():
    base = np.random.default_rng(0).standard_normal((1, 40))
    x = base + 1e-5 * np.random.default_rng(1).standard_normal((600, 40))
    whole, few = wl.ntk(wl.mlp(5), x), wl.ntk(wl.mlp(5), x[:8])
    np.testing.assert_allclose(whole[:8, :8], few, rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_profile_inside_jit_when_norms_are_unknown(activation):
    x = np.random.default_rng(0).standard_normal((300, 12)).astype(np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    net = wl.mlp(3, activation, w_std=1.2, b_std=0.1)
    traced = jax.jit(lambda x: wl.ntk(net, x))
    exact = wl.ntk(net, x.astype(float))
    np.testing.assert_allclose(traced(jnp.asarray(x)), exact, rtol=5e-6, atol=3e-6 * exact.max())
    y = 2 * x * np.linspace(0.5, 1, 300, dtype=np.float32)[:, None]
    exact = wl.ntk(net, y.astype(float))
    np.testing.assert_allclose(traced(jnp.asarray(y)), exact, rtol=5e-6, atol=3e-6 * exact.max())


def test_profile_certifies_itself():
    rho = np.linspace(-1, 1, 41)
    for net in (wl.mlp(2), wl.mlp(50), wl.resnet(15, alpha=0.1), wl.resnet(5, alpha=0.01)):
        profile = wl.profile(net, variance=0.5)
        assert profile.error < 1e-13
        x = np.stack([rho, np.sqrt(1 - rho**2)], axis=1)
        for name in ("nngp", "ntk"):
            exact = wl.prepare(net, name)([[1.0, 0.0]], x)[0]
            got = getattr(profile, name)(rho)
            assert np.abs(got - exact).max() < 3e-14 * np.abs(exact).max()


@pytest.mark.parametrize("bad", [1.5, float("nan")])
def test_profile_refuses_what_is_no_cosine(bad):
    with pytest.raises(ValueError, match="cosine"):
        wl.profile(wl.mlp(2)).ntk(bad)
    with pytest.raises(ValueError, match="positive"):
        wl.profile(wl.mlp(2), variance=-1.0)


# --- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x1", "x2", "error", "match"),
    [
        ([[np.nan, 1.0]], None, ValueError, r"x1 contains 1 NaN.*\(0, 0\)"),
        ([[1.0]], [[np.inf]], ValueError, "x2 contains 1 NaN or infinite"),
        ([1.0, 2.0], None, ValueError, r"reshape\(-1, 1\)"),
        (np.zeros((2, 3, 4)), None, ValueError, "Flatten"),
        (np.eye(2), np.eye(3), ValueError, "2 features and x2 has 3"),
        (np.zeros((0, 3)), None, ValueError, "empty"),
        (np.zeros((3, 0)), None, ValueError, "empty"),
        (np.eye(2) * 1j, None, TypeError, "complex"),
        ([["a", "b"]], None, TypeError, "real numbers"),
        (np.array([[object()]]), None, TypeError, "not numbers"),
        ([[1.0], [1.0, 2.0]], None, ValueError, "equal length"),
        (None, None, TypeError, "None"),
        (jnp.asarray([[jnp.nan]]), None, ValueError, "NaN"),
    ],
)
@pytest.mark.parametrize("fn", [wl.nngp, wl.ntk, wl.kernels, wl.trace])
def test_bad_input(fn, x1, x2, error, match):
    with pytest.raises(error, match=match):
        fn(wl.mlp(2), x1, x2)


@pytest.mark.parametrize("features", [3, 20])
@pytest.mark.parametrize("net", [wl.mlp(3), wl.mlp(3, b_std=0.3)], ids=["profile", "layers"])
def test_large_matrices_are_symmetric_to_the_last_bit(net, features):
    """Three by three tiles, the last ones overlapping; only the lower half is computed."""
    x = np.random.default_rng(0).standard_normal((1100, features))
    whole = wl.ntk(net, x)
    np.testing.assert_array_equal(whole, whole.T)
    small = wl.ntk(net, x[:300])
    np.testing.assert_array_equal(small, small.T)
    part = [0, 511, 512, 733, 734, 1099]
    np.testing.assert_allclose(whole[part][:, part], wl.ntk(net, x[part]), rtol=1e-12)


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize(
    ("net", "path"), [(wl.mlp(3), "profile"), (wl.mlp(2, b_std=0.3), "layers")]
)
def test_in_one_piece_as_on_a_gpu(net, path, second):
    """The program that a GPU runs for a whole matrix, here on the host."""
    rng = np.random.default_rng(3)
    x1, x2 = (rng.normal(size=(n, 7)).astype(np.float32) for n in (40, 30))
    form, numbers = split(net)
    inputs = as_inputs(jnp.asarray(x1), jnp.asarray(x2) if second else None)
    with jax.enable_x64(True):
        request = Request(form, numbers, ("nngp", "ntk"), path=path)
        plan, given, *points, extra = for_device(request, inputs)
        found, careful = _whole(plan, given, *points, extra)
        given, extra = _placed(given, extra, request.wanted, "float32")
        assert (extra.powers is not None) == (path == "profile")
        found += _whole(plan, given, *points, extra)[0]
    exact = wl.kernels(net, x1.astype(float), x2.astype(float) if second else None)
    for matrix, other in zip(found, [*exact] * (len(found) // 2), strict=True):
        np.testing.assert_allclose(matrix, other, rtol=2e-5, atol=2e-6 * np.abs(other).max())
    assert float(careful) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("net", "path"), [(wl.mlp(3), "profile"), (wl.mlp(2, b_std=0.3), "layers")]
)
def test_halves_as_on_a_gpu(net, path, dtype):
    """Half of a symmetric matrix and its mirror image, here on the host; the last tile is not full."""
    x = np.random.default_rng(3).normal(size=(43, 7)).astype(dtype)
    x[11] = 0
    form, numbers = split(net)
    with jax.enable_x64(True):
        request = Request(form, numbers, ("nngp", "ntk"), path=path)
        plan, given, points, _, extra = for_device(request, as_inputs(jnp.asarray(x)))
        run = jax.jit(functools.partial(halved, side=8), static_argnums=(0, 4))
        found, careful = run(plan, given, points, extra, 0.99)
        assert not careful
        assert run(plan, given, points.at[9].set(-2 * points[31]), extra, 0.99)[1]
        plain, _ = _whole(plan, given, points, None, extra)
    for matrix, other in zip(found, plain, strict=True):
        rounding = 8 * np.finfo(dtype).eps * np.abs(other).max()
        np.testing.assert_allclose(matrix, other, rtol=0, atol=rounding)


@pytest.mark.parametrize("columns", [None, 500])
def test_large_matrices_are_compiled_outside_of_a_64_bit_context(columns):
    x = np.random.default_rng(0).standard_normal((600, 128)).astype(np.float32)
    x[5] = 2 * x[7]
    given = (x,) if columns is None else (x, 1.5 * x[:columns])
    net = wl.mlp(3)
    with jax.enable_x64(False):
        found = jax.jit(functools.partial(wl.ntk, net))(*map(jnp.asarray, given))
    exact = wl.ntk(net, *(a.astype(np.float64) for a in given))
    assert found.dtype == np.float32
    assert np.abs(np.asarray(found) - exact).max() < 1e-6 * exact.max()
