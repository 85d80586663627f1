"""Ridge regression from a factorisation: leave-one-out errors and the whole path, in closed form."""

import dataclasses

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from ._cholesky import Cholesky
from ._eigen import Eigen

_STRIP = 1024


def leave_one_out(
    factor: Cholesky, dual: ArrayLike, rows: Int[np.ndarray, " m"] | None = None
) -> Float[np.ndarray, " _ *k"]:
    r"""Errors at each point of the model fitted without it.

    $y_i-f_{-i}(x_i)=\alpha_i/(A^{-1})_{ii}$ with $A=K+\mathrm{ridge}$, $\alpha=A^{-1}y$.

    Args:
        factor: Of $A$.
        dual: $\alpha$, shape (n,) or (n, k).
        rows: The points of which the errors are wanted, shape (m,); None: all.

    Returns:
        The errors, of the shape of `dual`, or of these rows of it.

    Example:
        >>> import numpy as np
        >>> from widelimit.linalg import cholesky
        >>> f = cholesky(np.eye(2), ridge=1.0)  # the other point says nothing
        >>> leave_one_out(f, f.solve([3.0, 4.0]))
        array([3., 4.])

    Reference:
        Rasmussen and Williams (2006), section 5.4.2.
    """
    dual = np.asarray(dual, dtype=np.float64)
    inverse = factor.inverse_diagonal(rows)
    dual = dual if rows is None else dual[rows]
    return dual / (inverse if dual.ndim == 1 else inverse[:, None])


@dataclasses.dataclass(frozen=True)
class RidgePath:
    """Ridge regression for many ridges.

    Attributes:
        ridges: The ridges, shape (r,).
        errors: Leave-one-out errors, shape (r, n) or (r, n, k).
        mean_squares: Their (weighted) mean square, shape (r,).
        best: The index of the least.
    """

    ridges: Float[np.ndarray, " r"]
    errors: Float[np.ndarray, "r n *k"]
    mean_squares: Float[np.ndarray, " r"]
    best: int

    @property
    def ridge(self) -> float:
        """The ridge with the least leave-one-out error."""
        return float(self.ridges[self.best])


def ridge_path(
    eigen: Eigen, y: ArrayLike, ridges: ArrayLike, weights: ArrayLike | None = None
) -> RidgePath:
    r"""Leave-one-out errors for every ridge from one eigendecomposition of the kernel matrix.

    With $K=Q\Lambda Q^\top$: $\alpha=Q(\Lambda+r)^{-1}Q^\top y$ and
    $(A^{-1})_{ii}=\sum_j Q_{ij}^2/(\lambda_j+r)$.

    Args:
        eigen: Of $K$.
        y: Targets, shape (n,) or (n, k).
        ridges: Positive numbers.
        weights: Of the points in the mean; None: equal.

    Returns:
        The path.

    Example:
        >>> import numpy as np
        >>> from widelimit.linalg import eigh
        >>> path = ridge_path(eigh(np.eye(3)), [1.0, 1.0, 1.0], [0.1, 1.0])
        >>> path.errors  # an identity kernel knows nothing of the other points
        array([[1., 1., 1.],
               [1., 1., 1.]])
    """
    y = np.asarray(y, dtype=np.float64)
    ridges = np.atleast_1d(np.asarray(ridges, dtype=np.float64))
    if ridges.ndim != 1 or not ((ridges > 0) & np.isfinite(ridges)).all():
        raise ValueError(
            f"ridges must be positive and finite, got {ridges}: without a ridge a singular kernel "
            "matrix has no leave-one-out error."
        )
    if y.ndim not in (1, 2) or len(y) != len(eigen.values):
        raise ValueError(f"y must have {len(eigen.values)} rows, got shape {y.shape}.")
    targets = y.reshape(len(y), -1)
    shrink = 1 / (eigen.values[:, None] + ridges)  # (n, r)
    inner = eigen.vectors.T @ targets
    duals = eigen.vectors @ (inner[:, None, :] * shrink[:, :, None]).reshape(len(y), -1)
    duals = duals.reshape(len(y), len(ridges), -1)
    inverse = np.empty((len(y), len(ridges)))
    for i in range(0, len(y), _STRIP):
        inverse[i : i + _STRIP] = eigen.vectors[i : i + _STRIP] ** 2 @ shrink
    errors = np.moveaxis(duals / inverse[:, :, None], 1, 0)
    shares = None if weights is None else np.asarray(weights, dtype=np.float64)
    squares = np.average((errors**2).mean(2), axis=1, weights=shares)
    return RidgePath(
        ridges, errors.reshape((len(ridges), *y.shape)), squares, int(np.argmin(squares))
    )
