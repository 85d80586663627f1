"""Two jointly Gaussian pre-activations."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from widelimit._base.numerics import angle

Matrix = Float[Array, "..."]
TINY = 1e-30  # below, a quotient has reached its limit; representable in both precisions


class Cov(eqx.Module):
    r"""The covariance of two jointly Gaussian pre-activations $(u,v)$, without lost digits.

    Attributes:
        q1: $E[u^2]$.
        q2: $E[v^2]$.
        minus: $1-\rho$, $\rho$ the correlation: exact near $\rho=1$, where $\rho$ is not.
        plus: $1+\rho$.
    """

    q1: Matrix
    q2: Matrix
    minus: Matrix
    plus: Matrix

    @property
    def rho(self) -> Matrix:
        """The correlation."""
        return (self.plus - self.minus) / 2

    @property
    def scale(self) -> Matrix:
        r"""$\sqrt{q_1q_2}$."""
        return jnp.sqrt(self.q1) * jnp.sqrt(self.q2)

    @property
    def k(self) -> Matrix:
        """The covariance E[uv]."""
        return self.scale * self.rho

    @property
    def det(self) -> Matrix:
        r"""$q_1q_2-k^2\ge0$, free of cancellation."""
        return self.q1 * self.q2 * self.minus * self.plus

    @property
    def theta(self) -> Matrix:
        """The angle arccos(rho)."""
        return angle(self.minus, self.plus)

    @staticmethod
    def diagonal(q: Matrix) -> "Cov":
        """U = v: the pair that an input forms with itself."""
        return Cov.parallel(q, q)

    @staticmethod
    def parallel(q1: Matrix, q2: Matrix) -> "Cov":
        """Correlation 1."""
        zero = jnp.zeros_like(q1 + q2)
        return Cov(q1, q2, zero, zero + 2)

    def at(self, minus: Matrix, plus: Matrix) -> "Cov":
        """The same variances with another correlation."""
        return Cov(self.q1, self.q2, minus, plus)
