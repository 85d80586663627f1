"""Does the tangent kernel stand still? The stability theorem as an experiment."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import as_array
from widelimit._base.keys import as_key
from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit.finite import finite, fit_power
from widelimit.infinite import prepare
from widelimit.interpret import facts
from widelimit.layers import Layer

from ._optimise import optimise


@shown("what training does to networks of growing width")
class Stability(NamedTuple):
    r"""The three left-hand sides of the stability theorem, measured.

    Attributes:
        widths: The widths n.
        steps: The recorded steps t.
        error: $|e_t|=|f_t(X)-y|$, shape (widths, seeds, records).
        envelope: $(1-\eta\lambda_{\min}/3)^t$, by which the theorem bounds $|e_t|/R_0$; shape (records,).
        path: $\sum_j\lVert\theta_j-\theta_{j-1}\rVert$ over the whole run, shape (widths, seeds).
        drift: $\sup_t\lVert\hat\Theta_t-\hat\Theta_0\rVert_F$, shape (widths, seeds).
        path_rate: The exponent of the path's mean in n, and its standard error. Theory: 0.
        drift_rate: The exponent of the drift's mean in n, and its standard error. Theory: at most -1/2.
        learning_rate: $\eta$.
        critical_rate: $2/(\lambda_{\min}+\lambda_{\max})$ of the limiting kernel.
        covered: Whether the activations meet the theorem's hypotheses (smooth, $\varphi(0)=0$, bounded
            slope). ReLU does not.
    """

    widths: np.ndarray
    steps: np.ndarray
    error: np.ndarray
    envelope: np.ndarray
    path: np.ndarray
    drift: np.ndarray
    path_rate: tuple[float, float]
    drift_rate: tuple[float, float]
    learning_rate: float
    critical_rate: float
    covered: bool


def stability(
    net: Layer,
    x: Any,
    y: Any,
    widths: Sequence[int] = (64, 128, 256, 512),
    *,
    steps: int = 200,
    seeds: int = 4,
    key: Any = 0,
    learning_rate: float | None = None,
    records: int = 10,
    progress: Callable[[int, int], None] | None = None,
) -> Stability:
    r"""Train networks of several widths and measure how far they and their kernels move.

    The theorem: for gradient descent on $\frac12|e|^2$ with $\eta<2/(\lambda_{\min}+\lambda_{\max})$, with high
    probability $|e_t|\le(1-\eta\lambda_{\min}/3)^tR_0$, the path $\sum_j\lVert\theta_j-\theta_{j-1}\rVert$ is at most
    $3KR_0/\lambda_{\min}$, and the drift $\sup_t\lVert\Theta_t-\Theta_0\rVert_F$ at most
    $6K^3R_0\lambda_{\min}^{-1}n^{-1/2}$. Its hypotheses exclude ReLU, for which the same is observed.

    Args:
        net: The network.
        x: Training points, shape (m, d).
        y: Targets, shape (m,).
        widths: At least two different widths.
        steps: Gradient steps.
        seeds: Networks for each width, at least 2.
        key: A JAX key or an integer.
        learning_rate: None: half of the theorem's bound.
        records: How often the kernel is looked at.
        progress: Called with (networks done, networks in all).

    Returns:
        The measurements and the fitted exponents.

    Example:
        >>> import widelimit as wl
        >>> net, x = wl.resnet(depth=1, alpha=0.5, activation="erf"), np.eye(2)
        >>> found = wl.stability(net, x, np.array([1.0, -1.0]), widths=(32, 256), steps=30, seeds=3)
        >>> found.drift_rate[0] < -0.4, found.covered
        (True, True)

    Reference:
        Tirer, Bruna and Giryes (2022), Theorem 5; Jacot, Gabriel and Hongler (2018), Theorem 2.
    """
    widths = [as_count(n, "a width", minimum=1) for n in widths]
    if len(set(widths)) < 2:
        raise ValueError(f"A rate needs at least two different widths, got {widths}.")
    seeds = as_count(seeds, "seeds", minimum=2)
    x = np.asarray(as_array(x, "x", rank=2, layout="(points, features)"), np.float64)
    values = np.linalg.eigvalsh(prepare(net, "ntk")(x))
    critical = float(2 / (values[0] + values[-1]))
    rate = critical / 2 if learning_rate is None else float(learning_rate)
    if rate >= critical:
        warnings.warn(
            f"The learning rate {rate:.4g} is not below {critical:.4g} = 2/(lambda_min+lambda_max), "
            "which the stability theorem requires.",
            stacklevel=2,
        )
    keys = jax.random.split(as_key(key), len(widths) * seeds)
    runs = []
    for i in range(len(keys)):
        network = finite(net, widths[i // seeds])
        options = {"learning_rate": rate, "steps": steps, "record": records}
        runs.append(optimise(network, x, y, key=keys[i], path=True, drift=True, **options))
        if runs[-1].outcome == "diverged":
            raise ValueError(
                f"At width {widths[i // seeds]} training diverged at step {runs[-1].last_step} with "
                f"the learning rate {rate:.4g}; choose a smaller one."
            )
        if progress is not None:
            progress(i + 1, len(keys))
    grid = lambda values: np.asarray(values, float).reshape(len(widths), seeds, -1)
    error = np.sqrt(2 * grid([run.loss for run in runs]))
    path = grid([run.path[-1] for run in runs])[..., 0]
    drift = grid([run.drift.max() for run in runs])[..., 0]
    recorded = runs[0].steps
    envelope = (1 - rate * max(values[0], 0.0) / 3) ** recorded
    fits = _fit(widths, path), _fit(widths, drift)
    covered = all(map(_is_covered, facts(net).activations))
    return Stability(
        np.array(widths), recorded, error, envelope, path, drift, *fits, rate, critical, covered
    )


def _fit(widths: list[int], values: np.ndarray) -> tuple[float, float]:
    spread = values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])
    return fit_power(widths, values.mean(axis=1), spread)


def _is_covered(activation: Any) -> bool:
    """Smooth, with a bounded slope, and zero at zero: |φ(z)| ≤ C|z| and φ' Lipschitz."""
    at_zero = float(activation.fn(jnp.zeros(())))
    return not activation.breaks and activation.lipschitz is not None and at_zero == 0.0
