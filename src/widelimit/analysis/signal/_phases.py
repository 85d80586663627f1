"""The phase diagram of fully connected networks in the plane of weight and bias variances."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial.chebyshev import chebval, chebvander
from numpy.typing import ArrayLike

from widelimit._base.shown import shown
from widelimit.activations import (
    Activation,
    Cov,
    How,
    get,
    second_moment,
    terms_needed,
    transform,
)
from widelimit.analysis._slope import mean_square_slope

from ._fixed_points import SCAN_DOWN, SCAN_UP, usable

_TABLE = 48, 32  # nodes in the variance and in the correlation

Named = str | Activation | Callable[..., Array]
Moment = Callable[[Float[Array, " n"]], Float[Array, " n"]]


@shown("fixed points over a grid of weights and biases")
class PhaseDiagram(NamedTuple):
    r"""Fixed points over a grid of $(\sigma_w,\sigma_b)$.

    Attributes:
        w_std: The grid's weights, shape (w,).
        b_std: The grid's biases, shape (b,).
        q: $q^*$, shape (b, w); infinite where the variance grows for ever.
        chi: $\chi_1$, shape (b, w): below 1 ordered, above 1 chaotic.
        length: $1/|\log\chi_1|$: the layers over which small differences vanish or grow.
        c: $c^*$, the correlation that depth drives two inputs to, shape (b, w): 1 where ordered; NaN where
            the variance grows for ever and correlations stay what they are.
    """

    w_std: np.ndarray
    b_std: np.ndarray
    q: np.ndarray
    chi: np.ndarray
    length: np.ndarray
    c: np.ndarray


@functools.lru_cache(maxsize=64)
def _moments(act: Activation) -> tuple[Moment, Moment]:
    """The compiled functions q -> E[phi^2] and q -> E[phi'^2]."""
    return (
        jax.jit(lambda q: second_moment(act, q)),
        jax.jit(lambda q: mean_square_slope(act, q)),
    )


def _evaluate(function: Moment, q: Float[np.ndarray, "*grid"]) -> Float[np.ndarray, "*grid"]:
    with jax.enable_x64(True):
        return np.array(function(jnp.asarray(q.ravel()))).reshape(q.shape)


def phase_diagram(activation: Named, w_std: ArrayLike, b_std: ArrayLike) -> PhaseDiagram:
    r"""$q^*$, $c^*$ and $\chi_1=\sigma_w^2E[\varphi'(\sqrt{q^*}z)^2]$ of an MLP over a grid.

    Args:
        activation: A name, an `Activation` or a function.
        w_std: Weight standard deviations, shape (w,).
        b_std: Bias standard deviations, shape (b,).

    Returns:
        The diagram.

    Example:
        >>> import widelimit as wl
        >>> d = wl.signal.phase_diagram("tanh", [0.5, 1.0, 3.0], [0.1, 0.2])
        >>> (d.chi > 1).astype(int)
        array([[0, 0, 1],
               [0, 0, 1]])
        >>> d.c.round(2)
        array([[1.  , 1.  , 0.01],
               [1.  , 1.  , 0.03]])

    Reference:
        Poole et al. (2016), Exponential expressivity in deep neural networks through transient chaos.
    """
    act = get(activation)
    if not act.has_ntk:
        raise ValueError(
            f"{act.name!r} has no square-integrable derivative, so chi is infinite: every network "
            "with it is chaotic."
        )
    w, b = (np.atleast_1d(np.asarray(a, dtype=np.float64)) for a in (w_std, b_std))
    for name, values in (("w_std", w), ("b_std", b)):
        if values.ndim != 1 or not np.all(np.isfinite(values)) or np.any(values < 0):
            raise ValueError(f"{name} lists standard deviations, at least 0 each; got {values!r}.")
    moment, slope = _moments(act)
    w2, b2 = np.broadcast_arrays(w[None, :] ** 2, b[:, None] ** 2)
    q = _settle(functools.partial(_evaluate, moment), w2, b2)
    chi = w2 * _evaluate(slope, usable(q))
    with np.errstate(divide="ignore"):
        length = 1 / np.abs(np.log(chi))
    return PhaseDiagram(w, b, q, chi, length, _correlations(act, q, chi, w2, b2))


def _settle(
    moment: Callable[[np.ndarray], np.ndarray],
    w2: Float[np.ndarray, "b w"],
    b2: Float[np.ndarray, "b w"],
) -> Float[np.ndarray, "b w"]:
    """Fixed points for the whole grid: scan for the first sign change away from 1, then bisect."""
    excess = lambda m, q: (w2 * m + b2) / q - 1
    start = excess(moment(np.ones(1))[0], 1.0)
    up = start > 0
    low, high = np.ones(w2.shape), np.ones(w2.shape)  # the fixed point lies between
    found = np.abs(start) <= 1e-14
    for scan, mine in ((SCAN_UP, up), (SCAN_DOWN, ~up)):
        before = 1.0
        for q, m in zip(scan, moment(scan), strict=True):
            here = excess(m, q)
            new = mine & ~found & (np.abs(here) > 1e-13) & ((here > 0) != up)
            low, high = np.where(new, min(before, q), low), np.where(new, max(before, q), high)
            found, before = found | new, q
    for _ in range(50):
        middle = np.sqrt(low * high)
        above = excess(moment(middle), middle) > 0
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return np.where(found, np.sqrt(low * high), np.where(up, math.inf, 0.0))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _output(
    act: Activation, how: How, q: Float[Array, " n"], gap: Float[Array, " n"]
) -> Float[Array, " n"]:
    """1 - rho behind the activation, at equal variances."""
    moment = second_moment(act, q)
    return transform(act, Cov(q, q, gap, 2 - gap), moment, moment, how)[0]


def _correlations(
    act: Activation,
    q: Float[np.ndarray, "b w"],
    chi: Float[np.ndarray, "b w"],
    w2: Float[np.ndarray, "b w"],
    b2: Float[np.ndarray, "b w"],
) -> Float[np.ndarray, "b w"]:
    """The stable fixed point of the correlation map."""
    at = usable(q)
    own = w2 * _evaluate(_moments(act)[0], at)
    share = np.divide(own, own + b2, out=np.zeros_like(own), where=(own > 0) & (own < np.inf))
    c = np.ones_like(at)
    chaotic = chi * at > (1 + 1e-9) * (own + b2)
    for group in (np.isfinite(q), np.isinf(q)):
        some = chaotic & group
        if some.any():
            c[some] = _stable(act, at[some], share[some])
    growing = np.isinf(q)
    if growing.any():  # there depth may leave correlations alone
        kept = share[growing] * _after(act, at[growing][:1], np.array([0.5]))
        c[growing] = np.where(
            (np.abs(kept - 0.5) < 1e-4) | np.isinf(own[growing]), np.nan, c[growing]
        )
    return c


def _after(
    act: Activation, q: Float[np.ndarray, " n"], gap: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    with jax.enable_x64(True):
        how = How(terms_needed(act, [float(q.min()), float(q.max())], 1e-12))
        return np.array(_output(act, how, jnp.asarray(q), jnp.asarray(gap)))


def _stable(
    act: Activation, q: Float[np.ndarray, " n"], share: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    r"""Where $1-c=s\,(1-\rho'(c))$, s the share of the weights in the variance.

    $(1-\rho')/(1-c)$ falls as c does, and is analytic in $\log q$ and $\sqrt{1-c}$: a table of Chebyshev
    coefficients serves all points.
    """
    middle, half = (np.log(q.max()) + np.log(q.min())) / 2, np.log(q.max() / q.min()) / 2 + 0.05
    x, y = (np.cos((np.arange(n) + 0.5) * np.pi / n) for n in _TABLE)
    grid = np.repeat(np.exp(middle + half * x), _TABLE[1]), np.tile((1 + y) / 2, _TABLE[0]) ** 2
    ratio = _after(act, *grid) / grid[1]
    fit = lambda n: np.linalg.inv(chebvander(np.cos((np.arange(n) + 0.5) * np.pi / n), n - 1))
    table = fit(_TABLE[0]) @ ratio.reshape(_TABLE) @ fit(_TABLE[1]).T
    rows = (chebvander((np.log(q) - middle) / half, _TABLE[0] - 1) @ table).T
    low, high = np.zeros_like(q), np.ones_like(q)  # of sqrt(1 - c)
    for _ in range(48):
        at = (low + high) / 2
        apart = share * chebval(2 * at - 1, rows, tensor=False) > 1
        low, high = np.where(apart, at, low), np.where(apart, high, at)
    return 1 - ((low + high) / 2) ** 2


def edge_of_chaos(activation: Named, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    r"""The critical line $\chi_1=1$, exactly, with the fixed point's variance as parameter.

    $\sigma_w^2=1/E[\varphi'(\sqrt qz)^2]$, $\sigma_b^2=q-\sigma_w^2E[\varphi(\sqrt qz)^2]$.

    Args:
        activation: A name, an `Activation` or a function.
        q: Variances, positive.

    Returns:
        $\sigma_w$ and $\sigma_b$ on the line; points with $\sigma_b^2<0$ are left out.

    Example:
        >>> import widelimit as wl
        >>> w, b = wl.signal.edge_of_chaos("relu", [1.0])  # a single point: He initialisation
        >>> round(float(w[0] ** 2), 12), float(b[0])
        (2.0, 0.0)
    """
    act = get(activation)
    variance = np.atleast_1d(np.asarray(q, dtype=np.float64))
    if not np.all((variance > 0) & np.isfinite(variance)):
        raise ValueError(f"Variances must be positive and finite, got {q!r}.")
    moment, slope = _moments(act)
    w2 = 1 / _evaluate(slope, variance)
    b2 = variance - w2 * _evaluate(moment, variance)
    keep = b2 > -1e-12 * variance
    return np.sqrt(w2[keep]), np.sqrt(np.maximum(b2[keep], 0))
