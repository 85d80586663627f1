"""Optimisers by name, and the learning rate up to which gradient descent is stable."""

import functools
import warnings
from typing import Any

import numpy as np

from widelimit._base.names import unknown
from widelimit._base.scalars import as_float
from widelimit.finite import FiniteNetwork, empirical_ntk

_LARGEST = 3000  # rows of a kernel whose largest eigenvalue is worth the time


def import_optax() -> Any:
    """Optax, or an error that says how to get it."""
    try:
        import optax
    except ImportError as error:
        raise ImportError(
            "Training finite networks needs Optax, which is not installed. "
            "Install it with: pip install 'widelimit[train]'"
        ) from error
    return optax


OPTIMISERS = {
    "sgd": lambda optax, rate: optax.sgd(rate),
    "momentum": lambda optax, rate: optax.sgd(rate, momentum=0.9),
    "nesterov": lambda optax, rate: optax.sgd(rate, momentum=0.9, nesterov=True),
    "adam": lambda optax, rate: optax.adam(rate),
    "adamw": lambda optax, rate: optax.adamw(rate),
    "rmsprop": lambda optax, rate: optax.rmsprop(rate),
}


@functools.lru_cache(maxsize=64)  # one object for one name and rate: nothing is compiled twice
def named_optimiser(name: str, rate: float) -> Any:
    """An Optax optimiser with its usual settings."""
    return OPTIMISERS[name](import_optax(), rate)


def check_optimiser(optimiser: Any, learning_rate: Any) -> None:
    """Refuse unknown names, impossible rates, and rates that would be ignored."""
    if isinstance(optimiser, str):
        if optimiser not in OPTIMISERS:
            raise ValueError(unknown("optimiser", optimiser, OPTIMISERS))
        if learning_rate is not None and not 0 < as_float(learning_rate, "learning_rate") < float(
            "inf"
        ):
            raise ValueError(f"learning_rate must be positive, got {learning_rate!r}.")
        return
    if not isinstance(optimiser, import_optax().GradientTransformation):
        raise TypeError(
            f"optimiser must be a name or an Optax optimiser, got {optimiser!r}. "
            f"Names: {', '.join(OPTIMISERS)}."
        )
    if learning_rate is not None:
        raise ValueError(
            "learning_rate is part of the Optax optimiser that was passed; leave it out here."
        )


def tangent_kernel(model: Any, params: Any, x: Any) -> Any:
    """The empirical tangent kernel of a network or of a function of (params, points)."""
    if isinstance(model, FiniteNetwork):
        return model.ntk(params, x)
    return empirical_ntk(model, params, x)


def critical_rate(model: Any, params: Any, x: Any, batch: int) -> float | None:
    r"""$2/\lambda_{\max}$ of the empirical tangent kernel: the limit for the loss $\frac12\sum e^2$.

    For batches of one point the largest kernel of a single point takes the place of the matrix.
    None where the kernel would be too large to look at, or for other batches.
    """
    if len(x) > _LARGEST or batch not in (1, len(x)):
        return None
    kernel = np.asarray(tangent_kernel(model, params, x))
    n, k = len(x), kernel.shape[2] if kernel.ndim == 4 else 1
    if n * k > _LARGEST:
        return None
    kernel = kernel.reshape(n, n, k, k)
    if batch == n:
        top = np.linalg.eigvalsh(kernel.transpose(0, 2, 1, 3).reshape(n * k, n * k))[-1]
    else:
        top = max(np.linalg.eigvalsh(kernel[i, i])[-1] for i in range(n))
    return 2 / float(top) if top > 0 else None


def warn_if_unstable(rate: float, bound: float, stacklevel: int) -> None:
    """Say the bound where the rate exceeds it."""
    if rate > bound:
        warnings.warn(
            f"The learning rate {rate:.4g} exceeds {bound:.4g} = 2/lambda_max of the tangent kernel "
            "at initialisation (loss: half the sum of squares), beyond which gradient descent on "
            f"the linearised network diverges. Choose at most {bound / 2:.3g} to be safe.",
            stacklevel=stacklevel,
        )
