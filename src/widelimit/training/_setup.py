"""Checks of a training run, before any work."""

import contextlib
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import as_array, float_dtype
from widelimit.dynamics import as_loss, check_targets
from widelimit.finite import FiniteNetwork, as_points

from ._loop import Program
from ._optimiser import critical_rate, named_optimiser, warn_if_unstable
from ._options import Options
from ._records import Run

_MEMORY = 2**31  # bytes of records beyond which a run is refused
_DEFAULT_RATES = {"momentum": 1e-2, "nesterov": 1e-2}


def initial(model: Any, params: Any, key: Any, x: Any, y: Any, dtype: Any) -> Any:
    """The parameters to begin with."""
    if not isinstance(model, FiniteNetwork):
        if params is None:
            raise TypeError(
                "A plain function was passed as the model; pass its parameters as params. (An "
                "Equinox module needs none.)"
            )
        if not jax.tree.leaves(eqx.filter(params, eqx.is_inexact_array_like)):
            raise ValueError(f"params holds no floating point numbers to train: {params!r}.")
        return params
    shape = as_points(model.net, x).x1.shape[1:]
    outputs = np.shape(y)[1] if np.ndim(y) == 2 else None
    if params is None:
        return model.init(key, shape, outputs, dtype=dtype)
    drawn = jax.eval_shape(lambda: model.init(0, shape, outputs))
    if jax.tree.structure(params) != jax.tree.structure(drawn):
        raise ValueError(
            f"params do not fit the network {model.net!r}: their tree has another structure. Draw them "
            f"with its init(key, input_dim={shape[0] if len(shape) == 1 else shape})."
        )
    return params


def precision(params: Any) -> Any:
    """64-bit arithmetic where the weights have 64 bits."""
    wide = np.dtype(float_dtype(params)) == np.float64
    return jax.enable_x64(True) if wide else contextlib.nullcontext()


def prepare(model: Any, params: Any, x: Any, y: Any, options: Options, *, lanes: int) -> Run:
    """Check everything before any work, and settle the learning rate."""
    dtype = np.dtype(float_dtype(params))
    x = _points(model, x, "x", dtype)
    flat = np.ndim(y) == 1
    layout = "(points,)" if flat else "(points, outputs)"
    y = np.asarray(as_array(y, "y", rank=1 if flat else 2, layout=layout)).reshape(len(y), -1)
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} points and y has {len(y)} targets; they must agree.")
    check_targets(options.loss, y)
    batch = options.batch(len(x))
    passes = -(-len(x) // batch)
    total = options.total(passes)
    probe = _probe(model, options.probe, x, dtype)
    record = options.records(total)
    numbers = 0 if probe is None else len(probe) * y.shape[1]
    numbers += y.size**2 if options.drift else 0
    _check_memory(len(record), numbers, dtype, max(lanes, 1))
    y = jnp.asarray(y, dtype)
    fixed = (model, as_loss(options.loss), None, batch, options.shuffle, options.path)
    program = Program(*fixed, lanes=lanes > 0)
    shape = _outputs(program, params, x)
    if shape != y.shape:
        raise ValueError(
            f"The model has outputs of shape {shape}, the targets have {y.shape}. Draw the weights "
            f"with output_dim={y.shape[1]}, or pass targets of shape {shape}."
        )
    optimiser = options.optimiser
    if isinstance(optimiser, str):
        optimiser = _named(model, params, x, batch, y.shape[1], options)
    if isinstance(model, eqx.Module) and not isinstance(model, FiniteNetwork):
        held: Any = model  # it may hold arrays, which have no hash; a partial has one
        model = functools.partial(held)
    program = program._replace(model=model, optimiser=optimiser)
    return Run(program, options, x, y, probe, total, record, passes, flat, dtype)


def _outputs(program: Program, params: Any, x: Any) -> tuple[int, ...]:
    try:
        return jax.eval_shape(program.outputs, params, x).shape
    except Exception as error:
        raise ValueError(
            f"The model cannot be applied to its parameters and {len(x)} points of shape "
            f"{x.shape[1:]} ({type(error).__name__}: {str(error)[:200]}). It must be a function of "
            "(params, points), the first axis counting the points; wrap a model of single points "
            "with jax.vmap."
        ) from error


def _points(model: Any, x: Any, name: str, dtype: Any) -> Any:
    """Checked points in the dtype of the weights, with pixels where the network reads them."""
    if isinstance(model, FiniteNetwork):
        found = as_points(model.net, x).x1
    else:
        found = as_array(x, name, rank=max(np.ndim(x), 2), layout="(points, features)")
    real = lambda a: jnp.issubdtype(a.dtype, jnp.floating)
    return jax.tree.map(lambda a: jnp.asarray(a, dtype if real(a) else None), found)


def _probe(model: Any, probe: Any, x: Any, dtype: Any) -> Any:
    if probe is None:
        return None
    probe = _points(model, probe, "probe", dtype)
    if probe.shape[1:] != x.shape[1:]:
        if len(x.shape) == 2 and len(probe.shape) == 2:
            raise ValueError(f"probe has {probe.shape[1]} features, x has {x.shape[1]}.")
        raise ValueError(f"Points of probe have shape {probe.shape[1:]}, those of x {x.shape[1:]}.")
    return probe


def _check_memory(records: int, numbers: int, dtype: Any, lanes: int) -> None:
    size = records * numbers * dtype.itemsize * lanes
    if size > _MEMORY:
        raise ValueError(
            f"{records} records of the outputs on the probe points (and of the kernel, for the "
            f"drift) would need {size / 2**30:.1f} GiB (limit {_MEMORY / 2**30:.0f} GiB). "
            "Record fewer steps or fewer points."
        )


def _named(model: Any, params: Any, x: Any, batch: int, outputs: int, options: Options) -> Any:
    """The optimiser behind a name; plain gradient descent is checked against its bound."""
    name, rate = options.optimiser, options.learning_rate
    if name == "sgd" and options.loss in ("squared", "mean"):
        bound = critical_rate(model, params, x, batch)
        if bound is not None and options.loss == "mean":
            bound *= batch * outputs
        if rate is None:
            rate = 1e-2 if bound is None else bound / 2
        elif bound is not None:
            warn_if_unstable(float(rate), bound, stacklevel=6)
    if rate is None:
        rate = 1e-2 if name == "sgd" else _DEFAULT_RATES.get(name, 1e-3)
    return named_optimiser(name, float(rate))
