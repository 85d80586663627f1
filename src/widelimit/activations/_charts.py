r"""Coordinates of second moments in which nearly parallel inputs keep their digits, and an activation in these.

Two inputs of limit variance 1 have the second moments $A,B$ and, mixed, $c$. Near $x=\pm x'$ all statistics of
interest are small differences of these, so they are described by $M=(A+B)/2$, $\Delta=(A-B)/2$ and a third coordinate
that depends on the *chart* $k$: $M-kc$, half the squared distance of $x_0$ and $kx_1$, for $k=\pm1$ near either end,
and $c$ itself for $k=0$ between them. Signals have the basis $\mu=(x_0+kx_1)/2$, $\delta=x_0-kx_1$, or $x_0,x_1$.
A derivative in $(M,\Delta,M-kc)$ is $\frac12\partial_\mu^2$, $\partial_\mu\partial_\delta$ or
$-k\partial_0\partial_1$ under the expectation, $\partial_\mu=\partial_0+k\partial_1$ and
$\partial_\delta=(\partial_0-k\partial_1)/2$.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp

from ._cov import Matrix
from ._fourth_records import Alone, Fourth

# Where charts change. Not at numbers that data have: a compiler may evaluate a correlation twice, and differently.
_NEAR, _TURN = 0.4327, 0.0313

Three = tuple[Matrix, Matrix, Matrix]


class Local(NamedTuple):
    r"""An activation in charts: inputs in that of the nearer end, outputs in what it can say something of.

    Attributes:
        first: The first input alone.
        second: The second input alone.
        chart: That of the output, for each pair.
        mixed_moment: $E[p_0p_1]$ where it is the output's third coordinate, if it has digits of its own.
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
    chart: Matrix
    mixed_moment: Matrix | None
    third: Three
    bends: tuple[Matrix, ...]
    dot: Matrix
    dot_third: Three
    dot_bends: tuple[Matrix, ...]
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


def charted(found: Fourth, end: Matrix) -> Local:
    """Fourth moments for inputs in the chart of the nearer end, by linear combination.

    Outputs are in the chart 0: what was not computed as a small difference does not become one.

    Args:
        found: The moments.
        end: 1 or -1, the chart of the input.

    Returns:
        The same in charts.
    """
    one, two, s = found.first, found.second, found.slopes
    moment, bends = _in_chart(end, (s.s20, s.s11, s.s02), (s.s40, s.s31, s.s22, s.s13, s.s04))
    dot, dot_bends = _in_chart(end, (s.s31, s.s22, s.s13), (s.s51, s.s42, s.s33, s.s24, s.s15))
    per = lambda a, b: (a + end * b, (a - end * b) / 2)
    mixed = (
        (per(one.t1, 0), per(s.s11, s.s02)),
        (per(s.s20, s.s11), per(jnp.zeros_like(two.t1), two.t1)),
    )
    return Local(
        one,
        two,
        jnp.zeros_like(end),
        None,
        moment,
        bends,
        s.s11,
        dot,
        dot_bends,
        mixed,
        (one.x, *found.x, two.x),
        found.y,
        (one.z, *found.z, two.z),
    )


def in_forms(
    forms: tuple[tuple[Matrix, Matrix], tuple[Matrix, Matrix]], moments: Sequence[Matrix]
) -> tuple[Matrix, ...]:
    """E[e0^(n-j) e1^j], j = 0..n, of two linear forms in two variables, from the same of the variables."""
    n = len(moments) - 1
    times = lambda a, b: [
        sum((a[i] * b[k - i] for i in range(len(a)) if 0 <= k - i < len(b)), jnp.zeros_like(a[0]))
        for k in range(len(a) + len(b) - 1)
    ]
    out = []
    for j in range(n + 1):
        row = [jnp.ones_like(moments[0])]
        for form in [forms[0]] * (n - j) + [forms[1]] * j:
            row = times(row, form)
        out.append(sum((a * m for a, m in zip(row, moments, strict=True)), jnp.zeros_like(row[0])))
    return tuple(out)


def _in_chart(
    k: Matrix, first: Three, second: tuple[Matrix, ...]
) -> tuple[Three, tuple[Matrix, ...]]:
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
