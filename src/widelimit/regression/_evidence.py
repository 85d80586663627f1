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
from widelimit._base.shown import shown
from widelimit.infinite import prepare
from widelimit.layers import Layer
from widelimit.linalg import Cholesky

from ._as_problem import as_problem
from ._family import Family, Numbers, family_of
from ._fit import evidence, fit
from ._fitted import Ridge
from ._kernel import as_kernel
from ._problem import Problem
from ._ridge import check_noise, noisy, reaching

_RANGE = 1e4  # how far a fit may move a number from its start
_FAR = 100.0  # from where on it is looked at


def log_marginal_likelihood(
    net: Layer,
    x: object,
    y: object,
    noise: float | np.ndarray | jax.Array = 0.0,
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
        noise: $\sigma^2$; an array gives every point its own.
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
    problem, level, _ = noisy(as_problem(net, x, y, kernel), noise)
    value = evidence(_model(problem, level))
    return value if problem.numpy else jnp.asarray(value, dtype=problem.dtype)


def _traced(net: Layer, x: jax.Array, y: object, noise: object, kernel: str) -> jax.Array:
    targets = jnp.asarray(y, dtype=x.dtype).reshape(x.shape[0], -1)
    n, outputs = targets.shape
    levels = jnp.broadcast_to(jnp.asarray(noise, dtype=x.dtype), (n,))
    a = prepare(net, kernel)(x) + jnp.diag(levels)
    lower = jnp.linalg.cholesky(a)
    half = jax.scipy.linalg.solve_triangular(lower, targets, lower=True)
    log_det = 2 * jnp.log(jnp.diagonal(lower)).sum()
    return -((half**2).sum() + outputs * (log_det + n * math.log(2 * math.pi))) / 2


def _model(problem: Problem, noise: float) -> Ridge:
    """The fit by Cholesky, whose determinant is needed."""
    model = fit(problem, noise, solver="cholesky")
    return reaching(model) if noise == 0 else model


@shown("the network that makes the targets most probable")
@dataclasses.dataclass(frozen=True)
class EvidenceFit:
    """The network that makes the targets most probable.

    Attributes:
        net: The network with its fitted numbers.
        noise: The fitted variance of the noise.
        parameters: The fitted numbers by name: a function's own names, or where a number stands in the
            network, such as "layers[0].w_std".
        log_likelihood: The log marginal likelihood that was reached.
        converged: Whether the optimiser was satisfied.
        steps: Its iterations.
        message: Its own words.
        at_bound: The names of numbers (and "noise") that stopped at the edge of where they were looked
            for, a factor of 10,000 from their start, or on the way where nothing changes any more.
    """

    net: Layer
    noise: float
    parameters: dict[str, float]
    log_likelihood: float
    converged: bool
    steps: int
    message: str
    at_bound: tuple[str, ...] = ()

    def summary(self) -> dict[str, object]:
        """What is shown of a fit."""
        return {**vars(self), "at_bound": self.at_bound or None}


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
        x: Points, shape (n, d), or images (n, *spatial, channels).
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
        >>> fit = wl.fit_evidence(wl.mlp(1, "erf"), x, y)  # an odd function needs no bias
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
    value = evidence(_model(as_problem(best, x, y, kernel), level))
    return EvidenceFit(
        best,
        level,
        family.named(numbers),
        value,
        bool(out.success),
        int(out.nit),
        str(out.message),
        _at_bound(family, search, first, out.x),
    )


def _at_bound(
    family: Family, search: "_Search", first: Float[np.ndarray, " q"], last: Float[np.ndarray, " q"]
) -> tuple[str, ...]:
    """The names of what stopped at its bound, or ran far away over a flat likelihood; with a warning."""
    stopped = {}
    names = [*family.labels, *(["noise"] if search.noise is None else [])]
    for i, (name, bound) in enumerate(zip(names, search.bounds(first), strict=True)):
        at_edge = min(last[i] - bound[0], bound[1] - last[i]) < 1e-3
        if at_edge or (abs(last[i] - first[i]) > math.log(_FAR) and search.is_flat(last, i)):
            stopped[name] = math.exp(last[i])
    if stopped:
        shown = ", ".join(f"{name} = {value:.2g}" for name, value in stopped.items())
        warnings.warn(
            f"Far from the start the marginal likelihood still grows, or no longer changes: {shown}. "
            "Such a number wants to be 0 or infinite: leave that part out of the network, fix it, or "
            "start elsewhere.",
            UserWarning,
            stacklevel=3,
        )
    return tuple(stopped)


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

    def is_flat(self, logs: Float[np.ndarray, " q"], i: int) -> bool:
        """Whether a number can be doubled and halved without a change of the evidence."""
        moved = [logs + step * np.eye(len(logs))[i] for step in (0.0, 0.7, -0.7)]
        values = [self.objective(at)[0] for at in moved]
        return max(values) - min(values) < 1e-2

    def objective(self, logs: Float[np.ndarray, " q"]) -> tuple[float, Float[np.ndarray, " q"]]:
        """Minus the evidence, and its slopes."""
        numbers, noise = self.at(logs)
        kernel, x = prepare(self.family.network(numbers), self.kernel), self.problem.x
        layout = getattr(self.problem.kernel, "layout", None)
        if layout is not None:  # images that come as rows
            kernel, x = kernel.of_rows(layout), x.reshape(-1, *layout)
        model = _model(dataclasses.replace(self.problem, kernel=kernel), noise)
        assert isinstance(model.factor, Cholesky)
        n, outputs = model.dual.shape
        weights = (model.dual @ model.dual.T - outputs * model.factor.solve(np.eye(n))) / 2
        slopes = numbers * self.family.pull_back(self.kernel, numbers, x, weights)
        level = [noise * float(np.trace(weights))] if self.noise is None else []
        return -evidence(model), -np.append(slopes, level)


def _family(
    net: Layer | Callable[..., Layer], start: dict[str, float] | None
) -> tuple[Family, Numbers]:
    if isinstance(net, Layer):
        if start is not None:
            raise ValueError("start names the arguments of a function; a network has its numbers.")
        as_kernel(net, "nngp")
        return family_of(net)
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
