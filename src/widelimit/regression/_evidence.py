"""The marginal likelihood of a network, its gradient in the network's own numbers, and a fit."""

import dataclasses
import math
import warnings
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jaxtyping import Float

from widelimit._base.arrays import is_transformed
from widelimit.infinite import prepare
from widelimit.layers import Layer
from widelimit.linalg import Cholesky

from ._family import Family, Numbers, Template
from ._fit import Ridge, fit
from ._kernel import as_kernel
from ._problem import Problem, as_problem
from ._ridge import check_noise, reaching

_RANGE = 1e4  # how far a fit may move a number from its start


def log_marginal_likelihood(
    net: Layer,
    x: object,
    y: object,
    noise: float | jax.Array = 0.0,
    *,
    kernel: str = "nngp",
) -> float | jax.Array:
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
    if is_transformed((net, x, y, noise)):
        return _traced(net, jnp.asarray(x), y, noise, kernel)
    problem = as_problem(net, x, y, kernel)
    model = _model(problem, check_noise(noise, problem))
    value = _evidence(model)
    return value if problem.numpy else jnp.asarray(value, dtype=problem.dtype)


def _traced(net: Layer, x: jax.Array, y: object, noise: object, kernel: str) -> jax.Array:
    targets = jnp.asarray(y, dtype=x.dtype).reshape(x.shape[0], -1)
    n, outputs = targets.shape
    a = prepare(net, kernel)(x) + jnp.asarray(noise, dtype=x.dtype) * jnp.eye(n, dtype=x.dtype)
    lower = jnp.linalg.cholesky(a)
    half = jax.scipy.linalg.solve_triangular(lower, targets, lower=True)
    log_det = 2 * jnp.log(jnp.diagonal(lower)).sum()
    return -((half**2).sum() + outputs * (log_det + n * math.log(2 * math.pi))) / 2


def _model(problem: Problem, noise: float) -> Ridge:
    """The fit by Cholesky, whose determinant is needed."""
    model = fit(problem, noise, solver="cholesky")
    return reaching(model) if noise == 0 else model


def _evidence(model: Ridge) -> float:
    n, outputs = model.dual.shape
    assert isinstance(model.factor, Cholesky)
    constant = model.factor.log_det() + n * math.log(2 * math.pi)
    half = model.factor.half_solve(model.problem.y)
    return -(float((half**2).sum()) + outputs * constant) / 2


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
    x: object,
    y: object,
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
    search = _Search(family, problem, kernel, np.sign(values), None if fit_noise else noise)
    first = np.log(np.append(np.abs(values), noise if fit_noise else []))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a jitter at a trial point; the answer is checked below
        out = scipy.optimize.minimize(
            search.objective,
            first,
            jac=True,
            method="L-BFGS-B",
            bounds=search.bounds(first),
            options={"maxiter": max_steps},
        )
    numbers, level = search.at(out.x)
    best = family.network(numbers)
    value = _evidence(_model(as_problem(best, x, y, kernel), level))
    return EvidenceFit(
        best,
        level,
        family.named(numbers),
        value,
        bool(out.success),
        int(out.nit),
        str(out.message),
    )


@dataclasses.dataclass(frozen=True, eq=False)
class _Search:
    """The evidence as a function of the logarithms of the numbers and of the noise."""

    family: Family
    problem: Problem
    kernel: str
    signs: Numbers
    noise: float | None  # None: fitted

    def at(self, logs: Float[np.ndarray, " q"]) -> tuple[Numbers, float]:
        """The numbers and the noise."""
        numbers = self.signs * np.exp(logs[: len(self.signs)])
        return numbers, float(np.exp(logs[-1])) if self.noise is None else self.noise

    def bounds(self, first: Float[np.ndarray, " q"]) -> list[tuple[float, float]]:
        """How far each logarithm may move."""
        width = math.log(_RANGE)
        bounds = [(float(v) - width, float(v) + width) for v in first]
        if self.noise is None:  # below this the matrix is singular to rounding for smooth kernels
            low = math.log(1e-10 * float((self.problem.y**2).mean()))
            bounds[-1] = (min(low, float(first[-1])), max(bounds[-1][1], low + 2 * width))
        return bounds

    def objective(self, logs: Float[np.ndarray, " q"]) -> tuple[float, Float[np.ndarray, " q"]]:
        """Minus the evidence, and its slopes."""
        numbers, noise = self.at(logs)
        kernel = as_kernel(self.family.network(numbers), self.kernel)
        model = _model(dataclasses.replace(self.problem, kernel=kernel), noise)
        assert isinstance(model.factor, Cholesky)
        n, outputs = model.dual.shape
        weights = (model.dual @ model.dual.T - outputs * model.factor.solve(np.eye(n))) / 2
        slopes = numbers * self.family.pull_back(self.kernel, numbers, self.problem.x, weights)
        level = [noise * float(np.trace(weights))] if self.noise is None else []
        return -_evidence(model), -np.append(slopes, level)


def _family(
    net: Layer | Callable[..., Layer], start: dict[str, float] | None
) -> tuple[Family, Numbers]:
    if isinstance(net, Layer):
        if start is not None:
            raise ValueError("start names the arguments of a function; a network has its numbers.")
        as_kernel(net, "nngp")
        leaves, structure = jax.tree.flatten(net)
        leaves = [float(v) for v in leaves]
        fixed = tuple(v if v == 0 else None for v in leaves)
        return Family(Template(structure, fixed)), np.array([v for v in leaves if v != 0])
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
    return Family(net, tuple(start)), values
