"""The spectrum of a network's kernel on a sphere: its eigenvalues, degree by degree."""

import functools
import math
import warnings
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit.analysis._zonal import half_rule, moments
from widelimit.describe import check
from widelimit.infinite import prepare
from widelimit.layers import Layer

from ._precise import mpmath, precise_moments
from ._vanishing import possible

_EPS = 2.0**-52
_MOST_NODES = 2**12


Computed = tuple[Float[np.ndarray, " degrees"], float, float]  # eigenvalues, peak, relative error
Rule = tuple[np.ndarray, np.ndarray]  # angles and weights
Side = tuple[np.ndarray, np.ndarray]  # the kernel at a rule's angles and at their reflections


@shown("eigenvalues of a kernel on the sphere")
class Spectrum(NamedTuple):
    r"""Eigenvalues of a zonal kernel: $k(x,y)=\sum_k\mu_k\,N(d,k)\,P_k(\langle x,y\rangle)$.

    Attributes:
        dim: The dimension d of the space; the inputs are the sphere $S^{d-1}$.
        degrees: k = 0, 1, 2, ...
        values: $\mu_k$, the eigenvalue of the integral operator with the uniform probability
            measure. Zeros that the theory demands are exactly 0.
        multiplicities: $N(d,k)$, the number of harmonics of degree k.
        error: An estimate of the absolute error of each value.
        peak: $k(x,x)=\sum_kN(d,k)\mu_k$ over all degrees, also those not listed.
        kernel: "ntk" or "nngp".
    """

    dim: int
    degrees: np.ndarray
    values: np.ndarray
    multiplicities: np.ndarray
    error: np.ndarray
    peak: float
    kernel: str

    def summary(self) -> dict[str, object]:
        """What is shown of a spectrum."""
        return {
            "kernel": self.kernel,
            "dimension": self.dim,
            "degrees": f"{int(self.degrees[0])} to {int(self.degrees[-1])}",
            "values": self.values,
            "exact zeros": int((self.values == 0).sum()),
            "known to 1 %": int(self.reliable.sum()),
            "largest error": float(self.error.max()),
            "trace beyond": self.tail,
        }

    @property
    def tail(self) -> float:
        r"""$\sum_kN\mu_k$ over the degrees beyond those listed: the trace that is not resolved."""
        return max(0.0, self.peak - math.fsum(self.multiplicities * self.values))

    @property
    def reliable(self) -> np.ndarray:
        """Which values are known to better than 1%; for the others ask for `digits`."""
        return np.abs(self.values) * 1e-2 >= self.error


def multiplicity(dim: int, degree: int) -> int:
    r"""The number of spherical harmonics: $N(d,k)=\binom{k+d-1}{k}-\binom{k+d-3}{k-2}$.

    Args:
        dim: The dimension d of the space.
        degree: k.

    Returns:
        The dimension of the space of harmonics of degree k on $S^{d-1}$.

    Example:
        >>> [multiplicity(3, k) for k in range(4)]  # 2k + 1
        [1, 3, 5, 7]
    """
    lower = math.comb(degree + dim - 3, degree - 2) if degree >= 2 else 0
    return math.comb(degree + dim - 1, degree) - lower


def circle(
    net: Layer,
    degrees: int = 100,
    *,
    kernel: str = "ntk",
    radius: float = 1.0,
    digits: int | None = None,
) -> Spectrum:
    r"""Fourier coefficients of the kernel on a circle: $\lambda_k=\frac1{2\pi}\int k(D)e^{-ikD}dD$.

    Args:
        net: The network.
        degrees: The largest k.
        kernel: "ntk" or "nngp".
        radius: The radius of the circle.
        digits: None for float64 (errors near 1e-16 of the peak), or the decimal digits of a slower
            computation with mpmath, for closed-form activations.

    Returns:
        The spectrum.

    Example:
        >>> import widelimit as wl
        >>> wl.spectrum.circle(wl.mlp(depth=1), 6).values.round(5)
        array([0.15198, 0.125  , 0.0394 , 0.     , 0.00428, 0.     , 0.00161])

    Reference:
        Tirer, Bruna and Giryes (2022), Figure 7.
    """
    return sphere(net, 2, degrees, kernel=kernel, radius=radius, digits=digits)


def sphere(
    net: Layer,
    dim: int,
    degrees: int = 100,
    *,
    kernel: str = "ntk",
    radius: float = 1.0,
    digits: int | None = None,
) -> Spectrum:
    r"""Eigenvalues of the kernel on the sphere $S^{d-1}$ by the Funk-Hecke formula.

    $\mu_k=\int_0^\pi k(\theta)P_k(\cos\theta)\sin^{d-2}\theta\,d\theta\,/\int_0^\pi\sin^{d-2}\theta\,d\theta$,
    $P_k$ the Gegenbauer polynomial with $P_k(1)=1$. The kernel is analytic in $\theta$ on $[0,\pi]$, also for
    ReLU, so Gauss-Legendre quadrature in $\theta$ converges geometrically.

    Args:
        net: The network.
        dim: The dimension d of the space, at least 2.
        degrees: The largest k.
        kernel: "ntk" or "nngp".
        radius: The norm of the inputs.
        digits: None for float64 (errors near 1e-16 of the peak), or the decimal digits of a slower
            computation with mpmath, for closed-form activations.

    Returns:
        The spectrum.

    Example:
        >>> import widelimit as wl
        >>> s = wl.spectrum.sphere(wl.resnet(depth=5, alpha=0.1), dim=3, degrees=200)
        >>> bool(abs(s.tail / s.peak) < 1e-4)  # nearly the whole trace is listed
        True

    Reference:
        Bietti and Bach (2021), Deep equals shallow for ReLU networks in kernel regimes.
    """
    _check(net, kernel, radius)
    dim, largest = as_count(dim, "dim", minimum=2), as_count(degrees, "degrees", minimum=0)
    counts = [multiplicity(dim, k) for k in range(largest + 1)]
    if counts[-1] > 1e300:
        raise ValueError(
            f"There are more than 1e300 harmonics of degree {largest} in {dim} dimensions, which "
            f"float64 cannot count. Ask for fewer degrees (now {largest})."
        )
    if digits is None:
        values, peak, noise = _in_float64(net, kernel, radius, dim, largest)
    else:
        places = as_count(digits, "digits", minimum=16)
        values, peak, noise = _with_digits(net, kernel, radius, dim, largest, places)
    number = np.array([float(n) for n in counts])
    can = possible(net, largest)
    values = np.where(can, values, 0.0)
    # The error of the kernel is spread over the harmonics; rounding of the answer comes on top.
    error = np.where(can, noise * peak / np.sqrt(number) + _EPS * np.abs(values), 0.0)
    return Spectrum(dim, np.arange(largest + 1), values, number, error, peak, kernel)


def _check(net: Layer, kernel: str, radius: float) -> None:
    if kernel not in ("ntk", "nngp"):
        raise ValueError(f'kernel must be "ntk" or "nngp", got {kernel!r}.')
    check(net, ntk=kernel == "ntk")
    if not 0 < radius < math.inf:
        raise ValueError(f"radius is the norm of the inputs and must be positive, got {radius!r}.")


def _start(largest: int) -> int:
    """Nodes that resolve P_k beside a kernel of moderate bandwidth, a power of two."""
    return 2 ** math.ceil(math.log2(max(512, 0.8 * largest + 200)))


def _in_float64(net: Layer, kernel: str, radius: float, dim: int, largest: int) -> Computed:
    nodes, few = _start(largest), min(largest, 7)
    while True:
        # A rule with half the nodes is the check; one call for both, since shapes are compiled.
        rules = half_rule(nodes // 2), half_rule(nodes)
        (coarse, fine), peak = _sides(net, kernel, radius * math.sqrt(2 / dim), rules)
        values = moments(dim, largest, *rules[1], fine)
        change = np.max(np.abs(values[: few + 1] - moments(dim, few, *rules[0], coarse))) / peak
        if change < 1e-14:
            return values, peak, 8 * _EPS
        if nodes >= _MOST_NODES:
            warnings.warn(
                f"The spectrum has errors near {change:.0e} of the kernel's peak: the kernel of "
                f"{net} is not smooth enough in the angle for {nodes} quadrature nodes.",
                stacklevel=4,
            )
            return values, peak, float(change)
        nodes *= 2


def _sides(
    net: Layer, kernel: str, size: float, rules: tuple[Rule, Rule]
) -> tuple[tuple[Side, Side], float]:
    """The kernel at the nodes of each rule and at their reflections, and at equal inputs."""
    # Points of the plane with the same |x|^2/d: the kernel knows no more of the dimension.
    angles = np.concatenate([angles for angles, _ in rules])
    x, y = size * np.cos(angles).astype(float), size * np.sin(angles).astype(float)
    points = np.concatenate([[[size, 0.0]], np.stack([x, y], 1), np.stack([-x, y], 1)])
    row = prepare(net, kernel)(points[:1], points)[0]
    near, far = np.split(row[1:], 2)
    cut = len(rules[0][0])
    return ((near[:cut], far[:cut]), (near[cut:], far[cut:])), float(row[0])


def _with_digits(
    net: Layer, kernel: str, radius: float, dim: int, largest: int, digits: int
) -> Computed:
    mpmath()
    variance = Fraction(float(radius)) ** 2 / dim
    compute = functools.partial(precise_moments, net, kernel, variance, dim, digits=digits)
    nodes = 64 + 2 * digits + digits % 2 * 2
    coarse, _ = compute(2, nodes)
    while True:
        finer, peak = compute(2, 2 * nodes)
        change = max(abs(a - b) for a, b in zip(coarse, finer, strict=True)) / peak
        if change < 10.0 ** (4 - digits):
            break
        if nodes > _MOST_NODES // 2:
            warnings.warn(
                f"Only {-math.log10(change):.0f} of the {digits} digits converged: the kernel of "
                f"{net} has a singularity very close to x = x' or x = -x'.",
                stacklevel=4,
            )
            break
        coarse, nodes = finer, 2 * nodes
    if largest > 2:
        finer, peak = compute(largest, nodes + 2 * math.ceil(0.4 * largest))
    return np.array([float(v) for v in finer]), float(peak), float(change) + 10.0 ** (2 - digits)
