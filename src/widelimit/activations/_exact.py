r"""$E[\varphi(u)\varphi(v)]$ and $E[\varphi'(u)\varphi'(v)]$ in any number of digits, where moments are elementary."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import hermite_e

from widelimit._base.arrays import evaluating_now

from ._activation import Activation
from ._kolmogorov import gauss_rule

LOGISTIC_DIGITS = 40  # of tanh and its relatives: a rule for more takes long to make
# The variances and the covariance, mpmath's numbers, to the two moments.
ExactDual = Callable[[Any, Any, Any], tuple[Any, Any]]


def mpmath() -> Any:
    """The module, or an error that says how to get it."""
    try:
        import mpmath as module
    except ImportError as error:
        raise ImportError(
            "More digits than float64 need mpmath, which is not installed. "
            "Install it with: pip install 'widelimit[precise]'"
        ) from error
    return module


def _angle(q1: Any, q2: Any, k: Any) -> tuple[Any, Any, Any]:
    """sqrt(q1 q2), the correlation and the angle; 0 by convention where there is nothing."""
    m = mpmath().mp
    scale = m.sqrt(q1 * q2)
    rho = max(min(k / scale, m.one), -m.one) if scale else m.zero
    return scale, rho, m.acos(rho)


def _two_slopes(act: Activation) -> ExactDual:
    with jax.enable_x64(True), evaluating_now():  # in 32 bits a slope of 0.1 has eight digits
        a, b = (float(sign * act.fn(jnp.asarray(sign))) for sign in (-1.0, 1.0))

    def dual(q1, q2, k):
        m = mpmath().mp
        scale, rho, theta = _angle(q1, q2, k)
        jump, product = (m.mpf(a) - b) ** 2 / (2 * m.pi), m.mpf(a) * b
        value = scale * (jump * (m.sin(theta) + (m.pi - theta) * rho) + product * rho)
        return value, jump * (m.pi - theta) + product

    return dual


def _relu_power(order: int) -> ExactDual:
    def j(n, c, theta):
        """J_n by its recursion, on polynomials P sin + (pi - theta) Q with integer coefficients."""
        m = mpmath().mp
        p, q = np.array([0], dtype=object), np.array([1], dtype=object)
        poly = np.polynomial.polynomial
        for i in range(n):
            step = lambda f, times: poly.polyadd(
                poly.polymul([1, 0, -1], poly.polyder(f)), poly.polymul([0, times], f)
            )
            p, q = poly.polyadd(step(p, 2 * i), q), step(q, 2 * i + 1)
        at = lambda f: sum((int(x) * c**i for i, x in enumerate(f)), m.zero)
        return at(p) * m.sin(theta) + (m.pi - theta) * at(q)

    def dual(q1, q2, k):
        m = mpmath().mp
        scale, rho, theta = _angle(q1, q2, k)
        moment = lambda n: scale**n * j(n, rho, theta) / (2 * m.pi)
        return moment(order), order**2 * moment(order - 1)

    return dual


def _erf(q1, q2, k):
    m = mpmath().mp
    size = (1 + 2 * q1) * (1 + 2 * q2)
    return 2 / m.pi * m.asin(2 * k / m.sqrt(size)), 4 / m.pi / m.sqrt(size - 4 * k**2)


def _gelu(q1, q2, k):
    m = mpmath().mp
    a, b = 1 + q1, 1 + q2
    d = a * b - k**2
    j = 1 / (2 * m.pi * m.sqrt(d))
    below = m.mpf(1) / 4 + m.asin(k / m.sqrt(a * b)) / (2 * m.pi)
    value = q1 * (q2 * j - k**2 * j / a) + k * (below + k * j / b)
    return value, below + k * j * (1 / a + 1 / b + 1 / d)


def _ramp(q1, q2, k):
    """The mean of max(x + noise, 0) over Gaussian noise of variance 1."""
    m = mpmath().mp
    size = m.sqrt((1 + q1) * (1 + q2))
    below = m.mpf(1) / 4 + m.asin(k / size) / (2 * m.pi)
    return k * below + m.sqrt(size**2 - k**2) / (2 * m.pi), below


def _mixed(stretch: int, degree: int, unit: ExactDual) -> ExactDual:
    r"""Of the mean of $a^n\varphi(x/a)$, n the degree, over the scales a of `_kolmogorov.py`."""

    def dual(q1, q2, k):
        m = mpmath().mp
        digits = min(m.dps, LOGISTIC_DIGITS)
        rule = [(stretch * scale, w) for scale, w in gauss_rule(digits + 4, digits)]
        value = dot = m.zero
        for a, w in rule:
            for b, v in rule:
                one, two = unit(q1 / a**2, q2 / b**2, k / (a * b))
                value += w * v * (a * b) ** degree * one
                dot += w * v * (a * b) ** (degree - 1) * two
        return value, dot

    return dual


def _tanh(stretch: int) -> ExactDual:
    def unit(q1, q2, k):  # of erf(x/sqrt(2))
        value, dot = _erf(q1 / 2, q2 / 2, k / 2)
        return value, dot / 2

    return _mixed(stretch, 0, unit)


def _sigmoid(q1, q2, k):
    value, dot = _tanh(2)(q1, q2, k)
    return (1 + value) / 4, dot / 4


def _sin(q1, q2, k):
    m = mpmath().mp
    damped = m.exp(-(q1 + q2) / 2)
    return damped * m.sinh(k), damped * m.cosh(k)


def _gaussian(q1, q2, k):
    d = (1 + 2 * q1) * (1 + 2 * q2) - 4 * k**2
    return d**-0.5, 4 * k * d**-1.5


def _polynomial(coefficients: Sequence[float]) -> ExactDual:
    """Isserlis: with u = sqrt(q1) z, the Hermite coefficients a_n(q1) and a_n(q2) meet at rho^n."""

    def coefficients_at(q):
        m = mpmath().mp
        out = []
        for n in range(len(coefficients)):
            total = m.zero
            for i in range(n, len(coefficients), 2):
                half = (i - n) // 2
                number = m.mpf(math.factorial(i)) / (2**half * math.factorial(half))
                total += m.mpf(coefficients[i]) * number * m.sqrt(q) ** half * m.sqrt(q) ** half
            out.append(total)  # of (u/sqrt(q))^n, divided by sqrt(q)^n
        return out

    def dual(q1, q2, k):
        m = mpmath().mp
        pairs = list(zip(coefficients_at(q1), coefficients_at(q2), strict=True))
        value = sum((a * b * k**n / math.factorial(n) for n, (a, b) in enumerate(pairs)), m.zero)
        slope = sum(
            (a * b * k ** (n - 1) / math.factorial(n - 1) for n, (a, b) in enumerate(pairs) if n),
            m.zero,
        )
        return value, slope

    return dual


_DUALS: dict[str, ExactDual] = {
    "erf": _erf,
    "gelu": _gelu,
    "sin": _sin,
    "cos": lambda q1, q2, k: _sin(q1, q2, k)[::-1],
    "exp": lambda q1, q2, k: (mpmath().mp.exp((q1 + q2) / 2 + k),) * 2,
    "gaussian": _gaussian,
    "tanh": _tanh(1),
    "sigmoid": _sigmoid,
    "softplus": _mixed(2, 1, _ramp),
    "silu": _mixed(2, 1, _gelu),
}


def _hermite(order: float) -> list[float]:
    n = int(order)
    return hermite_e.herme2poly([0.0] * n + [1 / math.sqrt(math.factorial(n))]).tolist()


def _scaled(base: ExactDual, a: float, b: float = 1.0, c: float = 0.0) -> ExactDual:
    """Of a base(b x) + c, the base being odd where c is not 0."""

    def dual(q1, q2, k):
        m = mpmath().mp
        outer, inner = m.mpf(a) ** 2, m.mpf(b) ** 2
        value, slope = base(inner * q1, inner * q2, inner * k)
        return outer * value + m.mpf(c) ** 2, outer * inner * slope

    return dual


def _wave(first: ExactDual, a: float, b: float = 1.0, c: float = 0.0) -> ExactDual:
    """Of a wave with a phase: the squares of cos c and sin c mix the wave and the other one."""

    def mixed(q1, q2, k):
        m = mpmath().mp
        value, slope = first(q1, q2, k)
        cosine, sine = m.cos(m.mpf(c)) ** 2, m.sin(m.mpf(c)) ** 2
        return cosine * value + sine * slope, cosine * slope + sine * value

    return _scaled(mixed, a, b)


_FAMILIES: dict[str, Callable[..., ExactDual]] = {
    "erf": lambda *n: _scaled(_erf, *n),
    "sin": lambda *n: _wave(_sin, *n),
    "cos": lambda *n: _wave(_DUALS["cos"], *n),
    "exp": lambda *n: _scaled(_DUALS["exp"], *n),
    "gaussian": lambda *n: _scaled(_gaussian, *n),
    "relu_power": lambda n: _relu_power(int(n)),
    "polynomial": lambda *c: _polynomial(c),
    "monomial": lambda n: _polynomial([0.0] * int(n) + [1.0]),
    "hermite": lambda n: _polynomial(_hermite(n)),
}


def exact_dual(act: Activation, digits: int = 0) -> ExactDual:
    """The two moments as functions of mpmath's numbers, at its current precision.

    Args:
        act: An activation whose moments are elementary; of tanh, sigmoid, softplus and silu at most
            40 digits are known.
        digits: How many are needed, so that too many are refused.

    Returns:
        A function of the two variances and the covariance.
    """
    if act.degree == 1 and act.angular is not None:
        return _two_slopes(act)
    logistic = act.registered and act.name in ("tanh", "sigmoid", "softplus", "silu")
    if logistic and digits > LOGISTIC_DIGITS:
        raise ValueError(
            f"Of the moments of {act.name!r} {LOGISTIC_DIGITS} digits are known, and {digits} were "
            f"asked for. Ask for at most {LOGISTIC_DIGITS}."
        )
    if act.registered and act.name in _DUALS:
        return _DUALS[act.name]
    family = re.fullmatch(r"(\w+)\((.*)\)", act.name)
    if act.registered and family and family[1] in _FAMILIES:
        return _FAMILIES[family[1]](*map(float, family[2].split(",")))
    known = [
        *(_DUALS.keys() - _FAMILIES.keys()),
        "relu",
        "abs",
        "leaky_relu(...)",
        "two_slopes(...)",
    ]
    known += [f"{name}(...)" for name in _FAMILIES]
    raise ValueError(
        f"There is no formula with any number of digits for the activation {act.name!r}; there "
        f"are for {', '.join(sorted(known))}. Leave `digits` out to compute in float64."
    )
