"""The phase diagram of fully connected networks in the plane of weight and bias variances."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.typing import ArrayLike

from widelimit.activations import Activation, get, second_moment
from widelimit.analysis._slope import mean_square_slope

from ._fixed_points import SCAN_DOWN, SCAN_UP

Named = str | Activation | Callable[..., Array]
Moment = Callable[[Float[Array, " n"]], Float[Array, " n"]]


class PhaseDiagram(NamedTuple):
    r"""Fixed points over a grid of $(\sigma_w,\sigma_b)$.

    Attributes:
        w_std: The grid's weights, shape (w,).
        b_std: The grid's biases, shape (b,).
        q: $q^*$, shape (b, w); infinite where the variance grows for ever.
        chi: $\chi_1$, shape (b, w): below 1 ordered, above 1 chaotic.
        length: $1/|\log\chi_1|$: the layers over which small differences vanish or grow.
    """

    w_std: np.ndarray
    b_std: np.ndarray
    q: np.ndarray
    chi: np.ndarray
    length: np.ndarray


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
    r"""$q^*$ and $\chi_1=\sigma_w^2E[\varphi'(\sqrt{q^*}z)^2]$ of an MLP over a grid.

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
    chi = w2 * _evaluate(slope, np.where(np.isinf(q), 1e6, np.maximum(q, 1e-10)))
    with np.errstate(divide="ignore"):
        length = 1 / np.abs(np.log(chi))
    return PhaseDiagram(w, b, q, chi, length)


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
