"""What an iterative solver reached."""

import dataclasses

import numpy as np
from jaxtyping import Float

from widelimit._base.shown import shown


@shown("what conjugate gradients found")
@dataclasses.dataclass(frozen=True)
class Solution:
    """What an iterative solver reached.

    Attributes:
        x: The solution, of the right-hand side's shape.
        converged: Whether the residual is below the tolerance.
        steps: Iterations, each one product with the matrix.
        residual: The largest |b - A x| / |b| of the columns, computed anew at the end in float64. Beyond 200,000
            points the end is judged by 256 random rows: they tell by how much the residual that was updated along the
            way can be off (a bound of three standard errors, which is added to it).
        rounds: How often the residual was computed anew.
        rank: Of the preconditioner.
        seconds: How long it took.
    """

    x: Float[np.ndarray, " n *k"]
    converged: bool
    steps: int
    residual: float
    rounds: int = 1
    rank: int = 0
    seconds: float = 0.0
