"""The experiments by name: where they come from, their two sizes, and how long these take."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from ._bounds import jacobian_bounds
from ._convergence import convergence
from ._descent import descent
from ._digits import digits
from ._ellipse import ellipse
from ._erf import erf
from ._figure1 import figure1
from ._figure2 import figure2
from ._figure3 import figure3
from ._figure4 import figure4
from ._figure5 import figure5
from ._figure6 import figure6
from ._figure7 import figure7
from ._figure8 import figure8
from ._figure9 import figure9
from ._measures import measures
from ._random_sets import random_sets
from ._result import Result
from ._stability import stability
from ._table1 import table1
from ._table2 import table2


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A figure or table of the papers.

    Attributes:
        name: As on the command line.
        title: What it shows.
        source: Where it is in the papers.
        run: The function that computes it.
        seconds: On two CPU cores, in the default size; the unit of the progress bar.
        seconds_full: In the full size, on one GPU.
        full: Arguments of the full size, where they differ from the defaults.
        seconds_cpu: In the full size without a GPU, where that is much more.
    """

    name: str
    title: str
    source: str
    run: Callable[..., Result]
    seconds: float
    seconds_full: float
    full: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    seconds_cpu: float = 0.0


_PAPER = "Tirer, Bruna, Giryes"
_ALL = (
    Experiment(
        "figure1",
        "Finite ResNets and their limit: kernels, and networks trained by gradient descent",
        f"{_PAPER}: Figure 1 (preprint and published), talk: Figure 1",
        figure1,
        50,
        400,
        {"width": 2000, "networks": 30, "kernel_width": 2000, "kernels": 30},
        80_000,
    ),
    Experiment(
        "figure2",
        "Kernel shapes and interpolants: MLP, ResNets with alpha = 1 and 0.1, L = 5 and 15",
        f"{_PAPER}: Figure 2 (preprint and published), talk: Figure 2",
        figure2,
        5,
        15,
    ),
    Experiment(
        "figure3",
        "Networks trained outside the kernel regime",
        f"{_PAPER}: Figure 3 (preprint and published), talk: Figure 3",
        figure3,
        55,
        150,
        {"width": 500, "networks": 30},
        10_000,
    ),
    Experiment(
        "figure4",
        "Figure 2 with alpha = 0.01",
        f"{_PAPER}: Figure 4 (preprint)",
        figure4,
        2,
        5,
    ),
    Experiment(
        "figure5",
        "The Gaussian kernel: shape and interpolants",
        f"{_PAPER}: Figure 5 (preprint)",
        figure5,
        1,
        2,
    ),
    Experiment(
        "figure6",
        "15 random samples, L = 7",
        f"{_PAPER}: Figure 6 (preprint)",
        figure6,
        2,
        5,
    ),
    Experiment(
        "figure7",
        "Fourier transforms of the kernels",
        f"{_PAPER}: Figure 7 (preprint)",
        figure7,
        2,
        5,
    ),
    Experiment(
        "figure8",
        "Networks trained with Adam on 20 samples",
        f"{_PAPER}: Figure 8 (preprint), talk: Figure 4",
        figure8,
        50,
        120,
        {"width": 500, "networks": 5, "rate": 1e-4},
        3_000,
    ),
    Experiment(
        "figure9",
        "As Figure 8, with scalar inputs and biases",
        f"{_PAPER}: Figure 9 (preprint)",
        figure9,
        50,
        120,
        {"width": 500, "networks": 5, "rate": 1e-4},
        3_000,
    ),
    Experiment(
        "table1",
        "Table of mu in one dimension",
        f"{_PAPER}: published version, table of mu",
        table1,
        2,
        5,
    ),
    Experiment(
        "table2",
        "Table of mu in two dimensions",
        f"{_PAPER}: published version, experiment on the sphere",
        table2,
        5,
        15,
    ),
    Experiment(
        "random_sets",
        "The orderings over random sample sets",
        f"{_PAPER}: the claims of Figures 2, 4 and 6",
        random_sets,
        3,
        20,
        {"draws": 400},
    ),
    Experiment(
        "digits",
        "Accuracy of kernel regression on images of 0 and 8",
        f"{_PAPER}: published version, experiment on MNIST",
        digits,
        15,
        40,
        {"draws": 100},
    ),
    Experiment(
        "erf",
        "A smooth activation: erf",
        f"{_PAPER}: published version and talk, remark on erf",
        erf,
        5,
        10,
    ),
    Experiment(
        "measures",
        "What the two measures depend on",
        f"{_PAPER}: equations 22 and 23 (preprint), definition of mu (talk)",
        measures,
        1,
        2,
    ),
    Experiment(
        "bounds",
        "Bounds of the input-output Jacobian",
        f"{_PAPER}: equations 16 to 21; reading-group slides",
        jacobian_bounds,
        4,
        15,
        {"measured_width": 2000},
    ),
    Experiment(
        "convergence",
        "The empirical kernels approach their limits",
        "Jacot, Gabriel, Hongler: Theorem 1; Tirer, Bruna, Giryes: Theorems 1 and 2",
        convergence,
        20,
        120,
        {"widths": (128, 256, 512, 1024, 2048), "draws": 20},
        400,
    ),
    Experiment(
        "descent",
        "Gradient descent against the closed form, and the papers' learning rates",
        f"{_PAPER}: equations 3 and 4, learning rates of Figure 1",
        descent,
        7,
        90,
        {"width": 2000},
        600,
    ),
    Experiment(
        "stability",
        "The stability theorem as an experiment",
        f"{_PAPER}: Theorem 5; Jacot, Gabriel, Hongler: Theorem 2",
        stability,
        30,
        200,
        {"widths": (64, 128, 256, 512, 1024, 2048), "networks": 10},
        2_000,
    ),
    Experiment(
        "ellipse",
        "The tangent kernel of two images during training",
        "Jacot, Gabriel, Hongler: animation shown with the paper",
        ellipse,
        15,
        30,
    ),
)

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in _ALL}


def find(name: str) -> Experiment:
    """An experiment by its name or number.

    Args:
        name: "figure2", "2", "table1", "ellipse", ...

    Returns:
        The experiment.

    Example:
        >>> find("2").name, find("Table1").name
        ('figure2', 'table1')
    """
    plain = str(name).strip().lower().replace("-", "_").replace(" ", "")
    plain = f"figure{plain}" if plain.isdigit() else plain
    if plain not in EXPERIMENTS:
        raise ValueError(
            f"There is no figure {name!r}. Known: {', '.join(EXPERIMENTS)} (a number N stands for "
            "figureN)."
        )
    return EXPERIMENTS[plain]
