"""Figure 6: 15 random samples at depth 7."""

from collections.abc import Sequence
from typing import Any

from ._interpolation import interpolation
from ._result import Progress, Result


def figure6(
    *,
    depth: int = 7,
    count: int = 15,
    alphas: Sequence[float] = (1.0, 0.1, 0.01),
    activation: Any = "relu",
    samples: str = "random",
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Kernel shapes and interpolants of random samples; their positions in the paper are unknown.

    Args:
        depth: L.
        count: The number of samples.
        alphas: The attenuations of the ResNets.
        activation: Of all networks.
        samples: "random" as in the paper, "authors" or "equispaced".
        seed: Of the samples.
        progress: Called with (steps done, steps in all).

    Returns:
        The result.

    Reference:
        Tirer, Bruna and Giryes, first version (2020), Figure 6.
    """
    return interpolation("figure6", (depth,), (count,), alphas, activation, samples, seed, progress)
