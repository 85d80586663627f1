"""The ensemble of trained networks from any kernel function, in neural-tangents' conventions."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from widelimit.regression import Spectral

from ._gp import Gaussian, gp_inference, named, part, trained_covariance
from ._matrices import Axes, Targets, answer, as_kernel, as_matrix, regularised
from ._predict import warn_of_time


class _Kernels:
    """The kernels of one kernel function, each computed once at the training points."""

    def __init__(self, kernel_fn: Callable[..., Any], x_train: Any, extra: dict[str, Any]) -> None:
        self.kernel_fn, self.x_train, self.extra = kernel_fn, x_train, extra
        self.known: dict[str, Any] = {}

    def train(self, names: Sequence[str]) -> Any:
        """Those of the training points, as a record."""
        missing = [name for name in names if name not in self.known]
        if len(missing) == 1:
            self.known[missing[0]] = self.kernel_fn(self.x_train, None, missing[0], **self.extra)
        elif missing:
            found = self.kernel_fn(self.x_train, None, tuple(missing), **self.extra)
            self.known |= {name: getattr(found, name) for name in missing}
        return _Record({name: self.known[name] for name in names})

    def cross(self, x_test: Any, names: Sequence[str], more: dict[str, Any]) -> Any:
        """Those between new and training points, as a record."""
        options = {**self.extra, **more}
        if len(names) == 1:
            found = self.kernel_fn(x_test, self.x_train, names[0], **options)
            return _Record({names[0]: found})
        return self.kernel_fn(x_test, self.x_train, tuple(names), **options)


class _Record:
    """Kernels by name."""

    def __init__(self, kernels: dict[str, Any]) -> None:
        self.__dict__.update(kernels)
        self._fields = tuple(kernels)


def gradient_descent_mse_ensemble(
    kernel_fn: Callable[..., Any],
    x_train: Any,
    y_train: Any,
    learning_rate: float = 1.0,
    diag_reg: float = 0.0,
    diag_reg_absolute_scale: bool = False,
    trace_axes: Axes = (-1,),
    **kernel_fn_train_train_kwargs: Any,
) -> Callable[..., Any]:
    """`wl.ensemble(net, x, y, x_test, t, noise=, loss="mean")` for any kernel function.

    Args:
        kernel_fn: A function of (x1, x2, get).
        x_train: The training points.
        y_train: The targets.
        learning_rate: The factor of times.
        diag_reg: What is added to the kernel's diagonal, relative to its mean.
        diag_reg_absolute_scale: Whether it is absolute.
        trace_axes: Axes of the outputs along which the kernel is a multiple of 1.
        **kernel_fn_train_train_kwargs: Handed to `kernel_fn`.

    Returns:
        A function of (t, x_test, get, compute_cov); t=None means for ever.
    """
    targets = Targets.of(y_train, trace_axes)
    kernels = _Kernels(kernel_fn, x_train, kernel_fn_train_train_kwargs)

    @functools.cache
    def spectral(name: str) -> Spectral:
        matrix = as_matrix(part(kernels.train((name,)), name))
        return Spectral(regularised(matrix, diag_reg, diag_reg_absolute_scale))

    def at_times(name: str, times: np.ndarray, cross: Any, square: Any) -> Any:
        solved, own = spectral(name), kernels.known[name]
        flat = [float(time) / targets.size for time in times.ravel()]
        shaped = lambda parts: np.stack(parts).reshape(*times.shape, *parts[0].shape)
        give = lambda value: answer(value, own, y_train)
        rows = np.shape(own if cross is None else part(cross, name))[::2]
        through = solved.matrix if cross is None else as_matrix(part(cross, name))
        phis = [solved.flow(time) for time in flat]
        mean = shaped(solved.moves(through, phis, targets.columns))
        mean = give(targets.outputs(mean, rows))
        if square is None:
            return mean
        if cross is None:
            covariances = [_left(solved, time, name, kernels) for time in flat]
        else:
            before, inner = as_matrix(cross.nngp), as_matrix(kernels.known["nngp"])
            last = as_matrix(square)
            twice = lambda time: solved.flow((2 if name == "nngp" else 1) * time)
            covariances = [
                trained_covariance(
                    solved, twice(time), through, before, last, None if name == "nngp" else inner
                )
                for time in flat
            ]
        return Gaussian(mean, give(as_kernel(shaped(covariances), rows)))

    def predict_fn(
        t: Any = None,
        x_test: Any = None,
        get: str | Sequence[str] | None = None,
        compute_cov: bool = False,
        **kernel_fn_test_test_kwargs: Any,
    ) -> Any:
        names = (get,) if isinstance(get, str) else tuple(get or ("nngp", "ntk"))
        for name in names:
            if name not in ("nngp", "ntk"):
                raise ValueError(f"get is 'nngp' or 'ntk', or both; got {name!r}.")
        needed = tuple(dict.fromkeys(("nngp",) * compute_cov + names))
        own = kernels.train(needed)
        options = kernel_fn_test_test_kwargs
        cross = None if x_test is None else kernels.cross(x_test, needed, options)
        square: Any = True if compute_cov else None
        if compute_cov and x_test is not None:
            square = kernel_fn(x_test, None, "nngp", **{**kernel_fn_train_train_kwargs, **options})
        if t is None:
            settings = (y_train, diag_reg, diag_reg_absolute_scale, trace_axes)
            return gp_inference(own, *settings)(names if get is None else get, cross, square)
        warn_of_time(targets.size)
        times = np.asarray(np.asarray(t, np.float64) * learning_rate)
        return named({name: at_times(name, times, cross, square) for name in names}, get)

    return predict_fn


def _left(solved: Spectral, time: float, name: str, kernels: _Kernels) -> np.ndarray:
    """The covariance that is left at the training points."""
    one = np.eye(len(solved.matrix))
    if name == "nngp":
        return solved.eigen.apply(lambda v: v * np.exp(-2 * v * time), one)
    shrunk = solved.eigen.apply(lambda v: np.exp(-v * time), one)
    return shrunk @ as_matrix(kernels.known["nngp"]) @ shrunk.T
