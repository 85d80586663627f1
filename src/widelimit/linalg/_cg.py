"""Conjugate gradients on tiles: SciPy's iteration, our matrix, an outcome as a value."""

import dataclasses
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator, cg

from widelimit._base.renamed import renamed_argument
from widelimit._base.shown import shown
from widelimit._base.types import Seed

from ._cholesky import _ridge
from ._low_rank import Preconditioner, partial_cholesky
from ._tiles import TiledGram


@shown("what conjugate gradients found")
@dataclasses.dataclass(frozen=True)
class Solution:
    """What an iterative solver reached.

    Attributes:
        x: The solution, of the right-hand side's shape.
        converged: Whether the residual is below the tolerance.
        steps: Iterations, each one product with the matrix.
        residual: |b - A x| / |b|, computed anew at the end.
    """

    x: Float[np.ndarray, " n *k"]
    converged: bool
    steps: int
    residual: float


@renamed_argument(seed="key")
def conjugate_gradients(
    gram: TiledGram,
    b: ArrayLike,
    ridge: ArrayLike = 0.0,
    *,
    rank: int | None = None,
    tolerance: float = 1e-6,
    max_steps: int = 1000,
    key: Seed = 0,
    callback: Callable[[int], None] | None = None,
) -> Solution:
    r"""Solve $(K+\mathrm{diag}(\mathrm{ridge}))\,x=b$ with products by tiles only.

    Several right-hand sides are solved as one system, so that each tile is computed once for all.

    Args:
        gram: $K$.
        b: Shape (n,) or (n, k).
        ridge: A number or one for each row.
        rank: Columns of the preconditioner; None chooses about sqrt(n) * 4, 0 none.
        tolerance: Of |b - A x| / |b|.
        max_steps: Where to give up; the outcome then says so.
        key: Of the preconditioner's pivots.
        callback: Called with the number of steps done.

    Returns:
        The solution with its outcome; nothing is raised when it did not converge.

    Example:
        >>> import numpy as np
        >>> kernel = lambda a, b=None: np.exp(-np.abs(a - (a if b is None else b).T))
        >>> x = np.linspace(0, 9, 50)[:, None]
        >>> s = conjugate_gradients(TiledGram(kernel, x, tile=20), np.sin(x[:, 0]), 0.1)
        >>> s.converged, bool(s.residual < 1e-6)
        (True, True)
    """
    b = np.asarray(b, dtype=np.float64)
    if b.ndim not in (1, 2) or len(b) != gram.size:
        raise ValueError(f"b must have {gram.size} rows, got shape {b.shape}.")
    if not np.isfinite(b).all():
        raise ValueError("b contains NaN or infinite values.")
    if tolerance <= 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}.")
    ridge = _ridge(ridge, gram.size)
    length = float(np.linalg.norm(b))
    if length == 0:
        return Solution(np.zeros_like(b), True, 0, 0.0)
    weights = ridge if b.ndim == 1 else ridge[:, None]
    product = lambda v: gram @ v + weights * v
    steps = 0

    def count(_: Float[np.ndarray, " nk"]) -> None:
        nonlocal steps
        steps += 1
        if callback is not None:
            callback(steps)

    x, _ = cg(
        _operator(product, b.shape),
        b.ravel(),
        rtol=tolerance / 2,  # the recursive residual drifts from the true one
        maxiter=max_steps,
        M=_preconditioner(gram, ridge, rank, key, b.shape),
        callback=count,
    )
    x = x.reshape(b.shape)
    residual = float(np.linalg.norm(b - product(x))) / length
    return Solution(x, residual <= tolerance, steps, residual)


def _operator(
    function: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]
) -> LinearOperator:
    size = int(np.prod(shape))
    flat = lambda v: function(v.reshape(shape)).ravel()
    return LinearOperator((size, size), matvec=flat, dtype=np.float64)  # pyright: ignore


def _preconditioner(
    gram: TiledGram,
    ridge: Float[np.ndarray, " n"],
    rank: int | None,
    key: Seed,
    shape: tuple[int, ...],
) -> LinearOperator | None:
    if rank is None:
        rank = min(gram.size, int(4 * np.sqrt(gram.size)))
    if rank == 0:
        return None
    low = partial_cholesky(gram, rank, key=key)
    if not low.pivots.size:
        return None
    # What is left out has eigenvalues around its mean diagonal; without it a small ridge would
    # make the preconditioner stiff in directions that it does not know.
    left = low.error * float((low.factor**2).sum()) / (1 - low.error) / gram.size
    floor = max(1e-12 * float((low.factor**2).sum(1).max()), 1e-300)
    return _operator(Preconditioner(low, ridge + left, floor), shape)
