"""Finite networks with pixels: against Jacobians, golden limits, and the descriptions of other libraries."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import spatial
import widelimit as wl
from widelimit._base.compile import quick_jit
from widelimit.finite import _sample

INPUTS, CASES = spatial.read()
RELU = wl.Phi("relu")
POOL = wl.GlobalAvgPool() >> wl.Dense()

# For each layer a small network that uses it, and the shape of its inputs.
NETS = {
    "conv same": (wl.Conv(3, b_std=0.3) >> RELU >> wl.Conv((2, 3), stride=2) >> RELU >> POOL, (5, 4, 2)),
    "conv valid": (wl.Conv(2, padding="valid") >> RELU >> wl.Flatten() >> wl.Dense(b_std=0.2), (5, 2)),
    "conv circular": (wl.Conv(3, padding="circular", stride=2) >> RELU >> POOL, (5, 3, 1)),
    "conv 3d": (wl.Conv((2, 1, 2), b_std=0.1) >> RELU >> POOL, (2, 3, 2, 2)),
    "conv large": (wl.Conv(11, padding="circular") >> RELU >> POOL, (5, 2)),
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
    "resize": (wl.Conv(2) >> RELU >> wl.Resize((3, 5)) >> wl.Conv(2) >> RELU >> POOL, (4, 3, 2)),
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
    "residual": (wl.wide_resnet(blocks=1, stages=2, b_std=0.1), (4, 4, 2)),
    "loop": (wl.Conv(2) >> wl.Repeat(RELU >> wl.Conv(3, b_std=0.1), 18) >> RELU >> POOL, (4, 2)),
}  # fmt: skip


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


def z_scores(case, width, samples):
    """Distances of sampled kernels from the golden limit: in standard errors, and of the largest entry."""
    both = INPUTS[case["inputs"]]
    x = np.concatenate([both["x1"], both["x2"]]).astype(np.float32)
    n = len(both["x1"])
    network = wl.finite(spatial.network(case["network"]), width)
    worst, relative = {}, {}
    for kind, (mean, stderr) in zip(("nngp", "ntk"), sampled(network, samples, x), strict=True):
        golden = np.array(case[f"{kind}_x1_x1"]), np.array(case[kind])
        error = [
            np.abs(np.asarray(mean)[:n, cut] - want.reshape(mean[:n, cut].shape))
            for cut, want in zip((slice(n), slice(n, None)), golden, strict=True)
        ]
        size = np.abs(golden[0]).max()
        within = np.asarray(stderr)[:n]
        error = np.concatenate(error, axis=1)
        assert (within < 0.3 * size).all()
        worst[kind] = float((error / np.maximum(within, 1e-12)).max())
        relative[kind] = float(error.max() / size)
    return worst, relative
