"""Cholesky factors of large matrices, panel by panel."""

import numpy as np
from jaxtyping import Float
from scipy.linalg import get_blas_funcs, get_lapack_funcs

_LARGE = 8192  # rows from which on LAPACK is not asked for the whole: threaded, some builds of it break there
_PANEL = 1024  # columns that are factored at a time

(_potrf,) = get_lapack_funcs(("potrf",), dtype=np.float64)
(_trsm,) = get_blas_funcs(("trsm",), dtype=np.float64)

Square = Float[np.ndarray, "n n"]


def potrf(a: Square) -> tuple[Square, int]:
    """The lower factor in place of the lower triangle; what stands above the diagonal stays.

    Args:
        a: Symmetric, Fortran-ordered.

    Returns:
        The array, and 0; or the order of the first minor that is not positive.
    """
    if len(a) < _LARGE:
        return _potrf(a, lower=1, overwrite_a=1, clean=0)
    for i in range(0, len(a), _PANEL):
        j = min(i + _PANEL, len(a))
        done = a[i:j, :i]
        corner, info = _potrf(a[i:j, i:j] - done @ done.T, lower=1, clean=1)
        if info:
            return a, i + info
        a[i:j, i:j] = corner + np.triu(a[i:j, i:j], 1)
        if j < len(a):
            below = np.asfortranarray(a[j:, i:j] - a[j:, :i] @ done.T)
            a[j:, i:j] = _trsm(1.0, corner, below, side=1, lower=1, trans_a=1, overwrite_b=1)
    return a, 0
