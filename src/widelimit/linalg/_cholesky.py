"""Cholesky factors in place, with an honest answer where the matrix is nearly singular."""

import dataclasses
import warnings

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.linalg import get_lapack_funcs

from widelimit._base.shown import shown

from ._panels import potrf

_potrs, _pocon, _trtrs, _trtri = get_lapack_funcs(
    ("potrs", "pocon", "trtrs", "trtri"), dtype=np.float64
)
_EPS = np.finfo(np.float64).eps
_STRIP = 512  # columns that are mirrored at a time


@shown("a Cholesky factorisation")
@dataclasses.dataclass(frozen=True)
class Cholesky:
    r"""The factor of $A=LL^\top$, $A=K+\mathrm{diag}(\mathrm{ridge})+\mathrm{jitter}\,I$.

    Attributes:
        lower: Fortran-ordered (n, n); its lower triangle is $L$, what stands above is not used.
        jitter: What had to be added to the diagonal beyond the ridge; 0 if nothing.
        rcond: Estimate of $1/\mathrm{cond}_1(A)$; a solution keeps about 16 + log10(rcond) digits.
    """

    lower: Float[np.ndarray, "n n"]
    jitter: float
    rcond: float

    def solve(self, b: ArrayLike) -> Float[np.ndarray, " n *k"]:
        """A^{-1} b for b of shape (n,) or (n, k)."""
        b = _columns(b, len(self.lower))
        x, _ = _potrs(self.lower, b, lower=1)
        return np.ascontiguousarray(x).reshape(b.shape)

    def half_solve(self, b: ArrayLike, overwrite: bool = False) -> Float[np.ndarray, " n *k"]:
        """L^{-1} b; the squared norms of its columns are b' A^{-1} b.

        Args:
            b: Shape (n,) or (n, k).
            overwrite: Whether a Fortran-ordered float64 `b` may be used as the result.

        Returns:
            An array of b's shape.
        """
        b = _columns(b, len(self.lower))
        x, _ = _trtrs(self.lower, b, lower=1, overwrite_b=overwrite)
        return x.reshape(b.shape, order="F")

    def leading(self, count: int) -> "Cholesky":
        """The factor of the first rows and columns: the leading block of the factor."""
        return Cholesky(np.asfortranarray(self.lower[:count, :count]), self.jitter, self.rcond)

    def log_det(self) -> float:
        """The logarithm of det A."""
        return 2 * float(np.log(np.diagonal(self.lower)).sum())

    def inverse_diagonal(
        self, rows: Int[np.ndarray, " m"] | None = None
    ) -> Float[np.ndarray, " _"]:
        """The diagonal of A^{-1}, shape (n,): column norms of L^{-1}; needs one more matrix.

        Args:
            rows: Which entries are wanted, shape (m,); None: all. A few cost less than the factor did.

        Returns:
            Shape (m,) or (n,).
        """
        if rows is not None:
            unit = np.zeros((len(self.lower), len(rows)), order="F")
            unit[rows, np.arange(len(rows))] = 1
            half = self.half_solve(unit, overwrite=True)
            return np.einsum("ij,ij->j", half, half)
        inverse, _ = _trtri(self.lower.copy(order="F"), lower=1, overwrite_c=1)
        n = len(inverse)
        return np.array([inverse[i:, i] @ inverse[i:, i] for i in range(n)])


def cholesky(matrix: ArrayLike, ridge: ArrayLike = 0.0, *, overwrite: bool = False) -> Cholesky:
    r"""Factor $K+\mathrm{diag}(\mathrm{ridge})$, with the smallest jitter that works.

    If the factorisation breaks down, or succeeds with a condition number beyond 1/rounding, then
    jitters of rounding size, growing tenfold, are tried. The one that was used is in the result,
    and a warning says so.

    Args:
        matrix: $K$, symmetric, shape (n, n).
        ridge: A number, or one number for each row, all at least 0.
        overwrite: Factor in place: a Fortran-ordered float64 matrix then needs no second one.

    Returns:
        The factor.

    Example:
        >>> import numpy as np
        >>> f = cholesky(np.array([[4.0, 2.0], [2.0, 3.0]]), ridge=1.0)
        >>> f.solve(np.array([7.0, 6.0])), f.jitter
        (array([1., 1.]), 0.0)
        >>> bool(np.isclose(f.log_det(), np.log(5 * 4 - 2 * 2)))
        True

    Reference:
        Higham (2002), Accuracy and stability of numerical algorithms, chapter 10.
    """
    a = _square(matrix, overwrite)
    ridge = _ridge(ridge, len(a))
    diagonal = np.diagonal(a) + ridge
    size = float(np.abs(diagonal).max())
    if size == 0:
        size = 1.0
    norm = _norm(a, ridge)
    step = _EPS * size
    jitter = 0.0
    for attempt in range(12):
        if attempt:
            jitter = step * 10.0 ** (attempt - 1)
            _restore(a)
        np.fill_diagonal(a, diagonal + jitter)
        a, info = potrf(a)
        if info == 0:
            rcond, _ = _pocon(a, norm + jitter, uplo="L")
            if rcond > _EPS:
                _warn_of_jitter(jitter, size)
                return Cholesky(a, jitter, float(rcond))
    raise ValueError(
        f"The matrix is not positive semidefinite: even with {jitter:.1e} added to its diagonal "
        f"(largest entry {size:.1e}) it has no Cholesky factor. A kernel matrix was expected; "
        "check that the kernel is symmetric and positive, or add a ridge."
    )


def _warn_of_jitter(jitter: float, size: float) -> None:
    if jitter > 0:
        warnings.warn(
            f"The matrix is singular to rounding; {jitter:.1e} ({jitter / size:.0e} of its largest "
            "diagonal entry) was added to the diagonal. Repeated rows, or rows on one ray under a "
            "bias-free ReLU, do this. A ridge or noise of your own choice avoids it.",
            UserWarning,
            stacklevel=3,
        )


def _square(matrix: ArrayLike, overwrite: bool) -> Float[np.ndarray, "n n"]:
    a = np.asarray(matrix)
    if a.ndim != 2 or a.shape[0] != a.shape[1] or a.size == 0:
        raise ValueError(f"A square matrix was expected, got shape {a.shape}.")
    if not np.isfinite(a.sum()) and not np.isfinite(a).all():
        raise ValueError("The matrix contains NaN or infinite values.")
    if overwrite and a.flags.c_contiguous and a.flags.writeable:
        a = a.T  # symmetric: the transpose is the same matrix in LAPACK's order
    if overwrite and a.dtype == np.float64 and a.flags.f_contiguous and a.flags.writeable:
        return a
    return np.array(a, dtype=np.float64, order="F")


def _ridge(ridge: ArrayLike, n: int) -> Float[np.ndarray, " n"]:
    ridge = np.asarray(ridge, dtype=np.float64)
    if ridge.ndim > 1 or (ridge.ndim == 1 and len(ridge) != n):
        raise ValueError(
            f"ridge must be a number or {n} numbers, got an array of shape {ridge.shape}."
        )
    if not (np.isfinite(ridge).all() and (ridge >= 0).all()):
        raise ValueError(f"ridge must be finite and at least 0, got {ridge.min()}.")
    return np.broadcast_to(ridge, (n,))


def _norm(a: Float[np.ndarray, "n n"], ridge: Float[np.ndarray, " n"]) -> float:
    """The 1-norm of a + diag(ridge), a strip at a time."""
    sums = [np.abs(a[:, i : i + _STRIP]).sum(0) for i in range(0, len(a), _STRIP)]
    return float((np.concatenate(sums) + ridge).max())


def _restore(a: Float[np.ndarray, "n n"]) -> None:
    """Copy the upper triangle, which LAPACK has left alone, onto the lower one."""
    n = len(a)
    for i in range(0, n, _STRIP):
        j = min(i + _STRIP, n)
        corner = np.triu(a[i:j, i:j], 1)
        a[i:j, i:j] = corner + corner.T
        a[j:, i:j] = a[i:j, j:].T


def _columns(b: ArrayLike, n: int) -> Float[np.ndarray, " n *k"]:
    b = np.asarray(b, dtype=np.float64)
    if b.ndim not in (1, 2) or len(b) != n:
        raise ValueError(
            f"The right-hand side must have {n} rows, like the matrix; got shape {b.shape}."
        )
    return b
