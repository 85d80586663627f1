"""The marginal likelihood of a network, its gradient in the network's own numbers, and a fit."""

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize

from widelimit.infinite import nngp, ntk
from widelimit.layers import Layer
from widelimit.linalg import cholesky

from ._posterior import check_noise, fitted
from ._problem import Problem, as_kernel, as_problem, is_abstract

_TILE = 512  # rows of a tile whose derivative is taken: the state of all layers is kept
_RANGE = 1e4  # how far a fit may move a number from its start


def log_marginal_likelihood(
    net: Layer, x: Any, y: Any, noise: Any = 0.0, *, kernel: str = "nngp"
) -> Any:
    r"""The log probability of the targets under the prior, summed over outputs.

    $\log p(y)=-\tfrac12y^\top A^{-1}y-\tfrac12\log\det A-\tfrac n2\log2\pi$, $A=K+\sigma^2I$.

    With JAX arrays it can be differentiated in the network's numbers, the noise, x and y.

    Args:
        net: The network.
        x: Points, shape (n, d).
        y: Targets, shape (n,) or (n, k).
        noise: $\sigma^2$.
        kernel: "nngp" or "ntk".

    Returns:
        A float for NumPy arguments, a JAX scalar for JAX arrays.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> value = wl.log_marginal_likelihood(wl.mlp(1), [[1.0]], [2.0], noise=0.5)  # y ~ N(0, 1)
        >>> bool(np.isclose(value, -2 - np.log(2 * np.pi) / 2))
        True

    Reference:
        Rasmussen and Williams (2006), eq. 2.30.
    """
    if is_abstract((net, x, y, noise)):
        return _traced(net, x, y, noise, kernel)
    problem = as_problem(net, x, y, kernel)
    value, _ = _evidence(problem, check_noise(noise, problem))
    return value if problem.numpy else jnp.asarray(value, dtype=problem.dtype)


def _traced(net: Layer, x: Any, y: Any, noise: Any, kernel: str) -> Any:
    x = jnp.asarray(x)
    y = jnp.asarray(y, dtype=x.dtype).reshape(x.shape[0], -1)
    function = {"nngp": nngp, "ntk": ntk}[kernel]
    n, outputs = y.shape
    a = function(net, x) + jnp.asarray(noise, dtype=x.dtype) * jnp.eye(n, dtype=x.dtype)
    lower = jnp.linalg.cholesky(a)
    half = jax.scipy.linalg.solve_triangular(lower, y, lower=True)
    log_det = 2 * jnp.log(jnp.diagonal(lower)).sum()
    return -((half**2).sum() + outputs * (log_det + n * math.log(2 * math.pi))) / 2


def _evidence(problem: Problem, noise: float) -> tuple[float, Any]:
    """The value and the factor."""
    factor = cholesky(problem.gram(), noise, overwrite=True)
    n, outputs = problem.y.shape
    if noise == 0:
        fitted(factor, problem)
    half = factor.half_solve(problem.y)
    constant = factor.log_det() + n * math.log(2 * math.pi)
    return -(float((half**2).sum()) + outputs * constant) / 2, factor


@dataclasses.dataclass(frozen=True)
class EvidenceFit:
    """The network that makes the targets most probable.

    Attributes:
        net: The network with its fitted numbers.
        noise: The fitted variance of the noise.
        parameters: The fitted numbers: by name for a function, in order of appearance for a network.
        log_likelihood: The log marginal likelihood that was reached.
        converged: Whether the optimiser was satisfied.
        steps: Its iterations.
        message: Its own words.
    """

    net: Layer
    noise: float
    parameters: dict[str, float] | tuple[float, ...]
    log_likelihood: float
    converged: bool
    steps: int
    message: str


def fit_evidence(
    net: Layer | Callable[..., Layer],
    x: Any,
    y: Any,
    *,
    start: dict[str, float] | None = None,
    noise: float = 0.1,
    fit_noise: bool = True,
    kernel: str = "nngp",
    max_steps: int = 200,
) -> EvidenceFit:
    r"""Choose the network's numbers and the noise by maximal marginal likelihood (L-BFGS).

    All numbers are varied on a logarithmic scale, so signs stay and a number that is 0 (a bias that
    is not there) stays 0. The gradient is
    $\partial\log p=\tfrac12\mathrm{tr}\big((\alpha\alpha^\top-A^{-1})\,\partial A\big)$, by tiles.

    Args:
        net: A network, each of whose non-zero numbers is fitted on its own; or a function of
            `start`'s names that builds one, such as `lambda w, b: mlp(3, w_std=w, b_std=b)`.
        x: Points, shape (n, d).
        y: Targets, shape (n,) or (n, k).
        start: Where a function's arguments start; none of them 0.
        noise: Where $\sigma^2$ starts.
        fit_noise: Whether it is fitted.
        kernel: "nngp" or "ntk".
        max_steps: Where to stop; the outcome then says so.

    Returns:
        The fitted network with its outcome.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x = np.linspace(-1, 1, 12)[:, None]
        >>> y = np.sin(3 * x[:, 0]) + 0.1 * (-1.0) ** np.arange(12)
        >>> fit = wl.fit_evidence(wl.mlp(1, "erf", b_std=1.0), x, y)
        >>> fit.converged, 0.003 < fit.noise < 0.03
        (True, True)

    Reference:
        Rasmussen and Williams (2006), section 5.4.1.
    """
    family, values = _family(net, start)
    problem = as_problem(family.network(values), x, y, kernel)
    if not problem.y.any():
        raise ValueError(
            "All targets are 0, and the marginal likelihood grows without bound as the network's "
            "scale goes to 0. Give targets that vary."
        )
    noise = check_noise(noise, problem)
    if fit_noise and noise == 0:
        raise ValueError("noise is varied on a logarithmic scale; start it above 0.")
    signs = np.sign(values)
    first = np.log(np.append(np.abs(values), noise if fit_noise else []))
    width = math.log(_RANGE)
    bounds = [(v - width, v + width) for v in first]
    if fit_noise:  # below this the matrix is singular to rounding for smooth kernels
        low = math.log(1e-10 * float((problem.y**2).mean()))
        bounds[-1] = (min(low, first[-1]), max(bounds[-1][1], low + 2 * width))

    def objective(logs: np.ndarray) -> tuple[float, np.ndarray]:
        numbers = signs * np.exp(logs[: len(values)])
        level = float(np.exp(logs[-1])) if fit_noise else noise
        value, slopes, slope = _gradient(family, problem, numbers, level, kernel)
        gradient = np.append(slopes * numbers, slope * level if fit_noise else [])
        return -value, -gradient

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a jitter at a trial point; the answer is checked below
        out = scipy.optimize.minimize(
            objective,
            first,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": max_steps},
        )
    numbers = signs * np.exp(out.x[: len(values)])
    level = float(np.exp(out.x[-1])) if fit_noise else noise
    best = family.network(numbers)
    value, _ = _evidence(as_problem(best, x, y, kernel), level)
    return EvidenceFit(
        best,
        level,
        family.named(numbers),
        value,
        bool(out.success),
        int(out.nit),
        str(out.message),
    )


@dataclasses.dataclass(frozen=True)
class _Family:
    """Networks that differ in some numbers; hashable, so that one compilation serves all."""

    build: Any  # a function of names, or a tree structure
    names: tuple[str, ...]
    fixed: tuple[float | None, ...]

    def network(self, numbers: Any) -> Layer:
        if self.names:
            return self.build(**dict(zip(self.names, _plain(numbers), strict=True)))
        rest = iter(_plain(numbers))
        return jax.tree.unflatten(
            self.build, [next(rest) if value is None else value for value in self.fixed]
        )

    def named(self, numbers: np.ndarray) -> Any:
        if self.names:
            return dict(zip(self.names, numbers.tolist(), strict=True))
        return tuple(numbers.tolist())


def _plain(numbers: Any) -> list[Any]:
    return numbers.tolist() if isinstance(numbers, np.ndarray) else list(numbers)


def _family(net: Any, start: dict[str, float] | None) -> tuple[_Family, np.ndarray]:
    if isinstance(net, Layer):
        if start is not None:
            raise ValueError("start names the arguments of a function; a network has its numbers.")
        as_kernel(net, "nngp")
        leaves, structure = jax.tree.flatten(net)
        leaves = [float(v) for v in leaves]
        fixed = tuple(v if v == 0 else None for v in leaves)
        return _Family(structure, (), fixed), np.array([v for v in leaves if v != 0])
    if not callable(net) or not start:
        raise TypeError(
            "A network was expected, or a function that builds one together with "
            f"start={{name: value}}; got {net!r} and start={start!r}."
        )
    values = np.array([float(v) for v in start.values()])
    if not (np.isfinite(values).all() and values.all()):
        raise ValueError(
            f"Numbers are varied on a logarithmic scale; start them finite and not 0, got {start}."
        )
    return _Family(net, tuple(start), ()), values


def _gradient(
    family: _Family, problem: Problem, numbers: np.ndarray, noise: float, kernel: str
) -> tuple[float, np.ndarray, float]:
    """Value, derivative in the numbers, derivative in the noise."""
    net = family.network(numbers)
    here = dataclasses.replace(problem, kernel=as_kernel(net, kernel))
    value, factor = _evidence(here, noise)
    dual = factor.solve(problem.y)
    outputs = problem.y.shape[1]
    weights = (dual @ dual.T - outputs * factor.solve(np.eye(len(dual)))) / 2
    slope = float(np.trace(weights))
    total = np.zeros(len(numbers))
    if not len(numbers):
        return value, total, slope
    with jax.enable_x64(True):
        for x1, x2, block in _tiles(problem.x, weights):
            part = _pull_back(family, kernel, tuple(map(float, numbers)), x1, x2, block)
            total += np.array([float(p) for p in part])
    return value, total, slope


def _tiles(x: np.ndarray, weights: np.ndarray) -> Any:
    """Tiles of one shape, filled up with points of weight 0, so that two compilations serve all."""
    n, tile = len(x), min(_TILE, len(x))
    starts = range(0, n, tile)
    filled = np.concatenate([x, np.repeat(x[:1], -n % tile, axis=0)])
    for i in starts:
        for j in range(0, i + 1, tile):
            part = weights[i : i + tile, j : j + tile] * (1.0 if i == j else 2.0)
            block = np.zeros((tile, tile))
            block[: part.shape[0], : part.shape[1]] = part
            yield filled[i : i + tile], None if i == j else filled[j : j + tile], block


@functools.partial(jax.jit, static_argnums=(0, 1))
def _pull_back(
    family: _Family, kernel: str, numbers: tuple[Any, ...], x1: Any, x2: Any, weights: Any
) -> tuple[Any, ...]:
    """The derivative of sum(weights * kernel) in the numbers."""
    function = {"nngp": nngp, "ntk": ntk}[kernel]
    return jax.grad(lambda n: (weights * function(family.network(n), x1, x2)).sum())(numbers)
