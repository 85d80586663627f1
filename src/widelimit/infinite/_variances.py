"""The variances at which activations are used: decides how their moments are evaluated."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.passes import layer_pass
from widelimit.activations import How, second_moment_now, terms_needed
from widelimit.describe import linear_factor
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

MANY = 2**12  # entries from which a quadrature for each is too slow


@layer_pass("its variances are listed")
def visit_variances(layer: Layer, q: Any, seen: list[Any]) -> Any:
    """The variances after the layer; appends (activation, variances before it) to `seen`."""


@visit_variances.register
def _visit_dense(layer: Dense, q: Any, seen: list[Any]) -> Any:
    return layer.w_std**2 * q + layer.b_std**2


@visit_variances.register
def _visit_phi(layer: Phi, q: Any, seen: list[Any]) -> Any:
    seen.append((layer.activation, q))
    return second_moment_now(layer.activation, q)


@visit_variances.register(Identity)
@visit_variances.register(Scale)
def _visit_linear(layer: Layer, q: Any, seen: list[Any]) -> Any:
    return linear_factor(layer) ** 2 * q


@visit_variances.register
def _visit_serial(layer: Serial, q: Any, seen: list[Any]) -> Any:
    for part in layer.layers:
        q = visit_variances(part, q, seen)
    return q


@visit_variances.register
def _visit_repeat(layer: Repeat, q: Any, seen: list[Any]) -> Any:
    settled = False
    for _ in range(layer.times):
        # Once settled, later rounds show nothing new, but small changes still add up.
        before, q = q, visit_variances(layer.body, q, [] if settled else seen)
        settled = settled or np.allclose(before, q, rtol=1e-3)
    return q


@visit_variances.register
def _visit_residual(layer: Residual, q: Any, seen: list[Any]) -> Any:
    return q + layer.alpha**2 * visit_variances(layer.body, q, seen)


@visit_variances.register
def _visit_sum(layer: Sum, q: Any, seen: list[Any]) -> Any:
    return sum(visit_variances(branch, q, seen) for branch in layer.branches)


def choose_how(net: Layer, q: Any, dtype: Any, *, many: bool) -> How:
    """Terms of the Hermite series that give rounding accuracy for inputs of these second moments.

    Args:
        net: The network, its numbers concrete.
        q: Smallest and largest second moment |x|^2/d of the inputs.
        dtype: The dtype of the computation.
        many: Whether there are so many pairs that a long series, right to 1e-9, is preferred to a
            quadrature for each.

    Returns:
        The choice; the two-dimensional quadrature where no series is long enough.
    """
    seen: list[Any] = []
    with jax.enable_x64(True):
        visit_variances(net, jnp.asarray(q, jnp.float64), seen)
        found = []
        for act in dict.fromkeys(act for act, _ in seen):
            values = np.concatenate([np.ravel(v) for a, v in seen if a == act])
            values = values[values > 0].tolist() or [1.0]
            terms = terms_needed(act, values, 1e-13 if dtype == jnp.float64 else 1e-8)
            if terms == 0 and many:
                terms = terms_needed(act, values, 1e-9)
            found.append(terms)
    return How(terms=0 if 0 in found else max(found))
