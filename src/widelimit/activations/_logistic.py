r"""tanh, sigmoid, softplus and silu: mixtures of erf, of its integral, and of gelu, over their scale.

With the rule of `_kolmogorov.py`, $\tanh(x)=\sum_iw_i\operatorname{erf}(x/\sqrt2k_i)$. The sigmoid is
$\sigma(x)=\frac12+\frac12\tanh\frac x2$, softplus its integral and silu $x\,\sigma(x)$, so each moment is a double sum
of elementary ones (`_shares.py`), as right at any variance as these are.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.numerics import arctan2

from ._activation import Activation, register
from ._cov import Cov, Matrix
from ._gap import line_gap
from ._kolmogorov import RULES
from ._shares import (
    Shares,
    Side,
    gate_bulk,
    gate_mean_dot,
    gate_tilt,
    ramp_mean_dot,
    sign_dot,
    sign_mean_dot,
)

Term = Callable[..., Matrix]
_COST = 60.0
_CITES = ("andrews1974scale", "stefanski1991normal")


def _loop(cov: Cov, stretch: float, terms: tuple[Term, ...], paired: bool) -> tuple[Matrix, ...]:
    dtype = cov.minus.dtype
    scales, weights = np.array(RULES[str(dtype)]).T
    column = lambda q: jnp.asarray((stretch * scales) ** -2, dtype).reshape((-1,) + (1,) * q.ndim)
    one, two = (Side.of(q[None], column(q)) for q in (cov.q1, cov.q2))
    i, j = np.triu_indices(scales.size, 0 if paired else -scales.size)
    weight = jnp.asarray(weights[i] * weights[j] * np.where(paired & (i == j), 0.5, 1), dtype)
    places = jnp.asarray([i, j], jnp.int32)
    # Small weights of tiny moments would be flushed to 0: they are added up larger than they are.
    tiny, lift = (1e-100, 2.0**200) if dtype == jnp.float64 else (1e-10, 2.0**40)
    up = jnp.where(cov.scale < tiny, lift, 1.0).astype(dtype)

    def add(n: jax.Array, totals: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
        i, j = places[0, n], places[1, n]
        at = lambda side, i: jax.tree.map(lambda a: a[i], side)
        sides = [(at(one, i), at(two, j)), (at(one, j), at(two, i))]
        shares = [Shares.between(cov, *pair) for pair in sides[: 2 if paired else 1]]
        more = [weight[n] * (up * term(*shares)) for term in terms]
        return tuple(a + b for a, b in zip(totals, more, strict=True))

    shape = jnp.broadcast_shapes(cov.q1.shape, cov.q2.shape, cov.minus.shape)
    start = tuple(jnp.zeros(shape, dtype) for _ in terms)
    totals = jax.lax.fori_loop(np.int32(0), np.int32(i.size), add, start)
    return tuple(total / up for total in totals)


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _mean_now(
    cov: Cov, stretch: float, terms: tuple[Term, ...], paired: bool = True
) -> tuple[Matrix, ...]:
    """The mean of each term over all pairs of scales, `stretch` times those of tanh.

    A term is a function of the `Shares` of two scales, or, paired, of those of both orders of the two.
    """
    return _loop(cov, stretch, terms, paired)


@_mean_now.defjvp
def _mean_jvp(stretch, terms, paired, primals, tangents):
    """By the derivatives in q1, q2 and rho, at once: a loop is not differentiated backwards."""
    (cov,), (d,) = primals, tangents
    loop = lambda c: _loop(c, stretch, terms, paired)
    q1, q2, m, p = cov.q1, cov.q2, cov.minus, cov.plus
    basis = lambda a, *signs: jnp.stack([sign * jnp.ones_like(a) for sign in signs])
    ways = Cov(basis(q1, 1, 0, 0), basis(q2, 0, 1, 0), basis(m, 0, 0, -1), basis(p, 0, 0, 1))
    along = lambda way: jax.jvp(loop, (cov,), (way,))
    values, by = jax.vmap(along, out_axes=(None, 0))(ways)
    d_rho = (d.plus - d.minus) / 2
    return values, tuple(a * d.q1 + b * d.q2 + c * d_rho for a, b, c in by)


# Compiled, so that outside of any program it is compiled once and not for each call.
_mean = jax.jit(_mean_now, static_argnums=(1, 2, 3))


def _single(cov: Cov, stretch: float, term: Term) -> Matrix:
    return _mean(cov, stretch, (term,), False)[0]


def _arcs(a: Shares, b: Shares) -> Matrix:
    """The sum of two angles as twice their mean: one arctangent."""
    return 2 * arctan2(a.rho * (a.y + b.y), a.cosine + b.cosine)


def _dots(a: Shares, b: Shares) -> Matrix:
    return sign_dot(a) + sign_dot(b)


def _sines(a: Shares, b: Shares) -> Matrix:
    return a.cosine / a.short + b.cosine / b.short


def _bulks(a: Shares, b: Shares) -> Matrix:
    return gate_bulk(a) + gate_bulk(b)


def _tilts(a: Shares, b: Shares) -> Matrix:
    return gate_tilt(a) + gate_tilt(b)


def _tanh_dual(cov: Cov) -> Matrix:
    return 2 / jnp.pi * _mean(cov, 1.0, (_arcs,))[0]


def _tanh_both(cov: Cov) -> tuple[Matrix, Matrix]:
    arc, dot = _mean(cov, 1.0, (_arcs, _dots))
    return 2 / jnp.pi * arc, dot


tanh = register(
    Activation(
        "tanh",
        jnp.tanh,
        dual=_tanh_dual,
        dual_and_dot=_tanh_both,
        mean_dot=lambda c: _single(c, 1.0, sign_mean_dot),
        parity="odd",
        lipschitz=1.0,
        latex=r"\tanh x",
        gap=line_gap(jnp.tanh, sides=1),
        cost=_COST,
        cites=(*_CITES, "williams1997computing"),
    )
)


def _sigmoid_dual(cov: Cov) -> Matrix:
    return 0.25 + _mean(cov, 2.0, (_arcs,))[0] / (2 * jnp.pi)


def _sigmoid_both(cov: Cov) -> tuple[Matrix, Matrix]:
    arc, dot = _mean(cov, 2.0, (_arcs, _dots))
    return 0.25 + arc / (2 * jnp.pi), dot / 4


sigmoid = register(
    Activation(
        "sigmoid",
        jax.nn.sigmoid,
        dual=_sigmoid_dual,
        dual_and_dot=_sigmoid_both,
        mean_dot=lambda c: _single(c, 2.0, sign_mean_dot) / 4,
        lipschitz=0.25,
        latex=r"1/(1+e^{-x})",
        gap=line_gap(jax.nn.sigmoid, sides=2),
        cost=_COST,
        cites=(*_CITES, "williams1997computing"),
    )
)


def _softplus_both(cov: Cov) -> tuple[Matrix, Matrix]:
    # The noisy standard deviations times the noisy correlation: the covariance, whatever the noise.
    arc, sines = _mean(cov, 2.0, (_arcs, _sines))
    below = (jnp.pi / 2 + arc) / (2 * jnp.pi)
    return cov.k * below + sines / (2 * jnp.pi), below


softplus = register(
    Activation(
        "softplus",
        jax.nn.softplus,
        dual=lambda c: _softplus_both(c)[0],
        dual_and_dot=_softplus_both,
        mean_dot=lambda c: _single(c, 2.0, ramp_mean_dot),
        lipschitz=1.0,
        latex=r"\log(1+e^{x})",
        gap=line_gap(jax.nn.softplus, sides=2),
        cost=_COST,
        cites=(*_CITES, "cho2009kernel"),
    )
)


def _silu_both(cov: Cov) -> tuple[Matrix, Matrix]:
    arc, bulk, tilt = _mean(cov, 2.0, (_arcs, _bulks, _tilts))
    below = jnp.pi / 2 + arc
    return cov.scale * (cov.rho * below + bulk) / (2 * jnp.pi), (below + tilt) / (2 * jnp.pi)


silu = register(
    Activation(
        "silu",
        jax.nn.silu,
        dual=lambda c: _silu_both(c)[0],
        dual_and_dot=_silu_both,
        mean_dot=lambda c: _single(c, 2.0, gate_mean_dot),
        lipschitz=1.0998393194,
        latex=r"x/(1+e^{-x})",
        gap=line_gap(jax.nn.silu, sides=2),
        cost=_COST,
        cites=(*_CITES, "tsuchida2021avoiding"),
    )
)
