r"""The kernel near $x=x'$ and $x=-x'$: how sharp is its kink?

The tangent kernel of a ReLU network falls linearly with the angle, $\Theta(\theta)=\Theta(0)(1-\kappa\theta+\dots)$.
The kink $\kappa$ follows exactly from the layers (`analysis/_near.py`).
"""

import math
from typing import NamedTuple

import numpy as np

from widelimit._base.scalars import as_count, as_scalar, check_scalar
from widelimit._base.shown import shown
from widelimit.analysis._near import Near
from widelimit.describe import check
from widelimit.infinite import prepare
from widelimit.interpret import interpret
from widelimit.layers import Layer


def kink(net: Layer, dim: int = 2, radius: float = 1.0) -> float:
    r"""The strength of the tangent kernel's kink at equal inputs, $-\Theta'(0^+)/\Theta(0)$, exactly.

    For any network and activation; 0 where $\varphi'$ has no jumps.

    Args:
        net: The network.
        dim: The dimension of the space (matters only with biases or activations that are not
            homogeneous).
        radius: The norm of the inputs.

    Returns:
        The slope per unit of angle, relative to the peak.

    Example:
        >>> import math, widelimit as wl
        >>> round(wl.spectrum.kink(wl.mlp(depth=5)) * 2 * math.pi, 12)  # h = L
        5.0
        >>> round(wl.spectrum.kink(wl.resnet(depth=5, alpha=0.1)), 5)
        0.0078
    """
    check(net, ntk=True)
    as_count(dim, "dim", minimum=1)
    if not 0 < radius < math.inf:
        raise ValueError(f"radius is the norm of the inputs and must be positive, got {radius!r}.")
    out = interpret(net, Near(radius**2 / dim))
    return out.fall / out.ntk


def kink_mlp(depth: int) -> float:
    r"""The kink of the bias-free ReLU MLP in closed form: $L/(2\pi)$.

    Args:
        depth: L.

    Returns:
        The kink.
    """
    return as_count(depth, "depth") / (2 * math.pi)


def kink_resnet(depth: int, alpha: float, w_std: float = 1.0, v_std: float = 1.0) -> float:
    r"""The kink of the ReLU ResNet in closed form: $h/(2\pi)$, $h=\frac{2sL+s^2L(L-1)/2}{2+sL}$.

    $s=2g/(2+g)$, $g=\alpha^2\sigma_v^2\sigma_w^2$; $h<L$ always, so the ResNet's kink is weaker than the
    MLP's of the same depth.

    Args:
        depth: L.
        alpha: The attenuation of the branches.
        w_std: $\sigma_w$.
        v_std: $\sigma_v$.

    Returns:
        The kink.

    Example:
        >>> round(kink_resnet(15, 1.0), 4), round(kink_mlp(15), 4)
        (0.8842, 2.3873)
    """
    l = as_count(depth, "depth")
    for name, value in (("alpha", alpha), ("w_std", w_std), ("v_std", v_std)):
        check_scalar(as_scalar(value), name, minimum=None)
    g = (alpha * v_std * w_std) ** 2
    s = 2 * g / (2 + g)
    return (2 * s * l + s**2 * l * (l - 1) / 2) / (2 + s * l) / (2 * math.pi)


@shown("a kernel near equal inputs")
class Expansion(NamedTuple):
    r"""$k(\theta)$ near one end: value, slope and half the second derivative in the distance.

    Attributes:
        value: The kernel there.
        slope: Its one-sided derivative in the angle, away from the end.
        curvature: The second derivative.
    """

    value: float
    slope: float
    curvature: float


def expansion(
    net: Layer, *, kernel: str = "ntk", dim: int = 2, radius: float = 1.0
) -> tuple[Expansion, Expansion]:
    r"""The kernel's expansion at $x'=x$ and at $x'=-x$, numerically, for any network.

    A Chebyshev polynomial through the kernel at angles near the end; `kink` is exact but knows
    only the first order at $x'=x$.

    Args:
        net: The network.
        kernel: "ntk" or "nngp".
        dim: The dimension of the space.
        radius: The norm of the inputs.

    Returns:
        The expansions at $\theta=0$ and at $\theta=\pi$, the latter in $\pi-\theta$.

    Example:
        >>> import math, widelimit as wl
        >>> same, opposite = expansion(wl.mlp(depth=3))
        >>> round(-same.slope / same.value * 2 * math.pi, 9)  # the kink, h = L
        3.0
    """
    if kernel not in ("ntk", "nngp"):
        raise ValueError(f'kernel must be "ntk" or "nngp", got {kernel!r}.')
    reach, degree = 0.2, 24
    angles = reach * (1 - np.cos(np.pi * np.arange(degree + 1) / degree)) / 2
    size = radius * math.sqrt(2 / as_count(dim, "dim", minimum=1))
    points = size * np.stack([np.cos(angles), np.sin(angles)], 1)
    values = prepare(net, kernel)
    same, opposite = (
        _at_end(angles, values(points[:1], points * [sign, 1])[0], reach, degree)
        for sign in (1.0, -1.0)
    )
    return same, opposite


def _at_end(angles: np.ndarray, values: np.ndarray, reach: float, degree: int) -> Expansion:
    series = np.polynomial.Chebyshev.fit(angles, values, degree, domain=[0, reach])
    return Expansion(float(values[0]), float(series.deriv(1)(0.0)), float(series.deriv(2)(0.0)))
