"""Slices on a GPU by kernels of their own, as far as a machine without one can tell."""

import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import widelimit as wl
from widelimit._base.compile import quick_jit
from widelimit.infinite import _fast, _spatial, _tiles, _trial
from widelimit.infinite._plan import split
from widelimit.infinite._stage import staged

pytest.importorskip("jax.experimental.pallas.triton")
RELU, POOL = wl.Phi("relu"), wl.GlobalAvgPool() >> wl.Dense()
NETS = {
    "same": (
        wl.Conv((2, 3), b_std=0.3) >> wl.Phi("abs") >> wl.Residual(RELU >> wl.Conv(3)) >> RELU >> POOL,
        (3, 11, 1),
    ),
    "circular": (wl.Conv((3, 2), padding="circular") >> wl.Phi("erf") >> POOL, (3, 3, 1)),
    "valid": (wl.Conv(2, padding="valid") >> wl.Phi("gelu") >> POOL, (3, 4, 1)),
}  # fmt: skip


def sides(net, shape, first, second):
    """What belongs to single images; the second ones come twice around."""
    stage, body, _ = staged(net, shape[:-1])
    rng, numbers = np.random.default_rng(0), split(body)[1]
    draw = lambda n: rng.standard_normal((n, *shape)).astype(np.float32)
    with jax.enable_x64(True):
        of = functools.partial(_fast.BRIEFLY.side_of, stage, numbers)
        return (
            stage,
            of(draw(first), None),
            _fast.BRIEFLY.twice_around(stage, of(draw(second), None)),
        )


@functools.partial(quick_jit, static_argnums=0)
def slice_(stage, one, twice, move):
    moved = _fast.moved_side(stage, twice, move, None)
    return _fast.through(stage, ("nngp", "ntk"), one, moved, _fast.across, None)


@pytest.mark.parametrize("name", NETS)
def test_a_slice_is_that_of_the_layers(name):
    stage, one, twice = sides(*NETS[name], 8, 32)
    with jax.enable_x64(True):
        move = jnp.array([1, 2], jnp.int32)
        plain, found = (
            slice_(stage._replace(legs=legs), one, twice, move) for legs in ("", "interpreted")
        )
    assert jax.tree.structure(plain) == jax.tree.structure(found)
    for expected, value in zip(*map(jax.tree.leaves, (plain, found)), strict=True):
        np.testing.assert_allclose(value, expected, rtol=2e-6, atol=2e-7)


def test_it_is_lowered_for_a_gpu():
    stage, body, _ = staged(wl.cnn(depth=2, readout="pool"), (8, 8))
    stage, numbers = stage._replace(legs="gpu"), split(body)[1]

    def tile(x1, x2, moves, weights, used):
        of = functools.partial(_fast._side_of, stage, numbers, go=None)
        twice = _fast._twice_around(stage, of(x2))
        given = stage, ("nngp", "ntk"), False, len(x1), of(x1), twice
        return _fast._pooled_tile(*given, moves, weights, used, None)

    shape = lambda *n, dtype=jnp.float32: jax.ShapeDtypeStruct(n, dtype)
    with jax.enable_x64(True):
        moves, used = shape(5, 2, dtype=jnp.int32), shape(dtype=jnp.int32)
        given = shape(16, 8, 8, 3), shape(64, 8, 8, 3), moves, shape(5), used
        text = jax.jit(tile).trace(*given).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("xla.gpu.triton") == 2


@pytest.mark.parametrize(
    ("entries", "side", "dtype", "readout", "served"),
    [
        (2**40, 64, "float32", "pool", True),
        (2**20, 64, "float32", "pool", False),
        (2**40, 16, "float32", "pool", False),
        (2**40, 64, "float64", "pool", False),
        (2**40, 64, "float32", "flatten", False),
    ],
)
def test_it_serves_large_work_on_a_gpu(entries, side, dtype, readout, served, monkeypatch):
    monkeypatch.setattr(_tiles.jax, "default_backend", lambda: "gpu")
    stage, _, _ = staged(wl.cnn(depth=2, readout=readout), (8, 8))
    assert bool(_tiles.in_legs(stage, side, entries, dtype).legs) is served


def test_a_trial_prefers_what_is_right_and_faster(monkeypatch):
    monkeypatch.setattr(_trial, "_found", {})

    def way(value, seconds=0.0):
        def run():
            time.sleep(seconds)
            return jnp.full(3, value)

        return run

    def fails():
        raise RuntimeError("no such instruction")

    xla = way(1.0, 0.02)
    for number, (mine, chosen) in enumerate(
        [
            (way(1.0 + 1e-7), True),
            (way(1.1), False),
            (way(jnp.nan), False),
            (way(1.0, 0.06), False),
            (fails, False),
        ]
    ):
        found = _trial.preferred(number, (mine, xla), lambda run: run())
        assert (found is mine) is chosen
        assert _trial.preferred(number, (mine, xla), fails) is found  # remembered


def test_the_tiles_of_a_matrix_try_both_ways(monkeypatch):
    tried = []

    def preferred(kind, ways, run):
        tried.append([jax.tree.map(np.asarray, run(way)) for way in ways])
        return ways[0]

    x = np.random.default_rng(0).standard_normal((32, 3, 3, 1)).astype(np.float32)
    net = wl.cnn(depth=2, readout="pool")
    expected = wl.kernels(net, x)
    monkeypatch.setattr(_tiles, "going", lambda programs: None)
    monkeypatch.setattr(_tiles, "preferred", preferred)
    monkeypatch.setattr(_spatial, "in_legs", lambda stage, *_: stage._replace(legs="interpreted"))
    for found, value in zip(wl.kernels(net, x), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-7)
    ((mine, plain),) = tried
    for found, value in zip(*map(jax.tree.leaves, (mine, plain)), strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-6, atol=1e-8)
