"""Modules of Equinox and Flax: lifted descriptions, and tangent kernels by projection and of chosen parts."""

import equinox as eqx
import flax.linen as flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl

nn = eqx.nn


def test_a_lifted_network_has_the_covariance_of_sampled_modules(key):
    """1000 MLPs of width 64, within 4.5 standard errors and O(1/n)."""
    x = jax.random.normal(key, (3, 4))
    make = lambda k: nn.MLP(4, 1, 64, 2, key=k)
    outputs = jax.jit(jax.vmap(lambda k: jax.vmap(make(k))(x)[:, 0]))(jax.random.split(key, 1000))
    products = np.asarray(outputs)[:, :, None] * np.asarray(outputs)[:, None]
    exact = np.asarray(wl.nngp(wl.lift(make(key)), np.asarray(x)))
    error = products.std(0) / np.sqrt(len(products))
    assert (np.abs(products.mean(0) - exact) < 4.5 * error + 2 / 64 * exact.max()).all()
    assert (error < 0.15 * exact.max()).all()


def test_sequences_are_read(key):
    keys = jax.random.split(key, 4)
    net = wl.lift(
        nn.Sequential(
            [
                nn.Conv2d(2, 4, 3, padding=1, key=keys[0]),
                nn.Lambda(jax.nn.relu),
                nn.Sequential([nn.AvgPool2d(2, 2), nn.Identity()]),
                nn.Conv2d(4, 8, 2, key=keys[1]),
                nn.Lambda(jnp.tanh),
                nn.Lambda(jnp.ravel),
                nn.Linear(8, 5, use_bias=False, key=keys[2]),
                nn.LayerNorm(5, use_weight=False, use_bias=False),
                nn.Lambda(jax.nn.silu),
                nn.Dropout(0.2),
                nn.Linear(5, 1, key=keys[3]),
            ]
        )
    )
    w = 1 / 3**0.5
    want = (
        wl.Conv((3, 3), 4, (1, 1), "same", w, 1 / 54**0.5)
        >> wl.Phi("relu")
        >> wl.AvgPool((2, 2), (2, 2))
        >> wl.Conv((2, 2), 8, (1, 1), "valid", w, 1 / 48**0.5)
        >> wl.Phi("tanh")
        >> wl.Flatten()
        >> wl.Dense(5, w)
        >> wl.LayerNorm("channels", 1e-5)
        >> wl.Phi("silu")
        >> wl.Dropout(0.8)
        >> wl.Dense(1, w, 1 / 15**0.5)
    )
    assert net == want


def test_measured_scales(key):
    module = nn.MLP(20, 1, 300, 1, activation=jnp.tanh, key=key)
    module = eqx.tree_at(lambda m: m.layers[0].weight, module, replace_fn=lambda w: 3 * w)
    net = wl.lift(module, init="measured")
    assert abs(net.layers[0].w_std - 3**0.5) < 0.05
    assert wl.lift(module).layers[0].w_std == 1 / 3**0.5


REFUSED = [
    (lambda k: nn.GRUCell(3, 3, key=k), "GRUCell cannot be lifted"),
    (lambda k: nn.Sequential([nn.Linear(3, 4, key=k), nn.LayerNorm(4)]), "use_weight=False"),
    (lambda k: nn.Sequential([nn.Conv1d(3, 4, 3, key=k), nn.Linear(4, 4, key=k)]), "jnp.ravel"),
    (lambda k: nn.Conv1d(3, 4, 3, stride=2, padding=1, key=k), "keeps the size"),
    (lambda k: nn.Conv1d(3, 4, 3, dilation=2, key=k), "dilation and groups"),
    (lambda k: nn.AvgPool1d(2, 1, padding=1), "padding and use_ceil"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_cannot_be_lifted_is_named(make, message, key):
    with pytest.raises(ValueError, match=message):
        wl.lift(make(key))


class Adapted(flax.Module):
    """A model of another library, with an adapter."""

    @flax.compact
    def __call__(self, x):
        h = flax.tanh(flax.Dense(16)(x))
        h = h + flax.Dense(16, name="adapter")(flax.tanh(h))
        return flax.Dense(2)(flax.tanh(h))


@pytest.fixture(scope="module")
def model():
    module = Adapted()
    params = module.init(jax.random.key(0), jnp.ones((1, 3)))
    return module.apply, params


def test_projection_agrees_within_its_errors(model):
    """150 directions; deviations are judged in the standard errors that it states, and these by theory."""
    x = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
    exact = wl.empirical_ntk(*model, x)
    found = wl.empirical_ntk(*model, x, project=150, key=3)
    assert found.mean.shape == exact.shape
    assert found.samples == 150
    score = np.abs(found.mean - exact) / found.stderr
    assert 0.1 < score.mean() < 2
    assert score.max() < 4
    d = np.einsum("iiaa->ia", exact)
    theory = np.sqrt((d[:, None, :, None] * d[None, :, None] + exact**2) / 150)
    assert (found.stderr < 1.5 * theory).all()
    assert (found.stderr > 0.4 * theory).all()
    few = {"project": 3, "key": 3}
    whole = wl.empirical_ntk(*model, x, **few).mean
    cross = wl.empirical_ntk(*model, x[:2], x[1:], **few).mean
    assert np.allclose(cross, whole[:2, 1:], rtol=1e-4, atol=1e-4)
    kept = np.einsum("ijaa->ija", whole)
    assert np.allclose(wl.empirical_ntk(*model, x, outputs="diagonal", **few).mean, kept, rtol=1e-4)
    trace = wl.empirical_ntk(*model, x, outputs="trace", **few).mean
    assert np.allclose(trace, kept.sum(-1), rtol=1e-4)


def test_parts_by_path_by_flags_and_by_function(model):
    apply, params = model
    x = np.random.default_rng(1).standard_normal((3, 3)).astype(np.float32)
    by_function = wl.empirical_ntk(apply, params, x, where=lambda p: p["params"]["adapter"])
    by_path = wl.empirical_ntk(apply, params, x, where="adapter")
    flags = jax.tree_util.tree_map_with_path(lambda path, _: "adapter" in str(path), params)
    assert np.allclose(by_path, by_function, rtol=1e-6)
    assert np.allclose(wl.empirical_ntk(apply, params, x, where=flags), by_function, rtol=1e-6)
    found = wl.empirical_ntk(apply, params, x, where="adapter", project=50)
    assert (np.abs(found.mean - by_path) < 5 * found.stderr).all()
    with pytest.raises(ValueError, match="No path in params contains where='lora'"):
        wl.empirical_ntk(apply, params, x, where="lora")
    with pytest.raises(ValueError, match="tree of truth values"):
        wl.empirical_ntk(apply, params, x, where=[True])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"project": 1}, "project"), ({"project": 5, "method": "jacobian"}, "method of its own")],
)
def test_what_a_projection_is_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        wl.empirical_ntk(*model, np.ones((2, 3), np.float32), **options)
    if "method" not in options:
        with pytest.raises(ValueError, match="cannot be jitted"):
            jax.jit(lambda x: wl.empirical_ntk(*model, x, project=3).mean)(jnp.ones((2, 3)))
