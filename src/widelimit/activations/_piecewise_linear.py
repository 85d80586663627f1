r"""The family $\varphi(x)=a\min(x,0)+b\max(x,0)$: relu, leaky relu, abs, identity.

With $c=2ab/(a^2+b^2)$ and $\kappa(\rho)=(\sin\theta+(\pi-\theta)\cos\theta)/\pi$ the output's correlation
is $\kappa(\rho)-c\,\kappa(-\rho)$ and its slope $((\pi-\theta)+c\,\theta)/\pi$ (Cho & Saul 2009, order 1).
Both ends are evaluated from the angle to the nearer end, so no digit is lost at $x=\pm x'$.
"""

import functools

import jax
import jax.numpy as jnp

from widelimit._base.numerics import over_sine, short_angle, sine_gap

from ._activation import Activation, family_name, register, register_family
from ._orthants import two_slopes_fourth, two_slopes_local


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _angular(c, minus, plus):
    h, phi, w = short_angle(minus, plus)
    if plus is None:
        return minus - ((1 - c) / jnp.pi) * w, None, 1 - ((1 - c) / jnp.pi) * phi
    return _ends(c, minus > plus, 2 * h - w / jnp.pi, w / jnp.pi, phi)


def _ends(c, obtuse, near, far, phi):
    """From 1 - kappa at the angle phi and kappa at the angle pi - phi."""
    theta = jnp.where(obtuse, jnp.pi - phi, phi)
    slope = 1 - (1 - c) / jnp.pi * theta
    if c == 0:
        return jnp.where(obtuse, 1 - far, near), None, slope
    out_minus = jnp.where(obtuse, (1 + c) - far - c * near, near + c * far)
    # Unless the activation is nearly odd, its output is never negatively correlated.
    out_plus = jnp.where(obtuse, (1 - c) + far + c * near, 2 - near - c * far) if c > 0 else None
    return out_minus, out_plus, slope


@_angular.defjvp
def _angular_jvp(c, primals, tangents):
    minus, plus = primals
    out_minus, out_plus, slope = _angular(c, minus, plus)
    if plus is None:
        d_rho, plus = -tangents[0], 2 - minus
    else:
        d_rho = (tangents[1] - tangents[0]) / 2
    change = slope * d_rho
    bend = over_sine(d_rho, minus, plus) * ((1 - c) / jnp.pi)
    d_plus = None if out_plus is None else change
    return (out_minus, out_plus, slope), (-change, d_plus, bend)


def _by_angle(c, near, phi, acute):
    """The same where the angle to the nearer end is known: its root and its polynomial serve both results."""
    w = sine_gap(phi)
    if acute:
        return jnp.maximum(near - ((1 - c) / jnp.pi) * w, 0), None, 1 - ((1 - c) / jnp.pi) * phi
    far = w * (1 / jnp.pi)
    return _ends(c, near < 0, jnp.minimum(jnp.abs(near), 1) - far, far, phi)


def piecewise_linear(name: str, a: float, b: float, fn, *, latex: str) -> Activation:
    """The activation a min(x, 0) + b max(x, 0) under a name."""
    if a == b == 0:
        raise ValueError("a min(x, 0) + b max(x, 0) with a = b = 0 is the zero function.")
    norm = (a * a + b * b) / 2
    return Activation(
        name,
        fn,
        angular=functools.partial(_angular, a * b / norm),
        by_angle=functools.partial(_by_angle, a * b / norm),
        moment=lambda q: norm * q,
        degree=1,
        parity="odd" if a == b else "even" if a == -b else None,
        breaks=() if a == b else (0.0,),
        lipschitz=max(abs(a), abs(b)),
        fourth=functools.partial(two_slopes_fourth, a, b),
        local=functools.partial(two_slopes_local, a, b),
        latex=latex,
        cites=("cho2009kernel",),
    )


relu = register(
    piecewise_linear("relu", 0.0, 1.0, lambda x: jnp.where(x > 0, x, 0), latex=r"\max(0,x)")
)
absolute = register(piecewise_linear("abs", -1.0, 1.0, jnp.abs, latex=r"|x|"))
identity = register(piecewise_linear("identity", 1.0, 1.0, lambda x: x, latex=r"x"))


@register_family("leaky_relu", (0.01,), (0.3,))
def leaky_relu(slope: float = 0.01) -> Activation:
    """max(x, 0) + slope min(x, 0)."""
    return piecewise_linear(
        family_name("leaky_relu", slope),
        slope,
        1.0,
        lambda x: jnp.where(x > 0, x, slope * x),
        latex=rf"\max(0,x)+{slope:g}\min(0,x)",
    )


@register_family("two_slopes", (-0.5, 2.0))
def two_slopes(a: float, b: float) -> Activation:
    """A min(x, 0) + b max(x, 0)."""
    return piecewise_linear(
        family_name("two_slopes", a, b),
        a,
        b,
        lambda x: jnp.where(x > 0, b * x, a * x),
        latex=rf"{a:g}\min(0,x)+{b:g}\max(0,x)",
    )
