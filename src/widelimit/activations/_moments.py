r"""Gaussian moments of an activation: what a layer of infinitely many neurons does to a correlation.

Everything is normalised: with $(u,v)\sim N(0,\cdot)$ of variances $q_1,q_2$ and correlation $\rho$, the
output has second moments $T_i=E[\varphi^2]$, correlation $\rho'=E[\varphi(u)\varphi(v)]/\sqrt{T_1T_2}$ and slope
$d\rho'/d\rho=\sqrt{q_1q_2}\,E[\varphi'(u)\varphi'(v)]/\sqrt{T_1T_2}$. Four ways lead there: an angular rule
(homogeneous activations), a closed form, a Hermite series, and a two-dimensional quadrature.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from widelimit._base.compile import quick_jit
from widelimit._base.numerics import at_least_zero, safe_divide, steer
from widelimit._base.quadrature import gauss_legendre, hermite_basis
from widelimit._base.thresholds import DEFAULT_TERMS, MOST_TERMS, VARIANCES

from ._activation import Activation
from ._cov import Cov, Matrix
from ._gap import gap, unequal, unit_coefficients
from ._plane import line_moment, plane
from ._series import hermite_coefficients, series
from ._table import Spec, read


class How(NamedTuple):
    """How moments without closed form are evaluated; static under jit.

    Attributes:
        terms: Terms of the Hermite series; 0 asks for the two-dimensional quadrature.
        tables: Tables for the activations that have one; they are preferred.
    """

    terms: int = DEFAULT_TERMS
    tables: tuple[Spec, ...] = ()

    def table(self, act: Activation) -> Spec | None:
        """The table of an activation, if there is one."""
        return next((spec for spec in self.tables if spec.act == act), None)


def bounded(q: Matrix, dtype: str = "float64") -> Matrix:
    """Variances at which formulas can be evaluated: beyond these bounds correlations have settled.

    A variance that is 0, or not representable, thus has a direction all the same: the limit.
    """
    low, high = VARIANCES[dtype]
    return jnp.where(q > low, jnp.minimum(q, high), low)


def second_moment(act: Activation, q: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$E[\varphi(\sqrt q z)^2]$; infinite where it is not representable, and 0 below that."""
    if act.moment is not None:
        return act.moment(q)
    within = bounded(q)
    if act.dual is not None:
        found = act.dual(Cov.diagonal(within))
    elif act.hermite is not None:
        found = jnp.sum(act.hermite(within) ** 2, axis=0)
    else:
        found = line_moment(act, within)
    low, high = VARIANCES["float64"]
    found = jnp.where((q < low) & (found < low**0.5), 0, found)
    return jnp.where((q > high) & (found > high**0.5), jnp.inf, found)


def transform(
    act: Activation, cov: Cov, t1: Matrix, t2: Matrix, how: How
) -> tuple[Matrix, Matrix | None, Matrix]:
    """One non-linear layer: 1 - rho' and 1 + rho' of the output, and the slope of rho'.

    Args:
        act: The activation.
        cov: The covariance of its inputs; variances in float64.
        t1: The second moment of the output for the first input, broadcastable.
        t2: The same for the second.
        how: How to evaluate what has no closed form.

    Returns:
        1 - rho', 1 + rho' (or None, where rho' is known to be at least 0), and d rho'/d rho, each
        of the shape and dtype of `cov.minus`.
    """
    if act.angular is not None:
        return act.angular(cov.minus, cov.plus)
    given, dtype = (cov.q1, cov.q2), cov.minus.dtype
    if act.degree is not None:  # correlations do not depend on the variances
        one = jnp.ones((1,) * cov.minus.ndim, dtype)
        cov = Cov(one, one, cov.minus, cov.plus)
        t1 = t2 = second_moment(act, one)
    else:
        q1, q2 = (bounded(q, str(dtype)) for q in given)
        if dtype != jnp.float64:
            t1, t2 = second_moment(act, q1), second_moment(act, q2)
        cov = Cov(q1.astype(dtype), q2.astype(dtype), cov.minus, cov.plus)
    root1, root2 = (jnp.sqrt(jnp.where(t > 0, t, 1)).astype(dtype) for t in (t1, t2))
    missing = lambda: gap(act, *map(bounded, jax.lax.stop_gradient(given))).astype(dtype)
    uneven = None if act.degree is not None else unequal(*given)
    spec = how.table(act)
    if spec is not None:
        near_one = lambda cov: read(spec, cov, given)
    else:
        near_one = lambda cov: _near_one(act, cov, root1 * root2, how, uneven, missing)
    if act.parity is None:
        return near_one(cov)
    # Treated at |rho|, so that digits near rho = -1 are kept too.
    flip = cov.minus > cov.plus
    turn = lambda a, b: (jnp.where(flip, b, a), jnp.where(flip, a, b))
    minus, plus, slope = near_one(cov.at(*turn(cov.minus, cov.plus)))
    if act.parity == "even":
        return minus, plus, jnp.where(flip, -slope, slope)
    return *turn(minus, plus), slope


def _near_one(
    act: Activation,
    cov: Cov,
    size: Matrix,
    how: How,
    uneven: Bool[Array, "..."] | None,
    missing: Callable[[], Matrix],
) -> tuple[Matrix, Matrix, Matrix]:
    r"""1 - rho', 1 + rho' and the slope; 1 - rho' with all its digits near rho = 1.

    There $1-\rho'=\int_\rho^1(d\rho'/d\rho)\,d\rho$ plus the gap that Cauchy-Schwarz leaves at
    $\rho=1$ for unequal variances, both without a difference of large numbers: chaotic networks multiply
    errors of 1 - rho in every layer. The integral is the activation's `mean_dot`, or a few nodes, exact
    to 1e-12 on an interval that is short against the distance 1/q of the nearest singularity.
    """
    rho, slope = _correlation(act, cov, size, how)
    minus = at_least_zero(1 - rho)
    if not act.has_ntk:  # no nodes integrate the slope; 1 - rho' is of first order in the angle
        same = (cov.minus == 0) & (uneven is None)
        return jnp.where(same, 0, minus), at_least_zero(1 + rho), slope
    reach = 1e-3 if rho.dtype == jnp.float64 else 3e-2  # single precision loses its digits sooner
    close = cov.minus * (1 if act.mean_dot is not None else 1 + cov.scale) < reach
    uneven = jnp.zeros((1,) * rho.ndim, bool) if uneven is None else uneven

    held, size, rough = jax.lax.stop_gradient((cov, size, minus))

    def integrated() -> Matrix:
        none = jnp.zeros_like(held.minus)
        if act.mean_dot is not None:
            root = jnp.sqrt(held.scale) / jnp.sqrt(
                size
            )  # twice: its square may not be representable
            fall = held.minus * (act.mean_dot(held) * root * root)
        else:
            # One evaluation for all nodes: the program stays small, and so does compiling it.
            rule = _nodes_near_one(bool(act.breaks))
            minuses = jnp.stack([held.minus * x for x, _ in rule])
            stacked = Cov(held.q1[None], held.q2[None], minuses, 2 - minuses)
            slopes = _correlation(act, stacked, size[None], how)[1]
            fall = held.minus * sum(w * slopes[i] for i, (_, w) in enumerate(rule))

        def with_gap() -> Matrix:
            found = missing()
            if act.gap is None:  # a large gap needs no care, and the rule for small ones has limits
                direct = 1 - _correlation(act, held.at(none, none + 2), size, how)[0]
                found = jnp.where(direct > 1e-2, direct, found)
            return fall + jnp.where(uneven, found, 0)

        here = close & uneven
        return jnp.where(close, jax.lax.cond(jnp.any(here), with_gap, lambda: fall), rough)

    exactly_one = jnp.where((held.minus == 0) & ~uneven, 0, rough)
    some = jnp.any(close & ((held.minus > 0) | uneven))
    minus = steer(jax.lax.cond(some, integrated, lambda: exactly_one), minus)
    return minus, jnp.where(minus < 1, 2 - minus, at_least_zero(1 + rho)), slope


def _nodes_near_one(kinked: bool) -> list[tuple[float, float]]:
    """A rule for the mean of a slope on [rho, 1]; with kinks it is analytic in the angle only."""
    x, w = gauss_legendre(4 if kinked else 2)
    at, weight = (x**2, 2 * x * w) if kinked else (x, w)
    return list(zip(at.tolist(), weight.tolist(), strict=True))


def _correlation(act: Activation, cov: Cov, size: Matrix, how: How) -> tuple[Matrix, Matrix]:
    if act.correlation is not None:
        return act.correlation(cov)
    if act.dual is not None:
        value, dot = _dual_and_dot(act, cov)
        return value / size, dot * cov.scale / size
    if act.hermite is not None:
        a1, a2 = unit_coefficients(act, cov.q1), unit_coefficients(act, cov.q2)
        return series(0, a1, a2, cov.rho), series(1, a1, a2, cov.rho)
    if act.breaks or how.terms == 0:
        flat = jax.tree.map(lambda a: jnp.broadcast_to(a, cov.minus.shape).ravel(), cov)
        both = lambda c: (plane(act, 0, c), plane(act, 1, c))
        value, dot = jax.lax.map(both, flat, batch_size=min(64, flat.minus.size))
        value, dot = value.reshape(cov.minus.shape), dot.reshape(cov.minus.shape)
        return value / size, dot * cov.scale / size
    a1 = hermite_coefficients(act, cov.q1, how.terms)
    a2 = hermite_coefficients(act, cov.q2, how.terms)
    return series(0, a1, a2, cov.rho) / size, series(1, a1, a2, cov.rho) / size


def _dual_and_dot(act: Activation, cov: Cov) -> tuple[Matrix, Matrix]:
    if act.dual_and_dot is not None:
        return act.dual_and_dot(cov)
    dual = act.dual
    assert dual is not None
    if act.dual_dot is not None:
        return dual(cov), act.dual_dot(cov)
    along = lambda minus, plus: dual(cov.at(minus, plus))
    one = jnp.ones_like(cov.minus)
    value, slope = jax.jvp(along, (cov.minus, cov.plus), (-one, one))
    return value, safe_divide(slope, cov.scale)


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
