"""Expectations of an activation's derivatives, and what they do to the tensors of a moving kernel."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from widelimit._base.compile import quick_jit
from widelimit.activations import Activation

Square = Float[np.ndarray, "2 2"]
Cube = Float[np.ndarray, "2 2 2"]
Tensor4 = Float[np.ndarray, "2 2 2 2"]
_REACH, _STEP = (
    11.0,
    0.125,
)  # of the trapezoidal rule, in standard deviations: 1e-14 for tanh at variance 4
_STEEP = 4.0  # variance; beyond, the step shrinks with the standard deviation


class Table(NamedTuple):
    """Expectations of an activation's derivatives at two inputs; `s31[a, b]` is E[phi'''_a phi'_b]."""

    s00: Square
    s11: Square
    s20: Square
    s31: Square
    s22: Square
    d10: Cube
    d21: Cube
    y4: Tensor4
    z4: Tensor4
    e2110: Tensor4
    e3111: Tensor4
    e2211: Tensor4


@quick_jit
def _derivatives(act: Activation, x: Float[Array, "..."]) -> Float[Array, "4 ..."]:
    functions = [act.fn]
    for _ in range(3):
        last = functions[-1]
        functions.append(lambda x, f=last: jax.jvp(f, (x,), (jnp.ones_like(x),))[1])
    return jnp.stack([f(x) for f in functions])


def tabulate(act: Activation, cov: Square) -> Table:
    """All expectations at a covariance, by a trapezoidal rule in whitened coordinates."""
    step = _STEP / max(1.0, float(np.sqrt(cov.max() / _STEEP)))
    z = np.arange(-_REACH, _REACH + step / 2, step)
    weight = np.exp(-(z**2) / 2)
    weight = np.outer(weight, weight) / weight.sum() ** 2
    root = np.sqrt(np.diag(cov))
    size = root[0] * root[1]
    rho = np.clip(cov[0, 1] / size, -1, 1) if size > 0 else 0.0
    first = np.broadcast_to(z[:, None], weight.shape)
    second = rho * z[:, None] + np.sqrt((1 - rho) * (1 + rho)) * z[None, :]
    with jax.enable_x64(True):
        found = [
            np.asarray(_derivatives(act, r * v)) for r, v in zip(root, (first, second), strict=True)
        ]
    values = np.stack(found, axis=1)  # order of the derivative, input, nodes

    def expect(*orders: int) -> np.ndarray:
        letters = "abcd"[: len(orders)]
        sides = ",".join(f"{letter}ij" for letter in letters)
        parts = [values[order] for order in orders]
        return np.einsum(f"{sides},ij->{letters}", *parts, weight, optimize=True)

    s11, s20, s31, s22 = expect(1, 1), expect(2, 0), expect(3, 1), expect(2, 2)
    return Table(
        expect(0, 0),
        s11,
        s20,
        s31,
        s22,
        _shared(s20, s11),
        _shared(s31, s22),
        expect(0, 0, 1, 1),
        expect(1, 1, 1, 1),
        expect(2, 1, 1, 0),
        expect(3, 1, 1, 1),
        expect(2, 2, 1, 1),
    )


def _shared(by_a: Square, by_b: Square) -> Cube:
    """E[d_e(f_a g_b)] from the expectations with either function differentiated: [a, b, e]."""
    one = np.eye(2)
    return np.einsum("ab,ae->abe", by_a, one) + np.einsum("ab,be->abe", by_b, one)


class Six(NamedTuple):
    """The tensors of second and third derivatives."""

    p: Tensor4
    q: Tensor4
    r: Tensor4
    s: Tensor4
    t: Tensor4
    u: Tensor4

    def map(self, change: "Sequence[Tensor4]", factor: float = 1.0) -> "Six":
        """A multiple of these, plus others."""
        return Six(*(factor * a + b for a, b in zip(self, change, strict=True)))


def through(e: Table, th: Square, b: Tensor4, f: Tensor4, six: Six) -> Six:
    """The six tensors behind an activation."""
    sum_ = np.einsum
    p, q, r, s, t, u = six
    three = sum_("abcd,ab,ac,bd->abcd", e.e2211, th, th, th)
    two = sum_("abcd,ab,ac->abcd", e.e2110, th, th)
    t_side = sum_("ac,bd,ace,bdae->abcd", th, e.s11, e.d21, q)
    return Six(
        two
        + sum_("ad,bc,abac->abcd", e.s20, e.s11, b)
        + sum_("bc,ade,abce->abcd", e.s11, e.d10, p),
        two
        + sum_("ab,abe,cdf,efac->abcd", th, e.d21, e.d10, f)
        + sum_("ab,cdf,abcf->abcd", e.s11, e.d10, q),
        sum_("abcd,ab,ac,ad->abcd", e.e3111, th, th, th)
        + sum_("ab,cd,ab,acad->abcd", e.s31, e.s11, th, b)
        + sum_("ab,cd,abe,acde->abcd", th, e.s11, e.d21, p)
        + sum_("ab,cd,abcd->abcd", e.s11, e.s11, r),
        three
        + sum_("ab,cd,ab,acbd->abcd", e.s22, e.s11, th, b)
        + sum_("ab,cd,abcd->abcd", e.s11, e.s11, s),
        three
        + sum_("ac,bd,ace,bdf,efab->abcd", th, th, e.d21, e.d21, f)
        + t_side
        + sum_("badc->abcd", t_side)
        + sum_("ac,bd,abcd->abcd", e.s11, e.s11, t),
        three + sum_("ad,bc,abcd->abcd", e.s11, e.s11, u),
    )


def across(e: Table, m: Square, b: Tensor4, f: Tensor4, six: Six) -> tuple[Tensor4, ...]:
    """What a residual sum adds that is neither the stream's own nor the branch's own."""
    sum_ = np.einsum
    p, q, r, s, t, u = six
    lean = e.d10 + m[:, :, None] * e.d21
    t_side = sum_("ace,bdae->abcd", lean, q) + sum_("ac,bdac->abcd", e.s11, q)
    t_side = t_side + sum_("ac,abcd->abcd", e.s11, t)
    return (
        sum_("bc,abcd->abcd", e.s11, p)
        + sum_("ad,abac->abcd", e.s20, b)
        + sum_("ade,abce->abcd", e.d10, p),
        sum_("cde,abce->abcd", e.d10, q)
        + sum_("abe,edac->abcd", lean, f)
        + sum_("ab,bdac->abcd", e.s11, f)
        + sum_("ab,abcd->abcd", e.s11, q),
        sum_("cd,abcd->abcd", e.s11, r)
        + sum_("ab,acad->abcd", e.s31 * m + e.s20, b)
        + sum_("abe,acde->abcd", lean, p)
        + sum_("ab,acdb->abcd", e.s11, p)
        + sum_("ab,abcd->abcd", e.s11, r),
        sum_("cd,abcd->abcd", e.s11, s)
        + sum_("ab,acbd->abcd", 2 * e.s11 + e.s22 * m, b)
        + sum_("ab,abcd->abcd", e.s11, s),
        t_side + sum_("badc->abcd", t_side),
        sum_("ad,abcd->abcd", e.s11, u) + sum_("bc,abcd->abcd", e.s11, u),
    )
