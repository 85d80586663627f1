"""One eigendecomposition, then any function of the matrix."""

import dataclasses
from collections.abc import Callable

import numpy as np
import scipy.linalg
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.shown import shown

from ._cholesky import _square

_EPS = np.finfo(np.float64).eps
_LARGE = 4000  # rows from which memory counts more than time


@shown("an eigendecomposition")
@dataclasses.dataclass(frozen=True)
class Eigen:
    r"""$A=Q\,\mathrm{diag}(\lambda)\,Q^\top$ of a positive semidefinite matrix.

    Attributes:
        values: Eigenvalues, ascending; those below 0 by rounding are set to 0.
        vectors: $Q$, one eigenvector per column.
    """

    values: Float[np.ndarray, " n"]
    vectors: Float[np.ndarray, "n n"]

    @property
    def noise(self) -> float:
        """Eigenvalues below this are rounding: n eps lambda_max."""
        return len(self.values) * _EPS * float(self.values[-1])

    @property
    def rank(self) -> int:
        """The number of eigenvalues above rounding."""
        return int((self.values > self.noise).sum())

    @property
    def condition(self) -> float:
        """lambda_max / lambda_min; infinite if lambda_min is below rounding."""
        if self.rank < len(self.values):
            return float("inf")
        return float(self.values[-1] / self.values[0])

    def apply(
        self, function: Callable[[np.ndarray], np.ndarray], b: ArrayLike
    ) -> Float[np.ndarray, " n *k"]:
        """function(A) b for b of shape (n,) or (n, k)."""
        b = np.asarray(b, dtype=np.float64)
        weights = function(self.values)
        inner = self.vectors.T @ b
        return self.vectors @ (inner * (weights if b.ndim == 1 else weights[:, None]))


def eigh(matrix: ArrayLike, *, overwrite: bool = False, scale: float = 0.0) -> Eigen:
    r"""Eigendecomposition of a symmetric positive semidefinite matrix.

    Args:
        matrix: Shape (n, n).
        overwrite: Whether a float64 matrix may be used as work space.
        scale: The size of the matrices of which it is the difference, if it is one: eigenvalues of the
            size of their rounding are set to 0.

    Returns:
        Eigenvalues and eigenvectors.

    Raises:
        ValueError: If an eigenvalue is negative beyond rounding.

    Example:
        >>> import numpy as np
        >>> e = eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
        >>> e.values.round(12), e.rank
        (array([1., 3.]), 2)
        >>> e.apply(np.exp, np.array([1.0, -1.0])) / np.e  # an eigenvector of 1
        array([ 1., -1.])
    """
    a = _square(matrix, overwrite)
    # Divide and conquer is the fastest but needs two more matrices as work space.
    driver = "evd" if len(a) <= _LARGE else "evr"
    values, vectors = scipy.linalg.eigh(a, overwrite_a=True, check_finite=False, driver=driver)
    worst, largest = float(values[0]), float(np.abs(values).max())
    if worst < -1e-10 * max(largest, scale):
        raise ValueError(
            f"The matrix has the eigenvalue {worst:.2e} (largest {largest:.2e}): it is not positive "
            "semidefinite, so it is no kernel matrix. Check that the kernel is symmetric and positive."
        )
    return Eigen(np.where(values > len(a) * _EPS * scale, np.maximum(values, 0), 0), vectors)
