"""Small tensors over the entries of a matrix: axes of inputs and of pairs first, rows and columns last.

Two inputs, 0 and 1, have three pairs 00, 01, 11. Sums over these few values are written out, so that a compiler
sees nothing but elementwise arithmetic.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit.activations import Local

Entries = Float[Array, "..."]
Three = Float[Array, "3 rows columns"]
Five = Float[Array, "5 rows columns"]
Matrix6 = Float[Array, "6 6 rows columns"]
Square = Float[Array, "2 2 rows columns"]
Cube = Float[Array, "2 2 2 rows columns"]
Tensor4 = Float[Array, "2 2 2 2 rows columns"]
PAIRS = ((0, 0), (0, 1), (1, 1))


def stacked(values: Sequence[Entries], shape: tuple[int, ...]) -> Float[Array, "k rows columns"]:
    """Entries of the pairs' shape, whatever they belong to."""
    return jnp.stack([jnp.broadcast_to(value, shape) for value in values])


def square(pairs: Three) -> Square:
    """A symmetric matrix over inputs from its three entries."""
    return jnp.stack([pairs[:2], pairs[1:]])


def over(a: Entries, like: Entries) -> Entries:
    """Entries with as many axes before their own as others have."""
    return a.reshape((1,) * (like.ndim - a.ndim) + a.shape)


def transposed(a: Entries) -> Entries:
    """The transpose over the first two axes."""
    return jnp.swapaxes(a, 0, 1)


def on_both(t1: Square, t2: Square, b: Tensor4) -> Tensor4:
    """t1[a, c] t2[b, d] B[a, b, c, d]."""
    return t1[:, None, :, None] * t2[None, :, None, :] * b


def contracted(u1: Cube, u2: Cube, f: Tensor4) -> Tensor4:
    """The sum of u1[c, a, e] u2[d, b, f] F[e, f, a, b] over e and f."""
    left = lambda e: u1[:, None, :, None, e] * f[e][None]
    half = left(0) + left(1)
    right = lambda e: u2[None, :, None, :, e] * half[:, e][:, None]
    return right(0) + right(1)


def chained(after: Cube, before: Cube) -> Cube:
    """The sum of after[d, b, e] before[e, b, f] over e."""
    term = lambda e: after[:, :, e, None] * before[e][None]
    return term(0) + term(1)


def outer(a: Square, b: Square) -> Tensor4:
    """A[a, b] B[c, d]."""
    return a[:, :, None, None] * b[None, None]


def wishart(chart: Entries, minus: Entries, plus: Entries) -> Float[Array, "3 3 rows columns"]:
    """The spread of a Gaussian's second moments, in a chart."""
    rho, square_sine = (plus - minus) / 2, minus * plus
    near = jnp.where(chart > 0, minus, plus)
    none, own = jnp.zeros_like(rho), 1 + rho**2
    with_m = jnp.where(chart == 0, 2 * rho, near**2)
    third = jnp.where(chart == 0, own, 2 * near**2)
    rows = (own, none, with_m), (none, square_sine, none), (with_m, none, third)
    return jnp.stack([jnp.stack(row) for row in rows])


def gram(chart: Entries, minus: Entries, plus: Entries) -> Square:
    """The second moments of the basis of a chart."""
    rho, one = (plus - minus) / 2, jnp.ones_like(minus)
    near, far = jnp.where(chart > 0, minus, plus), jnp.where(chart > 0, plus, minus)
    between = chart == 0
    return square(
        jnp.stack(
            [
                jnp.where(between, one, far / 2),
                jnp.where(between, rho, 0),
                jnp.where(between, one, 2 * near),
            ]
        )
    )


def third_of(chart: Entries, minus: Entries, plus: Entries) -> Entries:
    """The third coordinate itself."""
    return jnp.where(chart == 0, (plus - minus) / 2, jnp.where(chart > 0, minus, plus))


def upper_left(small: Float[Array, "3 3 rows columns"]) -> Matrix6:
    """A 3 x 3 matrix as the block of the second moments."""
    return jnp.pad(small, ((0, 3), (0, 3), (0, 0), (0, 0)))


def pairs_of(s: Square) -> Three:
    """The three entries of a symmetric matrix."""
    return jnp.stack([s[a, b] for a, b in PAIRS])


# --- what an activation does ----------------------------------------------------------------------


def four_points(found: Local, shape: tuple[int, ...]) -> tuple[Tensor4, Tensor4]:
    """E[phi_c phi_d phi'_a phi'_b] as [c, d, a, b], c and d in the output's basis, and E of four phi'."""
    z = stacked(found.z, shape)
    y = jnp.stack([stacked(row, shape) for row in found.y])
    both = (0, 1)
    spread = lambda at: jnp.stack(
        [
            jnp.stack(
                [jnp.stack([jnp.stack([at(a, b, c, d) for d in both]) for c in both]) for b in both]
            )
            for a in both
        ]
    )
    return spread(lambda c, d, a, b: y[c + d, a + b]), spread(lambda a, b, c, d: z[a + b + c + d])


def single_neuron(found: Local, third: Entries, theta: Three, shape: tuple[int, ...]) -> Matrix6:
    """The covariance of one neuron's (phi_a phi_b, Theta_ab phi'_a phi'_b) over pairs, the first in a chart."""
    inner = jnp.abs(found.chart)
    apart = (1 - inner) / 2
    # M, Delta and the third coordinate as quadratic forms in the basis.
    forms = (
        ((1 + inner) / 2, None, (2 - inner) / 4),
        (apart, inner, -apart),
        (None, 1 - inner, inner / 2),
    )
    x, z = stacked(found.x, shape), stacked(found.z, shape)
    y = jnp.stack([stacked(row, shape) for row in found.y])
    dot = stacked((found.first.dot, found.dot, found.second.dot), shape)
    means = [jnp.ones(shape), jnp.zeros(shape), third, *(theta * dot)]

    def second(i: int, j: int) -> Entries:
        if j >= 3:
            return theta[i - 3] * theta[j - 3] * z[i + j - 6]
        terms = [(k, a) for k, a in enumerate(forms[j]) if a is not None]
        if i >= 3:
            return theta[i - 3] * sum(a * y[k, i - 3] for k, a in terms)
        others = [(k, a) for k, a in enumerate(forms[i]) if a is not None]
        return sum((a * b * x[k + l] for k, a in terms for l, b in others), jnp.zeros(shape))

    known: dict[tuple[int, int], Entries] = {}
    for i in range(6):
        for j in range(i + 1):
            known[i, j] = known[j, i] = second(i, j) - means[i] * means[j]
    return jnp.stack([jnp.stack([known[i, j] for j in range(6)]) for i in range(6)])


def bends(found: Local, theta: Three, cov: Matrix6, f: Tensor4) -> Float[Array, "6 rows columns"]:
    """What second derivatives add to the means, and a neuron's correlation with its own kernel.

    All in the chart of the input's nearer end.
    """
    first, second = found.first, found.second
    hessian = lambda h: (
        (h[0] * cov[0, 0] + h[3] * cov[1, 1] + h[5] * cov[2, 2]) / 2
        + h[1] * cov[0, 1]
        + h[2] * cov[0, 2]
        + h[4] * cov[1, 2]
    )
    turn = 2 * cov[0, 1]
    own0, own1 = cov[0, 0] + cov[1, 1] + turn, cov[0, 0] + cov[1, 1] - turn
    moved0, moved1 = first.t2 * own0 / 4, second.t2 * own1 / 4
    moment = moved0 + moved1, moved0 - moved1, hessian(found.bends)
    slope = first.dot2 * own0 / 2, hessian(found.dot_bends), second.dot2 * own1 / 2
    by_m, by_delta, by_third = found.dot_third
    mean = lambda a, b: f[0, 0, a, b] + f[1, 1, a, b] / 4
    cross = lambda a, b: f[0, 1, a, b] + f[1, 0, a, b]
    own = (
        first.dot1 * (cov[0, 3] + cov[1, 3] + 2 * mean(0, 0) + cross(0, 0)),
        by_m * (cov[0, 4] + 2 * mean(0, 1))
        + by_delta * (cov[1, 4] + cross(0, 1))
        + by_third * (cov[2, 4] + f[1, 1, 0, 1]),
        second.dot1 * (cov[0, 5] - cov[1, 5] + 2 * mean(1, 1) - cross(1, 1)),
    )
    shape = theta.shape[1:]
    lower = theta * stacked(slope, shape) + stacked(own, shape)
    return jnp.concatenate([stacked(moment, shape), lower])
