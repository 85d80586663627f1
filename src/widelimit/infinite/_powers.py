"""Profiles in powers, where the arithmetic holds them: one multiplication for each term."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.polynomial import chebyshev

from widelimit._base.thresholds import POWERS_ERROR

from ._profile import Profiles, Series


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
        *rest, last = self.coefficients.astype(minus.dtype)
        total = y * last + rest[-1]
        for c in rest[-2::-1]:
            total = total * y + c
        return total


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


AllPowers = tuple[Powers, ...] | None


def all_powers(profiles: Profiles | None, kinds: tuple[str, ...], dtype: str) -> AllPowers:
    """Those of several kernels, or None where one of them cannot be written so."""
    if profiles is None:
        return None
    found = [powers_of(getattr(profiles, kind), dtype) for kind in kinds]
    return tuple(p for p in found if p is not None) if None not in found else None
