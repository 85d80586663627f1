"""What width n costs: the spread and the shift of the kernels of one network, to first order in 1/n."""

import dataclasses
import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from widelimit._base.arrays import Inputs, as_inputs, is_traced
from widelimit._base.names import unknown
from widelimit._base.scalars import as_count, as_float
from widelimit._base.types import Tensor
from widelimit.infinite import prepare
from widelimit.layers import Layer

from ._covered import expect_derived
from ._evaluate import Progress, corrections, pair_tensors
from ._sized import with_widths

Entries = Float[Tensor, "n1 n2"]
_SMALL = 0.3  # of the relative variance; beyond, the first order is 20 to 40 per cent too small


class PairCovariance(NamedTuple):
    r"""Everything of order 1/n about two inputs, the pairs in the order 00, 01, 11.

    Attributes:
        cov: $n$ times the covariance of $(\hat K_p, M_p)$, shape (6, 6); $M$ is the mean of $\hat\Theta$ given
            the layers below the last.
        b: $B_{abcd}$, shape (2, 2, 2, 2): for outputs i, j, k, l the covariance of $\hat\Theta^{ij}_{ab}$ and
            $\hat\Theta^{kl}_{cd}$ is $\delta_{ij}\delta_{kl}A_{ab,cd}+\delta_{ik}\delta_{jl}B_{abcd}$
            $+\delta_{il}\delta_{jk}B_{abdc}$ over n, $A$ being the last block of `cov`.
        f: $F_{cdab}$: $nE[f_cf_d(\hat\Theta_{ab}-E\hat\Theta_{ab})]=D_{cd,ab}+F_{cdab}+F_{dcab}$, $D$ the upper
            right block.
        shift: $n$ times the shifts of the means of both kernels, shape (6,).
    """

    cov: Float[np.ndarray, "6 6"]
    b: Float[np.ndarray, "2 2 2 2"]
    f: Float[np.ndarray, "2 2 2 2"]
    shift: Float[np.ndarray, " 6"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Fluctuations:
    r"""Kernels of width n around their limits: $\hat\Theta\approx\Theta+\delta\Theta/n\pm\sqrt{V/n}$.

    Attributes:
        nngp: The limit $K$, shape (n1, n2).
        ntk: The limit $\Theta$.
        nngp_var: $\lim n\,\mathrm{Var}(\hat K)$, entry by entry.
        ntk_var: $\lim n\,\mathrm{Var}(\hat\Theta)$, for one output.
        cross: $\lim n\,\mathrm{Cov}(\hat K,\hat\Theta)$.
        nngp_shift: $\lim n\,(E\hat K-K)$.
        ntk_shift: $\lim n\,(E\hat\Theta-\Theta)$.
        ntk_common_var: The part of `ntk_var` that all outputs share.
        ntk_between_var: $\lim n\,\mathrm{Var}$ of the kernel between two different outputs, whose limit is 0.
        reference: The width n that the network's stated widths are multiples of, if it states them.
    """

    nngp: Entries
    ntk: Entries
    nngp_var: Entries
    ntk_var: Entries
    cross: Entries
    nngp_shift: Entries
    ntk_shift: Entries
    ntk_common_var: Entries
    ntk_between_var: Entries
    reference: int | None
    _net: Layer = dataclasses.field(kw_only=True)
    _sized: Layer = dataclasses.field(kw_only=True)
    _inputs: Inputs = dataclasses.field(kw_only=True)

    def nngp_std(self, width: int | None = None) -> Entries:
        r"""$\sqrt{V_K/n}$: the standard deviation of one network's last-layer kernel."""
        return (self.nngp_var / self._width(width)) ** 0.5

    def ntk_std(self, width: int | None = None, outputs: int = 1) -> Entries:
        r"""$\sqrt{V_\Theta/n}$: the standard deviation of one network's tangent kernel.

        Args:
            width: n; None: what the network states.
            outputs: Of the mean over so many outputs.

        Returns:
            The standard deviation, shape (n1, n2). A warning says where it is no longer small.
        """
        n = self._width(width)
        variance = self.ntk_var_of(outputs) / n
        largest = float(np.max(np.asarray(variance) / self._sizes("ntk") ** 2))
        if largest > _SMALL:
            warnings.warn(
                f"At width {n:g} the tangent kernel's relative variance is {largest:.2g} to first order; beyond "
                f"{_SMALL} the true one is larger by a fifth to a half, and the kernel nearly log-normal.",
                stacklevel=2,
            )
        return variance**0.5

    def ntk_var_of(self, outputs: int = 1) -> Entries:
        r"""$\lim n\,\mathrm{Var}$ of the tangent kernel's mean over several outputs: $A+(B_{abab}+B_{abba})/k$."""
        k = as_count(outputs, "outputs", minimum=1)
        return self.ntk_common_var + (self.ntk_var - self.ntk_common_var) / k

    def expected_nngp(self, width: int | None = None) -> Entries:
        r"""$K+\delta K/n$."""
        return self.nngp + self.nngp_shift / self._width(width)

    def expected_ntk(self, width: int | None = None) -> Entries:
        r"""$\Theta+\delta\Theta/n$."""
        return self.ntk + self.ntk_shift / self._width(width)

    def kurtosis(self, width: int | None = None) -> Float[Tensor, " n1"]:
        r"""The excess kurtosis $3V_{aa,aa}/(nK_{aa}^2)$ of the output at each input.

        Given the layers below the last, the output is exactly Gaussian, so its fourth cumulant is the spread
        of the last-layer kernel and nothing else.
        """
        if self._inputs.x2 is not None:
            raise ValueError("The kurtosis belongs to single inputs: call fluctuations(net, x1).")
        take = jnp.diagonal if not self._inputs.numpy else np.diagonal
        k = take(self.nngp)
        positive = k > 0
        return (3 / self._width(width)) * take(self.nngp_var) / np.where(positive, k, 1) ** 2

    def width_for(self, rtol: float, kernel: str = "ntk") -> int:
        r"""The smallest width at which every entry is within `rtol`.

        Args:
            rtol: Both the standard deviation and the shift of an entry are to be at most this times
                $\sqrt{\Theta_{aa}\Theta_{bb}}$ (an entry itself may vanish).
            kernel: "ntk" or "nngp".

        Returns:
            n, in units of the layers' relative widths.
        """
        if kernel not in ("ntk", "nngp"):
            raise ValueError(unknown("kernel", kernel, ("ntk", "nngp")))
        rtol = as_float(rtol, "rtol")
        if not 0 < rtol < math.inf:
            raise ValueError(f"rtol must be positive, got {rtol:g}.")
        size = self._sizes(kernel)
        var = np.asarray(getattr(self, f"{kernel}_var"), np.float64) / size**2
        shift = np.abs(np.asarray(getattr(self, f"{kernel}_shift"), np.float64)) / size
        needed = max(float(np.max(var)) / rtol**2, float(np.max(shift)) / rtol)
        return max(1, math.ceil(needed * (1 - 1e-12)))

    def pair_covariance(self, i: int = 0, j: int | None = None) -> PairCovariance:
        """All covariances of the 2 x 2 blocks of one pair: of `x1[i]` and `x2[j]` (`x1[j]` without `x2`).

        Args:
            i: The first input.
            j: The second; by default the next of `x1`, or the first of `x2`.

        Returns:
            The tensors, in float64.
        """
        first = np.asarray(self._inputs.x1, np.float64)
        other = first if self._inputs.x2 is None else np.asarray(self._inputs.x2, np.float64)
        j = (min(1, len(other) - 1) if self._inputs.x2 is None else 0) if j is None else j
        found = pair_tensors(self._sized, first[i][None], other[j][None])
        return PairCovariance(*map(np.asarray, (found.cov, found.b, found.f, found.shift)))

    def distance(self, width: int | None = None, outputs: int = 1) -> float:
        r"""$\sqrt{E\lVert\hat\Theta-\Theta\rVert_F^2}$: spread and shift of all entries together.

        Args:
            width: n; None: what the network states.
            outputs: The kernel is the mean over so many outputs.

        Returns:
            The expected distance of one network's tangent kernel from the limit.
        """
        n = self._width(width)
        shift = np.asarray(self.ntk_shift, np.float64) / n
        return float(np.sqrt(np.sum(np.asarray(self.ntk_var_of(outputs)) / n + shift**2)))

    def _sizes(self, kernel: str) -> Float[np.ndarray, "n1 n2"]:
        """sqrt(diagonal x diagonal), 1 where that vanishes."""
        points = [np.asarray(x, np.float64) for x in self._inputs[:2] if x is not None]
        ends = [np.sqrt(prepare(self._net, kernel).diagonal(x)) for x in points]
        size = ends[0][:, None] * ends[-1][None, :]
        return np.where(size > 0, size, 1.0)

    def _width(self, width: int | None) -> int:
        if width is None and self.reference is None:
            raise ValueError("The network states no widths; give one: ntk_std(width=1000).")
        return self.reference or 1 if width is None else as_count(width, "width", minimum=1)

    def __repr__(self) -> str:
        n1, n2 = self.ntk.shape
        size = self._sizes("ntk")
        low, high = (float(f(np.asarray(self.ntk_var) / size**2)) for f in (np.min, np.max))
        return (
            f"Fluctuations({n1} x {n2} entries; n Var(ntk) from {low:.3g} to {high:.3g} of the squared size; "
            f"10 % needs width {self.width_for(0.1)})"
        )


def fluctuations(
    net: Layer,
    x1: ArrayLike,
    x2: ArrayLike | None = None,
    *,
    widths: Sequence[float] | None = None,
    width: int | None = None,
    progress: Progress | None = None,
) -> Fluctuations:
    r"""What width n costs: variances and shifts of the empirical kernels, exactly to first order in 1/n.

    One pass over the layers, like the limit itself. With $G$ the kernel of a layer's pre-activations given
    the layers below, a layer of $n$ neurons maps the covariance $C$ of $(G,\Theta)$ to $JCJ^\top+\mathrm{Cov}(X)$: the
    derivative $J$ of the limit's recursion carries old fluctuations on, and the neurons' own spread
    $X=(\varphi\varphi,\Theta\varphi'\varphi')$ adds new ones; second derivatives shift the means.

    Args:
        net: The network: `Dense`, `Phi` directly behind a `Dense`, `Scale`, `Residual` and `Sum` whose branches
            end in a `Dense`, and repetitions of these. Everything else is refused, with the reason.
        x1: Points, shape (n1, d). NumPy in, NumPy out; JAX in, JAX out (not inside jit).
        x2: Points, shape (n2, d); None stands for `x1`.
        widths: The width of each weight matrix but the last in units of n, repetitions written out; by default
            the ratios of the widths that the network states, or 1.
        width: n, of the layers that state no width; then `ntk_std()` and the like need no argument.
        progress: Called with (tiles done, tiles in all).

    Returns:
        The limits, `nngp_var`, `ntk_var`, `cross`, `nngp_shift`, `ntk_shift`, and what follows from them:
        `ntk_std(width)`, `expected_ntk(width)`, `kurtosis(width)`, `width_for(rtol)`, `pair_covariance()`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> x = np.array([[1.0, 0.0], [0.6, 0.8]])
        >>> deep, residual = wl.mlp(depth=5, w_std=2**0.5), wl.resnet(depth=5, alpha=0.1)
        >>> wl.fluctuations(deep, x).width_for(0.1), wl.fluctuations(residual, x).width_for(0.1)
        (1723, 110)
        >>> fl = wl.fluctuations(deep, x)  # for one input n Var(K)/K^2 = 5 L, and no shift
        >>> bool(np.allclose(fl.nngp_var[0, 0] / fl.nngp[0, 0] ** 2, 25.0))
        True

    Reference:
        Hanin and Nica (2020), Finite depth and width corrections to the neural tangent kernel; Roberts, Yaida
        and Hanin (2022), The principles of deep learning theory, chapters 4 and 8.
    """
    expect_derived(net)
    inputs = as_inputs(x1, x2)
    if is_traced((net, inputs.x1, inputs.x2)):
        raise TypeError("fluctuations needs concrete numbers and points; call it outside of jit.")
    width = None if width is None else as_count(width, "width", minimum=1)
    sized = with_widths(net, widths, width)
    expect_derived(sized.net)
    points = [None if x is None else np.asarray(x, np.float64) for x in inputs[:2]]
    assert points[0] is not None
    found = corrections(sized.net, points[0], points[1], progress)
    limits = prepare(net, "ntk").both(inputs.x1, inputs.x2)
    cast = np.asarray if inputs.numpy else jnp.asarray
    values = {name: cast(value, dtype=inputs.dtype) for name, value in found.items()}
    return Fluctuations(
        limits.nngp,
        limits.ntk,
        **values,
        reference=width if sized.reference is None else sized.reference,
        _net=net,
        _sized=sized.net,
        _inputs=inputs,
    )
