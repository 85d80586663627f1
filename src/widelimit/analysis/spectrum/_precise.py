r"""Eigenvalues with any number of digits, for activations whose moments are elementary.

The recursion runs in mpmath; quadrature and polynomials run on integers that stand for multiples
of $2^{-bits}$, which NumPy's object arrays handle twenty times faster than mpmath's numbers.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation, exact_dual, mpmath
from widelimit.analysis._zonal import half_rule
from widelimit.interpret import State, facts, interpret
from widelimit.layers import Layer


@dataclasses.dataclass(frozen=True)
class Exact(State):
    """The kernels at many angles, for inputs of one norm, in mpmath's numbers.

    Attributes:
        q: The variance.
        k: The NNGP kernel at each angle.
        ntk: The tangent kernel at each angle.
    """

    question: ClassVar[str] = "many digits"

    q: Any
    k: list[Any]
    ntk: list[Any]

    def scaled(self, factor: Scalar) -> Self:
        square = mpmath().mpf(float(factor)) ** 2
        times = lambda values: [square * value for value in values]
        return type(self)(square * self.q, times(self.k), times(self.ntk))

    def biased(self, b_std: Scalar) -> Self:
        square = mpmath().mpf(float(b_std)) ** 2
        return type(self)(self.q + square, [k + square for k in self.k], self.ntk)

    def trained(self) -> Self:
        return type(self)(self.q, self.k, _added([self.ntk, self.k]))

    def activated(self, activation: Activation) -> Self:
        formula = exact_dual(activation)
        values = [formula(self.q, self.q, k) for k in self.k]
        ntk = [slope * t for (_, slope), t in zip(values, self.ntk, strict=True)]
        return type(self)(formula(self.q, self.q, self.q)[0], [value for value, _ in values], ntk)

    def normalised(self, over: str = "channels", eps: Scalar = 0.0) -> Self:
        size = self.q + eps
        divided = lambda values: [value / size for value in values]
        return type(self)(self.q / size, divided(self.k), divided(self.ntk))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        parts = [*parts] if skip is None else [*parts, self.scaled(skip)]
        q = sum(p.q for p in parts)
        return type(self)(q, _added([p.k for p in parts]), _added([p.ntk for p in parts]))


def _added(columns: list[list[Any]]) -> list[Any]:
    return [sum(entries) for entries in zip(*columns, strict=True)]


@functools.lru_cache(maxsize=8)
def _rule(nodes: int, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre on [-1, 1]: positive nodes and their weights, as multiples of 2^-bits."""
    one = 1 << bits
    start = 1 - 2 * half_rule(nodes)[0] / np.longdouble(np.pi)
    x = np.array([int(a * 2**60) << (bits - 60) for a in start], dtype=object)
    correct = 50
    while True:
        before, value = np.full_like(x, one), x
        for k in range(1, nodes):
            before, value = value, ((2 * k + 1) * ((x * value) >> bits) - k * before) // (k + 1)
        slope = nodes * (before - ((x * value) >> bits))  # (1 - x^2) P'
        if correct > bits:
            square = (slope * slope) >> bits
            return x, 2 * (one - ((x * x) >> bits)) * one // square
        x = x - value * (one - ((x * x) >> bits)) // slope
        correct = 2 * correct - 30


def _to_fixed(values: Any, bits: int) -> np.ndarray:
    return np.array([int(mpmath().ldexp(v, bits)) for v in values], dtype=object)


def precise_moments(
    net: Layer, kernel: str, variance: Any, dim: int, largest: int, nodes: int, digits: int
) -> tuple[list[Any], Any]:
    """The eigenvalues of degrees 0..largest and the kernel at equal inputs, as mpmath numbers.

    Args:
        net: The network.
        kernel: "ntk" or "nngp".
        variance: |x|^2/d of the inputs.
        dim: The dimension of the space.
        largest: The largest degree.
        nodes: Quadrature nodes, even.
        digits: Correct decimal digits, relative to the kernel at equal inputs.

    Returns:
        The eigenvalues, and the largest value of the kernel.
    """
    m = mpmath().mp
    for activation in facts(net).activations:
        exact_dual(activation, digits)  # refuses what it does not know before any work
    bits = int(digits * 3.33) + 64 + 2 * largest.bit_length()
    x, w = _rule(nodes, bits)
    with m.workprec(bits + 16):
        angles = [(1 - m.ldexp(m.mpf(int(a)), -bits)) * m.pi / 2 for a in x]
        cosines = [m.cos(a) for a in angles]
        rho = [m.one, *cosines, *(-c for c in cosines)]
        q = m.mpf(variance.numerator) / variance.denominator
        out = interpret(net, Exact(q, [q * r for r in rho], [m.zero] * len(rho)))
        values = out.ntk if kernel == "ntk" else out.k
        peak, half = values[0], len(x)
        fixed = _to_fixed([v / peak for v in values[1:]], bits)
        measure = (w * _to_fixed([m.sin(a) ** (dim - 2) for a in angles], bits)) >> bits
        sides = fixed[:half] + fixed[half:], fixed[:half] - fixed[half:]
        parts = [(measure * side) >> bits for side in sides]
        total = 2 * int(measure.sum())
        sums = _integer_moments(_to_fixed(cosines, bits), parts, dim, largest, bits)
        return [peak * m.mpf(s) / total / m.ldexp(1, bits) for s in sums], +peak


def _integer_moments(
    x: np.ndarray, parts: list[np.ndarray], dim: int, largest: int, bits: int
) -> list[int]:
    before, value = np.full_like(x, 1 << bits), x
    sums = [int((before * parts[0]).sum())]
    for k in range(1, largest + 1):
        sums.append(int((value * parts[k % 2]).sum()))
        after = ((2 * k + dim - 2) * ((x * value) >> bits) - k * before) // (k + dim - 2)
        before, value = value, after
    return sums
