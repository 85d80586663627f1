r"""Kernels of random networks, exact in law, without a single weight matrix.

The kernels of m inputs use a Gaussian matrix $W$ only through $Wx$ and $W^\top\delta$. With $x=LQ$, the rows of $Q$
orthonormal, $Wx=LZ$ with a standard normal $Z$ of m rows; later $W^\top\delta=Q^\top Z\delta+(1-Q^\top Q)H$, where
$H$ is Gaussian with covariance $\langle\delta,\delta\rangle$ over inputs. A layer of n neurons
then costs O(n), not O(n²).
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self, Tensor
from widelimit.activations import Activation, derivative
from widelimit.describe import infer
from widelimit.interpret import State, interpret, is_zero

from ._network import FiniteNetwork
from ._parameterise import cast

Signals = Float[Array, "points _"]
Deltas = Float[Array, "outputs points _"]  # derivatives of each output by each point's signal
Gram = Float[Array, "points points"]
_BY_HAND = 2  # rows; up to here a factorisation is a few sums, which many networks share
Back = Callable[[Deltas], tuple[Gram, Deltas]]


@dataclasses.dataclass(frozen=True)
class Drawn(State):
    """A random signal, and how derivatives go back through what made it.

    Attributes:
        x: The signal of each point.
        cov: Its covariance given the layers below, if it is fresh.
        back: From derivatives by this signal to those by the start of the branch, and the tangent
            kernel, summed over outputs, of all that lies between.
        widths: The width of each matrix to come, which all signals of a network share.
        normals: Where randomness comes from, shared likewise.
    """

    question: ClassVar[str] = "kernels drawn without weight matrices"

    x: Signals
    cov: Gram | None
    back: Back
    widths: itertools.chain[int]
    normals: "Normals"

    def _but(self, **changes: object) -> Self:
        return dataclasses.replace(self, **changes)

    def weighted(self, width: int | None) -> Self:
        n_in, n_out, dtype = self.x.shape[1], next(self.widths), self.x.dtype
        root = jnp.sqrt(jnp.asarray(n_in, dtype))
        q, lower = _orthonormal(self.x)
        z = self.normals.take(len(q), n_out)

        def back(delta: Deltas) -> tuple[Gram, Deltas]:
            flat = delta.reshape(-1, n_out)
            inside = _product(_product(flat, z.T), q)
            lower = _orthonormal(flat)[1]
            fresh = self.normals.take(lower.shape[1], n_in)
            outside = _product(lower, fresh)
            outside = outside - _product(_product(outside, q.T), q)
            return self.back(((inside + outside) / root).reshape(*delta.shape[:2], n_in))

        cov = _product(self.x, self.x.T) / n_in
        return self._but(x=_product(lower, z) / root, cov=cov, back=back)

    def scaled(self, factor: Scalar) -> Self:
        c = cast(factor, self.x.dtype)
        cov = None if self.cov is None else c * c * self.cov
        return self._but(x=c * self.x, cov=cov, back=lambda delta: self.back(c * delta))

    def biased(self, b_std: Scalar) -> Self:
        if is_zero(b_std):
            return self
        b = cast(b_std, self.x.dtype)
        draw = self.normals.take(1, self.x.shape[1])
        assert self.cov is not None
        return self._but(x=self.x + b * draw, cov=self.cov + b * b)

    def trained(self) -> Self:
        r"""$\hat\Theta$ gets $(c_w^2\langle x,x'\rangle+c_b^2)\langle\delta,\delta'\rangle$."""
        cov = self.cov
        assert cov is not None

        def back(delta: Deltas) -> tuple[Gram, Deltas]:
            theta, start = self.back(delta)
            return theta + cov * jnp.einsum("oai,obi->ab", delta, delta, precision="highest"), start

        return self._but(back=back)

    def activated(self, activation: Activation) -> Self:
        slope = derivative(activation)(self.x)
        back = lambda delta: self.back(slope[None] * delta)
        return self._but(x=activation.fn(self.x), cov=None, back=back)

    def normalised(self) -> Self:
        raise ValueError(
            "Normalised signals cannot be drawn without weight matrices. Leave out method='law'."
        )

    def branched(self) -> Self:
        return self._but(back=_start(len(self.x)))

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        kept = [] if skip is None else [self.branched().scaled(skip)]
        met = [*kept, *parts]

        def back(delta: Deltas) -> tuple[Gram, Deltas]:
            thetas, starts = zip(*(state.back(delta) for state in met), strict=True)
            theta, start = self.back(functools.reduce(jnp.add, starts))
            return functools.reduce(jnp.add, thetas, theta), start

        covs = [state.cov for state in met if state.cov is not None]
        cov = functools.reduce(jnp.add, covs) if len(covs) == len(met) else None
        return self._but(x=functools.reduce(jnp.add, [s.x for s in met]), cov=cov, back=back)


def _start(points: int) -> Back:
    return lambda delta: (jnp.zeros((points, points), delta.dtype), delta)


def _product(a: Array, b: Array) -> Array:
    return jnp.matmul(a, b, precision="highest")


def _orthonormal(
    x: Float[Array, "rows _"],
) -> tuple[Float[Array, "rank _"], Float[Array, "rows rank"]]:
    """Q with orthonormal rows and L with x = LQ, for dependent rows too."""
    if len(x) > _BY_HAND:
        q, r = jnp.linalg.qr(x.T)
        return q.T, r.T
    rows: list[Array] = []
    for row in x:
        size = jnp.sum(row**2)
        for _ in range(
            2
        ):  # once leaves a component of rounding size, which the norm then magnifies
            for other in rows:
                row = row - jnp.sum(other * row) * other
        rest = jnp.sum(row**2)
        some = rest > (100 * jnp.finfo(x.dtype).eps) ** 2 * size
        rows.append(jnp.where(some, row * jax.lax.rsqrt(jnp.where(some, rest, 1)), 0))
    q = jnp.stack(rows)
    return q, _product(x, q.T)


def draw_law(
    network: FiniteNetwork, key: PRNGKeyArray, x: Float[Array, "points d"]
) -> tuple[Gram, Gram]:
    """The last-layer kernel and the tangent kernel (its mean over outputs) of one random network."""
    needed = Normals(None, x.dtype)
    jax.eval_shape(lambda: _kernels(network, x, needed))
    drawn = jax.random.normal(key, (needed.used,), x.dtype)
    return _kernels(network, x, Normals(drawn, x.dtype))


def _kernels(
    network: FiniteNetwork, x: Float[Array, "points d"], normals: "Normals"
) -> tuple[Gram, Gram]:
    widths = infer(network.net, x.shape[1], network.width).widths
    out = interpret(network.net, Drawn(x, None, _start(len(x)), itertools.chain(widths), normals))
    outputs = out.x.shape[1]
    ones = jnp.eye(outputs, dtype=x.dtype)[:, None, :]
    theta, _ = out.back(jnp.broadcast_to(ones, (outputs, len(x), outputs)))
    assert out.cov is not None
    return out.cov, theta / outputs


class Normals:
    """Standard normal numbers, drawn at once and handed out one part after the other.

    Attributes:
        used: How many have been handed out; without any drawn, how many are needed.
    """

    def __init__(self, drawn: Float[Array, " all"] | None, dtype: np.dtype):
        self._drawn, self._dtype, self.used = drawn, dtype, 0

    def take(self, *shape: int) -> Float[Array, "rows columns"]:
        """The next ones."""
        first, self.used = self.used, self.used + math.prod(shape)
        if self._drawn is None:
            return jnp.zeros(shape, self._dtype)
        return self._drawn[first : self.used].reshape(shape)


def expect_law(network: FiniteNetwork) -> None:
    """Refuse what cannot be drawn this way, before any work."""
    if network.parameterisation != "ntk" or network.bias is not None:
        raise ValueError(
            "method='law' draws networks in NTK parameterisation with the biases that the description has; "
            f"got parameterisation={network.parameterisation!r}, bias={network.bias!r}. Leave out the method."
        )


def law_batch(network: FiniteNetwork, x: Float[Tensor, "points d"]) -> int:
    """How many networks at a time: their signals together are some megabytes."""
    largest = max(infer(network.net, x.shape[1], network.width).widths, default=1)
    return max(1, min(1000, 2**20 // (largest * len(x))))
