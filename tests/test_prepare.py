"""Prepared kernels: values that are decided once, and programs that serve many sizes."""

import dataclasses
import os
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl
from widelimit.extend import State, facts, propagate
from widelimit.infinite import _evaluate, _layered, _matrix, _plan

RELU = wl.Dense(b_std=0.4) >> wl.Phi("relu") >> wl.Dense()
ERF = wl.mlp(2, "erf", w_std=1.3, b_std=0.3)
MISH = wl.mlp(2, "mish", w_std=1.1, b_std=0.2)


def points(n, d=5, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).standard_normal((n, d))


def programs():
    count = lambda program: getattr(program, "_cache_size")()  # noqa: B009
    return count(_layered.stack_of_tiles.program), count(_matrix.gram)


# --- a value -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nngp", "ntk"])
def test_it_is_the_function_of_the_same_name(kind):
    x, y = points(7), points(4, seed=1)
    k = wl.prepare(ERF, kind)
    plain = getattr(wl, kind)
    np.testing.assert_array_equal(k(x, y), plain(ERF, x, y))
    np.testing.assert_array_equal(k(x), plain(ERF, x))
    np.testing.assert_allclose(k.diagonal(x), np.diag(k(x)), rtol=1e-14)
    np.testing.assert_allclose(getattr(k.both(x), kind), k(x), rtol=1e-13)


def test_it_pickles_compares_and_hashes_by_value():
    x = points(6)
    k = wl.prepare(ERF, "ntk", like=x)
    again = pickle.loads(pickle.dumps(k))
    assert again == k
    assert hash(again) == hash(k)
    np.testing.assert_array_equal(again(x), k(x))
    assert k.net == ERF
    for other in (
        wl.prepare(ERF, "nngp", like=x),
        wl.prepare(ERF, "ntk"),
        wl.prepare(wl.mlp(2, "erf", w_std=1.2, b_std=0.3), "ntk", like=x),
    ):
        assert k != other


def test_widths_are_kept():
    net = wl.Dense(64) >> wl.Phi("relu") >> wl.Dense(3)
    assert wl.prepare(net).net == net


def test_it_is_a_pytree_of_the_numbers():
    x = jnp.asarray(points(3), jnp.float32)
    k = wl.prepare(ERF)
    compiled = jax.jit(lambda k, x: k(x))(k, x)
    np.testing.assert_allclose(compiled, k(x), rtol=1e-5)
    slope = jax.grad(lambda k: k(x).sum())(k)
    h = 1e-5
    total = lambda w: wl.ntk(
        wl.Repeat(wl.Dense(w_std=w, b_std=0.3) >> wl.Phi("erf"), 2)
        >> wl.Dense(w_std=1.3, b_std=0.3),
        np.asarray(x, float),
    ).sum()
    want = (total(1.3 + h) - total(1.3 - h)) / (2 * h)
    np.testing.assert_allclose(slope.net.layers[0].body.layers[0].w_std, want, rtol=1e-4)


def test_block_inside_jit_and_vmap():
    x = jnp.asarray(points(4), jnp.float32)
    k = wl.prepare(ERF)
    want = np.asarray(k(x, x[:2]))
    np.testing.assert_allclose(jax.jit(k.block)(x, x[:2]), want, rtol=1e-5)
    batched = jax.vmap(k.block, in_axes=(0, None))(x[None], x[:2])
    np.testing.assert_allclose(batched[0], want, rtol=1e-5)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_matvec_does_not_need_the_matrix(monkeypatch, shape):
    from widelimit.infinite import _products

    monkeypatch.setattr(_products, "MATVEC_ENTRIES", 2**12)
    x, y = points(150), points(130, seed=1)
    v = np.random.default_rng(2).standard_normal((130, *shape))
    for net in (RELU, ERF):
        k = wl.prepare(net)
        np.testing.assert_allclose(k.matvec(x, y, v), k(x, y) @ v, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(k.matvec(y, None, v), k(y) @ v, rtol=1e-11, atol=1e-11)
    k = wl.prepare(RELU)
    onto = k.matvec(*(jnp.asarray(a, jnp.float32) for a in (x, y, v)))
    assert isinstance(onto, jax.Array)
    np.testing.assert_allclose(onto, k(x, y) @ v, rtol=1e-4, atol=1e-3)


def test_bad_input():
    with pytest.raises(ValueError, match="kind must be"):
        wl.prepare(ERF, "nkt")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="applied to the data"):
        wl.prepare(wl.Phi("relu") >> wl.Dense())
    with pytest.raises(ValueError, match="v has 3 rows"):
        wl.prepare(ERF).matvec(points(4), None, np.ones(3))
    with pytest.raises(ValueError, match="no function of one angle"):
        wl.prepare(ERF).by("profile")(points(4))


# --- outside the announced range -----------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.01, 30.0])
def test_far_outside_the_announced_norms_it_is_as_right(scale):
    near, far = points(8), points(8, scale=scale)
    prepared = wl.prepare(MISH, "ntk", like=near)
    np.testing.assert_allclose(prepared(far), wl.ntk(MISH, far), rtol=1e-12)
    mixed = np.concatenate([near, far])
    np.testing.assert_allclose(prepared(mixed), wl.ntk(MISH, mixed), rtol=1e-12)
    np.testing.assert_allclose(prepared.diagonal(far), np.diag(wl.ntk(MISH, far)), rtol=1e-12)


def test_a_compiled_block_refuses_what_was_not_announced():
    near, far = points(4), points(4, scale=30.0)
    k = wl.prepare(MISH, "ntk", like=near)
    block = jax.jit(k.block)
    both = [jnp.asarray(a, jnp.float32) for a in (near, far)]
    np.testing.assert_allclose(block(both[0], both[0]), k(near), rtol=1e-4, atol=1e-5)
    assert jnp.isnan(block(*both)).all()
    closed = wl.prepare(ERF, "ntk", like=near)  # a formula is right everywhere
    np.testing.assert_allclose(jax.jit(closed.block)(*both), closed(near, far), rtol=1e-4)


def test_unequal_norms_after_equal_ones_take_the_other_path():
    sphere = points(300)
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    k = wl.prepare(ERF, "ntk", like=sphere)
    pick = [0, 17, 299]
    for x in (sphere, sphere * np.linspace(0.5, 2, 300)[:, None]):
        np.testing.assert_allclose(k(x)[np.ix_(pick, pick)], k(x[pick]), rtol=1e-12)


# --- decisions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_bias_as_a_feature_changes_nothing(dtype):
    x = points(300).astype(dtype)
    x[3], x[5] = 0, -2 * x[4]
    k = wl.prepare(RELU)
    assert _plan.bias_as_feature(k.form, _plan.known(k.numbers)) is not None
    exact = k.by("layers")(x.astype(float))
    slack = 3e-14 if dtype == "float64" else 2e-6
    np.testing.assert_allclose(k(x), exact, rtol=0, atol=slack * float(exact.max()))
    form, numbers = _plan.split(ERF)
    assert _plan.bias_as_feature(form, _plan.known(numbers)) is None


class Offset(wl.Layer):
    """Adds a bias, and nothing else: no `Dense` says so."""

    b_std: float = 0.7


@propagate.register
def _propagate_offset(layer: Offset, state: State) -> State:
    return state.biased(layer.b_std).trained()


def test_what_a_zero_input_gives_follows_from_the_operations():
    for net, dies in (
        (wl.mlp(3), True),
        (wl.mlp(2, "tanh"), True),
        (wl.mlp(2, "cos"), False),
        (wl.mlp(2, b_std=0.1), False),
        (wl.Dense() >> Offset() >> wl.Phi("relu") >> wl.Dense(), False),
    ):
        assert facts(net).vanishes is dies
        for n in (9, 300) if "tanh" not in repr(net) else (9,):
            x = points(n)
            x[7] = 0
            row = wl.nngp(net, x)[7]
            assert (row == 0).all() if dies else row[7] > 0
            np.testing.assert_allclose(wl.prepare(net, "nngp").diagonal(x)[7], row[7], rtol=1e-13)
    net = wl.Dense() >> Offset(0.7) >> wl.Dense()
    np.testing.assert_allclose(wl.nngp(net, np.zeros((1, 3))), 0.49)


def test_homogeneous_is_not_the_same_as_a_function_of_one_angle(monkeypatch):
    """A kernel that is no function of an angle never enters the profile path, large as it may be."""
    net, x = wl.mlp(3), points(300)
    want = wl.ntk(net, x)
    mixed = dataclasses.replace(facts(net), zonal=False)
    monkeypatch.setattr(_evaluate, "facts", lambda form: mixed)
    monkeypatch.setattr(_evaluate, "compiled", lambda *args: pytest.fail("a profile was built"))
    np.testing.assert_allclose(wl.ntk(net, x), want, rtol=1e-12, atol=1e-14)
    with pytest.raises(ValueError, match="no function of one angle"):
        wl.prepare(net).by("profile")(x)


# --- compilations --------------------------------------------------------------------------------------


def test_a_session_of_mixed_sizes_compiles_little():
    net = wl.mlp(3, "erf", w_std=0.91, b_std=0.17)
    wl.ntk(net, points(20))
    one = programs()
    for n in (1, 2, 21, 32):
        wl.ntk(net, points(n))
    assert programs() == one
    wl.ntk(net, points(33))  # more than one tile: another program
    before = programs()
    assert before == (one[0] + 1, one[1])
    for n in (1, 2, 21, 64, 99, 100, 128):
        assert wl.ntk(net, points(n)).shape == (n, n)
        wl.ntk(net, points(n, d=9), points(3, d=9))
    assert programs() == before
    for n in (513, 569, 700, 1001):  # one capacity
        wl.ntk(net, points(n))
    small, large = programs()
    assert (small, large) == (before[0], before[1] + 1)
    part = wl.ntk(net, points(569))[:5, :5]
    np.testing.assert_allclose(part, wl.ntk(net, points(569)[:5]), rtol=1e-12, atol=1e-14)


def test_an_equal_function_typed_again_is_the_same():
    x = points(5)
    make = lambda a: wl.mlp(1, lambda x: a * jnp.tanh(x) + 0.1 * x)
    first = wl.ntk(make(1.0), x)
    before = programs()
    np.testing.assert_array_equal(wl.ntk(make(1.0), x), first)
    assert programs() == before
    assert make(1.0) == make(1.0)
    assert make(1.0) != make(2.0)
    assert make(0.0) != make(-0.0)
    assert np.abs(wl.ntk(make(2.0), x) - first).max() > 0.1
    seen = {"scale": 1.0}
    code = "lambda x: scale * x"
    one, other = eval(code, seen), eval(code, {"scale": 2.0})
    assert wl.Phi(one) != wl.Phi(other)
    assert wl.Phi(one) == wl.Phi(eval(code, seen))


def test_the_persistent_cache_of_jax_is_used(tmp_path):
    code = (
        "import numpy as np, jax, widelimit as wl\n"
        "wl.ntk(wl.mlp(2, b_std=0.1), np.eye(3))\n"
        "wl.ntk(wl.mlp(2, b_std=0.1), np.eye(300))\n"
    )
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    run = lambda: subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **settings}, check=True
    )
    run()
    stored = {p.name for p in tmp_path.iterdir() if p.name.endswith("-cache")}
    assert any("stack_of_tiles" in name for name in stored)
    assert any("gram" in name for name in stored)
    run()
    assert {p.name for p in tmp_path.iterdir() if p.name.endswith("-cache")} == stored
