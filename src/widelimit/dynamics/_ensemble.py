"""The distribution of trained networks, over their random initial weights."""

import dataclasses
import functools
import math

import numpy as np
from jaxtyping import Float

from widelimit._base.scalars import as_float
from widelimit.layers import Layer
from widelimit.regression import Predictive, Problem, Spectral, as_problem

from ._arguments import as_times
from ._losses import Loss
from ._train import train


def ensemble(
    net: Layer,
    x: object,
    y: object,
    x_test: object,
    t: object = None,
    *,
    kernel: str = "ntk",
    noise: float = 0.0,
    loss: str | Loss = "squared",
) -> Predictive:
    r"""The distribution of networks trained from random initial weights, for time t.

    Before training a network is a draw from the Gaussian process with kernel $K$; training maps it
    linearly, $f_t(x)=f_0(x)+A_x(y-f_0(X))$ with $A_x=\Theta(x,X)\Theta^{-1}(I-e^{-\Theta t})$, so
    the mean is $A_xy$ and the covariance
    $K(x,x')-A_xK(X,x')-K(x,X)A_{x'}^\top+A_xK(X,X)A_{x'}^\top$.

    Args:
        net: The network.
        x: Training points, shape (n, d).
        y: Targets, shape (n,) or (n, k).
        x_test: Where to predict, shape (m, d).
        t: Training time, or an array of times; None: for ever.
        kernel: "ntk": all layers are trained; "nngp": the last one only.
        noise: $\sigma^2$, added to $\Theta(X,X)$: the weights are held back to their start by weight decay,
            which for ever gives ridge regression. The posterior of a Gaussian process has the
            covariance $\sigma^2AA^\top$ more, from targets that are themselves uncertain.
        loss: "squared", half the sum of squares, or "mean", half their mean over points and outputs:
            the same at n k times the time.

    Returns:
        A record with `mean`, `variance`, `std`, `covariance` and `sample`; for an array of times all of
        them have a leading axis.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> net, x = wl.mlp(2), np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> e = wl.ensemble(net, x, [1.0, -1.0], x)  # all networks agree where they were trained
        >>> bool(np.allclose(e.mean, [1, -1]) and e.variance.max() < 1e-12)
        True
        >>> path = wl.ensemble(net, x, [1.0, -1.0], x, t=[0.0, 1.0, 10.0])
        >>> path.mean.shape, bool(np.allclose(path.covariance[0], wl.nngp(net, x)))
        ((3, 2), True)

    Reference:
        Lee et al. (2019), Wide neural networks of any depth evolve as linear models.
    """
    if loss not in ("squared", "mean"):
        raise ValueError(
            f"ensemble has a closed form for loss='squared' and 'mean' only, got {loss!r}. With others "
            "train finite networks: wl.optimise_many."
        )
    ridge, times = as_float(noise, "noise"), as_times(t)
    if not 0 <= ridge < math.inf:
        raise ValueError(f"noise is a variance, finite and at least 0; got {noise!r}.")
    model = train(net, x, y, kernel=kernel, loss=loss)
    prior = as_problem(net, x, y, "nngp")
    trained = _Ensemble(model.spectral, prior, prior.points(x_test), model.problem, ridge)
    paced = [model.pace * float(s) for s in times.ravel()]
    phis = [model.spectral.flow(s, ridge) for s in paced]
    moments = [trained.moments(phi) for phi in phis]
    mean, variance = (
        np.stack(part).reshape(times.shape + part[0].shape) for part in zip(*moments, strict=True)
    )
    shape = times.shape
    later = functools.partial(trained.covariances, phis, shape)
    return Predictive(prior.answer(mean), prior.convert(variance), 0.0, prior, later)


@dataclasses.dataclass(frozen=True, eq=False)
class _Ensemble:
    """What all times share: the kernels between new points and training points, in eigen-directions."""

    spectral: Spectral
    prior: Problem
    points: Float[np.ndarray, "m d"]
    tangent: Problem
    ridge: float

    @functools.cached_property
    def cross(self) -> Float[np.ndarray, "m n"]:
        return self.tangent.cross(self.points)

    @functools.cached_property
    def shift(self) -> Float[np.ndarray, "m n"]:
        return self.prior.cross(self.points)

    @functools.cached_property
    def inner(self) -> Float[np.ndarray, "n n"]:
        return self.prior.gram()

    @functools.cached_property
    def diagonal(self) -> Float[np.ndarray, " m"]:
        return self.prior.diagonal(self.points)

    @functools.cached_property
    def square(self) -> Float[np.ndarray, "m m"]:
        return self.prior.prior(self.points)

    def operator(self, phi: np.ndarray | None) -> Float[np.ndarray, "m n"]:
        (out,) = self.spectral.moves(self.cross, [phi], np.eye(len(self.spectral.matrix)))
        return out

    def moments(self, phi: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        operator = self.operator(phi)
        moved = operator @ self.inner - 2 * self.shift
        variance = np.maximum(self.diagonal + np.einsum("ij,ij->i", moved, operator), 0)
        return operator @ self.prior.y, variance

    def covariances(
        self, phis: list[np.ndarray | None], shape: tuple[int, ...]
    ) -> Float[np.ndarray, "*times m m"]:
        return np.stack([self.covariance(phi) for phi in phis]).reshape(
            *shape, len(self.points), len(self.points)
        )

    def covariance(self, phi: np.ndarray | None) -> Float[np.ndarray, "m m"]:
        operator = self.operator(phi)
        mixed = operator @ self.shift.T
        return self.square - mixed - mixed.T + operator @ self.inner @ operator.T
