"""Targets on a sphere with prescribed power in each degree."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.keys import as_generator
from widelimit._base.renamed import renamed_argument
from widelimit._base.scalars import as_count
from widelimit._base.shown import shown
from widelimit._base.types import Seed
from widelimit.analysis._zonal import zonal
from widelimit.analysis.spectrum import multiplicity

_CENTRES = 32


@shown("a target function on the sphere")
class Target(NamedTuple):
    """A function on the unit sphere whose harmonics are known; call it on points.

    Attributes:
        dim: The dimension of the space.
        power: The mean square of the part of degree k = 0, 1, ...
        centres: Directions, shape (m, dim).
        weights: Weights of the zonal functions around them, shape (degrees, m).
    """

    dim: int
    power: Float[np.ndarray, " degrees"]
    centres: Float[np.ndarray, "m dim"]
    weights: Float[np.ndarray, "degrees m"]

    def __call__(self, x: ArrayLike) -> Float[np.ndarray, " n"]:
        """The values at points x of any positive norm, shape (n, dim): only directions count."""
        points = np.asarray(x, dtype=np.float64)
        points = points / np.linalg.norm(points, axis=1, keepdims=True)
        cosine = points @ self.centres.T
        sign = np.where(cosine < 0, -1.0, 1.0)
        polynomials = zonal(self.dim, np.maximum(1 - np.abs(cosine), 0))
        out = np.zeros(len(points))
        for k, (polynomial, weights) in enumerate(zip(polynomials, self.weights, strict=False)):
            if self.power[k]:
                out += (polynomial * sign if k % 2 else polynomial) @ weights
        return out


@renamed_argument(seed="key")
def target(dim: int, power: ArrayLike, key: Seed = 0) -> Target:
    r"""A random function with given power in each degree: $f=\sum_k f_k$, $E[f_k^2]=P_k$ exactly.

    Each $f_k$ is a sum of zonal harmonics $P_k(\langle x,z_j\rangle)$ around random directions $z_j$, whose
    mean square follows from $E[P_k(\langle x,z\rangle)P_k(\langle x,z'\rangle)]=P_k(\langle z,z'\rangle)/N(d,k)$.

    Args:
        dim: The dimension of the space.
        power: $P_k$ for k = 0, 1, ...
        key: Which function.

    Returns:
        The target.

    Example:
        >>> import numpy as np
        >>> f = target(3, [0.0, 1.0, 0.5], key=1)
        >>> x = np.random.default_rng(0).normal(size=(20000, 3))
        >>> bool(abs(np.mean(f(x) ** 2) - 1.5) < 0.05)
        True
    """
    dim = as_count(dim, "dim", minimum=2)
    share = np.asarray(power, dtype=np.float64)
    if share.ndim != 1 or share.size == 0 or np.any(share < 0) or not np.all(np.isfinite(share)):
        raise ValueError(
            f"power lists the mean square of each degree, one non-negative number each; got {power!r}."
        )
    rng = as_generator(key)
    centres = rng.normal(size=(_CENTRES, dim))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    weights = rng.normal(size=(len(share), _CENTRES))
    # Overlaps of one degree: the value of its unnormalised part at the centres.
    for k in np.flatnonzero(share):
        only = np.where(np.arange(len(share)) == k, 1.0, 0.0)
        values = Target(dim, only, centres, weights)(centres)
        square = weights[k] @ values / multiplicity(dim, int(k))
        weights[k] *= np.sqrt(share[k] / square)
    return Target(dim, share, centres, weights)
