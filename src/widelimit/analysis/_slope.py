"""The mean square of an activation's slope under a Gaussian."""

from jaxtyping import Array, Float

from widelimit._base.compile import quick_jit
from widelimit.activations import Activation, Cov, How, derivative, second_moment, transform


def mean_square_slope(act: Activation, q: Float[Array, "..."]) -> Float[Array, "..."]:
    r"""$E[\varphi'(\sqrt qz)^2]$, by a one-dimensional rule where there is no closed form."""
    if act.dual_and_dot is not None:
        return act.dual_and_dot(Cov.diagonal(q))[1]
    if act.closed_form:
        t = second_moment(act, q)
        return transform(act, Cov.diagonal(q), t, t, How())[2] * t / q
    prime = Activation(f"{act.name}_prime", derivative(act), breaks=act.breaks)
    return second_moment(prime, q)


# Compiled once: at one variance after another, each alone, they cost little else.
mean_square_slope_now = quick_jit(mean_square_slope)
