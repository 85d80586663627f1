r"""Fourth moments of $a\min(x,0)+b\max(x,0)$ in closed form, as functions of the angle alone.

With $p=\pi-\theta$ the integrals over the quadrant $u,v>0$ of unit variances are
$2\pi E[u^jv^k]$: $p$ (0,0), $\sin\theta+p\cos\theta$ (1,1), $p+\sin\theta\cos\theta$ (2,0),
$3p\cos\theta+(2+\cos^2\theta)\sin\theta$ (3,1), $p(1+2\cos^2\theta)+3\sin\theta\cos\theta$ (2,2). The other quadrants
follow by $u\to-u$: where signs differ the angle is $\pi-\theta$.
"""

import jax.numpy as jnp

from ._cov import Cov, Matrix
from ._fourth_records import Alone, Fourth, Slopes

# sine^2, below which a derivative's pole is left out: it meets statistics that vanish faster, but whose rounding does
# not. What is lost is of the order of the angle: 3e-5 for poles of order 1, 1e-3 for those of order 3, of which
# shifts of means are made.
_FIRST_POLE, _THIRD_POLE = 1e-9, 2e-6


def _quadrant(j: int, k: int, p: Matrix, sine: Matrix, cosine: Matrix) -> Matrix:
    """E[u^j v^k; u, v > 0]; the exponents may be exchanged."""
    values = {
        (0, 0): lambda: p,
        (1, 1): lambda: sine + p * cosine,
        (2, 0): lambda: p + sine * cosine,
        (3, 1): lambda: 3 * p * cosine + (2 + cosine**2) * sine,
        (2, 2): lambda: p * (1 + 2 * cosine**2) + 3 * sine * cosine,
    }
    return values[max(j, k), min(j, k)]() / (2 * jnp.pi)


def two_slopes_fourth(a: float, b: float, cov: Cov) -> Fourth:
    """The fourth moments of a min(x, 0) + b max(x, 0)."""
    norm = (a * a + b * b) / 2  # T = norm q
    theta, rho = cov.theta, cov.rho
    sine = jnp.sqrt(cov.minus * cov.plus)

    def mixed(first: tuple[int, int], second: tuple[int, int]) -> Matrix:
        """(p, d) factors of the first and of the second input: powers of u and v, and of slopes."""
        (j, _), (k, _) = first, second
        m, n = sum(first), sum(second)
        same = (a**4 + b**4) * _quadrant(j, k, jnp.pi - theta, sine, rho)
        apart = (-1) ** k * b**m * a**n + (-1) ** j * a**m * b**n
        return (same + apart * _quadrant(j, k, theta, sine, -rho)) / norm**2

    fourth = (a**4 + b**4) / 2 / norm**2
    one, none = jnp.ones_like(cov.q1), jnp.zeros_like(cov.q1)
    alone = Alone(one, one, none, none, none, 3 * fourth * one, fourth * one, fourth * one)
    other = Alone(*(jnp.broadcast_to(value[:1, :1], cov.q2.shape) for value in alone))
    x = tuple(mixed((4 - i, 0), (i, 0)) for i in (1, 2, 3))
    z = tuple(mixed((0, 4 - i), (0, i)) for i in (1, 2, 3))
    y = [[mixed((2 - i, 2 - j), (i, j)) for j in range(3)] for i in range(3)]
    y[0][0], y[2][2] = alone.y, other.y
    return Fourth(alone, other, _slopes(a, b, theta, sine, rho), x, tuple(map(tuple, y)), z)


def _slopes(a: float, b: float, theta: Matrix, sine: Matrix, rho: Matrix) -> Slopes:
    r"""$T=(a-b)^2T_{relu}+ab\,k$, so the bends are those of the ReLU, poles included."""
    bend = (a - b) ** 2 / ((a * a + b * b) / 2) / (2 * jnp.pi)
    beyond = lambda limit: jnp.where(sine**2 > limit, 1 / jnp.where(sine > 0, sine, 1), 0)
    over, over3 = bend * beyond(_FIRST_POLE), bend * beyond(_THIRD_POLE) ** 3
    s20 = bend * sine
    s11 = bend * (jnp.pi - theta) + a * b / ((a * a + b * b) / 2)
    s40, s31 = over * (2 * rho**2 - 1), -over * rho
    s51, s42 = over3 * rho * (2 * sine**2 + 1), -over3
    return Slopes(s20, s11, s20, s40, s31, over, s31, s40, s51, s42, over3 * rho, s42, s51)
