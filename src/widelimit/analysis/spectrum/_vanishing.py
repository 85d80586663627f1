r"""Which eigenvalues are exactly zero, by the structure of the network.

The zonal kernel of a layer has degrees of two parities. What is tracked is the highest degree of
each that can occur: the data have $\rho$ alone (none even, odd up to 1); a bias adds degree 0; an
odd activation keeps odd kernels odd; $\max(0,x)^p$ is half a monomial plus half a function of the
other parity, so applied to the data it leaves parity p at degree p. The tangent kernel has the same
degrees as the NNGP kernel in every case.
"""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import concrete
from widelimit.activations import Activation
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum


class Degrees(NamedTuple):
    """The highest even and the highest odd degree of a zonal kernel; -1 for none."""

    even: float
    odd: float


DATA = Degrees(-1, 1)
_ALL = Degrees(math.inf, math.inf)


def _either(a: Degrees, b: Degrees) -> Degrees:
    return Degrees(max(a.even, b.even), max(a.odd, b.odd))


@layer_pass("the degrees of its kernel are found")
def degrees_of(layer: Layer, incoming: Degrees) -> Any:
    """The degrees that the kernel can have after the layer."""


@degrees_of.register
def _degrees_dense(layer: Dense, incoming: Degrees) -> Degrees:
    return incoming if concrete(layer.b_std) == 0 else _either(incoming, Degrees(0, -1))


@degrees_of.register
def _degrees_phi(layer: Phi, incoming: Degrees) -> Degrees:
    act = layer.activation
    if polynomial_degree(act) is not None:
        return _of_polynomial(polynomial_degree(act), act.parity, incoming)
    if incoming.odd < 0:
        return Degrees(math.inf, -1)  # a function of an even function is even
    if incoming.even < 0 and act.parity is not None:
        return Degrees(-1, math.inf) if act.parity == "odd" else Degrees(math.inf, -1)
    if incoming == DATA and act.degree is not None and float(act.degree).is_integer():
        return (
            Degrees(act.degree, math.inf) if act.degree % 2 == 0 else Degrees(math.inf, act.degree)
        )
    return _ALL


def polynomial_degree(act: Activation) -> int | None:
    """The degree of an activation that is a polynomial, or None."""
    if act.hermite is not None:
        return len(np.asarray(act.hermite(jnp.ones(())))) - 1
    return 1 if act.degree == 1 and act.parity == "odd" else None


def _of_polynomial(degree: int | None, parity: str | None, incoming: Degrees) -> Degrees:
    top = degree * max(incoming) if degree else 0.0
    lower = top if math.isinf(top) else top - 1
    even, odd = (top, lower) if top % 2 == 0 or math.isinf(top) else (lower, top)
    if incoming.odd < 0 or (incoming.even < 0 and parity == "even"):
        return Degrees(even, -1)
    if incoming.even < 0 and parity == "odd":
        return Degrees(-1, odd)
    return Degrees(even, odd)


@degrees_of.register(Identity)
@degrees_of.register(Scale)
def _degrees_linear(layer: Layer, incoming: Degrees) -> Degrees:
    return incoming


@degrees_of.register
def _degrees_serial(layer: Serial, incoming: Degrees) -> Degrees:
    for part in layer.layers:
        incoming = degrees_of(part, incoming)
    return incoming


@degrees_of.register
def _degrees_repeat(layer: Repeat, incoming: Degrees) -> Degrees:
    for _ in range(layer.times):
        before, incoming = incoming, degrees_of(layer.body, incoming)
        if before == incoming:
            break
    return incoming


@degrees_of.register
def _degrees_residual(layer: Residual, incoming: Degrees) -> Degrees:
    return _either(incoming, degrees_of(layer.body, incoming))


@degrees_of.register
def _degrees_sum(layer: Sum, incoming: Degrees) -> Degrees:
    out = Degrees(-1, -1)
    for branch in layer.branches:
        out = _either(out, degrees_of(branch, incoming))
    return out


def possible(net: Layer, largest: int) -> np.ndarray:
    """For k = 0..largest: whether the eigenvalue of degree k can differ from zero."""
    top = degrees_of(net, DATA)
    k = np.arange(largest + 1)
    return np.where(k % 2 == 0, k <= top.even, k <= top.odd)
