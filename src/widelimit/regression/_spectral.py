"""Functions of a kernel matrix that stay finite and honest where it is singular."""

import dataclasses
import functools
import math
import warnings

import numpy as np
from jaxtyping import Float

from widelimit._base.shown import shown
from widelimit._base.watch import announce
from widelimit.linalg import Cholesky, Eigen, cholesky, eigh

from ._data import Targets
from ._phi import Spectrum, damped, flow
from ._solvers import forecast

Square = Float[np.ndarray, "n n"]
Cross = Float[np.ndarray, "m n"]


@shown("a kernel matrix with its eigendecomposition")
@dataclasses.dataclass(frozen=True, eq=False)
class Spectral:
    r"""$\phi(K)$ for any $\phi$, from one eigendecomposition, and $K^{-1}$ from a factorisation.

    Attributes:
        matrix: $K$.
        verbose: Whether it is told how long that takes; None: where it takes longer than a minute.
    """

    matrix: Square
    verbose: bool | None = None

    @functools.cached_property
    def eigen(self) -> Eigen:
        """The eigendecomposition."""
        n = len(self.matrix)
        announce(f"eigendecomposition of {n} points", forecast(n, eigen=True), self.verbose)
        return eigh(self.matrix)

    @functools.cached_property
    def factor(self) -> Cholesky | None:
        """A factorisation, if the matrix has one without help."""
        n = len(self.matrix)
        announce(f"factorisation of {n} points", forecast(n), self.verbose)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a jitter is not used here
            factor = cholesky(self.matrix)
        return factor if factor.jitter == 0 else None

    def flow(self, t: float, ridge: float = 0.0, friction: float | None = None) -> Spectrum | None:
        """Phi of gradient flow at each eigenvalue; None stands for the inverse by a factorisation.

        For ever this gives the solution of smallest norm: what rounding hides has weight 0.

        Args:
            t: The time.
            ridge: Of a flow with weight decay.
            friction: Of a flow with momentum.

        Returns:
            The weights.
        """
        if ridge > 0:
            return flow(self.eigen.values, t, ridge)
        if t == math.inf and self.factor is not None:
            return None
        values, noise = self.eigen.values, self.eigen.noise
        if self.eigen.rank < len(values) and (t == math.inf or t * noise > 1e-6):
            self._warn_of_rank()
        known = values > noise
        if t == math.inf:
            return np.where(known, 1 / np.where(known, values, 1), 0)
        # A direction whose eigenvalue is rounding has phi = t, until that would multiply rounding
        # errors up to the size of the answer; what is known then is that it is not learnt.
        phi = flow if friction is None else functools.partial(damped, friction=friction)
        still = float(phi(np.zeros(1), t)[0])  # of a direction that nothing is known of
        return np.where(known | (still * noise < 1), phi(values, t), 0)

    def dual(self, phi: Spectrum | None, error: Targets) -> Targets:
        r"""$\phi(K)\,e$: the coefficients of the kernels."""
        if phi is None:
            assert self.factor is not None
            return self.factor.solve(error)
        return self.eigen.apply(lambda _: phi, error)

    def moves(
        self, cross: Cross, phis: list[Spectrum | None], error: Targets
    ) -> list[Float[np.ndarray, "m k"]]:
        r"""$k(x)\,\phi(K)\,e$ for each $\phi$, shape (m, k)."""
        out, projected, inner = [], None, None
        for phi in phis:
            if phi is None:
                out.append(cross @ self.dual(None, error))
                continue
            if projected is None or inner is None:
                projected, inner = self._project(cross), self.eigen.vectors.T @ error
            with np.errstate(over="ignore", invalid="ignore"):
                out.append(projected @ (phi[:, None] * inner))
        return out

    def _project(self, cross: Cross) -> Cross:
        r"""$k(x)Q$, with rounding removed where an eigenvalue vanishes.

        $Kq=0$ implies $k(x)q=0$ for every x; a rounding error there would grow with t.
        """
        out = cross @ self.eigen.vectors
        null = self.eigen.values <= self.eigen.noise
        if null.any():
            # Rounding of the product, and of the eigenvectors themselves.
            size = np.abs(cross).sum(1, keepdims=True) + self.eigen.values[-1]
            level = 16 * np.finfo(float).eps * size
            out[:, null] = np.where(np.abs(out[:, null]) <= level, 0, out[:, null])
        return out

    def _warn_of_rank(self) -> None:
        eigen = self.eigen
        warnings.warn(
            f"The kernel matrix has rank {eigen.rank} of {len(self.matrix)} to rounding (largest "
            f"eigenvalue {eigen.values[-1]:.2e}, rounding {eigen.noise:.0e}). The part of the targets "
            "in the other directions is not learnt. Stop at a smaller t, use a ridge (wl.ridge), give "
            "the network biases, or remove points that it cannot tell apart.",
            UserWarning,
            stacklevel=4,
        )
