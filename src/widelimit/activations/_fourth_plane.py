"""Fourth moments by quadrature in the plane, cut at break points and at steep fronts."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ._activation import Activation
from ._cov import Cov, Matrix
from ._fourth_records import (
    COUNTED,
    HIGHEST,
    ORDERS,
    Alone,
    Fourth,
    Function,
    Slopes,
    assembled,
    standardised,
)
from ._plane import line_integral, plane_integral

# sine^2; below, scores of the density have lost their digits, and two inputs count as one.
_COINCIDE = 1e-6


def fourth_in_plane(act: Activation, cov: Cov) -> Fourth:
    shape = cov.minus.shape
    flat = jax.tree.map(lambda a: jnp.broadcast_to(a, shape).ravel(), cov)
    sums = jax.lax.map(lambda c: _plane_sums(act, c), flat, batch_size=min(16, flat.minus.size))
    first, second = (_line_sums(act, q) for q in (cov.q1, cov.q2))
    found = assembled(first, second, [part.reshape(shape) for part in sums.T])
    if not act.breaks:
        return found
    close = (cov.minus * cov.plus < _COINCIDE) & (cov.minus < cov.plus)
    alone = _coincident(jax.tree.map(lambda a, b: (a + b) / 2, first, second), found.slopes)
    chosen = (jnp.where(close, a, b) for a, b in zip(alone, found.slopes, strict=True))
    return found._replace(slopes=Slopes(*chosen))


def _coincident(one: Alone, slopes: Slopes) -> Slopes:
    """For two inputs that are one: what gives the one's derivatives, if both move alike."""
    none = jnp.zeros_like(slopes.s11)
    s40 = 2 * (one.t2 - 1.5 * one.dot1)
    bent = (s40, none, one.dot1, none, s40, none, none, one.dot2 / 1.5, none, none)
    return Slopes(*slopes[:3], *(part + none for part in bent))


def _plane_sums(act: Activation, cov: Cov) -> Float[Array, " moments"]:
    """All mixed moments of one pair, derivatives by the scores of the density."""
    (p1, d1), (p2, d2) = (standardised(act)(q) for q in (cov.q1, cov.q2))
    sine2 = cov.minus * cov.plus
    some = sine2 > 1e-24
    over = jnp.where(some, 1 / jnp.where(some, sine2, 1), 0)  # where u and v coincide they vanish
    rho = cov.rho

    def integrand(z1: Array, u: Array, z2: Array, v: Array) -> Array:
        z1 = jnp.broadcast_to(z1, z2.shape)
        second = v / jnp.sqrt(cov.q2)
        p, r, d, e = p1(z1), p2(second), d1(z1), d2(second)
        yu, yv = z1 - rho * z2 * jnp.sqrt(over), z2 * jnp.sqrt(over)
        yu = jnp.where(some, yu, 0)
        if act.breaks:
            slopes = _weighted(d * r, p * e, d * e, (z1, second), (yu, yv), over, rho)
        else:
            first, other = (_derivatives(f, z) for f, z in ((p1, z1), (p2, second)))
            slopes = [first[i] * other[j] for i, j in ORDERS]
        x = [p**3 * r, p**2 * r**2, p * r**3]
        z = [d**3 * e, d**2 * e**2, d * e**3]
        y = [p ** (2 - i) * r**i * d ** (2 - j) * e**j for i, j in COUNTED]
        return jnp.stack([*slopes, *x, *z, *y])

    return plane_integral(act, cov, integrand, fine=True)


def _derivatives(f: Function, z: Array) -> list[Array]:
    """F and its first derivatives."""
    found, prime = [f(z)], f
    for _ in range(HIGHEST):
        prime = (lambda g: lambda z: jax.jvp(g, (z,), (jnp.ones_like(z),))[1])(prime)
        found.append(prime(z))
    return found


def _weighted(
    dr: Array,
    pe: Array,
    de: Array,
    at: tuple[Array, Array],
    score: tuple[Array, Array],
    over: Array,
    rho: Array,
) -> list[Array]:
    r"""The integrands of $s_{ij}$ in the order of `Slopes`: Stein's identity on the density."""
    (z1, z2), (u, v) = at, score
    puu, puv = over, -rho * over
    third = lambda y: y**3 - 3 * puu * y
    four_same = lambda y: y**4 - 6 * puu * y**2 + 3 * puu**2
    three_one = lambda y, w: y**3 * w - 3 * puu * y * w - 3 * puv * y**2 + 3 * puu * puv
    two_two = (u * v) ** 2 - puu * (u**2 + v**2) - 4 * puv * u * v + puu * puu + 2 * puv**2
    return [
        z1 * dr - rho * de,
        de,
        z2 * pe - rho * de,
        dr * third(u),
        de * (u**2 - puu),
        de * (u * v - puv),
        de * (v**2 - puu),
        pe * third(v),
        de * four_same(u),
        de * three_one(u, v),
        de * two_two,
        de * three_one(v, u),
        de * four_same(v),
    ]


def _line_sums(act: Activation, q: Matrix) -> Alone:
    """One input with itself: derivatives in the variance, again by the density."""

    def one(q: Array) -> Array:
        p, d = standardised(act)(q)

        def integrand(z: Array) -> Array:
            a, b = p(z), d(z)
            he2, he4 = z**2 - 1, z**4 - 6 * z**2 + 3
            return jnp.stack(
                [
                    b**2,
                    a**2 * he2 / 2,
                    a**2 * he4 / 4,
                    b**2 * he2 / 2,
                    b**2 * he4 / 4,
                    a**4,
                    a**2 * b**2,
                    b**4,
                ]
            )

        return line_integral(act, q, integrand, fine=True)

    return Alone(*jnp.vectorize(one, signature="()->(k)")(q).transpose((q.ndim, *range(q.ndim))))
