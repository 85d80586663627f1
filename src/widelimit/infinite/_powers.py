"""Profiles in powers, where the arithmetic holds them: one multiplication for each term."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import chebyshev
from numpy.polynomial.polynomial import polyval

from widelimit._base.quadrature import cosine_transform
from widelimit._base.thresholds import POWERS_ERROR
from widelimit._base.types import Tensor

from ._profile import Profiles, Series

_NODES = (
    64  # Chebyshev nodes of what is folded, whose coefficients fall by 5.8 from one to the next
)
_TERMS = 24  # at most; beyond there is but rounding
_CUT = 1e-16  # relative; coefficients below are not used


class Powers(NamedTuple):
    r"""$\kappa$ as $\sum_kc_ky^k$, $y=(v+s)/(1+sv)$, $v=\sqrt{(1-\rho)/2}-\sqrt{(1+\rho)/2}$.

    Attributes:
        shift: s, or None for 0: no division then.
        coefficients: c, lowest degree first.
    """

    shift: Any
    coefficients: Float[Array, " terms"]

    def at(self, minus: Float[Array, "..."], plus: Float[Array, "..."]) -> Float[Array, "..."]:
        """The value where 1 - rho = minus and 1 + rho = plus, in their dtype."""
        y = (jnp.sqrt(minus) - jnp.sqrt(plus)) * math.sqrt(0.5)
        if self.shift is not None:
            s = self.shift.astype(minus.dtype)
            y = (y + s) / (1 + s * y)
        return _sum(self.coefficients, y)


class Folded(NamedTuple):
    r"""$\kappa$ as $E(u)-\rho\,O(u)$, $u=2w-1$, $w=\sin\theta=\sqrt{(1-\rho)(1+\rho)}$: one root, two short sums.

    What is even about a right angle is analytic in $w$ on $[0,1]$, and so is what is odd, divided by $\rho$: with $v$
    as in `Powers`, $v^2=1-w$ and $v=-\rho/\sqrt{1+w}$.

    Attributes:
        even: The coefficients of E, lowest degree first.
        odd: Those of O.
    """

    even: Float[Array, " even"]
    odd: Float[Array, " odd"]

    def at(self, minus: Float[Array, "..."], plus: Float[Array, "..."]) -> Float[Array, "..."]:
        """The value where 1 - rho = minus and 1 + rho = plus, in their dtype."""
        u = 2 * jnp.sqrt(minus * plus) - 1
        return _sum(self.even, u) + (minus - plus) / 2 * _sum(self.odd, u)


def _sum(coefficients: Float[Tensor, " terms"], y: Float[Array, "..."]) -> Float[Array, "..."]:
    *rest, total = coefficients.astype(y.dtype)
    for c in rest[::-1]:
        total = total * y + c
    return jnp.broadcast_to(total, y.shape)


def powers_of(series: Series, dtype: str) -> Powers | None:
    """The series in powers, or None where this dtype would lose digits in them."""
    used = np.asarray(series.coefficients, np.float64)[: int(series.degree) + 1]
    if len(used) < 2:
        return None
    powers = chebyshev.cheb2poly(used)
    y = np.linspace(-1, 1, 1001).astype(dtype)
    exact = chebyshev.chebval(y.astype(np.float64), used)
    total = np.full_like(y, powers[-1])
    for c in powers[-2::-1].astype(dtype):
        total = total * y + c
    if not np.abs(total - exact).max() <= POWERS_ERROR[dtype] * float(np.abs(exact).max()):
        return None
    shift = float(series.shift)
    return Powers(np.float64(shift) if shift else None, powers)  # pyright: ignore[reportArgumentType]


def folded(series: Series) -> Folded | None:
    """The series with one root, or None where it has a shift, or would lose digits."""
    if float(series.shift):
        return None
    used = np.asarray(series.coefficients, np.float64)[: int(series.degree) + 1]
    half = math.pi * (np.arange(_NODES) + 0.5) / _NODES / 2
    w, square = np.cos(half) ** 2, np.sin(half) ** 2  # v^2 = 1 - w
    even, odd = _halves(used, square)
    size = max(np.abs(even).max(), np.abs(odd).max(), np.finfo(float).tiny)
    both = []
    for values in (even, odd / np.sqrt(1 + w)):
        series_in_u = (cosine_transform(_NODES) @ values)[:_TERMS]
        kept = np.nonzero(np.abs(series_in_u) > _CUT * size)[0]
        both.append(chebyshev.cheb2poly(series_in_u[: max(kept, default=0) + 1]))
    v = np.linspace(-1, 1, 1001)
    exact, (e, o) = chebyshev.chebval(v, used), (polyval(1 - 2 * v**2, c) for c in both)
    error = np.abs(e + v * np.sqrt(2 - v**2) * o - exact).max()
    return Folded(*both) if error <= POWERS_ERROR["float64"] * np.abs(exact).max() else None


def _halves(
    coefficients: Float[np.ndarray, " terms"], square: Float[np.ndarray, " n"]
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    r"""$\sum_{k}c_{2k}T_{2k}(v)$ and $\sum_kc_{2k+1}T_{2k+1}(v)/v$ where $v^2$ is known."""
    y = 2 * square - 1
    even = chebyshev.chebval(y, coefficients[0::2])
    last, before = np.zeros_like(y), np.zeros_like(y)
    for c in coefficients[1::2][::-1]:  # T_{2k+1}(v)/v are polynomials of the third kind in y
        last, before = c + 2 * y * last - before, last
    return even, last - before


AllPowers = tuple[Powers | Folded, ...] | None


def all_powers(profiles: Profiles | None, kinds: tuple[str, ...], dtype: str) -> AllPowers:
    """Those of several kernels, or None where one of them cannot be written so."""
    if profiles is None:
        return None
    found: list[Powers | Folded | None] = []
    for kind in kinds:
        series = getattr(profiles, kind)
        double = folded(series) if dtype == "float64" else None  # there roots are dear
        found.append(powers_of(series, dtype) if double is None else double)
    return tuple(p for p in found if p is not None) if None not in found else None
