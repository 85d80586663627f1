"""Posterior means and covariances from kernel matrices, in neural-tangents' conventions."""

import collections
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from widelimit.regression import Spectral

from ._matrices import Axes, Targets, answer, as_kernel, as_matrix, regularised


class Gaussian(NamedTuple):
    """Mean and covariance of outputs."""

    mean: Any
    covariance: Any


def part(kernel: Any, name: str) -> Any:
    """The kernel of that name, or the matrix itself."""
    found = getattr(kernel, name, kernel)
    if found is None or (found is kernel and hasattr(kernel, "_fields")):
        raise ValueError(f"The kernel {name!r} is needed, and was not given.")
    return found


def named(found: dict[str, Any], get: Any) -> Any:
    """One answer, or a named tuple of several."""
    if isinstance(get, str):
        return found[get]
    return collections.namedtuple("Gaussians", tuple(found))(**found)


def gp_inference(
    k_train_train: Any,
    y_train: Any,
    diag_reg: float = 0.0,
    diag_reg_absolute_scale: bool = False,
    trace_axes: Axes = (-1,),
) -> Callable[..., Any]:
    """`wl.posterior(None, k, y, (k_test_train, k_test), kernel="precomputed")`, and its relatives.

    Args:
        k_train_train: The kernel of the training points: a matrix, or a record with nngp and ntk.
        y_train: The targets.
        diag_reg: What is added to the kernel's diagonal, relative to its mean.
        diag_reg_absolute_scale: Whether it is absolute.
        trace_axes: Axes of the outputs along which the kernel is a multiple of 1.

    Returns:
        A function of (get, k_test_train, k_test_test) for "nngp", "ntk" or "ntkgp".
    """
    targets = Targets.of(y_train, trace_axes)

    @functools.cache
    def spectral(name: str) -> Spectral:
        matrix = as_matrix(part(k_train_train, name))
        return Spectral(regularised(matrix, diag_reg, diag_reg_absolute_scale))

    def one(kind: str, k_test_train: Any, k_test_test: Any) -> Any:
        name = "nngp" if kind == "nngp" else "ntk"
        before = "ntk" if kind == "ntkgp" else "nngp"
        own = part(k_train_train, name)
        give = lambda value: answer(value, own, y_train)
        if k_test_train is None:
            mean = give(np.asarray(y_train, np.float64))
            return mean if k_test_test is None else Gaussian(mean, give(np.zeros(np.shape(own))))
        cross = part(k_test_train, name)
        rows = np.shape(cross)[::2]
        solved = spectral(name)
        phi = solved.flow(math.inf)
        (mean,) = solved.moves(as_matrix(cross), [phi], targets.columns)
        mean = give(targets.outputs(mean, rows))
        if k_test_test is None:
            return mean
        covariance = trained_covariance(
            solved,
            phi,
            as_matrix(cross),
            as_matrix(part(k_test_train, before)),
            as_matrix(part(k_test_test, before)),
            None if kind != "ntk" else as_matrix(part(k_train_train, "nngp")),
        )
        return Gaussian(mean, give(as_kernel(covariance, rows)))

    def predict_fn(
        get: str | Sequence[str] | None = None, k_test_train: Any = None, k_test_test: Any = None
    ) -> Any:
        kinds = (get,) if isinstance(get, str) else tuple(get or ("nngp", "ntk"))
        for kind in kinds:
            if kind not in ("nngp", "ntk", "ntkgp"):
                raise ValueError(f"get is 'nngp', 'ntk' or 'ntkgp', or several; got {kind!r}.")
        return named({kind: one(kind, k_test_train, k_test_test) for kind in kinds}, get)

    return predict_fn


def trained_covariance(
    spectral: Spectral,
    phi: Any,
    cross: np.ndarray,
    cross_before: np.ndarray,
    square: np.ndarray,
    inner: np.ndarray | None,
) -> np.ndarray:
    """The covariance of trained outputs, A the map from targets to predictions.

    Args:
        spectral: The regularised kernel that trains.
        phi: Its function of the eigenvalues; None for ever.
        cross: The kernel that trains, between new and training points.
        cross_before: The covariance before training, likewise.
        square: The covariance before training of the new points.
        inner: That of the training points; None where the kernel that trains is itself the covariance,
            so that one term is left.

    Returns:
        Shape (m, m).
    """
    (operator,) = spectral.moves(cross, [phi], np.eye(len(spectral.matrix)))
    mixed = operator @ cross_before.T
    if inner is None:
        return square - mixed
    return square - mixed - mixed.T + operator @ inner @ operator.T
