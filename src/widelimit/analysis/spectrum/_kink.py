r"""The kernel near $x=x'$ and $x=-x'$: how sharp is its kink?

The tangent kernel of a ReLU network falls linearly with the angle, $\Theta(\theta)=\Theta(0)(1-\kappa\theta+\dots)$.
The kink $\kappa$ follows exactly from a pass over the layers: where $\varphi'$ jumps by J at c, the slope
kernel loses $J^2e^{-c^2/2q}/(2\pi)$ per unit of its own angle, and angles grow like $\sqrt m\,\theta$ with
$1-\rho\approx m\theta^2/2$.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.passes import layer_pass
from widelimit._base.scalars import as_count, as_scalar, check_scalar
from widelimit.activations import Activation, second_moment
from widelimit.analysis._slope import mean_square_slope
from widelimit.describe import check, linear_factor
from widelimit.infinite import nngp, ntk
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum


class Near(NamedTuple):
    r"""A layer's kernels to first order at $\theta=0$: $q$, $m$, $\Theta(0)$ and $-\Theta'(0^+)$."""

    q: float
    m: float
    ntk: float
    fall: float


def jumps(act: Activation) -> list[tuple[float, float]]:
    """The points where the activation's derivative jumps, and by how much."""
    found = []
    with jax.enable_x64(True):
        prime = jax.grad(lambda x: act.fn(x))
        for point in act.breaks:
            step = 1e-9 * max(1.0, abs(point))
            size = float(prime(jnp.float64(point + step)) - prime(jnp.float64(point - step)))
            if abs(size) > 1e-7:
                found.append((point, size))
    return found


@layer_pass("its kink is found")
def near_equal(layer: Layer, state: Near) -> Any:
    """The expansion at equal inputs after the layer."""


@near_equal.register
def _near_dense(layer: Dense, state: Near) -> Near:
    w, b = float(layer.w_std) ** 2, float(layer.b_std) ** 2
    q = w * state.q + b
    share = w * state.q / q if q else 0.0
    return Near(q, share * state.m, w * state.ntk + q, w * state.fall)


@near_equal.register
def _near_phi(layer: Phi, state: Near) -> Near:
    act = layer.activation
    with jax.enable_x64(True):
        q = jnp.full((1,), state.q, jnp.float64)
        after, gain = float(second_moment(act, q)[0]), float(mean_square_slope(act, q)[0])
    slope = gain * state.q / after if after else 0.0
    sharp = sum(j**2 * math.exp(-(c**2) / (2 * state.q)) for c, j in jumps(act)) / (2 * math.pi)
    fall = gain * state.fall + sharp * math.sqrt(state.m) * state.ntk
    return Near(after, slope * state.m, gain * state.ntk, fall)


@near_equal.register(Identity)
@near_equal.register(Scale)
def _near_linear(layer: Layer, state: Near) -> Near:
    return _scaled(state, float(linear_factor(layer)))


def _scaled(state: Near, factor: float) -> Near:
    square = factor**2
    return Near(square * state.q, state.m, square * state.ntk, square * state.fall)


@near_equal.register
def _near_serial(layer: Serial, state: Near) -> Near:
    for part in layer.layers:
        state = near_equal(part, state)
    return state


@near_equal.register
def _near_repeat(layer: Repeat, state: Near) -> Near:
    for _ in range(layer.times):
        state = near_equal(layer.body, state)
    return state


@near_equal.register
def _near_residual(layer: Residual, state: Near) -> Near:
    return near_equal(Sum(Identity(), Serial(layer.body, Scale(layer.alpha))), state)


@near_equal.register
def _near_sum(layer: Sum, state: Near) -> Near:
    factors = [linear_factor(branch) for branch in layer.branches]
    parts = [
        near_equal(b, state) for b, f in zip(layer.branches, factors, strict=True) if f is None
    ]
    skips = [float(f) for f in factors if f is not None]
    if skips:
        parts.append(_scaled(state, sum(skips)))
    q = sum(p.q for p in parts)
    m = sum(p.q * p.m for p in parts) / q if q else 0.0
    return Near(q, m, sum(p.ntk for p in parts), sum(p.fall for p in parts))


def kink(net: Layer, dim: int = 2, radius: float = 1.0) -> float:
    r"""The strength of the tangent kernel's kink at equal inputs, $-\Theta'(0^+)/\Theta(0)$, exactly.

    A pass over the layers, for any network and activation; 0 where $\varphi'$ has no jumps.

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
    out = near_equal(net, Near(radius**2 / dim, 1.0, 0.0, 0.0))
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
    function = ntk if kernel == "ntk" else nngp
    same, opposite = (
        _at_end(angles, function(net, points[:1], points * [sign, 1])[0], reach, degree)
        for sign in (1.0, -1.0)
    )
    return same, opposite


def _at_end(angles: np.ndarray, values: np.ndarray, reach: float, degree: int) -> Expansion:
    series = np.polynomial.Chebyshev.fit(angles, values, degree, domain=[0, reach])
    return Expansion(float(values[0]), float(series.deriv(1)(0.0)), float(series.deriv(2)(0.0)))
