"""Fixed points of the variance map and of the correlation map."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq

from widelimit._base.shown import shown
from widelimit.analysis._near import Near
from widelimit.interpret import interpret
from widelimit.layers import Layer

from ._block import block_of, step

_SMALL, _LARGE = 1e-10, 1e6
SCAN_UP, SCAN_DOWN = np.logspace(0, 12, 25)[1:], np.logspace(0, -10, 21)[1:]


@shown("where depth drives variances and correlations")
class FixedPoint(NamedTuple):
    r"""Where depth drives variances and correlations.

    Attributes:
        q: The variance $q^*$; 0 or infinity where it vanishes or grows for ever.
        c: The stable correlation $c^*$ of two different inputs; None where the variance grows for
            ever and later blocks change correlations less and less, so that they keep their own.
        chi: $\chi_1=\sigma_w^2E[\varphi'^2]$, the slope of the covariance map at equal inputs: the factor
            by which squared gradients grow in each block. At a finite $q^*$ it is also the slope
            of the correlation map at c = 1: above 1 nearby inputs separate.
        slope: The slope of the correlation map at $c^*$.
        length_q: Layers over which the variance forgets its start, $-1/\log|dq'/dq|$.
        length_c: The correlation length $\xi_c=-1/\log\chi(c^*)$; infinite at criticality.
        phase: "ordered" ($\chi_1<1$), "chaotic" ($\chi_1>1$) or "critical".
    """

    q: float
    c: float | None
    chi: float
    slope: float
    length_q: float
    length_c: float
    phase: str


def variance_map(net: Layer, q: Any) -> Any:
    r"""One block of the network applied to a variance: $q\mapsto q'$.

    Args:
        net: A network with one repeated block, or the block itself.
        q: Variances, positive.

    Returns:
        The variances after the block.

    Example:
        >>> import widelimit as wl
        >>> wl.signal.variance_map(wl.mlp(depth=9, w_std=1.0, b_std=0.5), 1.0)  # q/2 + 1/4
        0.75
    """
    block = block_of(net)
    given = np.asarray(q, dtype=np.float64)
    if not np.all((given > 0) & np.isfinite(given)):
        raise ValueError(f"Variances must be positive and finite, got {q!r}.")
    out = np.array([interpret(block, Near(v)).q for v in given.ravel().tolist()])
    return out.reshape(given.shape) if given.ndim else float(out[0])


def correlation_map(net: Layer, c: Any, q: float | None = None) -> Any:
    r"""One block of the network applied to a correlation of two inputs of variance q.

    Args:
        net: A network with one repeated block, or the block itself.
        c: Correlations in [-1, 1].
        q: The variance; by default the fixed point of the variance map (a large one if there is none).

    Returns:
        The correlations after the block.

    Example:
        >>> import widelimit as wl
        >>> round(wl.signal.correlation_map(wl.mlp(depth=9), 0.0), 6)  # 1/pi
        0.31831
    """
    block = block_of(net)
    given = np.asarray(c, dtype=np.float64)
    if not np.all(np.abs(given) <= 1):
        raise ValueError(f"Correlations lie in [-1, 1], got {c!r}.")
    if q is None:
        q = float(usable(_variance(block)))
    elif not 0 < q < math.inf:
        raise ValueError(f"q is a variance and must be positive, got {q!r}.")
    _, minus, plus, _ = step(block, q, 1 - given, 1 + given)
    out = (plus - minus) / 2
    return out if given.ndim else float(out)


def fixed_point(net: Layer) -> FixedPoint:
    r"""$q^*$, $c^*$, $\chi_1$, correlation lengths and phase of the block that a network repeats.

    Correlation maps are convex on [0, 1] (their Taylor coefficients are squares), so $c^*=1$ is
    the stable fixed point when their slope there is at most 1; otherwise one lies in [0, 1).

    Args:
        net: A network with one repeated block, or the block itself.

    Returns:
        The fixed point that an input of variance 1 is drawn to.

    Example:
        >>> import widelimit as wl
        >>> p = wl.signal.fixed_point(wl.mlp(depth=9, activation="tanh", w_std=2.0, b_std=0.3))
        >>> p.phase, bool(p.chi > 1), bool(0 < p.c < 1)
        ('chaotic', True, True)
        >>> wl.signal.fixed_point(wl.mlp(depth=9, w_std=2**0.5)).phase  # He initialisation
        'critical'

    Reference:
        Poole et al. (2016); Schoenholz et al. (2017), Deep information propagation.
    """
    block = block_of(net)
    q = _variance(block)
    at = float(usable(q))
    near = interpret(block, Near(at))
    chi = near.m * near.q / at
    phase = "critical" if abs(chi - 1) < 1e-9 else "ordered" if chi < 1 else "chaotic"
    c, slope = _chaotic(block, at) if near.m > 1 + 1e-9 else (1.0, near.m)
    if math.isinf(q) and abs(correlation_map(block, 0.5, at) - 0.5) < 1e-4:
        c, slope = None, 1.0
    return FixedPoint(q, c, chi, slope, _length(_variance_slope(block, q)), _length(slope), phase)


def usable(q: Any) -> Any:
    """The variance at which the correlation map is evaluated; where q grows for ever, a large one."""
    return np.where(np.isinf(q), _LARGE, np.maximum(q, _SMALL))


def _length(slope: float) -> float:
    size = abs(slope)
    if abs(size - 1) < 1e-7:
        return math.inf
    return 0.0 if size == 0 else abs(1 / math.log(size))


def _chaotic(block: Layer, q: float) -> tuple[float, float]:
    def excess(c: float) -> float:
        _, minus, plus, _ = step(block, q, 1 - c, 1 + c)
        # Near 1 compare the distances from 1, which keep their digits.
        return float((1 - c) - minus) if c > 0.5 else float((plus - minus) / 2 - c)

    root: Any = 0.0 if excess(0.0) <= 0 else brentq(excess, 0.0, 1 - 1e-9, xtol=1e-14)
    c = float(root)
    return c, float(step(block, q, 1 - c, 1 + c)[3])


def _variance_slope(block: Layer, q: float) -> float:
    if math.isinf(q):
        return 1.0
    at = max(q, _SMALL)
    up, down = (interpret(block, Near(at * (1 + h))).q for h in (1e-4, -1e-4))
    return (up - down) / (2e-4 * at)


def _variance(block: Layer) -> float:
    """The fixed point next to 1 in the direction in which the map moves a variance of 1."""
    excess = lambda q: interpret(block, Near(q)).q / q - 1
    start = excess(1.0)
    if abs(start) <= 1e-14:
        return 1.0
    before = 1.0
    for q in SCAN_UP if start > 0 else SCAN_DOWN:
        here = excess(q)
        if abs(here) > 1e-13 and (here > 0) != (start > 0):
            root: Any = brentq(excess, min(before, q), max(before, q), xtol=1e-14 * q)
            return float(root)
        before = q
    return math.inf if start > 0 else 0.0
