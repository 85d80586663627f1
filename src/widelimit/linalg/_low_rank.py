"""A low-rank stand-in for a kernel matrix, and the preconditioner that it makes."""

import dataclasses

import numpy as np
import scipy.linalg
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from widelimit._base.keys import as_generator
from widelimit._base.renamed import renamed_argument
from widelimit._base.shown import shown
from widelimit._base.types import Seed

from ._operator import KernelOperator

(_pstrf,) = scipy.linalg.get_lapack_funcs(("pstrf",), dtype=np.float64)
_EPS = np.finfo(np.float64).eps


@shown("a matrix of low rank")
@dataclasses.dataclass(frozen=True)
class LowRank:
    r"""$K\approx FF^\top$ with $K-FF^\top$ positive semidefinite.

    Attributes:
        factor: $F$, shape (n, rank).
        pivots: Which columns of K were looked at.
        error: trace(K - FF') / trace(K).
        diagonal_error: The largest entry of diag(K - FF').
        left: diag(K - FF'), shape (n,).
    """

    factor: Float[np.ndarray, "n rank"]
    pivots: Int[np.ndarray, " rank"]
    error: float
    diagonal_error: float
    left: Float[np.ndarray, " n"]


@renamed_argument(seed="key")
def partial_cholesky(gram: KernelOperator, rank: int, *, block: int = 64, key: Seed = 0) -> LowRank:
    r"""Randomly pivoted partial Cholesky, a block of columns at a time.

    Pivots are drawn with probability proportional to the diagonal of what is left,
    $\mathrm{diag}(K-FF^\top)$, so that the error is within a factor of the best of any rank-r
    approximation. Only n * rank entries of the matrix are computed.

    Args:
        gram: The matrix.
        rank: The number of columns of F, at most n.
        block: Pivots drawn together.
        key: Of the pivots.

    Returns:
        The approximation; its rank is smaller where the matrix is exhausted.

    Example:
        >>> import numpy as np
        >>> linear = lambda a, b=None: a @ (a if b is None else b).T
        >>> x = np.arange(12.0).reshape(6, 2)  # the matrix has rank 2
        >>> from widelimit.linalg import TiledGram
        >>> low = partial_cholesky(TiledGram(linear, x), rank=4)
        >>> low.factor.shape[1], bool(low.error < 1e-12)
        (2, True)

    Reference:
        Chen, Epperly, Tropp and Webber (2025), Randomly pivoted Cholesky.
    """
    rng = as_generator(key)
    left = np.array(gram.diagonal())
    total = float(left.sum())
    factor = np.zeros((gram.size, min(rank, gram.size)), order="F")
    pivots: list[int] = []
    done = 0
    while done < factor.shape[1] and left.sum() > 10 * gram.size * _EPS * total:
        alive = np.flatnonzero(left > 0)
        count = min(block, factor.shape[1] - done, len(alive))
        chosen = rng.choice(alive, count, replace=False, p=left[alive] / left[alive].sum())
        columns = np.asarray(gram.columns(chosen)) - factor[:, :done] @ factor[chosen, :done].T
        kept, part = _orthogonal_part(columns, chosen)
        if not kept.size:
            break
        factor[:, done : done + len(kept)] = part
        done += len(kept)
        pivots.extend(kept.tolist())
        left = np.maximum(left - (part**2).sum(1), 0)
        left[chosen] = 0
    error = float(left.sum()) / total if total > 0 else 0.0
    return LowRank(factor[:, :done], np.array(pivots, int), error, float(left.max()), left)


def _orthogonal_part(
    columns: Float[np.ndarray, "n block"], chosen: Int[np.ndarray, " block"]
) -> tuple[Int[np.ndarray, " kept"], Float[np.ndarray, "n kept"]]:
    """The columns' contribution to F, through a pivoted Cholesky of their small square."""
    core = columns[chosen]
    root, order, rank, _ = _pstrf(
        (core + core.T) / 2, lower=1, tol=len(core) * _EPS * max(float(np.diag(core).max()), 0.0)
    )
    order = order[:rank] - 1
    lower = np.tril(root[:rank, :rank])
    part = scipy.linalg.solve_triangular(lower, columns[:, order].T, lower=True).T
    return chosen[order], part


class Preconditioner:
    r"""$v\mapsto(FF^\top+\mathrm{diag}(s))^{-1}v$ by Woodbury's identity.

    Args:
        low_rank: $F$.
        ridge: $s$, a number or one for each row.
        floor: The least value of s.

    Attributes:
        rank: The number of columns of F.
    """

    def __init__(self, low_rank: LowRank, ridge: ArrayLike, floor: float):
        f = low_rank.factor
        self.rank = f.shape[1]
        self._s = np.broadcast_to(np.maximum(np.asarray(ridge, float), floor), (len(f),))
        self._scaled = f / self._s[:, None]
        inner = f.T @ self._scaled
        inner[np.diag_indices(len(inner))] += 1
        self._inner = scipy.linalg.cho_factor(inner, lower=True, overwrite_a=True)

    @classmethod
    def of(cls, low: LowRank, ridge: Float[np.ndarray, " n"]) -> "Preconditioner":
        """For a ridge that may be 0: what F leaves out counts too, row by row, halfway to its mean.

        Without it a small ridge would make it stiff in directions that it does not know; with the mean alone it
        would take isolated points for others.
        """
        left = (low.left + low.left.mean()) / 2
        largest = float((low.factor**2).sum(1).max())
        return cls(low, ridge + left, max(1e-12 * largest, 1e-300))

    def diagonal(self) -> Float[np.ndarray, " n"]:
        """The diagonal of what it applies."""
        half = scipy.linalg.solve_triangular(self._inner[0], self._scaled.T, lower=True)
        return 1 / self._s - (half**2).sum(0)

    def __call__(self, v: Float[np.ndarray, " n *k"]) -> Float[np.ndarray, " n *k"]:
        """Apply it to v of shape (n,) or (n, k)."""
        weights = self._s if v.ndim == 1 else self._s[:, None]
        correction = scipy.linalg.cho_solve(self._inner, self._scaled.T @ v)
        return v / weights - self._scaled @ correction
