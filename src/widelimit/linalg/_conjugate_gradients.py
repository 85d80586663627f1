"""Conjugate gradients with a kernel matrix that is not stored, refined to what was promised."""

from collections.abc import Callable
from pathlib import Path

from numpy.typing import ArrayLike

from widelimit._base.renamed import renamed_argument
from widelimit._base.types import Seed

from ._cg import System
from ._operator import KernelOperator
from ._solution import Solution


@renamed_argument(seed="key")
def conjugate_gradients(
    gram: KernelOperator,
    b: ArrayLike,
    ridge: ArrayLike = 0.0,
    *,
    exact: KernelOperator | None = None,
    rank: int | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 1000,
    key: Seed = 0,
    callback: Callable[[int], None] | None = None,
    checkpoint: str | Path | None = None,
) -> Solution:
    r"""Solve $(K+\mathrm{diag}(\mathrm{ridge}))\,x=b$ with products only.

    Several right-hand sides share each product. After every round the residual is computed anew with
    `exact`, and the next round solves for what is left: the tolerance holds for the residual that is
    reported, not for one that is updated along the way and drifts from it.

    Args:
        gram: $K$.
        b: Shape (n,) or (n, k).
        ridge: A number or one for each row.
        exact: The same matrix in higher precision, for the residuals; None: `gram` itself.
        rank: Columns of the preconditioner; None chooses about 5 sqrt(n), on a GPU 10 sqrt(n); 0:
            none.
        tolerance: Of |b - A x| / |b|.
        max_steps: Where to give up; the outcome then says so.
        key: Of the preconditioner's pivots.
        callback: Called with the number of steps done.
        checkpoint: A file to which the state is saved about once a minute and after each round, and from
            which a run that was stopped goes on; removed when done.

    Returns:
        The solution with its outcome; nothing is raised when it did not converge.

    Example:
        >>> import numpy as np
        >>> from widelimit.linalg import TiledGram
        >>> kernel = lambda a, b=None: np.exp(-np.abs(a - (a if b is None else b).T))
        >>> x = np.linspace(0, 9, 50)[:, None]
        >>> s = conjugate_gradients(TiledGram(kernel, x, tile=20), np.sin(x[:, 0]), 0.1)
        >>> s.converged, bool(s.residual < 1e-6)
        (True, True)
    """
    system = System(gram, ridge, exact=exact, rank=rank, key=key)
    return system.solve(
        b, tolerance=tolerance, max_steps=max_steps, callback=callback, checkpoint=checkpoint
    )
