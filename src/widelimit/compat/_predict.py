"""Predictions under gradient descent, in neural-tangents' conventions."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from widelimit._base.scalars import as_float
from widelimit.dynamics import train
from widelimit.regression import Spectral

from ._matrices import Axes, Targets, answer, as_matrix, regularised


class ConventionWarning(UserWarning):
    """Something is meant as in neural-tangents, and otherwise in the rest of widelimit."""


def warn_of_time(size: int) -> None:
    """Say what a time means here."""
    warnings.warn(
        f"Times and learning rates in widelimit.compat are those of neural-tangents' loss, the mean of squares. "
        f"wl.train and wl.ensemble take their sum unless loss='mean' is said: there the same function is reached at "
        f"t / {size} (points times outputs).",
        ConventionWarning,
        stacklevel=3,
    )


def gradient_descent_mse(
    k_train_train: Any,
    y_train: Any,
    learning_rate: float = 1.0,
    diag_reg: float = 0.0,
    diag_reg_absolute_scale: bool = False,
    trace_axes: Axes = (-1,),
) -> Callable[..., Any]:
    """`wl.train(None, k, y, kernel="precomputed", loss="mean")`.

    Args:
        k_train_train: The kernel of the training points, a pair of axes for each axis of `y_train` but the traced.
        y_train: The targets.
        learning_rate: The factor of times.
        diag_reg: What is added to the kernel's diagonal, relative to its mean.
        diag_reg_absolute_scale: Whether it is absolute.
        trace_axes: Axes of the outputs along which the kernel is a multiple of 1.

    Returns:
        A function of (t, fx_train_0, fx_test_0, k_test_train); t=None means for ever.
    """
    targets = Targets.of(y_train, trace_axes)
    rows = np.shape(k_train_train)[::2]
    matrix = regularised(as_matrix(k_train_train), diag_reg, diag_reg_absolute_scale)
    spectral = Spectral(matrix)

    def predict_fn(
        t: Any = None, fx_train_0: Any = 0.0, fx_test_0: Any = None, k_test_train: Any = None
    ) -> Any:
        _check_test(fx_test_0, k_test_train)
        if t is not None:
            warn_of_time(targets.size)
        times = np.asarray(np.inf if t is None else t, np.float64) * learning_rate / targets.size
        start = targets.column(0.0 if fx_train_0 is None else fx_train_0)
        phis = [spectral.flow(float(time)) for time in times.ravel()]

        def moved(cross: np.ndarray, before: np.ndarray, many: tuple[int, ...]) -> Any:
            out = np.stack(
                [before + m for m in spectral.moves(cross, phis, targets.columns - start)]
            )
            out = targets.outputs(out.reshape(*times.shape, *out.shape[1:]), many)
            return answer(out, k_train_train, y_train)

        found = []
        if fx_train_0 is not None:
            found.append(_fitted(y_train) if t is None else moved(matrix, start, rows))
        if fx_test_0 is not None:
            many = np.shape(k_test_train)[::2]
            found.append(moved(as_matrix(k_test_train), targets.like(fx_test_0, many), many))
        return found[0] if len(found) == 1 else tuple(found)

    return predict_fn


def _fitted(y_train: Any) -> Any:
    return answer(np.asarray(y_train, np.float64), y_train)


def _check_test(fx_test_0: Any, k_test_train: Any) -> None:
    if fx_test_0 is not None and k_test_train is None:
        raise ValueError("fx_test_0 was given, and no k_test_train, the kernel that leads there.")


class ODEState(NamedTuple):
    """Outputs at the training and at other points; velocities are not handed out here."""

    fx_train: Any = None
    fx_test: Any = None
    qx_train: Any = None
    qx_test: Any = None


def gradient_descent(
    loss: Callable[[Any, Any], Any],
    k_train_train: Any,
    y_train: Any,
    learning_rate: float = 1.0,
    momentum: float | None = None,
    trace_axes: Axes = (-1,),
) -> Callable[..., Any]:
    """`wl.train(None, k, y, kernel="precomputed", loss=loss)`, solved as an ODE.

    Args:
        loss: A function of (outputs, targets); its own mean or sum is what counts.
        k_train_train: The kernel of the training points.
        y_train: The targets.
        learning_rate: The factor of times; with momentum its square root is.
        momentum: Of gradient descent, or None.
        trace_axes: The last axis of the targets.

    Returns:
        A function of (t, fx_train_or_state_0, fx_test_0, k_test_train).
    """
    targets = Targets.of(y_train, trace_axes)
    if targets.traced != (-1,) or np.ndim(y_train) != 2:
        raise NotImplementedError(
            "gradient_descent here takes targets (points, outputs) and trace_axes=(-1,). For blocks (n, n, k, k) use "
            "wl.train(None, k, y, kernel='precomputed', loss=loss)."
        )
    rate = as_float(learning_rate, "learning_rate")
    friction = None if momentum is None else (1 - momentum) / rate**0.5
    pace = rate if momentum is None else rate**0.5

    def predict_fn(
        t: Any = None,
        fx_train_or_state_0: Any = 0.0,
        fx_test_0: Any = None,
        k_test_train: Any = None,
    ) -> Any:
        state = fx_train_or_state_0
        whole = isinstance(state, ODEState)
        if whole and (momentum is not None or state.qx_train is not None):
            raise NotImplementedError(
                "Velocities are not handed out: with momentum give outputs instead of an ODEState, and ask for "
                "all times in one call."
            )
        first, fx_test_0 = (state.fx_train, state.fx_test) if whole else (state, fx_test_0)
        _check_test(fx_test_0, k_test_train)
        times = np.asarray(np.inf if t is None else t, np.float64) * pace
        start = targets.column(0.0 if first is None else first)
        host = np.asarray(k_train_train, np.float64), np.asarray(y_train, np.float64)
        model = train(None, *host, kernel="precomputed", loss=loss, f0=start)
        options = {"t": times.ravel(), "friction": friction}
        shape = lambda out: answer(
            out.reshape(*times.shape, *out.shape[1:]), k_train_train, y_train
        )
        found: list[Any] = [None, None]
        if first is not None:
            found[0] = shape(model.predict(**options))
        if fx_test_0 is not None:
            cross = np.asarray(k_test_train, np.float64)
            found[1] = shape(
                model.predict(cross, f0=targets.like(fx_test_0, cross.shape[:1]), **options)
            )
        if whole:
            return ODEState(*found)
        kept = [out for out in found if out is not None]
        return kept[0] if len(kept) == 1 else tuple(kept)

    return predict_fn


def max_learning_rate(
    ntk_train_train: Any, y_train_size: int | None = None, momentum: float = 0.0, eps: float = 1e-12
) -> float:
    """`wl.train(..., loss="mean").critical_learning_rate`: 2 (1 + momentum) n k / lambda_max.

    Args:
        ntk_train_train: The tangent kernel of the training points.
        y_train_size: n k, the number of targets; None: the rows of the kernel.
        momentum: Of gradient descent.
        eps: Added to the eigenvalue.

    Returns:
        The largest learning rate at which gradient descent on the mean of squares converges.
    """
    matrix = as_matrix(ntk_train_train)
    largest = float(Spectral(matrix).eigen.values[-1])
    return 2 * (1 + momentum) * (y_train_size or len(matrix)) / (largest + eps)
