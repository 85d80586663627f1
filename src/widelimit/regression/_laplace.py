"""Gaussian-process classification by Laplace's approximation."""

import dataclasses

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit

Square = Float[np.ndarray, "n n"]
Vector = Float[np.ndarray, " n"]
_STEPS = 100
_HALVINGS = 20
_TOLERANCE = 1e-9  # of the log posterior, for each row


@dataclasses.dataclass(frozen=True, eq=False)
class Laplace:
    r"""The Gaussian at the mode of $p(f\mid y)\propto\prod_i\sigma(f_i)^{w_is_i}\sigma(-f_i)^{w_i(1-s_i)}N(f;0,K)$.

    Attributes:
        mode: $\hat f$, shape (n,).
        slope: $\nabla\log p(y\mid\hat f)=K^{-1}\hat f$, shape (n,): the mean at x is $k(x)$ times it.
        root: $W^{1/2}$, the root of minus the second derivatives, shape (n,).
        log_evidence: The approximate log probability of the labels.
    """

    mode: Vector
    slope: Vector
    root: Vector
    log_evidence: float

    def leave_one_out(self, matrix: Square) -> tuple[Vector, Vector]:
        r"""Mean and variance at each row without its own label.

        $\hat f_i-v_ig_i$ and $v_i=\Sigma_{ii}/(1-\Sigma_{ii}W_{ii})$, $\Sigma$ the posterior covariance.

        Args:
            matrix: $K$.

        Returns:
            Both of shape (n,).

        Reference:
            Opper and Winther (2000), Gaussian processes for classification: mean-field algorithms.
        """
        half = half_of(matrix, self.root)
        own = np.diagonal(matrix) - np.einsum("ij,ij->j", half, half)
        left = np.maximum(1 - own * self.root**2, np.finfo(float).eps)
        without = np.maximum(own, 0) / left
        return self.mode - without * self.slope, without


def laplace(matrix: Square, shares: Vector, weights: Vector) -> Laplace:
    r"""Newton's method for the mode, and the evidence there.

    Args:
        matrix: $K$, shape (n, n).
        shares: The share of the second class in each row's labels, in [0, 1].
        weights: How often each row counts.

    Returns:
        The approximation.

    Example:
        >>> import numpy as np
        >>> found = laplace(np.eye(2), np.array([0.0, 1.0]), np.ones(2))
        >>> bool(np.allclose(found.mode, found.slope)), found.mode.round(3)
        (True, array([-0.401,  0.401]))

    Reference:
        Rasmussen and Williams (2006), algorithms 3.1 and 3.2.
    """
    n = len(matrix)
    dual, f = np.zeros(n), np.zeros(n)
    value = _log_posterior(f, dual, shares, weights)
    for _ in range(_STEPS):
        chance = expit(f)
        curve = weights * chance * (1 - chance)
        root = np.sqrt(curve)
        b = curve * f + weights * (shares - chance)
        factor = _factor(matrix, root)
        goal = b - root * cho_solve((factor, True), root * (matrix @ b), check_finite=False)
        step, before = 1.0, value
        for _ in range(_HALVINGS):
            trial = dual + step * (goal - dual)
            moved = matrix @ trial
            value = _log_posterior(moved, trial, shares, weights)
            if value >= before:
                break
            step /= 2
        else:
            value = before
            break
        dual, f = trial, moved
        if value - before < _TOLERANCE * n:
            break
    chance = expit(f)
    root = np.sqrt(weights * chance * (1 - chance))
    factor = _factor(matrix, root)
    volume = float(np.log(np.diagonal(factor)).sum())
    return Laplace(f, weights * (shares - chance), root, value - volume)


def half_of(
    matrix: Square, root: Vector, cross: Float[np.ndarray, "m n"] | None = None
) -> Float[np.ndarray, "n m"]:
    """H with H'H = k (K + W^{-1})^{-1} k', by which labels lower the variances at new rows."""
    cross = matrix if cross is None else cross
    return solve_triangular(
        _factor(matrix, root), root[:, None] * cross.T, lower=True, check_finite=False
    )


def _factor(matrix: Square, root: Vector) -> Square:
    inner = root[:, None] * matrix * root
    inner[np.diag_indices_from(inner)] += 1
    return cholesky(inner, lower=True, overwrite_a=True, check_finite=False)


def _log_posterior(f: Vector, dual: Vector, shares: Vector, weights: Vector) -> float:
    likely = weights @ (shares * f - np.logaddexp(0, f))
    return float(likely - dual @ f / 2)
