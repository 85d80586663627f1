"""Figure 4: Figure 2 with a still smaller attenuation."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from ._interpolation import blocks, difference, interpolation
from ._result import Progress, Result, Verdict, judge


def figure4(
    *,
    depths: Sequence[int] = (5, 15),
    counts: Sequence[int] = (6, 10),
    alphas: Sequence[float] = (1.0, 0.1, 0.01),
    activation: Any = "relu",
    samples: str = "authors",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """As `figure2`, with alpha = 0.01; does it still change anything?

    Args:
        depths: One row of panels for each.
        counts: The numbers of samples.
        alphas: The attenuations of the ResNets; the last two are compared.
        activation: Of all networks.
        samples: "authors", "equispaced" or "random".
        seed: Of random samples.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes, first version (2020), Figure 4.
    """
    found = interpolation("figure4", depths, counts, alphas, activation, samples, seed, progress)
    verdicts = found.verdicts
    if len(alphas) >= 2:
        verdicts = (*verdicts, *_smallest(found.data["cases"], alphas[-2], alphas[-1]))
    return dataclasses.replace(found, verdicts=verdicts)


def _smallest(cases: dict[str, Any], larger: float, smaller: float) -> list[Verdict]:
    first, second = f"ResNet {larger:g}", f"ResNet {smaller:g}"
    change = {
        name: difference(case["curves"][first], case["curves"][second])
        for name, _, _, case in blocks(cases)
    }
    smoother = {}
    for name, _, _, case in blocks(cases):
        smoother[f"{name}, mu_D2"] = case["mu"][second] < case["mu"][first]
        smoother[f"{name}, mu_G"] = case["mu_gauss"][second] > case["mu_gauss"][first]
    return [
        judge(
            f"alpha = {smaller:g} gives nearly the same interpolant as alpha = {larger:g}.",
            "The root mean square of the difference is at most 15 % of the function's.",
            {name: value <= 0.15 for name, value in change.items()},
            "; ".join(f"{name}: {100 * value:.1f} %" for name, value in change.items()),
        ),
        judge(
            f"Smaller is still smoother: alpha = {smaller:g} against alpha = {larger:g}.",
            "mu_D2 is smaller, and mu_G larger, in every panel.",
            smoother,
            "; ".join(
                f"{name}: mu_D2 {case['mu'][first]:.4g} -> {case['mu'][second]:.4g}, mu_G "
                f"{case['mu_gauss'][first]:.3g} -> {case['mu_gauss'][second]:.3g}"
                for name, _, _, case in blocks(cases)
            ),
        ),
    ]
