"""The activations of `stax` as widelimit's."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import jax
import jax.numpy as jnp

from widelimit.activations import Activation, Cov
from widelimit.layers import Phi

from ._triple import Triple, spelt

_SIGMOID = 2.4020563531719796  # neural-tangents' constant


def _family(name: str, *numbers: float) -> Triple:
    return spelt(Phi(f"{name}({', '.join(repr(float(n)) for n in numbers)})"))


def Erf(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Triple:
    """`Phi("erf(a, b, c)")`: a erf(b x) + c."""
    return _family("erf", a, b, c)


def Sigmoid_like() -> Triple:
    """`Phi("erf(0.5, 0.4163, 0.5)")`; the sigmoid itself is `Phi("sigmoid")`, in closed form."""
    return Erf(0.5, 1 / _SIGMOID, 0.5)


def Gelu(approximate: bool = False) -> Triple:
    """`Phi("gelu")`."""
    if approximate:
        raise NotImplementedError(
            "Gelu(approximate=True): the kernel is that of the exact function, from which the approximation by tanh "
            "differs by 5e-4. Leave the argument out."
        )
    return spelt(Phi("gelu"))


def Sin(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Triple:
    """`Phi("sin(a, b, c)")`: a sin(b x + c)."""
    return _family("sin", a, b, c)


def Cos(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Triple:
    """`Phi("cos(a, b, c)")`: a cos(b x + c)."""
    return _family("cos", a, b, c)


def Rbf(gamma: float = 1.0) -> Triple:
    """A wave whose kernel is the Gaussian one: sqrt(2) sin(sqrt(2 gamma) x + pi/4)."""
    return _family("sin", math.sqrt(2), math.sqrt(2 * gamma), math.pi / 4)


def ABRelu(a: float, b: float, do_stabilize: bool = False) -> Triple:
    """`Phi("two_slopes(a, b)")`: a min(x, 0) + b max(x, 0); it is stable without being told."""
    return _family("two_slopes", a, b)


def Relu(do_stabilize: bool = False) -> Triple:
    """`Phi("relu")`."""
    return spelt(Phi("relu"))


def LeakyRelu(alpha: float, do_stabilize: bool = False) -> Triple:
    """`Phi("leaky_relu(alpha)")`."""
    return _family("leaky_relu", alpha)


def Abs(do_stabilize: bool = False) -> Triple:
    """`Phi("abs")`."""
    return spelt(Phi("abs"))


def Sign() -> Triple:
    """`Phi("sign")`; its tangent kernel does not exist."""
    return spelt(Phi("sign"))


def Exp(a: float = 1.0, b: float = 1.0) -> Triple:
    """`Phi("exp(a, b)")`: a exp(b x)."""
    return _family("exp", a, b)


def Gaussian(a: float = 1.0, b: float = -1.0) -> Triple:
    """`Phi("gaussian(a, sqrt(-b))")`: a exp(b x^2)."""
    if not b < 0:
        raise ValueError(
            f"Gaussian(a, b) is a exp(b x^2) and needs b < 0, got {b}: other functions grow faster than any "
            "Gaussian falls, and have no kernel beyond a certain variance."
        )
    return _family("gaussian", a, math.sqrt(-b))


def ExpNormalized(gamma: float = 1.0, shift: float = -1.0, do_clip: bool = False) -> NoReturn:
    """Refused: sqrt(q1 q2) exp(gamma (rho + shift)) is a kernel that belongs to no network."""
    inside = f"exp({math.exp(gamma * (shift - 1) / 2):.6g}, {math.sqrt(gamma):.6g})"
    raise NotImplementedError(
        f"stax.ExpNormalized({gamma}, {shift}) is a kernel without a network, sqrt(q1 q2) exp(gamma (rho + shift)). "
        "The network with the kernel exp(gamma (rho + shift)) is "
        f"widelimit.LayerNorm() >> widelimit.Phi({inside!r})."
    )


def Hermite(degree: int) -> Triple:
    """`Phi("hermite(degree)")`, right at any variance; neural-tangents' holds at variance 1."""
    return _family("hermite", degree)


def Monomial(degree: int) -> Triple:
    """`Phi("monomial(degree)")`."""
    return spelt(Phi("identity")) if degree == 1 else _family("monomial", degree)


def RectifiedMonomial(degree: int) -> Triple:
    """`Phi("relu_power(degree)")`."""
    return spelt(Phi("step")) if degree == 0 else _family("relu_power", degree)


def Polynomial(coef: Sequence[float]) -> Triple:
    """`Phi("polynomial(c0, c1, ...)")`."""
    return _family("polynomial", *coef)


def _gabor(x: Any) -> Any:
    return jnp.exp(-(x**2)) * jnp.sin(x)


def Gabor() -> Triple:
    """`Phi(lambda x: jnp.exp(-x**2) * jnp.sin(x))`, integrated numerically."""
    return spelt(Phi(_gabor))


Moment = Callable[[Any, Any, Any], Any]


def Elementwise(
    fn: Callable[[Any], Any] | None = None,
    nngp_fn: Moment | None = None,
    d_nngp_fn: Moment | None = None,
) -> Triple:
    """`Phi(fn)`, or `Phi(wl.Activation(name, fn, dual=...))` where the moments are known."""
    if fn is None:
        raise NotImplementedError(
            "Elementwise(nngp_fn=...) without fn: an activation is a function here, with moments that are known or "
            "integrated. Give fn; with fn alone the kernel is computed to 1e-12."
        )
    if nngp_fn is None:
        return ElementwiseNumerical(fn, 0)
    act = Activation(
        getattr(fn, "__name__", "elementwise"),
        fn,
        dual=_moment(nngp_fn),
        dual_dot=_moment(d_nngp_fn or jax.grad(nngp_fn)),
    )
    return spelt(Phi(act))


def _moment(function: Moment) -> Callable[[Cov], Any]:
    each = jnp.vectorize(function)
    return lambda cov: each(cov.k, *jnp.broadcast_arrays(cov.q1, cov.q2, cov.k)[:2])


def ElementwiseNumerical(
    fn: Callable[[Any], Any], deg: int, df: Callable[[Any], Any] | None = None
) -> Triple:
    """`Phi(fn)`; the order of the quadrature is chosen from the variances that occur."""
    return spelt(Phi(fn))
