r"""The state that layers propagate, and the operations under which it is closed.

For two inputs: the variances $q_1,q_2$ of their pre-activations, $1\mp\rho$ of their correlation, and
the tangent kernel, divided like the correlation by $\sqrt{q_1q_2}$. Nothing here cancels: near
$x=x'$ the digits are in $1-\rho$, near $x=-x'$ in $1+\rho$, which is not carried along once $\rho\ge0$
is known (behind a ReLU it always is). The variances belong to single inputs, so
they are vectors, kept in float64; the rest has one entry for each pair and the dtype of the data.
Since matrices are dimensionless, rounding in the scales (such as $\sigma_w^2$ in float32, to the
power of the depth) never enters them.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Vector = Float[Array, "..."]
Matrix = Float[Array, "..."]


class Pair(eqx.Module):
    r"""Second-order statistics of a layer's output for pairs of inputs.

    Attributes:
        q1: Variance for the first inputs, float64, broadcastable against the matrices.
        q2: Variance for the second inputs.
        minus: $1-\rho$.
        above: $1+\rho$; None where $\rho\ge0$ is known, so that $2-(1-\rho)$ has all the digits.
        ntk: $\Theta/\sqrt{q_1q_2}$.
    """

    q1: Vector
    q2: Vector
    minus: Matrix
    above: Matrix | None
    ntk: Matrix

    @property
    def rho(self) -> Matrix:
        """The correlation."""
        return 1 - self.minus if self.above is None else (self.above - self.minus) / 2

    @property
    def plus(self) -> Matrix:
        r"""$1+\rho$."""
        return 2 - self.minus if self.above is None else self.above


def doubled(x: Any) -> Array:
    """X in float64, also where JAX's global flag says 32 bits."""
    with jax.enable_x64(True):
        return jnp.asarray(x).astype(jnp.float64)


def outer(a: Vector, b: Vector, like: Matrix) -> Matrix:
    """The product of a quantity of the first inputs with one of the second, in the pairs' dtype."""
    return a.astype(like.dtype) * b.astype(like.dtype)


def scaled(pair: Pair, factor: Any) -> Pair:
    """The output times a number: correlations stay, variances get its square."""
    with jax.enable_x64(True):
        gain = doubled(factor) ** 2
        return Pair(gain * pair.q1, gain * pair.q2, pair.minus, pair.above, pair.ntk)


def _share(part: Vector, total: Vector) -> Vector:
    """sqrt(part / total), and 0 where there is nothing."""
    positive = part > 0
    ratio = jnp.where(positive, part, 1) / jnp.where(total > 0, total, 1)
    return jnp.where(positive, jnp.sqrt(ratio), 0)


def added(a: Pair, b: Pair) -> Pair:
    r"""The sum of two independent parts.

    With shares $a_i=\sqrt{q^a_i/q_i}=\cos\psi_i$, $b_i=\sin\psi_i$, the correlations mix with weights
    $a_1a_2$ and $b_1b_2$; what is missing to 1, $1-\cos(\psi_1-\psi_2)$, adds to $1-\rho$ and $1+\rho$.
    """
    with jax.enable_x64(True):
        q1, q2 = a.q1 + b.q1, a.q2 + b.q2
        a1, a2, b1, b2 = _share(a.q1, q1), _share(a.q2, q2), _share(b.q1, q1), _share(b.q2, q2)
        like = a.minus
        weight_a, weight_b = outer(a1, a2, like), outer(b1, b2, like)
        gap = _mixing_gap(a1, a2, b1, b2, like)
        minus = weight_a * a.minus + weight_b * b.minus + gap
        known = a.above is None and b.above is None
        above = None if known else weight_a * a.plus + weight_b * b.plus + gap
        return Pair(q1, q2, minus, above, weight_a * a.ntk + weight_b * b.ntk)


def _mixing_gap(a1: Vector, a2: Vector, b1: Vector, b2: Vector, like: Matrix) -> Matrix:
    """1 - cos(psi1 - psi2) as half a squared distance, which vanishes exactly for equal shares."""
    cast = lambda share: (share * math.sqrt(0.5)).astype(like.dtype)
    return (cast(a1) - cast(a2)) ** 2 + (cast(b1) - cast(b2)) ** 2


def with_bias(pair: Pair, b_std: Any) -> Pair:
    """Add a Gaussian constant that all inputs share (correlation 1), smooth at b_std = 0."""
    with jax.enable_x64(True):
        bias = doubled(b_std)
        q1, q2 = pair.q1 + bias**2, pair.q2 + bias**2
        a1, a2 = _share(pair.q1, q1), _share(pair.q2, q2)
        # b/sqrt(q) rather than sqrt(b^2/q): differentiable in b at 0
        b1 = bias / jnp.sqrt(jnp.where(q1 > 0, q1, 1))
        b2 = bias / jnp.sqrt(jnp.where(q2 > 0, q2, 1))
        like = pair.minus
        weight = outer(a1, a2, like)
        gap = _mixing_gap(a1, a2, b1, b2, like)
        minus = weight * pair.minus + gap
        above = None
        if pair.above is not None:
            above = weight * pair.above + 2 * outer(b1, b2, like) + gap
        return Pair(q1, q2, minus, above, weight * pair.ntk)
