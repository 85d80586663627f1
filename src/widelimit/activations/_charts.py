r"""Coordinates of second moments in which nearly parallel inputs keep their digits, and an activation in these.

Two inputs of limit variance 1 have the second moments $A,B$ and, mixed, $c$. Near $x=\pm x'$ all statistics of
interest are small differences of these, so they are described by $M=(A+B)/2$, $\Delta=(A-B)/2$ and a third coordinate
that depends on the *chart* $k$: $M-kc$, half the squared distance of $x_0$ and $kx_1$, for $k=\pm1$ near either end,
and $c$ itself for $k=0$ between them. Signals have the basis $\mu=(x_0+kx_1)/2$, $\delta=x_0-kx_1$, or $x_0,x_1$.
A derivative in $(M,\Delta,M-kc)$ is one by $\partial_\mu^2/2$, $\partial_\mu\partial_\delta$ and $-k\partial_0\partial_1$,
where $\partial_\mu=\partial_0+k\partial_1$ and $\partial_\delta=(\partial_0-k\partial_1)/2$.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from ._cov import Matrix
from ._fourth_records import Alone, Fourth

# Where charts change. Not at numbers that data have: a compiler may evaluate a correlation twice, and differently.
_NEAR, _TURN = 0.4327, 0.0313

Three = tuple[Matrix, Matrix, Matrix]
Six = tuple[Matrix, Matrix, Matrix, Matrix, Matrix, Matrix]


class Local(NamedTuple):
    r"""An activation in charts: inputs in that of the nearer end, outputs in any.

    Attributes:
        first: The first input alone.
        second: The second input alone.
        third: The derivatives of the output's third coordinate in $(M,\Delta,M-kc)$.
        bends: Its second derivatives: $MM,M\Delta,Md,\Delta\Delta,\Delta d,dd$.
        dot: $E[\varphi'\varphi']$, of either input, as it is without charts.
        dot_third: Its derivatives.
        dot_bends: Its second derivatives.
        mixed: `mixed[c][a][e]` is $E[\partial_e(p_cd_a)]$, c in the output's basis and e in the input's.
        x: E of four p, with 0 to 4 factors of the second element of the output's basis.
        y: E of two p in the output's basis and two d of either input, as in `Fourth`.
        z: E of four d, with 0 to 4 of the second input.
    """

    first: Alone
    second: Alone
    third: Three
    bends: Six
    dot: Matrix
    dot_third: Three
    dot_bends: Six
    mixed: tuple[tuple[tuple[Matrix, ...], ...], ...]
    x: tuple[Matrix, ...]
    y: tuple[tuple[Matrix, ...], ...]
    z: tuple[Matrix, ...]


def chart_of(minus: Matrix, plus: Matrix) -> Matrix:
    """1 or -1 near the ends of the correlations, 0 between them."""
    one = jnp.ones_like(minus)
    return jnp.where(minus < _NEAR, one, jnp.where(plus < _NEAR, -one, 0))


def end_of(minus: Matrix, plus: Matrix) -> Matrix:
    """1 or -1: the nearer end."""
    return jnp.where(minus > plus + _TURN, -jnp.ones_like(minus), 1)


def sign_in(chart: Matrix) -> Matrix:
    """What the mixed moment is multiplied by in the third coordinate."""
    return jnp.where(chart == 0, 1, -chart)


def basis_of(chart: Matrix) -> tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix]]:
    """The basis of signals in a chart, in terms of the two inputs."""
    end = jnp.abs(chart)
    return (1 - end / 2, chart / 2), (end, 1 - end - chart)


def inputs_in(chart: Matrix) -> tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix]]:
    """The two inputs in terms of the basis: the inverse."""
    end = jnp.abs(chart)
    return (jnp.ones_like(end), end / 2), (chart, 1 - end - chart / 2)


def products(
    forms: Sequence[tuple[Matrix, Matrix]], moments: Sequence[Matrix | None]
) -> tuple[Matrix, ...]:
    """E[e0^(n-j) e1^j], j = 0..n, of two linear forms in variables whose moments are given; None is 0.

    Args:
        forms: The coefficients of the two variables in e0 and in e1.
        moments: E[u^(n-i) v^i], i = 0..n.

    Returns:
        The n + 1 expectations.
    """
    n = len(moments) - 1
    powers = [_powers(form, n) for form in forms]
    out = []
    for j in range(n + 1):
        row = _times(powers[0][n - j], powers[1][j])
        terms = [a * m for a, m in zip(row, moments, strict=True) if m is not None]
        out.append(sum(terms[1:], terms[0]))
    return tuple(out)


def _powers(form: tuple[Matrix, Matrix], n: int) -> list[list[Matrix]]:
    found: list[list[Matrix]] = [[jnp.ones_like(form[0])]]
    for _ in range(n):
        found.append(_times(found[-1], list(form)))
    return found


def _times(a: Sequence[Matrix], b: Sequence[Matrix]) -> list[Matrix]:
    """The product of two polynomials."""
    out: list[Matrix | None] = [None] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            before = out[i + j]
            out[i + j] = x * y if before is None else before + x * y
    return [part for part in out if part is not None]


def charted(found: Fourth, end: Matrix, chart: Matrix) -> Local:
    """Fourth moments in charts, by linear combination: for functions whose derivatives are bounded.

    Args:
        found: The moments.
        end: 1 or -1, the chart of the input.
        chart: That of the output.

    Returns:
        The same in charts.
    """
    one, two, s = found.first, found.second, found.slopes
    inner, sign, basis = jnp.abs(chart), sign_in(chart), basis_of(chart)
    moment, moment2 = _in_chart(end, (s.s20, s.s11, s.s02), (s.s40, s.s31, s.s22, s.s13, s.s04))
    dot, dot2 = _in_chart(end, (s.s31, s.s22, s.s13), (s.s51, s.s42, s.s33, s.s24, s.s15))
    half = lambda a, b: (inner * (a + b) / 2, inner * (a - b) / 2)
    (sum1, gap1), (sum2, gap2) = half(one.t1, two.t1), half(one.t2, two.t2)
    bends = tuple(sign * value for value in moment2)
    raw = (
        ((one.t1, jnp.zeros_like(one.t1)), (s.s11, s.s02)),
        ((s.s20, s.s11), (jnp.zeros_like(two.t1), two.t1)),
    )
    per = lambda pair: (pair[0] + end * pair[1], (pair[0] - end * pair[1]) / 2)
    mixed = tuple(
        tuple(
            tuple(
                row[0] * a + row[1] * b for a, b in zip(per(raw[0][i]), per(raw[1][i]), strict=True)
            )
            for i in (0, 1)
        )
        for row in basis
    )
    y = [products(basis, [row[j] for row in found.y]) for j in range(3)]
    return Local(
        one,
        two,
        (sum1 + sign * moment[0], gap1 + sign * moment[1], sign * moment[2]),
        (sum2 + bends[0], gap2 + bends[1], bends[2], sum2 + bends[3], bends[4], bends[5]),
        s.s11,
        dot,
        dot2,
        mixed,
        products(basis, (one.x, *found.x, two.x)),
        tuple(zip(*y, strict=True)),
        (one.z, *found.z, two.z),
    )


def _in_chart(k: Matrix, first: Three, second: tuple[Matrix, ...]) -> tuple[Three, Six]:
    """Derivatives of E[f g] in a chart, from E of derivatives of f and g: (2, 0), (1, 1), .. and (4, 0), .."""
    a, b, c = first
    d, e, f, g, h = second
    return ((a + c) / 2 + k * b, (a - c) / 2, -k * b), (
        (d + h + 6 * f) / 4 + k * (e + g),
        (d - h) / 4 + k * (e - g) / 2,
        -k * (e + g) / 2 - f,
        (d - 2 * f + h) / 4,
        -k * (e - g) / 2,
        f,
    )
