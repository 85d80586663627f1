"""Programs on several cores, and programs that other threads compile."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from widelimit._base.abreast import abreast
from widelimit._base.ahead import Ahead

TRACED = []


def scaled(power, x, y):
    TRACED.append(power)
    if x.ndim == 3:
        raise TypeError("not these")
    return x**power * y


@pytest.fixture
def program():
    return Ahead(scaled, static=1)


def begun(program):
    return [future.exception() is None for future in program._begun.values()]


def test_what_was_asked_for_is_used(program):
    x, y = np.arange(3.0, dtype=np.float32), np.float32(2)
    program.prepare(2, jax.ShapeDtypeStruct((3,), np.float32), y)
    program.prepare(2, x, y)
    assert begun(program) == [True]
    TRACED.clear()
    np.testing.assert_array_equal(program(2, x, y), 2 * x**2)
    assert not TRACED
    np.testing.assert_array_equal(program(3, x, y), 2 * x**3)
    assert TRACED == [3]


def test_other_settings_are_other_programs(program):
    x, y = np.arange(3.0), 2.0
    with jax.enable_x64(True):
        program.prepare(2, x, y)
        assert program(2, x, y).dtype == np.float64
    assert program(2, x, y).dtype == np.float32


def test_what_cannot_be_compiled_is_refused_when_it_is_called(program):
    x = np.zeros((1, 1, 1), np.float32)
    program.prepare(2, x, x)
    assert begun(program) == [False]
    with pytest.raises(TypeError, match="not these"):
        program(2, x, x)


def test_inside_other_programs_it_is_a_function(program):
    x = jnp.arange(3.0)
    program.prepare(2, x, x)
    np.testing.assert_array_equal(jax.jit(lambda x: program(2, x, x))(x), x**3)
    np.testing.assert_allclose(jax.grad(lambda x: program(2, x, x).sum())(x), 3 * x**2)


@pytest.mark.parametrize("cores", [2, 3])
def test_calls_run_in_threads_with_the_settings_of_the_caller(cores, monkeypatch):
    """Of which there is one for each core, also where there are more calls."""
    monkeypatch.setattr("widelimit._base.abreast.cores", lambda: cores)

    def call(i):
        return i, threading.current_thread().name, jnp.zeros(1).dtype == np.float64

    calls = [lambda i=i: call(i) for i in range(3)]
    with jax.enable_x64(True):
        first, again = abreast(("some", cores), calls), abreast(("some", cores), calls)
    assert [i for i, *_ in first] == [i for i, *_ in again] == [0, 1, 2]
    assert all(double for *_, double in first + again)
    here = threading.current_thread().name
    assert [name == here for _, name, _ in first] == [True, False, False]
    assert len({name for _, name, _ in again} | {here}) == cores + 1


def test_what_a_thread_raises_is_raised():
    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        abreast("fails", [lambda: 1, fails])
