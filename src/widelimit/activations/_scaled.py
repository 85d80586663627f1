r"""Activations with numbers inside and outside: $a\,\varphi(bx)$, erf with an offset, waves with a phase.

Moments of $a\,\varphi(bx)$ are those of $\varphi$ at $b^2$ times the covariance. What is odd and what is even are
uncorrelated, so offsets of odd functions and the two waves of $\sin(bx+c)$ add their moments.
"""

import dataclasses
import math
from collections.abc import Callable

from ._activation import Activation, Formula, family_name, register_family
from ._cov import Cov, Matrix
from ._logistic import tanh
from ._smooth import erf, gaussian
from ._waves import cos, exp, sin, wave_even, wave_gap, wave_mean_dot, wave_odd

Pair = Callable[[Cov], tuple[Matrix, Matrix]]


def _checked(name: str, a: float, b: float) -> None:
    if a == 0 or b == 0:
        raise ValueError(
            f"{name}(a, b) with a = {a:g} and b = {b:g} is constant; neither may be 0."
        )


def _short(name: str, numbers: tuple[float, ...], defaults: tuple[float, ...]) -> str:
    """The name without trailing numbers that change nothing."""
    while numbers and numbers[-1] == defaults[len(numbers) - 1]:
        numbers = numbers[:-1]
    return family_name(name, *numbers) if numbers else name


def _times(formula: Formula | None, factor: float, b: float, offset: float = 0.0) -> Formula | None:
    """The formula of a multiple of the covariance."""
    if formula is None:
        return None
    inside = lambda c: formula(Cov(b * b * c.q1, b * b * c.q2, c.minus, c.plus))
    return lambda c: factor * inside(c) + offset


def _both_times(both: Pair, a: float, b: float, c: float) -> Pair:
    def scaled(cov: Cov) -> tuple[Matrix, Matrix]:
        value, dot = both(Cov(b * b * cov.q1, b * b * cov.q2, cov.minus, cov.plus))
        return a * a * value + c * c, (a * b) ** 2 * dot

    return scaled


def _scaled(base: Activation, a: float, b: float, c: float = 0.0, *, latex: str = "") -> Activation:
    """A base(b x) + c, the formula of base(b x) being given; an offset asks for an odd base."""
    _checked(base.name, a, b)
    moment, gap, correlation = base.moment, base.gap, base.correlation
    both, fourth = base.dual_and_dot, base.fourth
    return Activation(
        _short(base.name, (a, b, c), (1, 1, 0)),
        lambda x: a * base.fn(b * x) + c,
        dual=_times(base.dual, a * a, b, c * c),
        dual_dot=_times(base.dual_dot, (a * b) ** 2, b),
        dual_and_dot=None if both is None else _both_times(both, a, b, c),
        mean_dot=_times(base.mean_dot, (a * b) ** 2, b),
        gap=None if c or gap is None else lambda q1, q2: gap(b * b * q1, b * b * q2),
        correlation=None
        if c or correlation is None
        else lambda v: correlation(Cov(b * b * v.q1, b * b * v.q2, v.minus, v.plus)),
        moment=None if moment is None else lambda q: a * a * moment(b * b * q) + c * c,
        fourth=None
        if c or fourth is None
        else lambda v: fourth(Cov(b * b * v.q1, b * b * v.q2, v.minus, v.plus)),
        parity=None if c else base.parity,
        lipschitz=None if base.lipschitz is None else abs(a * b) * base.lipschitz,
        latex=(latex if a == 1 else f"{a:g}\\,{latex}") + (f"{c:+g}" if c else ""),
        cites=base.cites,
    )


def _times_x(b: float) -> str:
    return "x" if b == 1 else f"{b:g}x"


def _wave(base: Activation, a: float, b: float, c: float) -> Activation:
    r"""$a\sin(bx+c)=a\cos c\sin bx+a\sin c\cos bx$, or the same of the cosine."""
    name, is_sine = base.name, base.parity == "odd"
    _checked(name, a, b)
    odd, even = math.cos(c) ** 2, math.sin(c) ** 2
    if not is_sine:
        odd, even = even, odd
    mixed = lambda first, second: lambda v: odd * first(v) + even * second(v)
    double = -math.cos(2 * c) if is_sine else math.cos(2 * c)
    whole = Activation(
        name,
        lambda x: base.fn(x + c),
        dual=mixed(wave_odd, wave_even),
        dual_dot=mixed(wave_even, wave_odd),
        mean_dot=mixed(lambda v: wave_mean_dot(v, 1), lambda v: wave_mean_dot(v, -1)),
        gap=lambda q1, q2: wave_gap(q1, q2, double),
        fourth=None if c else base.fourth,
        parity=None if c else base.parity,
        lipschitz=1.0,
        cites=base.cites,
    )
    phase = f"{c:+g}" if c else ""
    found = _scaled(whole, a, b, latex=f"\\{name}({_times_x(b)}{phase})")
    return dataclasses.replace(found, name=_short(name, (a, b, c), (1, 1, 0)))


@register_family("erf", (1.5, 0.5, 0.3))
def scaled_erf(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Activation:
    """A erf(b x) + c."""
    return _scaled(erf, a, b, c, latex=rf"\operatorname{{erf}}({_times_x(b)})")


@register_family("sin", (1.4, 0.7, 0.8))
def scaled_sin(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Activation:
    """A sin(b x + c)."""
    return _wave(sin, a, b, c)


@register_family("cos")
def scaled_cos(a: float = 1.0, b: float = 1.0, c: float = 0.0) -> Activation:
    """A cos(b x + c)."""
    return _wave(cos, a, b, c)


@register_family("exp")
def scaled_exp(a: float = 1.0, b: float = 1.0) -> Activation:
    """A exp(b x)."""
    return _scaled(exp, a, b, latex=f"e^{{{_times_x(b)}}}")


@register_family("gaussian")
def scaled_gaussian(a: float = 1.0, b: float = 1.0) -> Activation:
    """A exp(-(b x)^2)."""
    return _scaled(gaussian, a, b, latex=f"e^{{-({_times_x(b)})^2}}")


@register_family("tanh")
def scaled_tanh(a: float = 1.0, b: float = 1.0) -> Activation:
    """A tanh(b x), such as LeCun's 1.7159 tanh(2 x / 3)."""
    return _scaled(tanh, a, b, latex=rf"\tanh({_times_x(b)})")
