"""Finite networks with pixels: against Jacobians, golden limits, and the descriptions of other libraries."""

import functools
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl
from spatial_networks import network as described
from widelimit import testing
from widelimit._base.compile import quick_jit
from widelimit.finite import Tap, _blocks, _contract, _convolve, _sample

FILE = json.loads((Path(__file__).parent / "golden" / "spatial.json").read_text())
INPUTS, CASES = FILE["inputs"], FILE["cases"]
RELU = wl.Phi("relu")
POOL = wl.GlobalAvgPool() >> wl.Dense()

# For each layer a small network that uses it, and the shape of its inputs.
NETS = {
    "conv same": (wl.Conv(3, b_std=0.3) >> RELU >> wl.Conv((2, 3), stride=2) >> RELU >> POOL, (5, 4, 2)),
    "conv valid": (wl.Conv(2, padding="valid") >> RELU >> wl.Flatten() >> wl.Dense(b_std=0.2), (5, 2)),
    "conv circular": (wl.Conv(3, padding="circular", stride=2) >> RELU >> POOL, (5, 3, 1)),
    "conv 3d": (wl.Conv((2, 1, 2), b_std=0.1) >> RELU >> POOL, (2, 3, 2, 2)),
    "conv large": (wl.Conv(11, padding="circular") >> RELU >> POOL, (5, 2)),
    "conv beyond": (wl.Conv((2, 5), b_std=0.2) >> RELU >> wl.Conv(5) >> RELU >> POOL, (3, 1, 2)),
    "pixels kept": (wl.Conv(3, b_std=0.2) >> RELU >> wl.Conv(2), (4, 2)),
    "dense": (wl.Dense(b_std=0.3) >> RELU >> wl.Dense() >> RELU >> POOL, (3, 2, 2)),
    "local": (wl.ConvLocal(3, stride=2, b_std=0.4) >> RELU >> wl.ConvLocal(2) >> RELU >> POOL, (4, 3, 2)),
    "transpose": (wl.ConvTranspose(3, stride=2, b_std=0.2) >> RELU >> POOL, (3, 2)),
    "transpose valid": (wl.ConvTranspose((3, 2), stride=(2, 3), padding="valid") >> RELU >> POOL, (3, 2, 1)),
    "transpose circular": (wl.ConvTranspose(4, stride=2, padding="circular") >> RELU >> POOL, (3, 2)),
    "pools": (
        wl.Conv(2) >> RELU >> wl.AvgPool(2, padding="same", normalise_edges=True) >> wl.Conv(2)
        >> RELU >> wl.SumPool(2, 1) >> wl.GlobalSumPool() >> wl.Dense(),
        (5, 4, 2),
    ),
    "norm": (wl.Conv(2) >> wl.LayerNorm() >> RELU >> wl.Dense() >> wl.LayerNorm("all", 0.1) >> POOL, (5, 2)),
    "dropout": (wl.Conv(2) >> RELU >> wl.Dropout(0.7) >> wl.Flatten() >> wl.Dense(), (5, 2)),
    "concat": (wl.Concat(wl.Conv(2) >> RELU, wl.Dense(), widths=(2, 1)) >> wl.Conv(2) >> POOL, (5, 2)),
    "product": (wl.Product(wl.Conv(2), wl.Conv(3) >> RELU) >> wl.Dense() >> POOL, (5, 2)),
    "resize": (wl.Conv(2) >> RELU >> wl.Resize((3, 5)) >> POOL, (4, 3, 2)),
    "sum": (wl.Conv(2) >> (wl.Identity() + wl.AvgPool(3, 1, "same")) >> RELU >> POOL, (5, 2)),
    "frozen": (wl.Frozen(wl.Conv(2, b_std=0.3) >> RELU) >> wl.Conv(2) >> RELU >> POOL, (5, 2)),
    "positions": (wl.Dense() >> wl.Positions(0.6, decay=2.0) >> RELU >> wl.Conv(2) >> POOL, (4, 2)),
    "attention": (
        wl.Dense() >> RELU >> wl.Attention(positions=wl.Positions(0.7), b_std=0.2, heads=2) >> RELU >> POOL,
        (4, 2),
    ),
    "attention sqrt": (
        wl.Dense() >> wl.Attention("sqrt", "identity", key_width=2, positions=wl.Positions(in_values=True)) >> POOL,
        (2, 2, 2),
    ),
    "loop": (wl.Conv(2) >> wl.Repeat(RELU >> wl.Conv(3, b_std=0.1), 18) >> RELU >> POOL, (4, 2)),
}  # fmt: skip


# Of the acceptance file, for each layer a case in which it stands.
SAMPLED = (
    "conv2d strides gap",
    "conv1d pixels kept",
    "dense on pixels then flatten",
    "avg pool same edges normalised",
    "global sum pool",
    "conv after conv local",
    "conv transpose valid",
    "layer norm channels flatten",
    "dropout gap nonlinear head",
    "concat of channels",
    "product of branches",
    "attention sqrt identity",
)


def points(n, shape, seed=0):
    return np.random.default_rng(seed).standard_normal((n, *shape))


def drawn(network, shape, outputs=None, seed=1):
    """Weights of the shapes that `init` gives, drawn by NumPy: nothing is compiled."""
    rng = np.random.default_rng(seed)
    shapes = jax.eval_shape(lambda: network.init(0, shape, outputs))
    return jax.tree.map(lambda leaf: rng.standard_normal(leaf.shape), shapes)


@functools.partial(quick_jit, static_argnums=0)
def both_ways(network, params, x):
    """The structured kernel, and the obvious one: full Jacobians, those of frozen weights left out."""
    flat = lambda p: network.apply(p, x).reshape(len(x), -1)
    leaves = jax.tree_util.tree_leaves_with_path(jax.jacrev(flat)(params))
    kept = [leaf.reshape(*leaf.shape[:2], -1) for path, leaf in leaves if "frozen" not in str(path)]
    rows = jnp.concatenate(kept, axis=2)
    contracted = jnp.einsum("pic,qjc->pqij", rows[:2], rows[2:], precision="highest")
    return network.ntk(params, x[:2], x[2:]), contracted


def schemes(name):
    return {"conv same": "standard", "attention": "xavier", "positions": "torch"}.get(name, "ntk")


@pytest.mark.parametrize("name", NETS)
def test_the_structured_kernel_is_the_contracted_jacobian(name):
    net, shape = NETS[name]
    network = wl.finite(net, width=4, parameterisation=schemes(name))
    params = drawn(network, shape, 2 if name in ("conv same", "local", "pixels kept") else None)
    with jax.enable_x64(True):
        found, expected = both_ways(network, params, jnp.asarray(points(5, shape)))
    if name == "pixels kept":
        assert found.shape == (2, 3, 4, 4, 2, 2)
        found = found.transpose(0, 1, 2, 4, 3, 5)
    np.testing.assert_allclose(
        found.reshape(expected.shape), expected, rtol=1e-11, atol=1e-13 * np.abs(expected).max()
    )
    if schemes(name) == "ntk":
        assert wl.shape(net, shape, 4).num_params == network.num_params(shape)


@functools.partial(quick_jit, static_argnums=(0, 1))
def sampled(network, samples, x):
    """Means and standard errors of both kernels of x with itself over random networks, in one small program."""

    def one(key):
        return _sample._draw_kernels.__wrapped__(network, key, x, None)

    found = jax.lax.map(one, jax.random.split(jax.random.key(0), samples))
    return jax.tree.map(lambda k: (k.mean(0), k.std(0) / (samples - 1) ** 0.5), found)


def errors(case, width, samples):
    """How far sampled kernels are from the golden limit, their standard errors, and the largest entry."""
    both = INPUTS[case["inputs"]]
    x = np.concatenate([both["x1"], both["x2"]]).astype(np.float32)
    n = len(both["x1"])
    network = wl.finite(described(case["network"]), width)
    found = []
    for kind, (mean, stderr) in zip(("nngp", "ntk"), sampled(network, samples, x), strict=True):
        golden = np.concatenate([case[f"{kind}_x1_x1"], case[kind]], axis=1)
        error = np.abs(np.asarray(mean)[:n] - golden.reshape(mean[:n].shape))
        found.append((error, np.asarray(stderr)[:n], np.abs(golden).max()))
    return found


@pytest.mark.parametrize("name", SAMPLED)
def test_sampled_kernels_agree_with_the_limit(name):
    (case,) = [case for case in CASES if case["name"] == name]
    for error, stderr, size in errors(case, width=64, samples=48):
        assert (error < 4 * stderr).all(), (error / stderr).max()
        assert (stderr < (0.2 if "attention" in name else 0.08) * size).all()


def test_attention_converges():
    """It does so slowly: within standard errors at the larger of two widths, and closer there."""
    (case,) = [case for case in CASES if case["name"] == "attention linear softmax positions"]
    small, large = (errors(case, width, samples=48) for width in (16, 128))
    for (error, stderr, size), (further, _, _) in zip(large, small, strict=True):
        assert (error < 4 * stderr).all(), (error / stderr).max()
        assert error.max() < 0.12 * size
        assert error.max() < further.max() + stderr.max()


STRIDES = [
    wl.Conv((3, 2), stride=(2, 1)),
    wl.Conv((5, 2), stride=2, padding="circular"),
    wl.ConvTranspose((3, 2), stride=(2, 3)),
    wl.ConvTranspose((2, 4), stride=(3, 1), padding="valid"),
]


@pytest.mark.parametrize("layer", STRIDES, ids=str)
def test_convolutions_read_what_the_tables_say(layer, monkeypatch):
    """XLA's convolution, the tables of the kernels, and JAX's own paddings are one geometry."""
    rng = np.random.default_rng(0)
    x, window = rng.standard_normal((2, 5, 6, 2)), layer.reads
    w = rng.standard_normal((*window.extents(2), 2, 3))
    with jax.enable_x64(True):
        found = np.asarray(_convolve.convolve(jnp.asarray(x), w, window))
        monkeypatch.setattr(_convolve, "PATCH_ENTRIES", 0)
        by_taps = _convolve.convolve(jnp.asarray(x), w, window)
        monkeypatch.setattr(_convolve, "MOST_TAPS", 0)  # as on a GPU
        by_xla = _convolve.convolve(jnp.asarray(x), w, window)
        np.testing.assert_allclose(found, by_taps, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(found, by_xla, rtol=1e-12, atol=1e-13)
        read = np.asarray(_convolve.patches(jnp.asarray(x), window))
        np.testing.assert_allclose(found, read @ w.reshape(-1, 3), rtol=1e-12, atol=1e-13)
        if layer.padding != "circular":
            layout, steps = ("NHWC", "HWIO", "NHWC"), window.steps(2)
            conv = jax.lax.conv_transpose if window.transposed else jax.lax.conv_general_dilated
            own = conv(x, w, steps, layer.padding.upper(), dimension_numbers=layout)
            np.testing.assert_allclose(found, own, rtol=1e-12, atol=1e-13)


def test_both_ways_to_contract_agree(monkeypatch):
    """Gram matrices of patches, and the gradients of one layer: the choice is one of price."""
    net = wl.Conv(3, b_std=0.5, stride=2) >> RELU >> wl.Conv(2, padding="circular") >> RELU >> POOL
    network, x = wl.finite(net, 3), points(4, (4, 3, 2))
    params, found = drawn(network, (4, 3, 2), 2), []
    for grams in (True, False):
        monkeypatch.setattr(_contract, "grams_are_cheaper", lambda *_, grams=grams: grams)
        with jax.enable_x64(True):
            run = quick_jit(lambda p: network.ntk(p, jnp.asarray(x)), static_argnums=())
            found.append(run(params))
    np.testing.assert_allclose(*found, rtol=1e-11, atol=1e-13)


def test_many_pixels_are_cheaper_by_gradients():
    tap = lambda side: Tap(
        np.zeros((8, side, side, 16)), None, (1.0, 0.0), (1.0, 0.0), window=wl.Conv(3).reads
    )
    delta = lambda side: jnp.zeros((1, 8, side**2, 16))
    assert _contract.grams_are_cheaper(tap(4), delta(4), tap(4))
    assert not _contract.grams_are_cheaper(tap(32), delta(32), tap(32))


def test_blocks_of_images_give_the_same_kernel(monkeypatch):
    net = wl.Conv(2, b_std=0.3) >> RELU >> wl.Dropout(0.5) >> POOL
    network, x = wl.finite(net, 4), points(7, (4, 2))
    params = drawn(network, (4, 2))
    whole = network.ntk(params, x, key=3)
    assert abs(whole - network.ntk(params, x)).max() > 0.1  # some entries were dropped
    monkeypatch.setattr(_blocks, "_MEMORY", 10_000)
    np.testing.assert_allclose(network.ntk(params, x, key=3), whole, rtol=1e-12, atol=1e-14)


LAST = {
    "pooled": wl.Conv(3, b_std=0.4) >> wl.AvgPool(2, padding="same") >> wl.GlobalSumPool(),
    "local": wl.ConvLocal(2, b_std=0.3) >> wl.GlobalAvgPool(),
    "summed": wl.Dense(b_std=0.3) >> (wl.Identity() + wl.AvgPool(3, 1, "circular")),
    "two": wl.Scale(0.5) >> (wl.Conv(3) + wl.Dense(b_std=0.2)),
    "positions": wl.Frozen(wl.Dense()) >> wl.Positions(0.7, decay=1.5),
}


@pytest.mark.parametrize("name", LAST)
def test_the_last_layer_kernel_is_the_tangent_kernel_of_the_last_layer(name):
    """In NTK parameterisation the two are one, where nothing else is trained."""
    network = wl.finite(wl.Frozen(wl.Conv(2) >> RELU) >> LAST[name], 4)
    params, x = drawn(network, (3, 2, 2)), points(3, (3, 2, 2))
    params = jax.tree.map(lambda leaf: leaf.astype(np.float32), params)
    both = quick_jit(lambda p, x: (network.nngp(p, x), network.ntk(p, x)), static_argnums=())
    nngp, ntk = both(params, jnp.asarray(x, jnp.float32))
    if name == "positions":  # the features before them are frozen: only the embeddings are trained
        frozen = wl.finite(wl.Frozen(wl.Conv(2) >> RELU) >> wl.Dense(), 4)
        features = frozen.nngp([*params[:1], {"w": params[1]["frozen"]["w"]}], np.float32(x))
        nngp = nngp - features
    np.testing.assert_allclose(nngp, ntk, rtol=2e-5, atol=1e-5 * float(abs(ntk).max()))


def test_masked_pixels_are_not_there():
    """Appending masked pixels, whatever stands in them, changes no output."""
    net = (
        wl.Conv(3, b_std=0.5) >> wl.Phi("cos") >> wl.AvgPool(3, 1, "same") >> wl.Dense(b_std=0.3)
        >> wl.LayerNorm("all") >> wl.Attention() >> POOL
    )  # fmt: skip
    network, x = wl.finite(net, 4), points(2, (4, 2))
    params = drawn(network, (4, 2))
    longer = np.concatenate([x, np.full((2, 3, 2), np.nan)], axis=1)
    masked = wl.Masked(longer, np.arange(7) >= np.array([[4], [4]]))
    np.testing.assert_allclose(network.apply(params, masked), network.apply(params, x), rtol=1e-12)


def _graphs(x):
    linked = np.random.default_rng(5).uniform(size=(len(x), x.shape[1], x.shape[1])) < 0.5
    return wl.Graphs(x, linked.astype(x.dtype))


STRUCTURED = {
    "masked": (
        wl.Conv(3, stride=2, b_std=0.3) >> wl.LayerNorm("all") >> wl.Phi("cos") >> POOL,
        lambda x: wl.Masked(x, np.arange(5) >= np.array([[5], [3], [4]])),
    ),
    "graphs": (
        wl.Dense() >> RELU >> wl.Aggregate() >> POOL,
        _graphs,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURED)
def test_masked_inputs_and_graphs_agree_with_the_limit(name):
    net, of = STRUCTURED[name]
    x = np.float32(points(3, (5, 2)))
    found = sampled(wl.finite(net, 96), 32, of(x))
    for (mean, stderr), exact in zip(found, wl.kernels(net, of(np.float64(x))), strict=True):
        assert (abs(np.asarray(mean) - exact) < 4 * np.asarray(stderr)).all()
        assert (np.asarray(stderr) < 0.1 * exact.max()).all()


def test_laws():
    """Those that the library ships: among them, that finite networks approach the limit."""
    testing.check_network(wl.Frozen(wl.Conv(2, b_std=0.2)) >> RELU >> wl.Flatten() >> wl.Dense())


def test_heads_have_the_widths_that_are_stated():
    net = (
        wl.Dense() >> wl.Attention("sqrt", "identity", key_width=3) >> POOL
    )  # a head for each value channel
    shapes = jax.eval_shape(lambda: wl.finite(net, 4).init(0, (5, 2)))[1]
    assert shapes["values"]["w"].shape == (4, 4)
    assert shapes["keys"]["w"].shape == shapes["queries"]["w"].shape == (4, 12)


def test_training_on_images():
    """The loss falls; what is frozen stays, also for an optimiser that shrinks weights."""
    net = wl.Frozen(wl.Conv(3) >> RELU) >> wl.Dropout(0.8) >> wl.Flatten() >> wl.Dense()
    network, x = wl.finite(net, 32), np.float32(points(8, (4, 4, 1)))
    params = network.init(0, (4, 4, 1))
    options = {"optimiser": "adamw", "learning_rate": 1e-2, "batch_size": 4}
    run = wl.optimise(network, x, np.sign(x[:, 0, 0, 0]), params=params, steps=100, **options)
    assert run.loss[-1] < 0.2 * run.loss[0]
    kept = jax.tree.map(lambda a, b: bool((a == b).all()), params[0], run.params[0])
    assert all(jax.tree.leaves(kept))
    assert network.num_params((4, 4, 1)) == 32 * 16


IMAGES = np.ones((2, 4, 4, 2))


def _apply(net, drawn_for, x):
    network = wl.finite(net, 4)
    return network.apply(drawn(network, drawn_for), x)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: _apply(wl.mlp(1), (4, 4, 2), IMAGES), r"Flatten\(\) or a convolution"),
        (lambda: _apply(wl.mlp(1), 32, IMAGES), r"Flatten\(\) or a convolution"),
        (lambda: _apply(wl.cnn(1), 32, IMAGES), r"Conv\(3.*slides a window"),
        (lambda: _apply(wl.cnn(1), (4, 4, 2), np.ones((2, 8))), "2 spatial axes, but is given 0"),
        (
            lambda: _apply(wl.cnn(1), (4, 4, 3), IMAGES),
            r"Conv\(3.*weights for 3 channels, but is given 2",
        ),
        (lambda: _apply(wl.cnn(1), (5, 4, 2), IMAGES), r"Dense\(\) has weights for 80 channels"),
        (
            lambda: _apply(wl.Conv(7, padding="valid") >> POOL, (4, 4, 2), IMAGES),
            "larger than the image",
        ),
        (
            lambda: _apply(wl.Conv((3,)) >> POOL, (4, 4, 2), IMAGES),
            r"window \(3,\) is for images of 1 axes",
        ),
        (
            lambda: _apply(wl.ConvLocal(2) >> POOL, (4, 2), np.ones((1, 5, 2))),
            r"weights for \(4,\) positions",
        ),
        (
            lambda: _apply(wl.Dense() >> wl.Positions() >> POOL, (4, 2), np.ones((1, 5, 2))),
            r"Positions\(\) has",
        ),
        (
            lambda: _apply(wl.Dense() >> wl.Attention(heads=3) >> POOL, (4, 2), IMAGES[0]),
            "3 heads, among",
        ),
        (lambda: _apply(wl.Aggregate() >> POOL, (4, 2), IMAGES[0]), "Graphs"),
        (lambda: _apply(wl.cnn(1), (4, 2), np.full((1, 4, 2), np.nan)), "NaN"),
        (lambda: wl.finite(wl.cnn(1), bias=True), "multiplies the bias by b_std"),
        (lambda: wl.finite(wl.cnn(1), 4).init(0, (4, 0)), "input_dim must be at least 1"),
        (lambda: _nngp(wl.Conv(3) >> wl.Dropout(0.5)), "passes through Dropout"),
        (lambda: _nngp(wl.Product(wl.Conv(3), wl.Conv(3))), "passes through Product"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def _nngp(net):
    network = wl.finite(net, 4)
    return network.nngp(drawn(network, (4, 2)), IMAGES[0])
