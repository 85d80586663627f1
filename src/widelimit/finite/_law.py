r"""Kernels of random networks, exact in law, without a single weight matrix.

The kernels of m inputs use a Gaussian matrix $W$ only through $Wx$ and $W^\top\delta$. With $x=LQ$, the rows of $Q$
orthonormal, $Wx=LZ$ with a standard normal $Z$ of m rows; later $W^\top\delta=Q^\top Z\delta+(1-Q^\top Q)H$, where
$H$ is Gaussian with covariance $\langle\delta,\delta\rangle$ over inputs. A layer of n neurons
then costs O(n), not O(n²).
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation, derivative
from widelimit.describe import infer
from widelimit.interpret import State, interpret, is_zero

from ._network import FiniteNetwork
from ._parameterise import cast

Signals = Float[Array, "points width"]
Deltas = Float[Array, "outputs points width"]  # derivatives of each output by each point's signal
Gram = Float[Array, "points points"]
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
        keys: Fresh keys, shared likewise.
    """

    question: ClassVar[str] = "kernels drawn without weight matrices"

    x: Signals
    cov: Gram | None
    back: Back
    widths: itertools.chain[int]
    keys: itertools.chain[PRNGKeyArray]

    def _but(self, **changes: object) -> Self:
        return dataclasses.replace(self, **changes)

    def weighted(self, width: int | None) -> Self:
        n_in, n_out, dtype = self.x.shape[1], next(self.widths), self.x.dtype
        root = jnp.sqrt(jnp.asarray(n_in, dtype))
        draw = lambda *shape: jax.random.normal(next(self.keys), shape, dtype)
        q, lower = _orthonormal(self.x)
        z = draw(len(q), n_out)
        key = next(self.keys)

        def back(delta: Deltas) -> tuple[Gram, Deltas]:
            flat = delta.reshape(-1, n_out)
            inside = _product(_product(flat, z.T), q)
            fresh = jax.random.normal(key, (len(flat), n_in), dtype)
            outside = _product(_orthonormal(flat)[1], fresh)
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
        draw = jax.random.normal(next(self.keys), (1, self.x.shape[1]), self.x.dtype)
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


def _orthonormal(x: Signals) -> tuple[Signals, Float[Array, "points points"]]:
    """Q with orthonormal rows and L with x = LQ; a row that depends on earlier ones becomes zero."""
    tiny = 100 * jnp.finfo(x.dtype).eps
    rows: list[Array] = []
    for i in range(len(x)):
        row, size = x[i], jnp.sum(x[i] ** 2)
        for _ in range(
            2
        ):  # once leaves a component of rounding size, which the norm then magnifies
            if rows:
                basis = jnp.stack(rows)
                row = row - _product(_product(basis, row), basis)
        rest = jnp.sum(row**2)
        some = rest > tiny**2 * size
        rows.append(jnp.where(some, row * jax.lax.rsqrt(jnp.where(some, rest, 1)), 0))
    q = jnp.stack(rows)
    return q, _product(x, q.T)


def draw_law(
    network: FiniteNetwork, key: PRNGKeyArray, x: Float[Array, "points d"]
) -> tuple[Gram, Gram]:
    """The last-layer kernel and the tangent kernel (its mean over outputs) of one random network."""
    widths = infer(network.net, x.shape[1], network.width).widths
    keys = (jax.random.fold_in(key, i) for i in itertools.count())
    start = Drawn(x, None, _start(len(x)), itertools.chain(widths), itertools.chain(keys))
    out = interpret(network.net, start)
    outputs = out.x.shape[1]
    ones = jnp.eye(outputs, dtype=x.dtype)[:, None, :]
    theta, _ = out.back(jnp.broadcast_to(ones, (outputs, len(x), outputs)))
    assert out.cov is not None
    return out.cov, theta / outputs


def expect_law(network: FiniteNetwork) -> None:
    """Refuse what cannot be drawn this way, before any work."""
    if network.parameterisation != "ntk" or network.bias is not None:
        raise ValueError(
            "method='law' draws networks in NTK parameterisation with the biases that the description has; "
            f"got parameterisation={network.parameterisation!r}, bias={network.bias!r}. Leave out the method."
        )


def law_batch(network: FiniteNetwork, x: Float[Array, "points d"]) -> int:
    """How many networks at a time: their signals together are some megabytes."""
    largest = max(infer(network.net, x.shape[1], network.width).widths, default=1)
    return max(1, min(1000, 2**20 // (largest * len(x))))
