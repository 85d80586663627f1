"""Networks on pixels against many-digit values, laws and refusals."""

import json
import pickle

import jax
import jax.numpy as jnp
import jaxtyping
import numpy as np
import pytest

import widelimit as wl
from conftest import GOLDEN
from spatial_networks import network

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


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).standard_normal((3, 4, 3, 2))


NET = wl.Conv(3, b_std=0.3) >> wl.Phi("relu") >> wl.GlobalAvgPool() >> wl.Dense()


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


def test_jax_in_jax_out_and_derivatives(images):
    with jax.enable_x64(True):
        x = jnp.asarray(images)
        value = lambda x: wl.ntk(NET, x, images[:1]).sum()
        assert np.allclose(jax.jit(value)(x), value(images), rtol=1e-12)
        direction, h = np.cos(np.arange(x.size)).reshape(x.shape), 1e-6
        slope = (value(images + h * direction) - value(images - h * direction)) / (2 * h)
        assert np.isclose((jax.grad(value)(x) * direction).sum(), slope, rtol=1e-7)


class TestLaws:
    def test_conv_as_large_as_the_image_is_flatten_and_dense(self, images):
        whole = wl.Conv((4, 3), padding="valid", b_std=0.2) >> wl.Flatten()
        assert close(
            wl.kernels(whole, images), wl.kernels(wl.Flatten() >> wl.Dense(b_std=0.2), images)
        )

    def test_global_pool_is_a_pool_as_large_as_the_image(self, images):
        body = wl.Conv(3) >> wl.Phi("relu")
        pool = body >> wl.AvgPool((4, 3)) >> wl.Flatten() >> wl.Dense()
        assert close(
            wl.kernels(pool, images), wl.kernels(body >> wl.GlobalAvgPool() >> wl.Dense(), images)
        )

    def test_pools_chain(self):
        x = np.random.default_rng(1).standard_normal((2, 8, 2))
        body = wl.Conv(3) >> wl.Phi("relu")
        twice = body >> wl.AvgPool(2) >> wl.AvgPool(2) >> wl.Flatten() >> wl.Dense()
        assert close(
            wl.kernels(twice, x), wl.kernels(body >> wl.AvgPool(4) >> wl.Flatten() >> wl.Dense(), x)
        )

    def test_circular_networks_do_not_see_shifts(self, images):
        body = wl.Repeat(wl.Conv(3, padding="circular") >> wl.Phi("relu"), 2)
        net = body >> wl.GlobalAvgPool() >> wl.Dense()
        moved = np.roll(images, (1, 2), axis=(1, 2))
        assert close(wl.kernels(net, images, moved), wl.kernels(net, images, images))

    def test_single_taps_on_constant_images_are_an_mlp(self):
        x = np.random.default_rng(2).standard_normal((3, 2))
        flat = np.broadcast_to(x[:, None, None], (3, 4, 3, 2)).copy()
        net = (
            wl.Repeat(wl.Conv(1, w_std=1.2, b_std=0.1) >> wl.Phi("relu"), 2)
            >> wl.Flatten()
            >> wl.Dense()
        )
        mlp = wl.Repeat(wl.Dense(w_std=1.2, b_std=0.1) >> wl.Phi("relu"), 2) >> wl.Dense()
        assert close(wl.kernels(net, flat), wl.kernels(mlp, x))

    def test_slices_and_blocks_agree(self, images):
        body = (
            wl.Conv(3, b_std=0.2)
            >> wl.Residual(wl.Phi("relu") >> wl.Conv((2, 3)), alpha=0.5)
            >> wl.Phi("abs")
        )
        for readout in (wl.Flatten(), wl.GlobalSumPool()):
            fast = body >> readout >> wl.Dense()
            general = (
                body >> wl.Resize((4, 3)) >> readout >> wl.Dense()
            )  # the same pixels again, as a map
            assert close(wl.kernels(fast, images), wl.kernels(general, images))

    def test_masked_pixels_are_not_there(self):
        x = np.random.default_rng(3).standard_normal((2, 5, 3))
        longer = np.concatenate([x, np.full((2, 2, 3), np.nan)], axis=1)
        masked = wl.Masked(longer, np.broadcast_to(np.arange(7) >= 5, (2, 7)))
        attention = wl.Attention(b_std=0.2) >> wl.LayerNorm("all") >> wl.Phi("cos")
        net = (
            wl.Conv(3, b_std=0.3) >> wl.Phi("relu") >> attention >> wl.GlobalAvgPool() >> wl.Dense()
        )
        assert close(wl.kernels(net, masked), wl.kernels(net, x))

    def test_a_graph_of_a_ring_is_a_circular_window(self):
        x = np.random.default_rng(4).standard_normal((2, 6, 3))
        ring = np.eye(6) + np.roll(np.eye(6), 1, axis=1) + np.roll(np.eye(6), -1, axis=1)
        body = wl.Dense() >> wl.Phi("relu")
        graph = body >> wl.Aggregate() >> body >> wl.GlobalAvgPool() >> wl.Dense()
        pool = wl.SumPool(3, stride=1, padding="circular")
        graphs = wl.Graphs(x, np.broadcast_to(ring, (2, 6, 6)))
        same = body >> pool >> body >> wl.GlobalAvgPool() >> wl.Dense()
        assert close(wl.kernels(graph, graphs), wl.kernels(same, x))

    def test_permuted_pixels_commute_with_attention(self):
        x = np.random.default_rng(5).standard_normal((2, 5, 3))
        net = (
            wl.Dense()
            >> wl.Phi("relu")
            >> wl.Attention()
            >> wl.Phi("relu")
            >> wl.GlobalAvgPool()
            >> wl.Dense()
        )
        assert close(wl.kernels(net, x[:, ::-1].copy()), wl.kernels(net, x))

    def test_frozen_weights_add_nothing_to_the_tangent_kernel(self, images):
        body = wl.Conv(3, b_std=0.2) >> wl.Phi("relu")
        net = wl.Frozen(body) >> wl.Flatten() >> wl.Dense()
        found = wl.kernels(net, images)
        assert close([found.ntk], [found.nngp])
        assert close([found.nngp], [wl.nngp(body >> wl.Flatten() >> wl.Dense(), images)])

    def test_keeping_all_is_no_dropout(self, images):
        body = wl.Conv(3) >> wl.Phi("relu")
        last = wl.Flatten() >> wl.Dense()
        assert close(
            wl.kernels(body >> wl.Dropout(1.0) >> last, images), wl.kernels(body >> last, images)
        )

    def test_black_images_have_no_kernel(self, images):
        x = np.concatenate([images, np.zeros_like(images[:1])])
        net = wl.cnn(depth=2)
        found = wl.kernels(net, x)
        assert (found.ntk[-1] == 0).all()
        assert np.isfinite(found.ntk).all()


REFUSED = [
    (lambda x: wl.ntk(wl.mlp(depth=1), x), "Flatten"),
    (lambda x: wl.ntk(NET, x[:, 0, 0]), "slides a window over pixels"),
    (lambda x: wl.ntk(wl.cnn(1, window=5, padding="valid"), x), "larger than the image"),
    (lambda x: wl.ntk(wl.cnn(1, window=(3,)), x), "1 axes"),
    (lambda x: wl.ntk(NET, x, x[..., :1]), "channels must agree"),
    (lambda x: wl.ntk(NET, np.where(x > 1, np.nan, x)), "NaN"),
    (lambda x: wl.Masked(x, np.zeros((3, 4), bool)), "shape of the pixels"),
    (lambda x: wl.Graphs(x[:, 0], np.ones((3, 3, 2))), "not square"),
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
