"""Monte Carlo over initialisations: kernels of random networks, and how fast they converge."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key
from numpy.typing import ArrayLike

from widelimit._base.arrays import convention
from widelimit._base.keys import as_key
from widelimit._base.names import unknown
from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit._base.structured import Data, Graphs, Masked
from widelimit._base.types import Params, Seed, Tensor
from widelimit.infinite import ntk
from widelimit.layers import Dropout, Layer

from ._convention import as_points
from ._distance import expected_kernels
from ._law import draw_law, expect_law, law_batch
from ._make import finite
from ._network import FiniteNetwork

Progress = Callable[[int, int], None]
Checked = Float[Tensor, "..."] | Masked | Graphs
Both = tuple[Float[Tensor, "n1 n2 ..."], Float[Tensor, "n1 n2 ..."]]  # NNGP and NTK of one network


@shown("a mean over drawn networks")
class Estimate(NamedTuple):
    """A mean over independent draws.

    Attributes:
        mean: The mean.
        std: The standard deviation of a single draw.
        stderr: The standard error of the mean.
        samples: The number of draws.
    """

    mean: Float[Tensor, "n1 n2 ..."]
    std: Float[Tensor, "n1 n2 ..."]
    stderr: Float[Tensor, "n1 n2 ..."]
    samples: int


@shown("kernels of drawn networks of finite width")
class SampledKernels(NamedTuple):
    """Monte Carlo estimates of both kernels.

    Attributes:
        nngp: Of the last-layer kernel.
        ntk: Of the empirical tangent kernel.
    """

    nngp: Estimate
    ntk: Estimate


def monte_carlo_kernels(
    net: Layer | FiniteNetwork,
    x1: Data,
    x2: Data | None = None,
    *,
    width: int = 1000,
    samples: int = 30,
    key: Seed = 0,
    method: str = "weights",
    progress: Progress | None = None,
) -> SampledKernels:
    r"""Mean and standard error of the kernels of random finite networks.

    The bias of the mean is $O(1/n)$, the spread of one network $O(n^{-1/2})$. Draws are streamed:
    memory does not grow with their number.

    Args:
        net: The network, or a `FiniteNetwork` (which then decides width and parameterisation).
        x1: Data, shape (n1, d) or (n1, *spatial, channels).
        x2: Data, likewise, or None for `x1`.
        width: Of the hidden layers.
        samples: The number of networks, at least 2.
        key: A JAX key, or an integer.
        method: "weights" draws every weight; "law" draws, for few points, signals and derivatives of exactly the same
            law without a weight matrix, so that 10^5 networks take seconds.
        progress: Called with (networks done, networks in all).

    Returns:
        A record with `nngp` and `ntk`, each with `mean`, `std`, `stderr` and `samples`. Each network
        is evaluated in the dtype of the points.

    Example:
        >>> import widelimit as wl
        >>> net, x = wl.resnet(depth=2, alpha=0.5), np.array([[1.0, 0.0], [0.6, 0.8]])
        >>> found = wl.monte_carlo_kernels(net, x, width=256, samples=20)
        >>> bool((abs(found.ntk.mean - wl.ntk(net, x)) < 4 * found.ntk.stderr + 0.02).all())
        True
    """
    samples = as_count(samples, "samples", minimum=2)
    network = net if isinstance(net, FiniteNetwork) else finite(net, width)
    if method not in ("weights", "law"):
        raise ValueError(unknown("method", method, ("weights", "law")))
    if method == "law":
        expect_law(network)
    inputs = as_points(network.net, x1, x2)
    keys = jax.random.split(as_key(key), samples)
    with convention(inputs):
        total = _Welford()
        batch = 1 if method == "weights" else min(samples, law_batch(network, inputs.x1))
        for i in range(0, samples, batch):
            some = keys[i : i + batch]
            if method == "law":
                total.merge(len(some), *_law_moments(network, some, inputs.x1, inputs.x2))
            else:
                total.add(_draw_kernels(network, some[0], inputs.x1, inputs.x2))
            if progress is not None:
                progress(i + len(some), samples)
        found = [(*inputs.answer(part), samples) for part in total.estimates()]
        return SampledKernels(*[Estimate._make(part) for part in found])


class _Welford:
    """Streaming mean and variance, without the cancellation of sums of squares."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, values: Both) -> None:
        self.count += 1
        if self.count == 1:
            self.mean, self.square = values, jax.tree.map(jnp.zeros_like, values)
            return
        step = jax.tree.map(jnp.subtract, values, self.mean)
        self.mean = jax.tree.map(lambda m, d: m + d / self.count, self.mean, step)
        grow = lambda s, d, v, m: s + d * (v - m)
        self.square = jax.tree.map(grow, self.square, step, values, self.mean)

    def merge(self, count: int, mean: Both, square: Both) -> None:
        """Add many at once: their number, their mean, and their squared distances from it."""
        before, self.count = self.count, self.count + count
        if before == 0:
            self.mean, self.square = mean, square
            return
        step = jax.tree.map(jnp.subtract, mean, self.mean)
        share = count / self.count
        self.mean = jax.tree.map(lambda m, d: m + d * share, self.mean, step)
        grow = lambda s, more, d: s + more + d * d * (before * share)
        self.square = jax.tree.map(grow, self.square, square, step)

    def estimates(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        std = jax.tree.map(lambda s: jnp.sqrt(s / (self.count - 1)), self.square)
        error = jax.tree.map(lambda s: s / self.count**0.5, std)
        return list(zip(self.mean, std, error, strict=True))


@functools.partial(jax.jit, static_argnums=0)
def _draw_kernels(
    network: FiniteNetwork,
    key: Seed,
    x1: Checked,
    x2: Checked | None,
) -> Both:
    params = network.init(key, x1.shape[1:], dtype=x1.dtype)
    noise = jax.random.fold_in(key, 1) if has_dropout(network.net) else None
    theta = network.ntk(params, x1, x2, outputs="trace", key=noise)
    return network.nngp(params, x1, x2, noise), theta / _outputs(network, params, x1)


@functools.partial(jax.jit, static_argnums=0)
def _law_moments(
    network: FiniteNetwork,
    keys: Key[Array, " networks"],
    x1: Float[Tensor, "n1 d"],
    x2: Float[Tensor, "n2 d"] | None,
) -> tuple[Both, Both]:
    points = jnp.asarray(x1 if x2 is None else jnp.concatenate([x1, x2]))
    found = jax.vmap(lambda key: draw_law(network, key, points))(keys)
    many = len(x1)
    block = (slice(None), slice(None, many), slice(None) if x2 is None else slice(many, None))
    found = tuple(kernels[block] for kernels in found)
    mean = jax.tree.map(lambda k: jnp.mean(k, axis=0), found)
    square = jax.tree.map(lambda k, m: jnp.sum((k - m[None]) ** 2, axis=0), found, mean)
    return mean, square


def _outputs(network: FiniteNetwork, params: Params, x: Checked) -> int:
    return jax.eval_shape(network.apply, params, x).shape[-1]


def has_dropout(net: Layer) -> bool:
    """Whether a layer inside drops entries."""
    drops = lambda node: isinstance(node, Dropout)
    return any(map(drops, jax.tree.leaves(net, is_leaf=drops)))


@shown("how finite networks approach the limit")
class WidthConvergence(NamedTuple):
    r"""How the empirical tangent kernel approaches its limit.

    Attributes:
        widths: The widths n.
        error: The root mean square of $\lVert\hat\Theta-\Theta\rVert_F$ over networks, for each width.
        stderr: Its standard error.
        rate: The exponent r of the fit error $\propto n^{r}$; theory says -1/2.
        rate_stderr: The standard error of the exponent, from the spread of the errors.
        predicted: What the first order in 1/n says the error is (see `widelimit.fluctuations`); None where that
            is not derived.
        entry: The largest entry of the diagonal of each network, in units of its limit, shape (widths, samples).
        band: Its predicted mean and standard deviation, shape (2, widths); None as above.
    """

    widths: Int[np.ndarray, " widths"]
    error: Float[np.ndarray, " widths"]
    stderr: Float[np.ndarray, " widths"]
    rate: float
    rate_stderr: float
    predicted: Float[np.ndarray, " widths"] | None = None
    entry: Float[np.ndarray, "widths samples"] | None = None
    band: Float[np.ndarray, "2 widths"] | None = None


def width_convergence(
    net: Layer,
    x: Data,
    widths: Sequence[int] = (128, 256, 512, 1024),
    *,
    samples: int = 10,
    key: Seed = 0,
    parameterisation: str = "ntk",
    progress: Progress | None = None,
) -> WidthConvergence:
    r"""Measure $\lVert\hat\Theta_n-\Theta\rVert_F$ against the width and fit the rate.

    Args:
        net: The network.
        x: Data, shape (points, d) or (points, *spatial, channels).
        widths: At least two different widths.
        samples: Networks for each width, at least 2.
        key: A JAX key, or an integer.
        parameterisation: "ntk"; the kernels of the others do not converge to the same limit.
        progress: Called with (networks done, networks in all).

    Returns:
        The errors, the fitted exponent and its standard error, and what the first order in 1/n predicts.

    Example:
        >>> import widelimit as wl
        >>> found = wl.width_convergence(wl.mlp(depth=1), np.eye(3), widths=(64, 1024), samples=8)
        >>> -0.75 < found.rate < -0.25
        True
        >>> bool((abs(found.error / found.predicted - 1) < 0.5).all())
        True
    """
    if parameterisation != "ntk":
        raise ValueError(
            f"Only the NTK parameterisation has the kernel's limit, got {parameterisation!r}."
        )
    widths = [as_count(n, "a width", minimum=1) for n in widths]
    if len(set(widths)) < 2:
        raise ValueError(f"A rate needs at least two different widths, got {widths}.")
    samples = as_count(samples, "samples", minimum=2)
    inputs = as_points(net, x)
    limit = np.asarray(ntk(net, _doubled(inputs.x1)))
    keys = jax.random.split(as_key(key), len(widths) * samples)
    squares, entry = np.zeros((2, len(widths), samples))
    largest = int(np.argmax(np.diagonal(limit)))
    with convention(inputs):
        for i in range(squares.size):
            row, column = divmod(i, samples)
            found = _draw_kernels(finite(net, widths[row]), keys[i], inputs.x1, None)[1]
            apart = np.asarray(found, np.float64) - limit
            squares[row, column] = np.sum(apart**2)
            entry[row, column] = 1 + apart[largest, largest] / (limit[largest, largest] or 1)
            if progress is not None:
                progress(i + 1, squares.size)
    error = np.sqrt(squares.mean(1))
    stderr = squares.std(1, ddof=1) / np.sqrt(samples) / (2 * error)
    fit = fit_power(widths, error, stderr)
    known = expected_kernels(net, np.asarray(inputs.x1, np.float64), widths, largest)
    distance, band = (None, None) if known is None else (known[0], np.stack(known[1:]))
    return WidthConvergence(np.array(widths), error, stderr, *fit, distance, entry, band)


def _doubled(x: Checked) -> Checked:
    """The points in double precision."""
    double = lambda a: np.asarray(a, np.float64) if jnp.issubdtype(a.dtype, jnp.floating) else a
    return jax.tree.map(double, x)


def fit_power(n: ArrayLike, values: ArrayLike, stderr: ArrayLike) -> tuple[float, float]:
    """The exponent of `values` ∝ n^r by least squares in logarithms, and its standard error."""
    log = np.log(np.asarray(n, float))
    weights = (log - log.mean()) / np.sum((log - log.mean()) ** 2)
    relative = np.asarray(stderr) / np.asarray(values)
    rate = float(weights @ np.log(values))
    return rate, float(np.sqrt(np.sum((weights * relative) ** 2)))
