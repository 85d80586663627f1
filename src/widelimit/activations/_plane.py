"""Moments by quadrature, on the line and in the plane, cut at break points and at steep fronts."""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.numerics import over_sine, safe_divide, safe_sqrt
from widelimit._base.quadrature import graded
from widelimit._base.thresholds import PLANE_NODES, REACH, STEEP_NODES

from ._activation import Activation, derivative
from ._cov import Cov

_FRONT = 6.0  # units of the input; there derivatives of tanh and its like have decayed


def line_moment(act: Activation, q: Float[Array, "..."]) -> Float[Array, "..."]:
    """The second moment by a rule that is cut at 0 and at the activation's break points."""
    one = lambda q: line_integral(act, q, lambda z: act.fn(jnp.sqrt(q) * z) ** 2)
    return jnp.vectorize(one)(q)


def line_integral(
    act: Activation, q: Array, integrand: Callable[[Array], Array], *, fine: bool = False
) -> Array:
    """E[integrand(z)] for one variance; of several integrands, stacked, at once.

    `fine`: the integrand has derivatives, so a front has a structure of its own.
    """
    z, w = _panels(act, [c / jnp.sqrt(q) for c in _fronts(act) + _sides(act, fine)], q)
    return _summed(integrand(z), w)


def _summed(values: Array, weights: Array) -> Array:
    """The weighted sum over the last axis."""
    return jnp.sum(values * weights.reshape((1,) * (values.ndim - 1) + (-1,)), axis=-1)


def _panels(act: Activation, places: list[Array], like: Array) -> tuple[Array, Array]:
    """Nodes and Gaussian weights on the line, cut at 0 (where the Gaussian peaks) and at `places`."""
    # Without breaks this is called for steep fronts only, which need more nodes.
    rule = graded(PLANE_NODES if act.breaks else STEEP_NODES)
    left, right, weights = (jnp.asarray(a, like.dtype)[None, :] for a in rule)
    cuts = [-REACH, 0.0, REACH, *(jnp.clip(p, -REACH, REACH) for p in places)]
    edges = jnp.sort(jnp.stack([jnp.broadcast_to(jnp.asarray(c, like.dtype), ()) for c in cuts]))
    a, b = edges[:-1, None], edges[1:, None]
    z = jnp.where(left < 0.5, a + (b - a) * left, b - (b - a) * right).ravel()
    w = ((b - a) * weights).ravel()
    z, w = jax.lax.stop_gradient((z, w))
    return z, w * jnp.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)


def _fronts(act: Activation) -> list[float]:
    """Where the function may change abruptly: at its break points, and at 0 for large variances."""
    return sorted({0.0, *act.breaks})


def _sides(act: Activation, fine: bool) -> list[float]:
    """Where derivatives of a function without breaks have decayed."""
    return [-_FRONT, _FRONT] if fine and not act.breaks else []


def plane_integral(
    act: Activation, cov: Cov, integrand: Callable[..., Array], *, fine: bool = False
) -> Array:
    """E[integrand(z1, u, z2, v)] for one pair, u = sqrt(q1) z1, v = sqrt(q2)(rho z1 + sine z2).

    Of several integrands, stacked, at once; `fine` as in `line_integral`.
    """
    sine = safe_sqrt(cov.minus * cov.plus)
    # Below rounding it is noise, which a compiler may evaluate twice and differently: the nodes of
    # one evaluation would then meet the weights of the other.
    sine = jnp.where(sine < 16 * jnp.finfo(sine.dtype).eps, 0, sine)
    root1, root2 = jnp.sqrt(cov.q1), jnp.sqrt(cov.q2)
    outer = []
    for c in _fronts(act):  # u meets the front, and v, which follows u within a few sines
        centre = safe_divide(c / root2, cov.rho)
        outer += [c / root1, centre - 7 * sine, centre + 7 * sine]
    sides = _sides(act, fine)
    outer += [c / root1 for c in sides] + [safe_divide(c / root2, cov.rho) for c in sides]
    z1, w1 = _panels(act, outer, cov.minus)

    def inner(z1):
        meets = [safe_divide(c / root2 - cov.rho * z1, sine) for c in _fronts(act) + sides]
        z2, w2 = _panels(act, meets, cov.minus)
        u, v = root1 * z1, root2 * (cov.rho * z1 + sine * z2)
        return _summed(integrand(z1, jnp.broadcast_to(u, v.shape), z2, v), w2)

    return _summed(jax.vmap(inner, out_axes=-1)(z1), w1)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def plane(act: Activation, order: int, cov: Cov) -> Array:
    r"""$E[\varphi(u)\varphi(v)]$ (order 0) or $E[\varphi'(u)\varphi'(v)]$ (order 1) for one pair."""
    f = derivative(act) if order else act.fn
    return plane_integral(act, cov, lambda z1, u, z2, v: f(u) * f(v))


@plane.defjvp
def _plane_jvp(act, order, primals, tangents):
    (cov,), (d,) = primals, tangents
    d_rho = (d.plus - d.minus) / 2
    prime = derivative(act)
    if order == 0:  # Gaussian identities: no second derivative, no division by sqrt(1 - rho^2)
        by_q1 = plane_integral(act, cov, lambda z1, u, z2, v: prime(u) * u * act.fn(v)) / (
            2 * cov.q1
        )
        by_q2 = plane_integral(act, cov, lambda z1, u, z2, v: act.fn(u) * prime(v) * v) / (
            2 * cov.q2
        )
        by_rho = cov.scale * plane(act, 1, cov)
    else:  # the density is differentiated, so that jumps of the derivative are accounted for
        per_sine = lambda a: over_sine(a, cov.minus, cov.plus)
        lean = lambda z1, z2: per_sine(z1 * z2)
        weight = lambda score: plane_integral(
            act, cov, lambda z1, u, z2, v: prime(u) * prime(v) * score(z1, z2)
        )
        by_rho = weight(lambda z1, z2: lean(z1, z2) - per_sine(per_sine(cov.rho * (z2**2 - 1))))
        by_q1 = weight(lambda z1, z2: (z1**2 - 1 - cov.rho * lean(z1, z2)) / 2) / cov.q1
        by_q2 = weight(lambda z1, z2: ((z2**2 - 1) + cov.rho * lean(z1, z2)) / 2) / cov.q2
        # Where u and v coincide the density degenerates; there the function is differentiated.
        bend = lambda x: jax.jvp(prime, (x,), (jnp.ones_like(x),))[1]
        path1 = plane_integral(act, cov, lambda z1, u, z2, v: bend(u) * u * prime(v)) / (2 * cov.q1)
        path2 = plane_integral(act, cov, lambda z1, u, z2, v: prime(u) * bend(v) * v) / (2 * cov.q2)
        coincide = per_sine(jnp.ones_like(cov.minus)) == 0
        by_q1, by_q2 = jnp.where(coincide, path1, by_q1), jnp.where(coincide, path2, by_q2)
    change = by_q1 * d.q1 + by_q2 * d.q2 + by_rho * d_rho
    return plane(act, order, cov), change
