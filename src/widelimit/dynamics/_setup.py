"""Checks of a training run, before any work."""

import contextlib
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import as_array
from widelimit._base.scalars import as_count
from widelimit.finite import FiniteNetwork
from widelimit.finite._convention import float_dtype

from ._loop import Problem
from ._losses import as_loss, check_targets
from ._optimiser import critical_rate, named_optimiser, warn_if_unstable
from ._records import Run

_MEMORY = 2**31  # bytes of records beyond which a run is refused
_DEFAULT_RATES = {"momentum": 1e-2, "nesterov": 1e-2}


def initial(model: Any, params: Any, key: Any, x: Any, y: Any, dtype: Any) -> Any:
    """The parameters to begin with."""
    if params is not None:
        return params
    if not isinstance(model, FiniteNetwork):
        raise TypeError("A plain function was passed as the model; pass its parameters as params.")
    x = as_array(x, "x", rank=2, layout="(points, features)")
    outputs = np.shape(y)[1] if np.ndim(y) == 2 else None
    return model.init(key, x.shape[1], outputs, dtype=dtype)


def precision(params: Any) -> Any:
    """64-bit arithmetic where the weights have 64 bits."""
    wide = np.dtype(float_dtype(params)) == np.float64
    return jax.enable_x64(True) if wide else contextlib.nullcontext()


def goal(tolerance: Any) -> float:
    """The loss to stop at; none is below zero."""
    if tolerance is None:
        return -1.0
    if not 0 <= float(tolerance) < float("inf"):
        raise ValueError(f"tolerance must be a non-negative number, got {tolerance!r}.")
    return float(tolerance)


def prepare(
    model: Any,
    params: Any,
    x: Any,
    y: Any,
    settings: Any,
    record: Any,
    probe: Any,
    track: tuple[bool, bool],
    *,
    lanes: int,
) -> Run:
    """Check everything before any work, and settle the learning rate."""
    optimiser, rate, steps, epochs, batch_size, shuffle, loss = settings
    path, drift = track
    dtype = np.dtype(float_dtype(params))
    x = as_array(x, "x", rank=2, layout="(points, features)")
    flat = np.ndim(y) == 1
    layout = "(points,)" if flat else "(points, outputs)"
    y = np.asarray(as_array(y, "y", rank=1 if flat else 2, layout=layout)).reshape(len(y), -1)
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} points and y has {len(y)} targets; they must agree.")
    check_targets(loss, y)
    batch = len(x) if batch_size is None else as_count(batch_size, "batch_size", minimum=1)
    if len(x) % batch:
        raise ValueError(
            f"batch_size={batch} does not divide the {len(x)} points; every step must see equally "
            "many. Choose a divisor, 1 or None."
        )
    passes = len(x) // batch
    total = _total(steps, epochs, passes)
    if probe is not None:
        probe = as_array(probe, "probe", rank=2, layout="(points, features)")
        if probe.shape[1] != x.shape[1]:
            raise ValueError(f"probe has {probe.shape[1]} features, x has {x.shape[1]}.")
        probe = jnp.asarray(probe, dtype)
    record = _record(record, total)
    numbers = (0 if probe is None else len(probe) * y.shape[1]) + (y.size**2 if drift else 0)
    _check_memory(len(record), numbers, dtype, max(lanes, 1))
    x, y = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
    if isinstance(optimiser, str):
        optimiser = _named(model, params, x, batch, optimiser, rate, loss)
    if isinstance(model, eqx.Module) and not isinstance(model, FiniteNetwork):
        held: Any = model  # it may hold arrays, which have no hash; a partial has one
        model = functools.partial(held)
    problem = Problem(model, as_loss(loss), optimiser, batch, shuffle, path, lanes > 0)
    shape = jax.eval_shape(problem.outputs, params, x).shape
    if shape != y.shape:
        raise ValueError(
            f"The model has outputs of shape {shape}, the targets have {y.shape}. Draw the weights "
            f"with output_dim={y.shape[1]}, or pass targets of shape {shape}."
        )
    return Run(problem, x, y, probe, total, record, passes, drift, False, -1.0, flat, dtype)


def _total(steps: Any, epochs: Any, passes: int) -> int:
    if (steps is None) == (epochs is None):
        raise ValueError(
            "Give either steps (gradient steps) or epochs (passes over the points), "
            f"got steps={steps!r} and epochs={epochs!r}."
        )
    if steps is not None:
        return as_count(steps, "steps", minimum=1)
    return as_count(epochs, "epochs", minimum=1) * passes


def _record(record: Any, total: int) -> np.ndarray:
    if record is None:
        return np.array([0, total])
    if isinstance(record, int | np.integer):
        count = as_count(record, "record", minimum=1)
        return np.unique(np.linspace(0, total, count + 1).round().astype(int))
    wanted = np.unique(np.asarray(record))
    if wanted.size == 0 or wanted.dtype.kind not in "iu" or wanted[0] < 0 or wanted[-1] > total:
        raise ValueError(
            f"record must hold whole steps between 0 and {total}, got {record!r}. "
            "An integer asks for that many records."
        )
    return wanted


def _check_memory(records: int, numbers: int, dtype: Any, lanes: int) -> None:
    size = records * numbers * dtype.itemsize * lanes
    if size > _MEMORY:
        raise ValueError(
            f"{records} records of the outputs on the probe points (and of the kernel, for the "
            f"drift) would need {size / 2**30:.1f} GiB (limit {_MEMORY / 2**30:.0f} GiB). "
            "Record fewer steps or fewer points."
        )


def _named(model: Any, params: Any, x: Any, batch: int, name: str, rate: Any, loss: Any) -> Any:
    """The optimiser behind a name; plain gradient descent is checked against its bound."""
    if name == "sgd" and loss == "squared":
        bound = critical_rate(model, params, x, batch)
        if rate is None:
            rate = 1e-2 if bound is None else bound / 2
        elif bound is not None:
            warn_if_unstable(float(rate), bound, stacklevel=5)
    if rate is None:
        rate = 1e-2 if name == "sgd" else _DEFAULT_RATES.get(name, 1e-3)
    return named_optimiser(name, float(rate))
