r"""Derivatives of layers, as they act on the statistics of a signal at two inputs.

Second moments are in charts (`activations/_charts.py`): $M$, $\Delta$ and a third coordinate. Tangent kernels are those
of the pairs 00, 01, 11.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit.activations import Local, basis_of, inputs_in, sign_in

from ._tensors import (
    Cube,
    Entries,
    Five,
    Matrix6,
    Square,
    Tensor4,
    Three,
    chained,
    over,
    pairs_of,
    square,
    stacked,
    transposed,
)

Basis = tuple[tuple[Entries, Entries], tuple[Entries, Entries]]


class Linear(NamedTuple):
    r"""A derivative of the second moments and the tangent kernels, most of whose entries vanish.

    Attributes:
        s: Of the second moments: $M'=aM+b\Delta$ and $\Delta'=bM+a\Delta$, since the first input's moment depends on
            itself only, and so does the second's; then the three of the third coordinate.
        across: Of the tangent kernels in the second moments: 00 in the first input's, 01 in all three, 11 in the
            second input's.
        theta: Of each tangent kernel in itself.
    """

    s: Five
    across: Five
    theta: Three

    def __call__(self, values: Float[Array, "6 ..."]) -> Float[Array, "6 ..."]:
        """Applied to the first axis."""
        m, delta, third = values[:3]
        low = values[3:]
        at = lambda rows, i: over(rows[i], m)
        row = lambda rows, i: at(rows, i) * m + at(rows, i + 1) * delta + at(rows, i + 2) * third
        s, across, theta = self
        return jnp.stack(
            [
                at(s, 0) * m + at(s, 1) * delta,
                at(s, 1) * m + at(s, 0) * delta,
                row(s, 2),
                at(across, 0) * (m + delta) + at(theta, 0) * low[0],
                row(across, 1) + at(theta, 1) * low[1],
                at(across, 4) * (m - delta) + at(theta, 2) * low[2],
            ]
        )

    def after(self, before: "Linear") -> "Linear":
        """The product of two."""
        a, b, *third = before.s
        row = lambda m, delta, d: (
            m * a + delta * b + d * third[0],
            m * b + delta * a + d * third[1],
            d * third[2],
        )
        s, across, theta, old = self.s, self.across, self.theta, before.across
        middle = row(*across[1:4])
        return Linear(
            jnp.stack([s[0] * a + s[1] * b, s[0] * b + s[1] * a, *row(*s[2:])]),
            jnp.stack(
                [
                    across[0] * (a + b) + theta[0] * old[0],
                    *(x + theta[1] * y for x, y in zip(middle, old[1:4], strict=True)),
                    across[4] * (a - b) + theta[2] * old[4],
                ]
            ),
            theta * before.theta,
        )


def sandwich(a: Linear, c: Matrix6, b: Linear) -> Matrix6:
    """A C B^T for a symmetric C."""
    return a(transposed(b(c)))


class Step(NamedTuple):
    """The derivative of a layer, as it acts on the statistics of a signal.

    Attributes:
        both: Of second moments and tangent kernels.
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

    @staticmethod
    def none(shape: tuple[int, ...]) -> "Step":
        """Nothing happens."""
        return Step.turned(jnp.zeros(shape), jnp.zeros(shape))

    @staticmethod
    def turned(before: Entries, after: Entries) -> "Step":
        """From one chart to another."""
        one, zero = jnp.ones_like(before), jnp.zeros_like(before)
        sign = sign_in(before) * sign_in(after)
        shift = jnp.abs(after) - sign * jnp.abs(before)
        both = Linear(
            jnp.stack([one, zero, shift, zero, sign]), jnp.stack([zero] * 5), jnp.stack([one] * 3)
        )
        move = moved(before, after)
        return Step(both, jnp.ones((2, 2, *before.shape)), _same_for_both(move, (one, one)))

    @staticmethod
    def units(old: tuple[Array, Array], new: tuple[Array, Array], chart: Entries) -> "Step":
        """The variances of the two inputs, in units of which everything is measured, change."""
        ratio = lambda a, b: jnp.where(b > 0, a / jnp.where(b > 0, b, 1), 0)
        parts = [jnp.sqrt(ratio(a, b)) for a, b in zip(old, new, strict=True)]
        root = stacked(parts, chart.shape)
        two = root[:, None] * root[None]
        inner, mean, gap = jnp.abs(chart), (root[0] + root[1]) / 2, root[0] - root[1]
        # What rounding leaves of equal ones would be taken for a distance.
        gap = jnp.where(jnp.abs(gap) <= 4 * jnp.finfo(gap.dtype).eps * mean, 0, gap)
        turn = mean * gap
        first = (two[0, 0] + two[1, 1]) / 2, turn
        third = inner * gap**2 / 2, inner * turn, two[0, 1]
        none = jnp.zeros_like(gap)
        both = Linear(jnp.stack([*first, *third]), jnp.stack([none] * 5), pairs_of(two))
        own = lambda r: r + inner * (mean - r)
        move = (own(root[0]), inner * gap / 4), (inner * gap, own(root[1]))
        return Step(both, two, _same_for_both(move, (root[0], root[1])))


def moved(before: Entries, after: Entries) -> Basis:
    """The basis of one chart in terms of that of another."""
    old, new = inputs_in(before), basis_of(after)
    row = lambda a, b: (a * old[0][0] + b * old[1][0], a * old[0][1] + b * old[1][1])
    return row(*new[0]), row(*new[1])


def _same_for_both(move: Basis, weight: tuple[Entries, Entries]) -> Cube:
    """A change of basis as `mixed`, with a weight for each input of the slope."""
    return jnp.stack(
        [jnp.stack([jnp.stack([w * value for value in row]) for w in weight]) for row in move]
    )


def on_rows(change: Callable[[Sequence[Entries]], list[Entries]], cov: Matrix6) -> Matrix6:
    """A change of six values applied to both sides of a covariance, which is symmetric."""
    return jnp.stack(change(list(transposed(jnp.stack(change(list(cov)))))))


def _mixed(chart: Entries, m: Entries, third: Entries) -> Entries:
    """The mixed moment."""
    return over(sign_in(chart), m) * (third - over(jnp.abs(chart), m) * m)


def trained(chart: Entries, values: Sequence[Entries]) -> list[Entries]:
    """The second moments are added to the tangent kernels."""
    m, delta, third, *low = values
    mixed = _mixed(chart, m, third)
    return [m, delta, third, low[0] + m + delta, low[1] + mixed, low[2] + m - delta]


def turned(before: Entries, after: Entries, values: Sequence[Entries]) -> list[Entries]:
    """The second moments in another chart."""
    m, delta, third, *low = values
    sign = sign_in(before) * sign_in(after)
    lean = jnp.abs(after) - sign * jnp.abs(before)
    return [m, delta, over(lean, m) * m + over(sign, m) * third, *low]


def trained_transfer(chart: Entries, both: Linear) -> Linear:
    """How tangent kernels depend on a stream once second moments are added to them."""
    s, across = both.s, both.across
    sign, inner = sign_in(chart), jnp.abs(chart)
    mixed = lambda row, third: sign * (third - inner * row)
    first, second = s[0] + s[1], s[0] - s[1]
    added = first, mixed(s[0], s[2]), mixed(s[1], s[3]), sign * s[4], second
    return both._replace(across=across + jnp.stack(added))


def slopes(found: Local, theta: Three, shape: tuple[int, ...]) -> Step:
    """The derivative of an activation, at a signal of this tangent kernel."""
    first, second = found.first, found.second
    apart = (first.t1 + second.t1) / 2, (first.t1 - second.t1) / 2
    moment = stacked((*apart, *found.third), shape)
    slope = stacked((first.dot1, *found.dot_third, second.dot1), shape)
    dot = stacked((first.dot, found.dot, second.dot), shape)
    both = Linear(moment, theta[jnp.asarray((0, 1, 1, 1, 2))] * slope, dot)
    mixed = [jnp.stack([stacked(row, shape) for row in part]) for part in found.mixed]
    return Step(both, square(dot), jnp.stack(mixed))


def without_chart(cov: Matrix6, shift: Float[Array, "6 rows columns"], chart: Entries):
    """Covariance and shifts of the entries 00, 01, 11 of both kernels."""

    def of(values: Sequence[Entries]) -> list[Entries]:
        m, delta, third, *low = values
        return [m + delta, _mixed(chart, m, third), m - delta, *low]

    return on_rows(of, cov), jnp.stack(of(list(shift)))


def without_basis(f: Tensor4, chart: Entries) -> Tensor4:
    """F at the two inputs themselves."""
    return in_basis(inputs_in(chart), f)


def in_basis(rows: Basis, f: Tensor4) -> Tensor4:
    """F with another basis of signals."""
    pick = lambda row, g: over(row[0], g[0]) * g[0] + over(row[1], g[1]) * g[1]
    left = [pick(row, f) for row in rows]
    return jnp.stack([jnp.stack([pick(row, g) for row in rows]) for g in left])
