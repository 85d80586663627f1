r"""Fourth moments: what a layer of finitely many neurons does that one of infinitely many does not.

For inputs of variances $q_1,q_2$ and correlation $\rho$, with the dimensionless functions
$p(u)=\varphi(u)/\sqrt{T(q)}$ and $d(u)=\sqrt q\,\varphi'(u)/\sqrt{T(q)}$, $T=E[\varphi^2]$, they are the
expectations of four factors, each $p$ or $d$ of either input, and the first two derivatives of
$E[\varphi\varphi]$ and $E[\varphi'\varphi']$ in the covariance. By the heat equation derivatives are moments too:
$s_{ij}=q_1^{i/2}q_2^{j/2}E[\varphi^{(i)}(u)\varphi^{(j)}(v)]/\sqrt{T_1T_2}$ (for kinks: what the derivative of the
smoothed function is). All of it is free of units, so no norm overflows.

Three ways lead there: a formula (piecewise linear functions, erf, waves), Hermite series (functions without
break points; all series have coefficients that belong to one input, so an entry costs a few short sums), and
a quadrature in the plane, where there are breaks with the derivatives on the density. That one loses digits
near $|\rho|=1$, like $\varepsilon(1-\rho^2)^{-2}$; a series nowhere. The formula has the digits also of what
shifts means, of which kinks make quotients of statistics that vanish (`_charts.py`).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.compile import quick_jit
from widelimit._base.quadrature import hermite_basis
from widelimit._base.thresholds import MOST_TERMS

from ._activation import Activation
from ._charts import Local, charted, end_of
from ._cov import Cov, Matrix
from ._fourth_plane import fourth_in_plane
from ._fourth_records import COUNTED, HIGHEST, ORDERS, Alone, Fourth, assembled, standardised
from ._moments import How, bounded
from ._series import series


def fourth_moments(act: Activation, cov: Cov, how: How) -> Fourth:
    """The fourth moments of an activation.

    Args:
        act: The activation.
        cov: The covariance of its inputs; `q1` of shape (rows, 1), `q2` of shape (1, columns).
        how: Terms of the Hermite series (from `fourth_terms`); 0 asks for the quadrature.

    Returns:
        The moments; those of pairs have the shape of `cov.minus`.
    """
    if act.fourth is not None:
        return act.fourth(cov)
    cov = Cov(bounded(cov.q1), bounded(cov.q2), cov.minus, cov.plus)
    if how.terms == 0 or act.breaks:
        return fourth_in_plane(act, cov)
    return fourth_by_series(act, cov, how.terms)


def local_moments(act: Activation, cov: Cov, how: How) -> Local:
    """The same in the coordinates of nearly parallel inputs.

    Args:
        act: The activation.
        cov: The covariance of its inputs, whose chart is that of the nearer end.
        how: As in `fourth_moments`.

    Returns:
        The moments in charts.
    """
    if act.local is not None:
        return act.local(cov)
    return charted(fourth_moments(act, cov, how), end_of(cov.minus, cov.plus))


# --- Hermite series ---------------------------------------------------------------------------------

Exact = tuple[float, Callable[[Matrix, int, int, int], Matrix]]
_POWERS = (2, 0), (1, 1), (0, 2), (3, 0), (2, 1), (1, 2), (0, 3)  # factors p and d


def _place(p: int, d: int) -> int:
    """Where the coefficients of p^p d^d are found in the stack of `_coefficients`."""
    if p + d == 1:
        return d
    return 1 + HIGHEST + _POWERS.index((p, d))


def _products() -> list[tuple[int, int]]:
    """The two functions of every mixed moment, in the order of `Fourth`."""
    count = lambda p, d, i, j: (_place(p - i, d - j), _place(i, j))
    x = [count(4, 0, i, 0) for i in (1, 2, 3)]
    z = [count(0, 4, 0, j) for j in (1, 2, 3)]
    y = [count(2, 2, i, j) for i, j in COUNTED]
    return [*ORDERS, *x, *z, *y]


def _expanded(act: Activation, q: Matrix, terms: int) -> tuple[Array, tuple[Matrix, ...]]:
    """The coefficients of p and of all products, and the fourth moments."""
    z, basis = hermite_basis(terms, 160 + terms // 2)
    z = jnp.asarray(z, q.dtype).reshape((-1,) + (1,) * q.ndim)
    p, d = (f(z) for f in standardised(act)(q[None]))
    expand = lambda basis, values: jnp.tensordot(
        jnp.asarray(basis, q.dtype), jnp.stack(values, axis=1), axes=1, precision="highest"
    )
    products = [p, *(p**i * d**j for i, j in _POWERS)]
    return expand(basis, products), tuple(expand(basis[0], [p**4, p**2 * d**2, d**4]))


def _coefficients(
    act: Activation, q: Matrix, terms: int, exact: Exact | None
) -> tuple[Array, tuple[Matrix, ...]]:
    r"""Those of the derivatives of $p$ up to order 5 and of all products; the fourth moments."""
    if exact is None:
        found, fourth = _expanded(act, q, terms)
    else:
        found, fourth = _expanded(act, jnp.minimum(q, exact[0]), terms)
        known = jnp.stack([exact[1](q, terms, *powers) for powers in ((1, 0), *_POWERS)], axis=1)
        found = jnp.where((q < exact[0])[None, None], found, known)
    roots = jnp.asarray(np.sqrt(np.arange(1.0, terms + 1)), q.dtype)
    derivatives = [found[:, :1]]
    for _ in range(HIGHEST):  # of order i: sqrt((n + i)!/n!) a_(n + i)
        last = derivatives[-1]
        shifted = jnp.concatenate([last[1:], jnp.zeros_like(last[:1])])
        derivatives.append(roots.reshape((-1,) + (1,) * (1 + q.ndim)) * shifted)
    return jnp.concatenate([*derivatives, found[:, 1:]], axis=1), fourth


def fourth_by_series(act: Activation, cov: Cov, terms: int, exact: Exact | None = None) -> Fourth:
    """The fourth moments of a function without break points, by Hermite series.

    Args:
        act: The activation.
        cov: The covariance of its inputs.
        terms: Of the series.
        exact: A variance, and the coefficients of $p^id^j$ in closed form for larger ones, as a function of
            the variance, the number of terms, i and j.

    Returns:
        The moments.
    """
    (a, first), (b, second) = (_coefficients(act, q, terms, exact) for q in (cov.q1, cov.q2))
    left, right = (np.array(side) for side in zip(*_products(), strict=True))
    sums = series(0, a[:, left], b[:, right], cov.rho[None])
    return assembled(_alone(a, first), _alone(b, second), list(sums))


def _alone(a: Array, fourth: tuple[Matrix, ...]) -> Alone:
    s = {(i, j): jnp.sum(a[:, i] * a[:, j], axis=0) for i, j in ORDERS}
    return Alone(
        s[1, 1],
        s[1, 1] + s[2, 0],
        s[4, 0] / 2 + 2 * s[3, 1] + 1.5 * s[2, 2],
        s[2, 2] + s[3, 1],
        s[5, 1] / 2 + 2 * s[4, 2] + 1.5 * s[3, 3],
        *fourth,
    )


# --- how long the series must be -------------------------------------------------------------------


@quick_jit
def _shares(act: Activation, q: Float[Array, " k"]) -> Float[Array, "terms k"]:
    """Squared coefficients relative to their sum; the largest of all functions."""
    square = jnp.square(_expanded(act, q, MOST_TERMS)[0])
    return jnp.max(square / jnp.sum(square, axis=0)[None], axis=1)


def fourth_terms(act: Activation, variances: list[float], tolerance: float = 1e-13) -> int:
    """The length of the series that serves all given variances; 0 where none does, or none is needed.

    Args:
        act: The activation.
        variances: Where it is used.
        tolerance: Of the first term that is left out, relative to the sum.

    Returns:
        The number of terms.
    """
    if act.fourth is not None or act.breaks:
        return 0
    with jax.enable_x64(True):
        q = jnp.asarray([min(variances), max(variances)])
        share = np.nan_to_num(np.asarray(_shares(act, q)), nan=1.0).max(axis=1)
    share = share * (1 + np.arange(MOST_TERMS)) ** 3  # as s51 weights them
    tail = np.maximum.accumulate(share[::-1])[::-1]
    if not tail[7 * MOST_TERMS // 8] < tolerance:
        return 0
    needed = int(np.argmax(tail < tolerance))
    return next(n for n in (32, 64, 128, 256, 512, 768, MOST_TERMS) if n >= needed)
