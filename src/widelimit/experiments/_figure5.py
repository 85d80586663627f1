"""Figure 5: the Gaussian kernel, the reference of the preprint's measure."""

from collections.abc import Sequence

import numpy as np

from widelimit.analysis import smoothness

from ._circle import grid, interpolate, jitter_for, kernel_at
from ._result import Progress, Result, Table, judge
from ._setting import angles, describe_samples, networks, target


def figure5(
    *,
    counts: Sequence[int] = (6, 10),
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    r"""The kernel $\exp(-|x-x'|^2/2)$ on the circle and its interpolants.

    Args:
        counts: The numbers of samples.
        samples: "authors", "equispaced" or "random".
        seed: Of random samples.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes, first version (2020), Figure 5.
    """
    jitter, panels, rows, smoothest = jitter_for(samples), {}, [], {}
    nets = networks(5, (1.0, 0.1))
    for i, count in enumerate(counts):
        b = angles(count, samples, seed)
        y = target(b)
        fit = interpolate(None, b, y, jitter=jitter)
        others = {n: interpolate(net, b, y, fit, jitter).mu for n, net in nets.items()}
        panels[str(count)] = {"b": b, "y": y, "curve": fit.shown}
        rows += [(count, "Gaussian", fit.mu), *((count, n, mu) for n, mu in others.items())]
        smoothest |= {f"{count} samples, {n}": fit.mu <= mu for n, mu in others.items()}
        if progress is not None:
            progress(i + 1, len(counts))
    k = np.arange(17)
    eigenvalues = smoothness.gaussian_eigenvalues(k)
    fall = eigenvalues[1:] / eigenvalues[:-1]
    data = {
        "angles": grid(513),
        "shape": kernel_at(None, grid(513)),
        "grid": grid(512),
        "panels": panels,
        "degrees": k,
        "eigenvalues": eigenvalues,
    }
    text = "; ".join(f"{n} samples, {name}: {mu:.4g}" for n, name, mu in rows)
    verdicts = (
        judge(
            "The Gaussian kernel is the smooth reference: its interpolants are smoother than those "
            "of the neural kernels.",
            "mu_D2 of the Gaussian interpolant is at most that of each network with L = 5.",
            smoothest,
            text,
        ),
        judge(
            "The eigenvalues of the Gaussian kernel on the circle decay exponentially.",
            "Successive eigenvalues fall by a factor below 1 (at least exponentially) that, for "
            "k <= 16, stays above half of its first value (not faster).",
            {"at least exponentially": fall.max() < 1, "not faster": fall.min() > 0.5 * fall[0]},
            f"ratios from {fall[0]:.3g} at k = 1 to {fall[-1]:.3g} at k = 16",
        ),
    )
    table = Table("Smoothness, N = 4096", ("samples", "kernel", "mu_D2"), tuple(rows))
    settings = {"counts": list(counts), "samples": samples, "seed": seed}
    size = f"closed form; {describe_samples(samples)}"
    return Result("figure5", settings, data, (table,), verdicts, size)
