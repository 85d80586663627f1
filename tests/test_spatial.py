"""Networks on pixels against many-digit values, laws and refusals."""

import collections
import itertools
import json
import logging
import pickle

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import widelimit as wl
from conftest import GOLDEN
from spatial_networks import network
from widelimit import testing
from widelimit._base import watch
from widelimit._base.compile import quick_jit
from widelimit.infinite import (
    _box,
    _choose,
    _displacements,
    _edges,
    _groups,
    _meet,
    _precise,
    _spatial,
    _stages,
    _tiles,
)
from widelimit.infinite._programs import Programs
from widelimit.layers import Window

RECORDS = json.loads((GOLDEN / "spatial.json").read_text())
CASES = {case["name"]: case for case in RECORDS["cases"]}
SIMILAR = ("near duplicates pool then relu", "near duplicates gap then relu")
# Three of four; the others differ from their neighbours in numbers or in the read-out.
TESTED = [name for i, name in enumerate(CASES) if i % 4 != 2 or "near" in name]
SINGLE = [name for i, name in enumerate(CASES) if i % 12 == 4]  # some of each kind, in float32


def errors(case, dtype):
    """Relative to the largest entry; all inputs in one Gram matrix, whose diagonal is exact."""
    given = RECORDS["inputs"][case["inputs"]]
    x1, x2 = (np.array(given[key], dtype) for key in ("x1", "x2"))
    n = len(x1)
    found = wl.kernels(network(case["network"]), np.concatenate([x1, x2]))
    for kind in ("nngp", "ntk"):
        matrix = getattr(found, kind)
        assert matrix.dtype == dtype
        own, cross = np.array(case[f"{kind}_x1_x1"]), np.array(case[kind])
        pairs = (own, matrix[:n, :n]), (cross, matrix[:n, n:])
        yield max(abs(w - g.reshape(w.shape)).max() for w, g in pairs) / abs(own).max()


@pytest.fixture
def lightly():
    """Without run-time checks of annotations, which take longer than these kernels; the laws below have them."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.usefixtures("lightly")
@pytest.mark.parametrize("name", TESTED)
def test_many_digits(name):
    assert max(errors(CASES[name], np.float64)) < (1e-8 if name in SIMILAR else 1e-13)


@pytest.mark.usefixtures("lightly")
@pytest.mark.parametrize("name", SINGLE)
def test_single_precision(name):
    assert max(errors(CASES[name], np.float32)) < 1e-6


@pytest.mark.parametrize("activation", ["erf", "sin", "tanh", "relu"])
@pytest.mark.parametrize("front", [wl.Identity(), wl.Conv(2, stride=2)], ids=["slices", "blocks"])
def test_pools_whose_terms_cancel_keep_single_precision(activation, front, seed):
    """Correlations between the pixels of noise have either sign: their mean is a hundredth of a variance."""
    x = np.random.default_rng(seed).standard_normal((4, 10, 9, 3)).astype(np.float32)
    phi = wl.Phi(activation)
    pooled = wl.GlobalAvgPool() >> wl.Dense()
    read = (
        pooled if front == wl.Identity() else wl.Sum(pooled, wl.Flatten() >> wl.Dense(w_std=0.01))
    )
    net = front >> wl.Conv(3) >> phi >> wl.Conv(3) >> phi >> read
    found, exact = (wl.kernels(net, x.astype(dtype)) for dtype in (np.float32, np.float64))
    for one, other in zip(found, exact, strict=True):
        assert abs(one - other).max() < 1e-6 * abs(other).max()


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).standard_normal((3, 4, 3, 2))


NET = wl.Conv(3, b_std=0.3) >> wl.Phi("relu") >> wl.GlobalAvgPool() >> wl.Dense()


RELU, LAST = wl.Phi("relu"), wl.GlobalAvgPool() >> wl.Dense()
LAWFUL = {
    "conv": wl.Conv(2, padding="valid") >> RELU >> wl.Flatten() >> wl.Dense(b_std=0.2),
    "circular": wl.Conv(3, padding="circular", stride=2) >> RELU >> LAST,
    "dense": wl.Dense(b_std=0.3) >> RELU >> LAST,
    "local": wl.ConvLocal(2, stride=2, b_std=0.4) >> RELU >> wl.ConvLocal(2) >> RELU >> LAST,
    "transpose": wl.ConvTranspose((4,), stride=2, padding="circular") >> RELU >> LAST,
    "pools": wl.Conv((2,)) >> wl.AvgPool((2,)) >> RELU >> wl.SumPool((2,)) >> wl.Dense() >> RELU >> LAST,
    "norm": wl.Conv((2,)) >> wl.LayerNorm() >> RELU >> wl.Dense() >> wl.LayerNorm("all", 0.1) >> LAST,
    "dropout": wl.Conv((2,)) >> RELU >> wl.Dropout(0.7) >> wl.Flatten() >> wl.Dense(),
    "concat": wl.Concat(wl.Conv((2,)) >> RELU, wl.Dense(), widths=(2, 1)) >> wl.Conv((2,)) >> LAST,
    "product": wl.Product(wl.Conv((2,)), wl.Conv((3,)) >> RELU) >> wl.Dense() >> LAST,
    "resize": wl.Conv((2,)) >> RELU >> wl.Resize((3,)) >> LAST,
    "aggregate": wl.Dense() >> RELU >> wl.Aggregate() >> wl.Dense() >> RELU >> LAST,
    "positions": wl.Dense() >> wl.Positions(0.6, decay=2.0) >> RELU >> wl.Conv((2,)) >> LAST,
    "attention": wl.Dense() >> RELU >> wl.Attention(b_std=0.2) >> RELU >> LAST,
    "attention sqrt": wl.Conv((1,)) >> wl.Attention("sqrt", "identity") >> LAST,
}  # fmt: skip


def close(a, b, rtol=1e-12):
    return all(
        np.allclose(x, y, rtol=rtol, atol=rtol * abs(np.asarray(y)).max())
        for x, y in zip(a, b, strict=True)
    )


def test_a_prepared_kernel_serves_images(images):
    kernel = wl.prepare(NET, "ntk")
    matrix = kernel(images)
    assert np.allclose(kernel(images[:2], images[2:]), matrix[:2, 2:], rtol=1e-13)
    assert np.allclose(kernel.diagonal(images), np.diag(matrix), rtol=1e-13)
    v = np.arange(3.0)
    assert np.allclose(kernel.matvec(images, None, v), matrix @ v, rtol=1e-12)
    assert (pickle.loads(pickle.dumps(kernel))(images) == matrix).all()


def test_jax_in_jax_out_and_derivatives():
    net = wl.Conv(2, b_std=0.3) >> wl.Phi("relu") >> wl.GlobalAvgPool() >> wl.Dense()
    x = np.random.default_rng(0).standard_normal((2, 3, 2))
    value = lambda y: wl.ntk(net, y, x[:1]).sum()
    direction, h = np.cos(np.arange(x.size)).reshape(x.shape), 1e-6
    slope = (value(x + h * direction) - value(x - h * direction)) / (2 * h)
    with jax.enable_x64(True):
        found, gradient = jax.jit(jax.value_and_grad(value))(jnp.asarray(x))
    assert np.isclose(found, value(x), rtol=1e-12)
    assert np.isclose((np.asarray(gradient) * direction).sum(), slope, rtol=1e-7)


@pytest.mark.parametrize("relation", testing.RELATIONS, ids=lambda relation: relation.__name__)
def test_networks_that_are_one_function(relation, seed):
    testing.check_relation(relation, np.random.default_rng(seed))


LAWS = [law for law in testing.PIXEL_LAWS if law.__module__.endswith("_pixel_laws")]


@pytest.mark.parametrize("name", LAWFUL)
def test_laws_of_gram_matrices(name, seed):
    for law in LAWS:
        law(LAWFUL[name], np.random.default_rng(seed))


def test_a_law_that_is_broken_is_noticed(seed):
    wrong = lambda rng: testing.RELATIONS[0](rng)._replace(twin=wl.Flatten() >> wl.Dense(b_std=0.3))
    with pytest.raises(AssertionError):
        testing.check_relation(wrong, np.random.default_rng(seed))


class TestLaws:
    def test_slices_and_blocks_agree(self, images):
        body = (
            wl.Conv(3, b_std=0.2)
            >> wl.Residual(wl.Phi("relu") >> wl.Conv((2, 3)), alpha=0.5)
            >> wl.Phi("abs")
        )
        fast = body >> wl.GlobalSumPool() >> wl.Dense()
        general = (
            body >> wl.Resize((4, 3)) >> wl.GlobalSumPool() >> wl.Dense()
        )  # the same pixels, as a map
        assert close(wl.kernels(fast, images), wl.kernels(general, images))

    @pytest.mark.parametrize(
        ("activation", "times", "written_out"), [("abs", 4, 12), ("abs", 5, 2), ("erf", 3, 12)]
    )
    @pytest.mark.parametrize("readout", [wl.Flatten(), wl.GlobalAvgPool()])
    def test_repetitions_written_out_and_in_a_loop(
        self, activation, times, written_out, readout, images, monkeypatch
    ):
        monkeypatch.setattr(_edges, "SLICE_UNROLLED", written_out)
        body = wl.Repeat(wl.Conv((3, 2), b_std=0.2) >> wl.Phi(activation), times)
        found = wl.kernels(body >> readout >> wl.Dense(), images)
        by_blocks = body >> wl.Resize((4, 3)) >> readout >> wl.Dense()
        assert close(found, wl.kernels(by_blocks, images))

    @pytest.mark.parametrize(
        "net",
        [
            wl.cnn(depth=2, readout="flatten", b_std=0.3),
            wl.cnn(depth=2, readout="pool", b_std=0.3),
            wl.cnn(depth=2, readout="pool", padding="circular", activation="erf"),
            wl.Conv(3)
            >> wl.Residual(wl.Phi("gelu") >> wl.Conv((1, 2)))
            >> wl.cnn(1, readout="pool"),
        ],
        ids=["flatten", "pool", "erf circular", "gelu residual"],
    )
    def test_as_an_accelerator_computes_slices(self, net, images, monkeypatch):
        expected = wl.kernels(net, images)
        single = images.astype(np.float32)
        with monkeypatch.context() as patch:
            patch.setattr(_tiles, "BRIEFLY", Programs.by(quick_jit))
            patch.setattr(_spatial, "BRIEFLY", _tiles.BRIEFLY)
            patch.setattr(_tiles, "going", lambda programs=None: None)
            assert close(wl.kernels(net, images), expected)
            for one, other in zip(wl.kernels(net, single), expected, strict=True):
                np.testing.assert_allclose(one, other, atol=1e-6 * np.abs(other).max())

    @pytest.mark.parametrize("padding", ["same", "valid", "circular"])
    @pytest.mark.parametrize("sites", [(7,), (6, 5), (4, 3, 5)])
    def test_sums_over_windows(self, sites, padding, seed):
        values = np.random.default_rng(seed).standard_normal((*sites, 2, 3))
        for size, stride in ((1, 1), (2, 1), (3, 1), (3, 2), (2, 3)):
            window = Window(size, stride, padding)
            by_table = np.zeros((*window.out(sites), 2, 3))
            for out in np.ndindex(*window.out(sites)):
                reads = [t[i] for t, i in zip(window.tables(sites), out, strict=True)]
                by_table[out] = sum(values[at] for at in itertools.product(*reads) if min(at) >= 0)
            with jax.enable_x64(True):
                given = jnp.asarray(values)
                in_halves = _box.last(_box.but_last(given, window, sites), window, sites)
                at_once = _box.at_once(given, window, sites)
            np.testing.assert_allclose(in_halves, by_table, atol=1e-14)
            np.testing.assert_allclose(at_once, by_table, atol=1e-14)

    @pytest.mark.parametrize("readout", ["flatten", "pool"])
    def test_cores_share_a_tile(self, readout, seed, monkeypatch):
        rng = np.random.default_rng(seed)
        net = wl.cnn(depth=2, readout=readout, b_std=0.3)
        x, y = rng.standard_normal((7, 4, 3, 2)), rng.standard_normal((5, 4, 3, 2))
        expected = [wl.kernels(net, x), wl.kernels(net, x, y), wl.kernels(net, y, x)]
        for name, value in {
            "FLAT_SIDE": 4,
            "FLAT_GROUP": 2,
            "SLICE_ROWS_PAIRS": 2 * 12 * 8,
        }.items():
            monkeypatch.setattr(_tiles, name, value)
        monkeypatch.setattr(_spatial, "BRIEF_SLICES", 0)
        found = [wl.kernels(net, x), wl.kernels(net, x, y), wl.kernels(net, y, x)]
        for one, other in zip(found, expected, strict=True):
            assert close(one, other)
        for matrix in (*expected[0], *found[0]):
            np.testing.assert_array_equal(matrix, matrix.T)

    @pytest.mark.parametrize(
        ("sites", "pool", "padding"),
        [((10, 8), 2, "same"), ((72,), 24, "same"), ((72,), 4, "circular")],
    )
    def test_slices_before_a_pool_are_blocks(self, sites, pool, padding, seed, monkeypatch):
        """By any number of cores; against all pairs of pixels at once, without displacements."""
        rng = np.random.default_rng(seed)
        x, y = (rng.standard_normal((n, *sites, 2)) for n in (3, 2))
        axes = len(sites)
        block = wl.Conv((3,) * axes, padding=padding, b_std=0.3) >> wl.Phi("relu")
        net = block >> wl.AvgPool((pool,) * axes) >> wl.Conv((2,) * axes) >> RELU >> LAST
        asked = lambda: [k for other in (None, y) for k in wl.kernels(net, x, other)]
        assert _stages.coarsened(net, sites) is not None
        with monkeypatch.context() as plain:
            plain.setattr(_groups, "coarsened", lambda *_: None)
            expected = asked()
        for count in (1, 3):
            monkeypatch.setattr(_displacements, "cores", lambda count=count: count)
            assert close(asked(), expected)

    def test_frozen_weights_add_nothing_to_the_tangent_kernel(self, images):
        body = wl.Conv(3, b_std=0.2) >> wl.Phi("relu")
        net = wl.Frozen(body) >> wl.Flatten() >> wl.Dense()
        found = wl.kernels(net, images)
        assert close([found.ntk], [found.nngp])
        assert close([found.nngp], [wl.nngp(body >> wl.Flatten() >> wl.Dense(), images)])

    def test_black_images_have_no_kernel(self, images):
        x = np.concatenate([images, np.zeros_like(images[:1])])
        net = wl.cnn(depth=2)
        found = wl.kernels(net, x)
        assert (found.ntk[-1] == 0).all()
        assert np.isfinite(found.ntk).all()


POOLED = (
    wl.Conv(3, b_std=0.3) >> wl.Phi("relu") >> wl.AvgPool(2) >> wl.Dense() >> wl.Phi("relu") >> LAST
)


@pytest.mark.parametrize("apart", [1e-4, 0.03])
@pytest.mark.parametrize(("activation", "kernel"), [("abs", wl.ntk), ("sign", wl.nngp)])
def test_kinks_behind_a_pool_cost_no_digits_of_single_precision(activation, kernel, apart):
    """Each of many layers behind a pool adds to what its rounding has done to the angles."""
    one, two = np.random.default_rng(0).standard_normal((2, 3, 4, 4, 2)).astype(np.float32)
    two = one + np.float32(apart) * (one + two)
    body = wl.Repeat(wl.Conv(3) >> wl.Phi(activation), 6)
    net = wl.Conv(3) >> wl.Phi(activation) >> wl.AvgPool(2) >> body >> wl.Flatten() >> wl.Dense()
    wide = [x.astype(np.float64) for x in (one, two)]
    error = np.abs(kernel(net, one, two) - kernel(net, *wide)).max()
    assert error < 1e-6 * np.diag(kernel(net, wide[0])).max()


@pytest.mark.parametrize("apart", [1e-5, 1.0])
def test_similar_images_get_the_digits_of_double_precision(images, apart, monkeypatch):
    """Behind a pool the rounding of float32 would show, and only there float64 is used."""
    x = np.concatenate([images, images + apart * images[::-1]]).astype(np.float32)
    found = wl.kernels(POOLED, x)
    monkeypatch.setattr(_precise, "DOUBTED", np.inf)
    plain = wl.kernels(POOLED, x)
    exact = wl.kernels(POOLED, x.astype(np.float64))
    wrong = lambda value, right: abs(np.asarray(value) - right).max() / right.max()
    error = lambda values: max(map(wrong, values, exact))
    assert error(found) < 5e-7
    assert (error(plain) > 1e-6) == (apart == 1e-5)


ATTENTIVE = wl.Conv(3) >> RELU >> wl.Attention() >> RELU >> LAST


@pytest.mark.parametrize(
    "net", [POOLED, ATTENTIVE, LAWFUL["pools"]], ids=["pool", "attention", "pools"]
)
@pytest.mark.parametrize("cores", [1, 2, 3])
def test_groups_of_pairs_are_dealt_out_to_cores(net, cores, seed, monkeypatch):
    """In tiles of a few images, groups of a few pairs, what is known of single images kept or found again."""
    shape = (7, 6, 2) if net is LAWFUL["pools"] else (7, 4, 4, 2)
    x = np.random.default_rng(seed).standard_normal(shape)
    expected = wl.kernels(net, x), wl.kernels(net, x[:3], x)
    monkeypatch.setattr(_groups, "cores", lambda: cores)
    for name, value in {"BLOCK_SIDE": 4, "BRIEF_MATRIX": 0, "GROUP_BYTES": 2**12}.items():
        monkeypatch.setattr(_groups, name, value)
    for room in (2**29, 0):
        monkeypatch.setattr(_precise, "KEPT_BYTES", room)
        assert close(wl.kernels(net, x), expected[0])
        assert close(wl.kernels(net, x[:3], x), expected[1])
        assert close([wl.prepare(net, "ntk").diagonal(x)], [np.diag(expected[0].ntk)])


@pytest.mark.usefixtures("lightly")
def test_groups_share_the_series_of_an_activation(monkeypatch):
    """Variances differ from group to group, and from call to call; a table serves all that are near."""
    net = wl.Conv((2,)) >> wl.Phi("elu") >> wl.AvgPool((2,)) >> wl.Dense() >> wl.Phi("relu") >> LAST
    norms = np.geomspace(0.7, 1.4, 8)[:, None, None]
    x = (np.random.default_rng(0).standard_normal((8, 4, 2)) * norms).astype(np.float32)
    calls, chosen = [], _choose._chosen
    monkeypatch.setattr(_choose, "_made", collections.OrderedDict())
    monkeypatch.setattr(_choose, "_chosen", lambda *asked: calls.append(asked) or chosen(*asked))
    monkeypatch.setattr(_groups, "BLOCK_SIDE", 2)
    whole = wl.ntk(net, x)  # four batches, four groups of own pairs and ten of others
    assert len(calls) <= 4
    calls.clear()
    assert close([wl.ntk(net, x[:5], x[5:])], [whole[:5, 5:]], 1e-6)
    assert calls == []
    wl.ntk(net, 16 * x[:2])
    assert len(calls) == 1


def test_an_image_by_itself_is_computed_once(images, monkeypatch):
    seen = []
    batch = _groups.Blocks.batch
    watched = lambda self, x, *given, **how: seen.append(len(x)) or batch(self, x, *given, **how)
    monkeypatch.setattr(_groups.Blocks, "batch", watched)
    monkeypatch.setattr(_groups, "BLOCK_SIDE", 4)
    wl.ntk(POOLED, np.concatenate([images] * 3))
    assert seen == [4, 4, 1]
    seen.clear()
    wl.ntk(POOLED, images, np.concatenate([images] * 3))
    assert seen == [3, 4, 4, 1]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "net", [POOLED, ATTENTIVE, LAWFUL["pools"]], ids=["pool", "attention", "pools"]
)
def test_equal_images_of_two_batches_have_every_digit(net, dtype, seed):
    """Behind an inner map and a kink rounding would show: 1e-9 where 1 - rho is 1e-16 instead of 0."""
    shape = (5, 6, 2) if net is LAWFUL["pools"] else (5, 6, 6, 2)
    x = np.random.default_rng(seed).standard_normal(shape).astype(dtype)
    found, own = wl.kernels(net, x[::-1], x[2:4]), wl.kernels(net, x)
    for cross, matrix in zip(found, own, strict=True):
        exact = np.diag(matrix)
        np.testing.assert_allclose(
            [cross[2, 0], cross[1, 1]], exact[2:4], rtol=8 * np.finfo(dtype).eps
        )


def test_entries_are_dropped_of_equal_images_independently(images):
    net = wl.Conv(3) >> RELU >> wl.Dropout(0.7) >> wl.AvgPool(2) >> wl.Conv(1) >> RELU >> LAST
    twice = wl.ntk(net, np.concatenate([images, images]))
    assert (np.diag(twice[:3, 3:]) < 0.99 * np.diag(twice)[:3]).all()
    assert close([wl.ntk(net, images, images)], [twice[:3, 3:]])


@pytest.mark.usefixtures("lightly")
def test_a_trace_of_pixels_ends_in_the_kernels(images):
    x = images[:2, :2]  # operation by operation, each of which is compiled
    whole = wl.kernels(ATTENTIVE, x)
    last = wl.trace(ATTENTIVE, x).steps[-1]
    assert close((last.nngp, last.ntk), whole)
    last = wl.trace(ATTENTIVE, x[:1], x[1:]).steps[-1]
    assert close((last.nngp, last.ntk), [k[:1, 1:] for k in whole])


def test_maps_with_negative_entries(images):
    """A Gaussian signal and its negative have the same kernels behind an activation."""
    body = lambda *branches: wl.Conv(2) >> wl.Sum(*branches) >> RELU >> LAST
    pool = wl.AvgPool(3, 1, "same")
    found = wl.kernels(body(wl.Scale(-1.0), pool), images)
    assert close(found, wl.kernels(body(wl.Identity(), pool >> wl.Scale(-1.0)), images))


def test_one_of_two_batches_is_masked(images):
    whole = wl.Masked(images[:2], np.zeros((2, 4, 3), bool))
    net = wl.Conv(3) >> wl.Phi("relu") >> wl.Attention() >> wl.Phi("relu") >> LAST
    expected = wl.kernels(net, images[:2], images[2:])
    assert close(wl.kernels(net, whole, images[2:]), expected)
    assert close([k.T for k in wl.kernels(net, images[2:], whole)], expected)


def test_numbers_of_images_share_programs(images):
    """Up to the tile, and beyond it, another number of images compiles nothing."""
    net = wl.cnn(depth=1, window=2, readout="pool", w_std=1.1)
    many = np.concatenate([images] * 12)  # 36, more than a tile
    wl.ntk(net, many[:33])
    wl.ntk(net, many[:5], many[:7])
    with jax.log_compiles(), Compilations() as seen:
        wl.ntk(net, many)
        wl.ntk(net, many[:34])
        wl.ntk(net, many[:6], many[:8])
        wl.ntk(wl.cnn(depth=1, window=2, readout="pool", w_std=1.7), many[:35])
    assert seen.names == []


def test_numbers_of_images_share_programs_of_blocks(images):
    many = np.concatenate([images] * 3)
    wl.ntk(POOLED, many[:5])
    wl.ntk(POOLED, many[:3], many[:2])
    with jax.log_compiles(), Compilations() as seen:
        wl.ntk(POOLED, many[1:8])
        wl.ntk(POOLED, many[:4], many[5:8])
    assert seen.names == []


def test_images_with_themselves_and_with_others_share_slices(images):
    """Half of the displacements and all of them are dealt out in parts of one size."""
    net = wl.cnn(depth=2, window=2, readout="pool", w_std=1.1)
    wl.ntk(net, np.concatenate([images] * 10))  # 30, a tile by itself
    with jax.log_compiles(), Compilations() as seen:
        wl.ntk(net, np.concatenate([images] * 12))
    assert seen.names
    assert not any("pooled_tile" in name for name in seen.names)


def test_a_last_batch_shares_the_programs_of_the_others(monkeypatch, seed):
    monkeypatch.setattr(_stages, "COARSE_ENTRIES", 25**2 * 4**2)  # four images a side
    x = np.random.default_rng(seed).standard_normal((9, 10, 10, 2))
    net = wl.Conv(3) >> RELU >> wl.AvgPool(2) >> wl.Conv(2) >> RELU >> LAST
    found = wl.ntk(net, x[:6])
    with jax.log_compiles(), Compilations() as seen:
        whole = wl.ntk(net, x)
        wl.ntk(net, x[:7])
    assert seen.names == []
    assert close(found, whole[:6, :6])


class Compilations(logging.Handler):
    """The programs that JAX says it compiles."""

    def __enter__(self):
        self.names = []
        logging.getLogger("jax").addHandler(self)
        return self

    def __exit__(self, *_):
        logging.getLogger("jax").removeHandler(self)

    def emit(self, record):
        if "XLA compilation" in record.getMessage():
            self.names.append(record.getMessage())


def test_long_matrices_say_how_far_they_are(images, monkeypatch, capsys):
    monkeypatch.setattr(watch, "MINUTE", 0.0)
    wl.ntk(wl.cnn(depth=1, window=2, readout="pool", w_std=1.1), np.concatenate([images] * 24))
    assert "tiles of pairs of images: 2 of about 6" in capsys.readouterr().err


REFUSED = [
    (lambda x: wl.ntk(wl.mlp(depth=1), x), "Flatten"),
    (lambda x: wl.ntk(NET, x[:, 0, 0]), "slides a window over pixels"),
    (lambda x: wl.ntk(wl.cnn(1, window=5, padding="valid"), x), "larger than the image"),
    (lambda x: wl.ntk(wl.cnn(1, window=(3,)), x), "of 1 axes"),
    (lambda x: wl.ntk(NET, x, x[..., :1]), "channels must agree"),
    (lambda x: wl.ntk(NET, np.where(x > 1, np.nan, x)), "NaN"),
    (lambda x: wl.Masked(x, np.zeros((3, 4), bool)), "shape of the pixels"),
    (lambda x: wl.Graphs(x[:, 0], np.ones((3, 3, 2))), "not square"),
    (lambda x: wl.Graphs(x[:, 0], np.full((3, 3, 3), np.nan)), "adjacency contains 27 NaN"),
    (lambda x: wl.profile(NET), "depends on the angles between all"),
    (lambda x: wl.fluctuations(NET, x), "corrections of finite width where a window"),
    (lambda x: wl.gram(wl.Conv(3), x, store="never made"), "one number for each output"),
    (lambda x: wl.ntk(wl.Aggregate() >> NET, x[:, 0]), "Graphs"),
    (
        lambda x: wl.check(wl.Flatten() >> wl.Dense() >> wl.Flatten() >> wl.Phi("relu")),
        "several laws",
    ),
    (lambda x: wl.check(wl.Conv(3) >> wl.Phi("relu") >> wl.LayerNorm()), "mean over the channels"),
    (
        lambda x: wl.check(wl.Conv(3) >> wl.Phi("relu") >> wl.AvgPool(2) >> wl.Phi("relu")),
        "not Gaussian",
    ),
    (lambda x: wl.check(wl.Dropout(0.5) >> wl.Dense()), "the data itself"),
    (lambda x: wl.check(wl.Dense() >> wl.Product(wl.Identity(), wl.Phi("relu"))), "shares all"),
    (lambda x: wl.Attention(scaling="sqrt"), "stay random"),
    (lambda x: wl.Dropout(0.0), "keep"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(images, number):
    attempt, words = REFUSED[number]
    with pytest.raises(ValueError, match=words):
        attempt(images)


def test_an_answer_beyond_memory_is_refused(images, monkeypatch):
    monkeypatch.setattr(_spatial, "memory", lambda: 1e5)
    assert wl.ntk(NET, images).shape == (3, 3)
    with pytest.raises(MemoryError, match=r"GlobalAvgPool\(\) before the last Dense"):
        wl.ntk(wl.Conv(3) >> wl.Phi("relu") >> wl.Dense(), np.concatenate([images] * 9))


def test_texts_shapes_and_latex():
    attention = wl.Attention("sqrt", "identity", positions=wl.Positions(0.5, decay=2.0), width=8)
    net = wl.Serial(
        wl.Conv((3, 2), stride=(2, 1), padding="circular", b_std=0.1),
        wl.Phi("relu"),
        attention,
        wl.LayerNorm("all", eps=0.1),
        wl.Concat(wl.Dense() >> wl.Phi("relu"), wl.Identity(), widths=(1, 1)),
        wl.Product(wl.Dense(), wl.Conv(3)),
        wl.Dropout(0.5),
        wl.Frozen(wl.ConvTranspose(3, stride=2)),
        wl.ConvLocal(3),
        wl.AvgPool(2, 1, "same", normalise_edges=True),
        wl.Resize((4, 4), "nearest"),
        wl.Flatten(),
        wl.Dense(),
    )
    assert wl.from_text(wl.to_text(net)) == net
    assert wl.from_json(wl.to_json(net)) == net
    assert wl.shape(wl.cnn(depth=2), (8, 8, 3), 10).num_params == 9 * (3 + 10) * 10 + 64 * 10
    assert "hron2020infinite" in wl.cite(net)
    for text in (wl.latex(net), wl.latex_kernels(net)):
        assert text.count("&=") > 12


@pytest.mark.parametrize("size", [1e-20, 1e18])
def test_images_of_any_brightness_in_single_precision(size):
    """A homogeneous kernel behind a normalisation does not depend on the size, block by block."""
    net = wl.Conv(3) >> wl.LayerNorm("all") >> wl.Phi("relu") >> wl.GlobalAvgPool() >> wl.Dense()
    x = np.random.default_rng(0).standard_normal((3, 4, 4, 2))
    found = wl.nngp(net, (size * x).astype(np.float32))
    np.testing.assert_allclose(found, wl.nngp(net, x), rtol=1e-5)


@pytest.mark.parametrize("front", [wl.Identity(), wl.Conv(2, stride=2)], ids=["slices", "blocks"])
@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_the_largest_images_of_single_precision(front, activation):
    """Beyond the largest number there is infinity; what saturates does not get there."""
    phi = wl.Phi(activation)
    net = front >> wl.Conv(3) >> phi >> wl.Conv(3) >> phi >> wl.GlobalAvgPool() >> wl.Dense()
    x = np.random.default_rng(0).standard_normal((3, 6, 5, 2))
    for size in (1e-30, 1e17, 1e30):
        found, exact = (wl.nngp(net, (size * x).astype(dtype)) for dtype in (np.float32, float))
        with np.errstate(over="ignore"):
            exact = exact.astype(np.float32)
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=2e-7 * abs(exact).max())


@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize("readout", ["flatten", "pool"])
def test_single_precision_of_nearly_equal_large_images_is_finite(activation, readout):
    """One minus their correlation is 0 up to rounding, which may be on either side."""
    rng = np.random.default_rng(0)
    image = rng.standard_normal((1, 6, 6, 2))
    near = image + 1e-9 * rng.standard_normal(image.shape)
    x = (1e12 * np.concatenate([image, near, 2 * image])).astype(np.float32)
    found = wl.kernels(wl.cnn(depth=2, activation=activation, readout=readout, w_std=1.4), x)
    for kernel in (found.nngp, found.ntk):
        assert np.isfinite(kernel).all()
        np.testing.assert_allclose(kernel[0, 1], kernel[0, 0], rtol=1e-5)
        np.testing.assert_allclose(kernel[0, 2], 2 * kernel[0, 0], rtol=1e-5)


@pytest.mark.parametrize(("readout", "activation"), [("flatten", "relu"), ("pool", "gelu")])
def test_derivatives_outside_of_a_64_bit_context(readout, activation):
    net = wl.cnn(depth=2, readout=readout, activation=activation)
    x, away = np.random.default_rng(0).standard_normal((2, 3, 5, 5, 2))
    total = lambda x: wl.ntk(net, x).sum()
    slope = (total(x + 1e-5 * away) - total(x - 1e-5 * away)) / 2e-5
    with jax.enable_x64(False):
        found = jax.grad(total)(jnp.asarray(x, jnp.float32))
    assert found.dtype == np.float32
    along = np.asarray(found) * away
    assert abs(along.sum() - slope) < 1e-5 * np.abs(along).sum()


@pytest.mark.usefixtures("lightly")
@pytest.mark.parametrize(
    "body", [wl.AvgPool(2) >> wl.Conv(2), wl.Attention()], ids=["pool", "attention"]
)
def test_derivatives_of_maps_in_32_bits(body, monkeypatch):
    """What maps ask of single images is in double precision, which may not be gathered there."""
    monkeypatch.setattr(_meet, "LARGE_PAGE", 1)
    net = wl.Conv(2) >> RELU >> body >> RELU >> LAST
    x, away = np.random.default_rng(0).standard_normal((2, 2, 4, 4, 2))
    entry = lambda x: wl.ntk(net, x)[0, 1]
    slope = (entry(x + 1e-5 * away) - entry(x - 1e-5 * away)) / 2e-5
    with jax.enable_x64(False):
        found, gradient = jax.jit(jax.value_and_grad(entry))(jnp.asarray(x, jnp.float32))
    assert found == pytest.approx(entry(x), rel=1e-6)
    along = np.asarray(gradient) * away
    assert abs(along.sum() - slope) < 1e-5 * np.abs(along).sum()
