"""How fast eigenvalues decay, measured and by theory."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.shown import shown
from widelimit.activations import Activation
from widelimit.describe import check
from widelimit.interpret import facts, interpret
from widelimit.layers import Layer

from ._eigenvalues import Spectrum
from ._vanishing import DATA


@shown("how fast eigenvalues fall")
class Decay(NamedTuple):
    """Fitted exponents s of eigenvalues ~ k^(-s).

    Attributes:
        even: From the even degrees, or None where they vanish.
        odd: From the odd degrees, or None where they vanish.
    """

    even: float | None
    odd: float | None


def decay(spectrum: Spectrum, first: int = 100, last: int = 1000) -> Decay:
    r"""The exponent of $\mu_k\sim k^{-s}$ by least squares, even and odd degrees apart.

    The fit is $\log\mu_k=a-s\log(k+\frac d2-1)$, in the variable in which the asymptotic series of
    zonal polynomials has no first correction, with weights 1/k so that every octave counts alike.

    Args:
        spectrum: Eigenvalues of degrees up to at least `last`.
        first: The first degree.
        last: The last degree.

    Returns:
        The two exponents.

    Example:
        >>> import widelimit as wl
        >>> fit = decay(wl.spectrum.circle(wl.mlp(depth=1), 1000))
        >>> round(fit.even, 2), fit.odd
        (2.0, None)
    """
    if not 1 <= first < last:
        raise ValueError(f"1 <= first < last was expected, got first={first}, last={last}.")
    if len(spectrum.degrees) <= last:
        raise ValueError(
            f"The fit needs degrees up to {last}, the spectrum ends at {spectrum.degrees[-1]}. "
            f"Compute it with degrees={last}."
        )
    return Decay(*(_fit(spectrum, first, last, parity) for parity in (0, 1)))


def _fit(spectrum: Spectrum, first: int, last: int, parity: int) -> float | None:
    k = spectrum.degrees[first : last + 1]
    k = k[k % 2 == parity]
    values, known = spectrum.values[k], spectrum.reliable[k]
    if not np.any(values):
        return None
    if not np.all(known):
        raise ValueError(
            f"The eigenvalues of degrees {first} to {last} are lost in rounding (from degree "
            f"{k[~known][0]} on). Compute the spectrum with more digits, e.g. digits=50, or fit "
            "lower degrees."
        )
    if np.any(values <= 0):
        raise ValueError(f"Eigenvalues of degrees {first} to {last} are not all positive.")
    design = np.stack([np.ones(len(k)), -np.log(k + spectrum.dim / 2 - 1)], 1)
    weight = np.sqrt(1 / k)[:, None]
    return float(np.linalg.lstsq(weight * design, weight[:, 0] * np.log(values), rcond=None)[0][1])


def roughness(act: Activation) -> float | None:
    """The lowest order of a derivative of the activation that jumps: relu 1, step 0, smooth inf."""
    order: float = math.inf
    with jax.enable_x64(True):
        for point in act.breaks:
            step = 1e-6 * max(1.0, abs(point))
            here: Any = lambda x: act.fn(x)
            for n in range(4):
                left, right = (float(here(jnp.float64(point + s))) for s in (-step, step))
                if abs(right - left) > 1e-3:
                    order = min(order, n)
                    break
                here = jax.grad(here)
            else:
                return None
    return order


def decay_theory(net: Layer, dim: int, *, kernel: str = "ntk") -> float | None:
    r"""The exponent that theory gives: $\mu_k\sim k^{-s}$ on $S^{d-1}$.

    If the p-th derivative of the activation is the first that jumps, the kernel's first odd power
    of the angle is $2p+1$ (NNGP) or $2p-1$ (NTK), whatever the depth, and $s=d-1$ plus that power:
    ReLU, p = 1, has $s=d$ for the tangent kernel and $s=d+2$ for the NNGP kernel.

    Args:
        net: The network.
        dim: The dimension d of the space.
        kernel: "ntk" or "nngp".

    Returns:
        The exponent; infinity where the decay is faster than any power; None where the order of
        the jump is not clear or several discontinuous layers follow each other.

    Example:
        >>> import widelimit as wl
        >>> decay_theory(wl.mlp(depth=3), 10), decay_theory(wl.mlp(depth=3, activation="erf"), 10)
        (10.0, inf)

    Reference:
        Bietti and Bach (2021); Chen and Xu (2021).
    """
    check(net, ntk=kernel == "ntk")
    orders = [roughness(act) for act in facts(net).activations]
    if any(order is None for order in orders):
        return None
    order = min([math.inf, *(order for order in orders if order is not None)])
    if math.isinf(order) or not any(map(math.isinf, interpret(net, DATA).both)):
        return math.inf
    if order == 0:
        return None
    return float(dim - 1 + (2 * order - 1 if kernel == "ntk" else 2 * order + 1))
