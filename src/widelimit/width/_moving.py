r"""How the tangent kernel starts to move, as a state: derivatives of the kernel along the gradients.

For two training inputs and one neuron for each index, $nE[d^2g_i(dg_j,dg_k)\,g_l]$ has the index structures
$\delta_{il}\delta_{jk}P+\delta_{ij}\delta_{kl}Q+\dots$; third derivatives have $R$, products of two second ones $S,T,U$
(the dNTK and ddNTK of Roberts, Yaida and Hanin 2022, chapter 11). All tensors are [a, b, c, d] over the two inputs.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from widelimit._base.scalars import Scalar
from widelimit._base.types import Self
from widelimit.activations import Activation
from widelimit.interpret import Located

from ._responses import Six, Square, Table, Tensor4, across, tabulate, through


class Branch(NamedTuple):
    """What a residual sum must know of its branch: Dense, activation, Dense.

    Attributes:
        gain: The product of the squared numbers that multiplied the signal.
        table: The expectations of its activation, once it has met one.
        theta: The tangent kernel that the activation saw.
    """

    gain: float = 1.0
    table: Table | None = None
    theta: Square | None = None


_NONE = np.zeros((2, 2, 2, 2))


@dataclasses.dataclass(frozen=True)
class Moving(Located):
    """A signal at two inputs: its kernels, B and F, and the six tensors.

    Attributes:
        s: The second moments.
        theta: The tangent kernel.
        b: As in `Fluctuating`, not divided by sizes.
        f: The same.
        six: The tensors P, Q, R, S, T, U.
        branch: Since the start of a branch; None in no branch.
        gaussian: Whether the signal is fresh.
    """

    question: ClassVar[str] = "the drift of the tangent kernel"

    s: Square
    theta: Square
    b: Tensor4 = dataclasses.field(default_factory=_NONE.copy)
    f: Tensor4 = dataclasses.field(default_factory=_NONE.copy)
    six: Six = Six(*[_NONE] * 6)
    branch: Branch | None = None
    gaussian: bool = False

    def stream(self) -> Self:
        """The signal itself, no longer as a law given the past."""
        if not self.gaussian:
            return self
        outer = lambda a, b: np.einsum("ab,cd->abcd", a, b)
        b, f = self.b + outer(self.theta, self.theta), self.f + outer(self.s, self.theta)
        return dataclasses.replace(self, b=b, f=f, gaussian=False)

    def weighted(self, width: int | None) -> Self:
        return dataclasses.replace(self.stream(), gaussian=True)

    def scaled(self, factor: Scalar) -> Self:
        c = float(factor) ** 2
        branch = self.branch and self.branch._replace(gain=self.branch.gain * c)
        return dataclasses.replace(
            self,
            s=c * self.s,
            theta=c * self.theta,
            b=c**2 * self.b,
            f=c**2 * self.f,
            six=Six(*(c**2 * part for part in self.six)),
            branch=branch,
        )

    def biased(self, b_std: Scalar) -> Self:
        return dataclasses.replace(self, s=self.s + float(b_std) ** 2)

    def trained(self) -> Self:
        six, turn = self.six, np.einsum
        added = (
            _NONE,
            turn("bdac->abcd", self.f),
            turn("acdb->abcd", six.p),
            turn("acbd->abcd", self.b),
            turn("cdab->abcd", self.f) + turn("acbd->abcd", six.q) + turn("bdac->abcd", six.q),
            _NONE,
        )
        return dataclasses.replace(self, theta=self.theta + self.s, six=six.map(added))

    def activated(self, activation: Activation) -> Self:
        branch = self.branch
        if branch is not None and branch.table is not None:
            raise ValueError(
                f"{self.inside} is the second activation in a residual branch; the drift is derived for branches "
                "Dense() >> Phi(...) >> Dense()."
            )
        e, th = tabulate(activation, self.s), self.theta
        b = np.einsum("abcd,ab,cd->abcd", e.z4, th, th) + np.einsum(
            "ac,bd,abcd->abcd", e.s11, e.s11, self.b
        )
        mixed = np.swapaxes(e.d10, 0, 1)  # [c, a, e]
        f = np.einsum("cdab,ab->cdab", e.y4, th) + np.einsum(
            "cae,dbf,efab->cdab", mixed, mixed, self.f
        )
        if branch is not None:
            branch = branch._replace(table=e, theta=th)
        six = through(e, th, self.b, self.f, self.six)
        return dataclasses.replace(
            self, s=e.s00, theta=e.s11 * th, b=b, f=f, six=six, branch=branch, gaussian=False
        )

    def branched(self) -> Self:
        return dataclasses.replace(self.stream(), branch=Branch())

    def joined(self, skip: Scalar | None, parts: Sequence[Self]) -> Self:
        if skip is None or float(skip) != 1.0 or len(parts) != 1 or self.branch is not None:
            raise ValueError(
                f"The drift is derived for residual blocks x + alpha branch(x) with one branch that is not inside "
                f"another; got {self.inside}."
            )
        stream, (y,) = self.stream(), parts
        assert y.branch is not None
        if y.branch.table is None or y.branch.theta is None:
            raise ValueError(
                f"In {self.inside}, the branch has no activation; the drift is derived for branches "
                "Dense() >> Phi(...) >> Dense()."
            )
        s, theta = stream.s + y.s, stream.theta + y.theta
        e, gain, outer = y.branch.table, y.branch.gain, lambda a, b: np.einsum("ab,cd->abcd", a, b)
        back, mixed = gain * e.s11, gain * np.swapaxes(e.d10, 0, 1)
        b = stream.b + y.b + np.einsum("ac,abcd->abcd", back, stream.b)
        b = b + np.einsum("bd,abcd->abcd", back, stream.b)
        b = b + outer(theta, theta) - outer(stream.theta, stream.theta)
        f = stream.f + y.f + np.einsum("cae,edab->cdab", mixed, stream.f)
        f = f + np.einsum("dbf,cfab->cdab", mixed, stream.f) + outer(s, theta)
        f = f - outer(stream.s, stream.theta)
        both = stream.six.map(y.six)
        cross = across(e, y.branch.theta, stream.b, stream.f, stream.six)
        six = Six(*(a + gain * c for a, c in zip(both, cross, strict=True)))
        return dataclasses.replace(stream, s=s, theta=theta, b=b, f=f, six=six)
