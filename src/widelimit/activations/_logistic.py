r"""tanh, sigmoid, softplus and silu: mixtures of erf, of its integral, and of gelu, over their scale.

With the rule of `_kolmogorov.py`, $\tanh(x)=\sum_iw_i\operatorname{erf}(x/\sqrt2k_i)$. The sigmoid is
$\sigma(x)=\frac12+\frac12\tanh\frac x2$, softplus its integral and silu $x\,\sigma(x)$, so each moment is a double sum
of elementary ones (`_shares.py`), as right at any variance as these are.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.numerics import arctan2

from ._activation import Activation, register
from ._cov import Cov, Matrix
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

Term = Callable[[Shares, Shares], Matrix]  # for two scales, either way round
_CITES = ("andrews1974scale", "stefanski1991normal")


def _mean(cov: Cov, stretch: float, *terms: Term) -> tuple[Matrix, ...]:
    """The mean of each term over all pairs of scales, `stretch` times those of tanh."""
    dtype = cov.minus.dtype
    scales, weights = np.array(RULES[str(dtype)]).T
    column = lambda q: jnp.asarray((stretch * scales) ** -2, dtype).reshape((-1,) + (1,) * q.ndim)
    one, two = (Side.of(q[None], column(q)) for q in (cov.q1, cov.q2))
    i, j = np.triu_indices(scales.size)  # a term has both (i, j) and (j, i)
    weight = jnp.asarray(weights[i] * weights[j] * np.where(i == j, 0.5, 1), dtype)
    places = jnp.asarray([i, j], jnp.int32)

    # Differentiated backwards, a term is computed again rather than kept for each pair of scales.
    @jax.checkpoint
    def values(cov: Cov, sides: tuple[Side, Side, Side, Side], weight: Matrix) -> list[Matrix]:
        pair = Shares.between(cov, *sides[:2]), Shares.between(cov, *sides[2:])
        return [weight * term(*pair) for term in terms]

    def add(n: jax.Array, totals: tuple[Matrix, ...]) -> tuple[Matrix, ...]:
        i, j = places[0, n], places[1, n]
        at = lambda side, i: jax.tree.map(lambda a: a[i], side)
        more = values(cov, (at(one, i), at(two, j), at(one, j), at(two, i)), weight[n])
        return tuple(a + b for a, b in zip(totals, more, strict=True))

    shape = jnp.broadcast_shapes(cov.q1.shape, cov.q2.shape, cov.minus.shape)
    start = tuple(jnp.zeros(shape, dtype) for _ in terms)
    return jax.lax.fori_loop(np.int32(0), np.int32(i.size), add, start)


def _arcs(a: Shares, b: Shares) -> Matrix:
    """The sum of two angles as twice their mean: one arctangent."""
    return 2 * arctan2(a.rho * (a.y + b.y), a.cosine + b.cosine)


def _sum(term: Callable[[Shares], Matrix]) -> Term:
    return lambda a, b: term(a) + term(b)


def _tanh_dual(cov: Cov) -> Matrix:
    return 2 / jnp.pi * _mean(cov, 1.0, _arcs)[0]


def _tanh_both(cov: Cov) -> tuple[Matrix, Matrix]:
    arc, dot = _mean(cov, 1.0, _arcs, _sum(sign_dot))
    return 2 / jnp.pi * arc, dot


tanh = register(
    Activation(
        "tanh",
        jnp.tanh,
        dual=_tanh_dual,
        dual_and_dot=_tanh_both,
        mean_dot=lambda c: _mean(c, 1.0, _sum(sign_mean_dot))[0],
        parity="odd",
        lipschitz=1.0,
        latex=r"\tanh x",
        cites=(*_CITES, "williams1997computing"),
    )
)


def _sigmoid_dual(cov: Cov) -> Matrix:
    return 0.25 + _mean(cov, 2.0, _arcs)[0] / (2 * jnp.pi)


def _sigmoid_both(cov: Cov) -> tuple[Matrix, Matrix]:
    arc, dot = _mean(cov, 2.0, _arcs, _sum(sign_dot))
    return 0.25 + arc / (2 * jnp.pi), dot / 4


sigmoid = register(
    Activation(
        "sigmoid",
        jax.nn.sigmoid,
        dual=_sigmoid_dual,
        dual_and_dot=_sigmoid_both,
        mean_dot=lambda c: _mean(c, 2.0, _sum(sign_mean_dot))[0] / 4,
        lipschitz=0.25,
        latex=r"1/(1+e^{-x})",
        cites=(*_CITES, "williams1997computing"),
    )
)


def _softplus_both(cov: Cov) -> tuple[Matrix, Matrix]:
    # The noisy standard deviations times the noisy correlation: the covariance, whatever the noise.
    arc, sines = _mean(cov, 2.0, _arcs, _sum(lambda s: s.cosine / s.short))
    below = (jnp.pi / 2 + arc) / (2 * jnp.pi)
    return cov.k * below + sines / (2 * jnp.pi), below


softplus = register(
    Activation(
        "softplus",
        jax.nn.softplus,
        dual=lambda c: _softplus_both(c)[0],
        dual_and_dot=_softplus_both,
        mean_dot=lambda c: _mean(c, 2.0, _sum(ramp_mean_dot))[0],
        lipschitz=1.0,
        latex=r"\log(1+e^{x})",
        cites=(*_CITES, "cho2009kernel"),
    )
)


def _silu_both(cov: Cov) -> tuple[Matrix, Matrix]:
    arc, bulk, tilt = _mean(cov, 2.0, _arcs, _sum(gate_bulk), _sum(gate_tilt))
    below = jnp.pi / 2 + arc
    return cov.scale * (cov.rho * below + bulk) / (2 * jnp.pi), (below + tilt) / (2 * jnp.pi)


silu = register(
    Activation(
        "silu",
        jax.nn.silu,
        dual=lambda c: _silu_both(c)[0],
        dual_and_dot=_silu_both,
        mean_dot=lambda c: _mean(c, 2.0, _sum(gate_mean_dot))[0],
        lipschitz=1.0998393194,
        latex=r"x/(1+e^{-x})",
        cites=(*_CITES, "tsuchida2021avoiding"),
    )
)
