r"""Any function at unequal norms: what a layer does to correlations, tabulated once.

With $\ell_i=\log q_i$ and the angle $\theta$, the slope $S=d\rho'/d\rho$ of a function that is analytic on either
side of 0 is analytic in $(\ell_1,\ell_2,\theta)$, and so is the mean slope
$W=\frac1{1-\cos\theta}\int_0^\theta S\sin t\,dt$. Hence

$$1-\rho'=(\ell_1-\ell_2)^2\,G(\ell_1,\ell_2)+(1-\rho)\,W(\ell_1,\ell_2,\theta),$$

in which nothing cancels: $G$ is the gap of Cauchy and Schwarz over the squared difference. All three are
Chebyshev series whose coefficients, symmetric in the two inputs, have low rank: a value costs about a hundred
multiplications. The nodes come from one rule in polar coordinates, cut where a pre-activation changes sign,
which serves all variances at once.
"""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.numerics import at_least_zero
from widelimit._base.quadrature import gauss_legendre

from ._activation import Activation
from ._cov import Cov, Matrix
from ._gap import unequal
from ._table_values import (
    AROUND,
    STEP,
    Nodes,
    chebyshev_nodes,
    gaps_at,
    interpolation,
    sizes_at,
    slopes_at,
    to_coefficients,
)

_ANGLES = (32, 64, 128)  # nodes in the angle that are tried
_WIDEST = math.log(3e4)  # the largest quotient of variances
_STRIP = 2.5  # of log q, in which functions are taken to be analytic; decides the number of nodes
_TOGETHER = 4  # degrees in one step of a loop


class Spec(NamedTuple):
    """What a table is for; static under jit.

    Attributes:
        act: The activation.
        low: The binary logarithm of the smallest variance.
        high: That of the largest.
        tolerance: The error relative to the largest value.
    """

    act: Activation
    low: float
    high: float
    tolerance: float

    @property
    def logs(self) -> tuple[float, float]:
        """The natural logarithms."""
        return self.low * math.log(2), self.high * math.log(2)


class Table(NamedTuple):
    """Symmetric series: coefficients[k, s] and signs[k, s] of degree k in the angle, rank s, over degrees of log q.

    Attributes:
        mean: Of W.
        slope: Of S.
        apart: Of G, with one degree in the angle.
        turn: The largest angle.
    """

    mean: tuple[Nodes, Nodes]
    slope: tuple[Nodes, Nodes]
    apart: tuple[Nodes, Nodes]
    turn: float


def table_for(act: Activation, variances: list[float], tolerance: float) -> Spec | None:
    """A table for all variances between the extremes of those given; None where none is good enough.

    The bounds are rounded outwards, to be met again, and so that variances in between stay between.
    """
    if not act.has_ntk or any(act.breaks) or act.degree is not None:
        return None
    low, high = math.log2(min(variances)), math.log2(max(variances))
    spec = Spec(act, math.floor(2 * low - 0.5) / 2, math.ceil(2 * high + 0.5) / 2, tolerance)
    return None if built(spec) is None else spec


@functools.lru_cache(maxsize=64)
def built(spec: Spec) -> Table | None:
    """The table, its series cut where they have converged; None if they do not."""
    low, high = spec.logs
    if high - low > _WIDEST or not -60 < low <= high < 30:
        return None
    nodes = 8 + math.ceil(-math.log(spec.tolerance) / math.asinh(2 * _STRIP / (high - low)))
    logs = low + (high - low) * (chebyshev_nodes(nodes) + 1) / 2
    turn = math.pi if spec.act.parity is None else math.pi / 2
    with jax.enable_x64(True), np.errstate(all="ignore"):
        size = sizes_at(spec.act, logs)
        for count in _ANGLES:
            angles = turn * (chebyshev_nodes(count) + 1) / 2
            trial = [slopes_at(spec.act, end, 1, angles) for end in (low, high)]
            if all(_converged(_coefficients(t), 0, spec.tolerance) for t in trial):
                break
        else:
            return None
        start, points = low - AROUND * STEP, math.ceil((high - low) / (2 * STEP)) + AROUND + 1
        slope = slopes_at(spec.act, start, points, angles)
        onto = interpolation(start, points, logs) * size[:, None]
        slope = onto @ slope @ onto.T
        coefficients, apart = _coefficients(slope), _coefficients(gaps_at(spec.act, logs)[None])
        if not (_converged(coefficients, 1, spec.tolerance) and np.isfinite(apart).all()):
            return None
        mean = _coefficients(np.tensordot(_averaging(angles, turn), slope, axes=1))
        cut = lambda series: _low_rank(series, spec.tolerance)
        table = Table(cut(mean), cut(coefficients), cut(apart), turn)
        return table if _certified(spec, table) else None


def read(
    spec: Spec, cov: Cov, given: tuple[Float[Array, "..."], Float[Array, "..."]]
) -> tuple[Matrix, Matrix, Matrix]:
    """1 - rho', 1 + rho' and the slope; `given` are the variances in float64, `cov` the angle."""
    table, (low, high) = built(spec), spec.logs
    assert table is not None
    logs = [jnp.log(jnp.clip(q, math.exp(low), math.exp(high))) for q in given]
    rows = table.slope[0].shape[2]
    one, two = (_chebyshev(2 * (v - low) / (high - low) - 1, rows) for v in logs)
    x = 2 * cov.theta / table.turn - 1
    mean, slope = (_summed(series, one, two, x) for series in (table.mean, table.slope))
    apart = _summed(table.apart, one, two, x) * (logs[0] - logs[1]).astype(x.dtype) ** 2
    apart = jnp.where(unequal(*given), at_least_zero(apart), 0)
    minus = apart + at_least_zero(cov.minus * mean)
    return minus, at_least_zero(2 - minus), slope


def _summed(series: tuple[Nodes, Nodes], one: Array, two: Array, x: Matrix) -> Matrix:
    """Clenshaw's recursion in the angle, whose coefficients are products of functions of the inputs."""
    signed, plain = (jnp.asarray(a) for a in (series[0] * series[1][..., None], series[0]))
    degrees, ranks, _ = plain.shape

    def coefficient(k: Any) -> Matrix:
        first, second = (
            jnp.tensordot(jax.lax.dynamic_index_in_dim(c, k, keepdims=False), b, axes=1)
            for c, b in ((signed, one), (plain, two))
        )
        first, second = first.astype(x.dtype), second.astype(x.dtype)
        return sum((first[s] * second[s] for s in range(1, ranks)), first[0] * second[0])

    if degrees == 1:
        return coefficient(0) + jnp.zeros_like(x)
    step = math.gcd(_TOGETHER, degrees)

    def add(i: Any, carry: tuple[Matrix, Matrix]) -> tuple[Matrix, Matrix]:
        b1, b2 = carry
        for j in range(step):
            b1, b2 = coefficient(degrees - 1 - step * i - j) + 2 * x * b1 - b2, b1
        return b1, b2

    shape = jnp.broadcast_shapes(one.shape[1:], two.shape[1:], x.shape)
    zero = jnp.zeros(shape, x.dtype)
    b1, b2 = jax.lax.fori_loop(0, degrees // step, add, (zero, zero))
    return b1 - x * b2


def _chebyshev(x: Array, degrees: int) -> Array:
    """T_0(x), T_1(x), ..., along a new first axis."""
    values = [jnp.ones_like(x), x]
    for _ in range(degrees - 2):
        values.append(2 * x * values[-1] - values[-2])
    return jnp.stack(values[:degrees])


def _coefficients(values: Nodes) -> Nodes:
    """Chebyshev coefficients of values at nodes, along all three axes."""
    for axis, count in enumerate(values.shape):
        values = np.moveaxis(np.tensordot(to_coefficients(count), values, (1, axis)), 0, axis)
    return values


def _converged(coefficients: Nodes, axis: int, tolerance: float) -> bool:
    """Whether the last coefficients along an axis are below the tolerance."""
    sizes = np.moveaxis(np.abs(coefficients), axis, 0)
    return bool(np.isfinite(sizes).all() and sizes[-2:].max() <= tolerance * sizes.max())


def _low_rank(coefficients: Nodes, tolerance: float) -> tuple[Nodes, Nodes]:
    """Each degree's symmetric matrix as a sum of squares with signs, cut at the tolerance."""
    values, vectors = np.linalg.eigh((coefficients + coefficients.transpose(0, 2, 1)) / 2)
    order = np.argsort(-np.abs(values), axis=1)
    values = np.take_along_axis(values, order, axis=1)
    vectors = np.take_along_axis(vectors, order[:, None, :], axis=2)
    kept = np.abs(values) > tolerance / 8 * np.abs(values).max()
    degrees = int(np.flatnonzero(kept.any(axis=1)).max(initial=0)) + 1
    if degrees > 1:
        degrees = min(-(-degrees // _TOGETHER) * _TOGETHER, len(values))
    rank = max(int(kept.sum(axis=1).max()), 1)
    values, vectors = values[:degrees, :rank], vectors[:degrees, :, :rank]
    scaled = vectors * np.sqrt(np.abs(values))[:, None, :]
    return np.ascontiguousarray(scaled.transpose(0, 2, 1)), np.sign(values)


def _averaging(angles: Nodes, turn: float) -> Nodes:
    r"""From values of S at the angles to those of W, by a rule on $[0,\theta]$ without a difference."""
    count = len(angles)
    x, w = gauss_legendre(count // 2 + 16)
    inner = angles[:, None] * x
    weight = (
        angles[:, None] * w * np.sin(inner) / (2 * np.sin(angles[:, None] / 2) ** 2)
    )  # the mean over 1 - cos
    degrees = np.arange(count)[:, None, None]
    values = np.cos(degrees * np.arccos(np.clip(2 * inner / turn - 1, -1, 1)))
    return np.einsum("tg,ktg->tk", weight, values) @ to_coefficients(count)


def _certified(spec: Spec, table: Table) -> bool:
    """Whether slopes between the nodes are those of a finer rule."""
    low, high = spec.logs
    step, (coefficients, signs) = 0.1, table.slope
    count = math.ceil((high - low) / (2 * step)) - 1
    logs = low + step * math.sqrt(0.5) + 2 * step * np.arange(count)
    at = np.cos(
        np.arange(coefficients.shape[2])[:, None]
        * np.arccos(np.clip(2 * (logs - low) / (high - low) - 1, -1, 1))
    )
    size = sizes_at(spec.act, logs)
    places = np.array([0.05, 0.37, 0.71])
    angles = table.turn * places
    exact = slopes_at(spec.act, logs[0], count, angles, 96, step) * np.multiply.outer(size, size)
    degrees = np.cos(np.arange(len(signs)) * np.arccos(2 * places - 1)[:, None])
    rows = coefficients @ at
    found = np.einsum("ak,ks,ksi,ksj->aij", degrees, signs, rows, rows, optimize=True)
    return bool(np.abs(found - exact).max() <= 8 * spec.tolerance * np.abs(exact).max())
