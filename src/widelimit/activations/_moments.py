r"""Gaussian moments of an activation: what a layer of infinitely many neurons does to a correlation.

Everything is normalised: with $(u,v)\sim N(0,\cdot)$ of variances $q_1,q_2$ and correlation $\rho$, the
output has second moments $T_i=E[\varphi^2]$, correlation $\rho'=E[\varphi(u)\varphi(v)]/\sqrt{T_1T_2}$ and slope
$d\rho'/d\rho=\sqrt{q_1q_2}\,E[\varphi'(u)\varphi'(v)]/\sqrt{T_1T_2}$. Four ways lead there: an angular rule
(homogeneous activations), a closed form, a Hermite series, and a two-dimensional quadrature.
"""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.compile import quick_jit
from widelimit._base.numerics import at_least_zero, over_sine, safe_divide, safe_sqrt, steer
from widelimit._base.quadrature import gauss_legendre, graded, hermite_basis
from widelimit._base.thresholds import (
    DEFAULT_TERMS,
    MOST_TERMS,
    PLANE_NODES,
    REACH,
    STEEP_NODES,
)

from ._activation import Activation, Cov, Matrix, derivative


class How(NamedTuple):
    """How moments without closed form are evaluated; static under jit.

    Attributes:
        terms: Terms of the Hermite series; 0 asks for the two-dimensional quadrature.
    """

    terms: int = DEFAULT_TERMS


def second_moment(act: Activation, q: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$E[\varphi(\sqrt q z)^2]$."""
    if act.moment is not None:
        return act.moment(q)
    if act.dual is not None:
        return act.dual(Cov.diagonal(q))
    if act.hermite is not None:
        return jnp.sum(act.hermite(q) ** 2, axis=0)
    return _line_moment(act, q)


def _line_moment(act: Activation, q: Float[Array, "..."]) -> Float[Array, "..."]:
    """The second moment by a rule that is cut at 0 and at the activation's break points."""

    def one(q):
        z, w = _panels(act, [c / jnp.sqrt(q) for c in _fronts(act)], q)
        return jnp.sum(w * act.fn(jnp.sqrt(q) * z) ** 2)

    return jnp.vectorize(one)(q)


def transform(
    act: Activation, cov: Cov, t1: Matrix, t2: Matrix, how: How
) -> tuple[Matrix, Matrix | None, Matrix]:
    """One non-linear layer: 1 - rho' and 1 + rho' of the output, and the slope of rho'.

    Args:
        act: The activation.
        cov: The covariance of its inputs.
        t1: The second moment of the output for the first input, broadcastable.
        t2: The same for the second.
        how: How to evaluate what has no closed form.

    Returns:
        1 - rho', 1 + rho' (or None, where rho' is known to be at least 0), and d rho'/d rho, each
        of the shape of `cov.minus`.
    """
    if act.angular is not None:
        return act.angular(cov.minus, cov.plus)
    size = jnp.sqrt(t1) * jnp.sqrt(t2)
    if act.parity != "odd":
        return _near_one(act, cov, size, how)
    # An odd function is treated at |rho|, so that 1 + rho keeps its digits near rho = -1 too.
    flip = cov.minus > cov.plus
    turn = lambda a, b: (jnp.where(flip, b, a), jnp.where(flip, a, b))
    minus, plus, slope = _near_one(act, cov.at(*turn(cov.minus, cov.plus)), size, how)
    return *turn(minus, plus), slope


def _near_one(act: Activation, cov: Cov, size: Matrix, how: How) -> tuple[Matrix, Matrix, Matrix]:
    r"""1 - rho', 1 + rho' and the slope; 1 - rho' with all its digits near rho = 1.

    There $1-\rho'=\int_\rho^1(d\rho'/d\rho)\,d\rho$ plus the gap that Cauchy-Schwarz leaves at
    $\rho=1$ for unequal variances (taken as 0 below rounding). A few nodes are exact to 1e-12 on an
    interval that is short against the distance 1/q of the nearest singularity. Chaotic networks
    multiply errors of 1 - rho in every layer, so the difference 1 - rho' itself will not do.
    """
    rho, slope = _correlation(act, cov, size, how)
    minus, plus = at_least_zero(1 - rho), at_least_zero(1 + rho)
    if not act.has_ntk:  # no nodes integrate the slope; 1 - rho' is of first order in the angle
        return minus, plus, slope
    noise = (8 if act.closed_form else 64) * jnp.finfo(rho.dtype).eps
    alike = jnp.abs(cov.q1 - cov.q2) <= 1e-7 * (cov.q1 + cov.q2)  # the gap is of second order
    reach = 1e-3 if rho.dtype == jnp.float64 else 3e-2  # single precision loses its digits sooner
    close = cov.minus * (1 + cov.scale) < reach

    def integrated() -> Matrix:
        # One evaluation for the nodes between the pair and rho = 1, and rho = 1: the program stays
        # small, and so does the time to compile it.
        rule = _nodes_near_one(bool(act.breaks))
        minuses = jnp.stack([cov.minus * x for x, _ in [*rule, (0.0, 0.0)]])
        stacked = Cov(cov.q1[None], cov.q2[None], minuses, 2 - minuses)
        rhos, slopes = _correlation(act, stacked, size[None], how)
        mean = sum(w * slopes[i] for i, (_, w) in enumerate(rule))
        gap = 1 - rhos[-1]
        return jnp.where(close, cov.minus * mean + jnp.where(alike | (gap < noise), 0, gap), minus)

    # At rho = 1 itself, as on a diagonal, nothing is left but the gap.
    at_one = jnp.where((cov.minus == 0) & (alike | (minus < noise)), 0, minus)
    some = jnp.any(close & (cov.minus > 0))
    careful = jax.lax.stop_gradient(jax.lax.cond(some, integrated, lambda: at_one))
    return steer(careful, minus), plus, slope


def _nodes_near_one(kinked: bool) -> list[tuple[float, float]]:
    """A rule for the mean of a slope on [rho, 1]; with kinks it is analytic in the angle only."""
    x, w = gauss_legendre(4 if kinked else 2)
    at, weight = (x**2, 2 * x * w) if kinked else (x, w)
    return list(zip(at.tolist(), weight.tolist(), strict=True))


def _correlation(act: Activation, cov: Cov, size: Matrix, how: How) -> tuple[Matrix, Matrix]:
    if act.dual is not None:
        dot = _slope_of_dual(act, cov) if act.dual_dot is None else act.dual_dot(cov)
        return act.dual(cov) / size, dot * cov.scale / size
    if act.hermite is not None:
        a1, a2 = act.hermite(cov.q1), act.hermite(cov.q2)
        return _series(0, a1, a2, cov.rho) / size, _series(1, a1, a2, cov.rho) / size
    if act.breaks or how.terms == 0:
        flat = jax.tree.map(lambda a: jnp.broadcast_to(a, cov.minus.shape).ravel(), cov)
        both = lambda c: (_plane(act, 0, c), _plane(act, 1, c))
        value, dot = jax.lax.map(both, flat, batch_size=min(64, flat.minus.size))
        value, dot = value.reshape(cov.minus.shape), dot.reshape(cov.minus.shape)
        return value / size, dot * cov.scale / size
    a1 = hermite_coefficients(act, cov.q1, how.terms)
    a2 = hermite_coefficients(act, cov.q2, how.terms)
    return _series(0, a1, a2, cov.rho) / size, _series(1, a1, a2, cov.rho) / size


def _slope_of_dual(act: Activation, cov: Cov) -> Matrix:
    dual = act.dual
    assert dual is not None
    along = lambda minus, plus: dual(cov.at(minus, plus))
    one = jnp.ones_like(cov.minus)
    return safe_divide(jax.jvp(along, (cov.minus, cov.plus), (-one, one))[1], cov.scale)


# --- Hermite series -----------------------------------------------------------------------------


def hermite_coefficients(
    act: Activation, q: Float[Array, "..."], terms: int
) -> Float[Array, "..."]:
    r"""$a_n(q)=E[\varphi(\sqrt q z)h_n(z)]$, $n<$ terms, for an activation without break points."""
    nodes = 160 + terms // 2
    z, basis = hermite_basis(terms, nodes)
    if act.parity is not None:  # half of the coefficients are 0, the others come from half the line
        odd = int(act.parity == "odd")
        z, basis = z[nodes:], 2 * basis[odd::2, nodes:]
    points = jnp.sqrt(q)[None] * jnp.asarray(z, q.dtype).reshape((-1,) + (1,) * q.ndim)
    found = jnp.tensordot(jnp.asarray(basis, q.dtype), act.fn(points), axes=1)
    if act.parity is None:
        return found
    zero = jnp.zeros_like(found)
    pairs = (zero, found) if act.parity == "odd" else (found, zero)
    return jnp.stack(pairs, axis=1).reshape((terms, *q.shape))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _series(order: int, a1: Array, a2: Array, rho: Matrix) -> Matrix:
    r"""The derivative of the given order of $\sum_n a_n b_n\rho^n$."""
    return _horner_sum(order, a1, a2, rho)


def _horner_sum(order: int, a1: Array, a2: Array, rho: Matrix) -> Matrix:
    n = np.arange(a1.shape[0], dtype=float)
    falling = np.prod([n - j for j in range(order)], axis=0) if order else np.ones(n.size)
    b1 = jnp.asarray(falling, rho.dtype).reshape((-1,) + (1,) * (a1.ndim - 1)) * a1
    # Several terms in a step: the partial sum stays in a register meanwhile.
    step = math.gcd(8, n.size)
    shift = lambda a: jnp.concatenate([a[order:], jnp.zeros_like(a[: min(order, n.size)])])
    b1, b2 = shift(b1), shift(a2)

    def add(i, total):
        first = n.size - step * (i + 1)
        c1, c2 = (jax.lax.dynamic_slice_in_dim(b, first, step) for b in (b1, b2))
        for j in range(step - 1, -1, -1):
            total = total * rho + c1[j] * c2[j]
        return total

    start = jnp.zeros(jnp.broadcast_shapes(a1.shape[1:], a2.shape[1:], rho.shape), rho.dtype)
    return jax.lax.fori_loop(0, n.size // step, add, start)


@_series.defjvp
def _series_jvp(order, primals, tangents):
    a1, a2, rho = primals
    d1, d2, d_rho = tangents
    change = _series(order + 1, a1, a2, rho) * d_rho
    change = change + _horner_sum(order, d1, a2, rho) + _horner_sum(order, a1, d2, rho)
    return _series(order, a1, a2, rho), change


# Compiled cheaply: they run on a few variances, once for each network.
second_moment_now = quick_jit(second_moment)
_values = quick_jit(lambda act, x: act.fn(x))


def _shares(act: Activation, q: Float[np.ndarray, " k"]) -> Float[np.ndarray, "terms k"]:
    """Squares of the Hermite coefficients relative to the second moment."""
    z, basis = hermite_basis(MOST_TERMS, 160 + MOST_TERMS // 2)
    coefficients = basis @ np.asarray(_values(act, z[:, None] * np.sqrt(q)))
    return coefficients**2 / np.asarray(second_moment_now(act, jnp.asarray(q)))


def terms_needed(act: Activation, variances: list[float], tolerance: float) -> int:
    """The length of the Hermite series that serves all given variances; 0 if none does."""
    if act.closed_form or act.breaks:
        return 32
    q = np.array([min(variances), max(variances)])
    share = _shares(act, q) * (1 + np.arange(MOST_TERMS))[:, None]
    tail = np.cumsum(share[::-1], axis=0)[::-1].max(axis=1)
    # The last quarter stands for what lies beyond it.
    if not tail[3 * MOST_TERMS // 4] < tolerance:
        return 0
    needed = int(np.argmax(tail < tolerance))
    return next(n for n in (32, 64, 128, 256, 512, MOST_TERMS) if n >= needed)


# --- Quadrature in the plane ----------------------------------------------------------------------


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


def _integrate(act: Activation, cov: Cov, integrand) -> Array:
    """E[integrand(z1, u, z2, v)] for one pair, u = sqrt(q1) z1, v = sqrt(q2)(rho z1 + sine z2)."""
    sine = safe_sqrt(cov.minus * cov.plus)
    # Below rounding it is noise, which a compiler may evaluate twice and differently: the nodes of
    # one evaluation would then meet the weights of the other.
    sine = jnp.where(sine < 16 * jnp.finfo(sine.dtype).eps, 0, sine)
    root1, root2 = jnp.sqrt(cov.q1), jnp.sqrt(cov.q2)
    outer = []
    for c in _fronts(act):  # u meets the front, and v, which follows u within a few sines
        centre = safe_divide(c / root2, cov.rho)
        outer += [c / root1, centre - 7 * sine, centre + 7 * sine]
    z1, w1 = _panels(act, outer, cov.minus)

    def inner(z1):
        meets = [safe_divide(c / root2 - cov.rho * z1, sine) for c in _fronts(act)]
        z2, w2 = _panels(act, meets, cov.minus)
        u, v = root1 * z1, root2 * (cov.rho * z1 + sine * z2)
        return jnp.sum(w2 * integrand(z1, jnp.broadcast_to(u, v.shape), z2, v))

    return jnp.sum(w1 * jax.vmap(inner)(z1))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _plane(act: Activation, order: int, cov: Cov) -> Array:
    r"""$E[\varphi(u)\varphi(v)]$ (order 0) or $E[\varphi'(u)\varphi'(v)]$ (order 1) for one pair."""
    f = derivative(act) if order else act.fn
    return _integrate(act, cov, lambda z1, u, z2, v: f(u) * f(v))


@_plane.defjvp
def _plane_jvp(act, order, primals, tangents):
    (cov,), (d,) = primals, tangents
    d_rho = (d.plus - d.minus) / 2
    prime = derivative(act)
    if order == 0:  # Gaussian identities: no second derivative, no division by sqrt(1 - rho^2)
        by_q1 = _integrate(act, cov, lambda z1, u, z2, v: prime(u) * u * act.fn(v)) / (2 * cov.q1)
        by_q2 = _integrate(act, cov, lambda z1, u, z2, v: act.fn(u) * prime(v) * v) / (2 * cov.q2)
        by_rho = cov.scale * _plane(act, 1, cov)
    else:  # the density is differentiated, so that jumps of the derivative are accounted for
        per_sine = lambda a: over_sine(a, cov.minus, cov.plus)
        lean = lambda z1, z2: per_sine(z1 * z2)
        weight = lambda score: _integrate(
            act, cov, lambda z1, u, z2, v: prime(u) * prime(v) * score(z1, z2)
        )
        by_rho = weight(lambda z1, z2: lean(z1, z2) - per_sine(per_sine(cov.rho * (z2**2 - 1))))
        by_q1 = weight(lambda z1, z2: (z1**2 - 1 - cov.rho * lean(z1, z2)) / 2) / cov.q1
        by_q2 = weight(lambda z1, z2: ((z2**2 - 1) + cov.rho * lean(z1, z2)) / 2) / cov.q2
        # Where u and v coincide the density degenerates; there the function is differentiated.
        bend = lambda x: jax.jvp(prime, (x,), (jnp.ones_like(x),))[1]
        path1 = _integrate(act, cov, lambda z1, u, z2, v: bend(u) * u * prime(v)) / (2 * cov.q1)
        path2 = _integrate(act, cov, lambda z1, u, z2, v: prime(u) * bend(v) * v) / (2 * cov.q2)
        coincide = per_sine(jnp.ones_like(cov.minus)) == 0
        by_q1, by_q2 = jnp.where(coincide, path1, by_q1), jnp.where(coincide, path2, by_q2)
    change = by_q1 * d.q1 + by_q2 * d.q2 + by_rho * d_rho
    return _plane(act, order, cov), change
