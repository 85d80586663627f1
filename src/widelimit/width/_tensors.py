"""Small tensors over the entries of a matrix: axes of inputs and of pairs first, rows and columns last.

Two inputs, 0 and 1, have three pairs 00, 01, 11. Sums over these few values are written out, so that a compiler
sees nothing but elementwise arithmetic.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit.activations import Fourth

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


def wishart(s: Square) -> Float[Array, "3 3 rows columns"]:
    """S_ac S_bd + S_ad S_bc over pairs ab and cd: the spread of a Gaussian's second moments."""
    rows = [jnp.stack([s[a, c] * s[b, d] + s[a, d] * s[b, c] for c, d in PAIRS]) for a, b in PAIRS]
    return jnp.stack(rows)


def upper_left(small: Float[Array, "3 3 rows columns"]) -> Matrix6:
    """A 3 x 3 matrix as the block of the second moments."""
    return jnp.pad(small, ((0, 3), (0, 3), (0, 0), (0, 0)))


class Linear(NamedTuple):
    """A derivative of (S, Theta) over pairs, most of whose entries vanish.

    The pairs 00 and 11 depend on themselves only, 01 on all three, and Theta_p on Theta_p and, like S_p, on S. Five
    rows stand for such a 3 x 3 matrix: (00, 00), (01, 00), (01, 01), (01, 11), (11, 11).
    """

    s: Five
    across: Five
    theta: Three

    def __call__(self, values: Float[Array, "6 ..."]) -> Float[Array, "6 ..."]:
        """Applied to the first axis."""
        high, low = values[:3], values[3:]
        at = lambda rows, i: rows[i].reshape((1,) * (values.ndim - 3) + rows.shape[1:])
        three = lambda rows, v: [
            at(rows, 0) * v[0],
            at(rows, 1) * v[0] + at(rows, 2) * v[1] + at(rows, 3) * v[2],
            at(rows, 4) * v[2],
        ]
        own = [at(self.theta, i) * low[i] for i in range(3)]
        lower = [a + b for a, b in zip(three(self.across, high), own, strict=True)]
        return jnp.stack([*three(self.s, high), *lower])

    def after(self, before: "Linear") -> "Linear":
        """The product of two."""
        full = self.theta[jnp.asarray(_ROWS)]
        return Linear(
            _product(self.s, before.s),
            _product(self.across, before.s) + full * before.across,
            self.theta * before.theta,
        )

    def rows_times(self, weight: Three) -> "Linear":
        """The output of each pair multiplied by a number."""
        full = weight[jnp.asarray(_ROWS)]
        return Linear(full * self.s, full * self.across, weight * self.theta)


_ROWS = (0, 1, 1, 1, 2)


def _product(a: Five, b: Five) -> Five:
    middle = (a[1] * b[0] + a[2] * b[1], a[2] * b[2], a[2] * b[3] + a[3] * b[4])
    return jnp.stack([a[0] * b[0], *middle, a[4] * b[4]])


def sandwich(a: Linear, c: Matrix6, b: Linear) -> Matrix6:
    """A C B^T for a symmetric C."""
    return a(transposed(b(c)))


class Step(NamedTuple):
    """The derivative of a layer, as it acts on the statistics of a signal.

    Attributes:
        both: Of (S, Theta).
        back: The product of two slopes, shape (2, 2, rows, columns).
        mixed: Of a signal times a slope: `mixed[c, a, e]` is E[d_e(phi_c phi'_a)].
    """

    both: Linear
    back: Square
    mixed: Cube

    def then(self, after: "Step") -> "Step":
        """This, and what follows."""
        both = after.both.after(self.both)
        return Step(both, after.back * self.back, chained(after.mixed, self.mixed))

    def weighed(self, root: Float[Array, "2 rows columns"]) -> "Step":
        """The same where the output of input a is measured in units larger by 1/root[a]."""
        two = root[:, None] * root[None]
        both = self.both.rows_times(pairs_of(two))
        return Step(both, two * self.back, two[:, :, None] * self.mixed)

    @staticmethod
    def none(shape: tuple[int, ...]) -> "Step":
        """Nothing happens."""
        one, zero = jnp.ones(shape), jnp.zeros(shape)
        same = jnp.stack([jnp.stack([one, zero]), jnp.stack([zero, one])])
        both = Linear(
            jnp.stack([one, zero, one, zero, one]), jnp.stack([zero] * 5), jnp.stack([one] * 3)
        )
        return Step(both, jnp.ones((2, 2, *shape)), jnp.stack([same, same], axis=1))


def pairs_of(s: Square) -> Three:
    """The three entries of a symmetric matrix."""
    return jnp.stack([s[a, b] for a, b in PAIRS])


def four_of(root: Float[Array, "2 rows columns"]) -> Tensor4:
    """root[a] root[b] root[c] root[d]."""
    two = root[:, None] * root[None]
    return outer(two, two)


# --- what an activation does ----------------------------------------------------------------------


def slopes(found: Fourth, theta: Three, shape: tuple[int, ...]) -> Step:
    """The derivative of an activation, at a signal of this tangent kernel."""
    first, second, s = found.first, found.second, found.slopes
    none = jnp.zeros(shape)
    stack = lambda *rows: jnp.stack([stacked(row, shape) for row in rows])
    moment = stacked((first.t1, s.s20 / 2, s.s11, s.s02 / 2, second.t1), shape)
    slope = stacked((first.dot1, s.s31 / 2, s.s22, s.s13 / 2, second.dot1), shape)
    dot = stacked((first.dot, s.s11, second.dot), shape)
    both = Linear(moment, theta[jnp.asarray(_ROWS)] * slope, dot)
    mixed = jnp.stack(
        [
            stack((first.t1, none), (s.s11, s.s02)),
            stack((s.s20, s.s11), (none, second.t1)),
        ]
    )
    return Step(both, square(dot), mixed)


def four_points(found: Fourth, shape: tuple[int, ...]) -> tuple[Tensor4, Tensor4, Tensor4]:
    """E[phi_a phi_b phi_c phi_d], E[phi_c phi_d phi'_a phi'_b] as [c, d, a, b], and that of four phi'."""
    full = lambda values: stacked(values, shape)
    x = full((found.first.x, *found.x, found.second.x))
    z = full((found.first.z, *found.z, found.second.z))
    y = jnp.stack([full(row) for row in found.y])
    both = (0, 1)
    spread = lambda at: jnp.stack(
        [
            jnp.stack(
                [jnp.stack([jnp.stack([at(a, b, c, d) for d in both]) for c in both]) for b in both]
            )
            for a in both
        ]
    )
    return (
        spread(lambda a, b, c, d: x[a + b + c + d]),
        spread(lambda c, d, a, b: y[c + d, a + b]),
        spread(lambda a, b, c, d: z[a + b + c + d]),
    )


def single_neuron(
    x: Tensor4, y: Tensor4, z: Tensor4, s: Square, dot: Square, theta: Square
) -> Matrix6:
    """The covariance of (phi_a phi_b, Theta_ab phi'_a phi'_b) over pairs, of one neuron."""
    sides = [(kind, a, b) for kind in (0, 1) for a, b in PAIRS]
    mean = lambda kind, a, b: s[a, b] if kind == 0 else theta[a, b] * dot[a, b]

    def second(left: tuple[int, int, int], right: tuple[int, int, int]) -> Entries:
        (i, a, b), (j, c, d) = left, right
        if i == j == 0:
            return x[a, b, c, d]
        if i == j == 1:
            return theta[a, b] * theta[c, d] * z[a, b, c, d]
        return theta[c, d] * y[a, b, c, d] if j == 1 else theta[a, b] * y[c, d, a, b]

    known: dict[tuple[int, int], Entries] = {}
    for i, left in enumerate(sides):
        for j, right in enumerate(sides[: i + 1]):
            known[i, j] = known[j, i] = second(left, right) - mean(*left) * mean(*right)
    return jnp.stack([jnp.stack([known[i, j] for j in range(6)]) for i in range(6)])


def bends(found: Fourth, theta: Three, cov: Matrix6, f: Tensor4) -> Float[Array, "6 rows columns"]:
    """What second derivatives add to the means, and a neuron's correlation with its own kernel."""
    first, second, s = found.first, found.second, found.slopes
    hessian = lambda h: (
        h[0] * cov[0, 0] / 4
        + h[1] * cov[0, 1]
        + h[2] * (cov[1, 1] + cov[0, 2] / 2)
        + h[3] * cov[1, 2]
        + h[4] * cov[2, 2] / 4
    )
    moment = (
        first.t2 * cov[0, 0],
        hessian((s.s40, s.s31, s.s22, s.s13, s.s04)),
        second.t2 * cov[2, 2],
    )
    slope = (
        first.dot2 * cov[0, 0],
        hessian((s.s51, s.s42, s.s33, s.s24, s.s15)),
        second.dot2 * cov[2, 2],
    )
    own = (
        first.dot1 * (cov[0, 3] + 2 * f[0, 0, 0, 0]),
        s.s31 * (cov[0, 4] / 2 + f[0, 0, 0, 1])
        + s.s22 * (cov[1, 4] + f[0, 1, 0, 1] + f[1, 0, 0, 1])
        + s.s13 * (cov[2, 4] / 2 + f[1, 1, 0, 1]),
        second.dot1 * (cov[2, 5] + 2 * f[1, 1, 1, 1]),
    )
    shape = theta.shape[1:]
    lower = theta * stacked(slope, shape) / 2 + stacked(own, shape)
    return jnp.concatenate([stacked(moment, shape) / 2, lower])
