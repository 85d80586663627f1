r"""The arc-cosine family $\varphi(x)=x^n\,1_{x>0}$ and the sign (Cho & Saul 2009).

$E[\varphi(u)\varphi(v)]=(q_1q_2)^{n/2}J_n(\theta)/2\pi$ with $J_n=P_n(c)\sin\theta+(\pi-\theta)Q_n(c)$,
$c=\cos\theta$. From $J_{n+1}=-\sin\theta\,J_n'+(2n+1)c\,J_n$ follow the recursions
$P_{n+1}=(1-c^2)P_n'+2n\,c\,P_n+Q_n$ and $Q_{n+1}=(1-c^2)Q_n'+(2n+1)c\,Q_n$.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Polynomial

from widelimit._base.numerics import safe_sqrt
from widelimit._base.polynomials import evaluate_polynomial

from ._activation import Activation, family_name, register, register_family
from ._cov import Cov


@functools.cache
def _polynomials(order: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    c, sine2 = Polynomial([0, 1]), Polynomial([1, 0, -1])
    p, q = Polynomial([0.0]), Polynomial([1.0])
    for n in range(order):
        p, q = sine2 * p.deriv() + 2 * n * c * p + q, sine2 * q.deriv() + (2 * n + 1) * c * q
    return tuple(map(float, p.coef)), tuple(map(float, q.coef))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _j(order: int, minus, plus):
    p, q = _polynomials(order)
    rho = (plus - minus) / 2
    theta = Cov(rho, rho, minus, plus).theta
    p_rho, q_rho = evaluate_polynomial(p, rho), evaluate_polynomial(q, rho)
    return p_rho * safe_sqrt(minus * plus) + (jnp.pi - theta) * q_rho


@_j.defjvp
def _j_jvp(order, primals, tangents):
    minus, plus = primals
    d_rho = (tangents[1] - tangents[0]) / 2
    if order == 0:
        theta_dot = jax.jvp(lambda m, p: Cov(m, m, m, p).theta, primals, tangents)[1]
        return _j(order, minus, plus), -theta_dot
    return _j(order, minus, plus), order**2 * _j(order - 1, minus, plus) * d_rho


def _dual(order: int, cov: Cov):
    return cov.scale**order * _j(order, cov.minus, cov.plus) / (2 * jnp.pi)


@register_family("relu_power", (2,), (3,), (4,))
def relu_power(order: float) -> Activation:
    """max(x, 0)^order: the arc-cosine kernel of that order, from 2 to 64."""
    if not 2 <= order <= 64 or order != int(order):
        raise ValueError(
            f"relu_power(order) needs an integer order of at least 2 and at most 64, got {order:g}. "
            "Order 1 is 'relu', order 0 is 'step'."
        )
    n = int(order)
    odd_moments = float(np.prod(np.arange(1, 2 * n, 2, dtype=float)))
    return Activation(
        family_name("relu_power", n),
        lambda x: jnp.where(x > 0, x, 0) ** n,
        dual=functools.partial(_dual, n),
        dual_dot=lambda cov: n**2 * _dual(n - 1, cov),
        moment=lambda q: odd_moments / 2 * q**n,
        degree=n,
        breaks=(0.0,),
        latex=rf"\max(0,x)^{{{n}}}",
        cites=("cho2009kernel",),
    )


step = register(
    Activation(
        "step",
        lambda x: jnp.where(x > 0, jnp.ones_like(x), jnp.zeros_like(x)),
        dual=functools.partial(_dual, 0),
        moment=lambda q: jnp.full_like(q, 0.5),
        degree=0,
        breaks=(0.0,),
        has_ntk=False,
        latex=r"1_{x>0}",
        cites=("cho2009kernel",),
    )
)

sign = register(
    Activation(
        "sign",
        jnp.sign,
        dual=lambda cov: 1 - 2 / jnp.pi * cov.theta,
        moment=jnp.ones_like,
        degree=0,
        parity="odd",
        breaks=(0.0,),
        has_ntk=False,
        latex=r"\operatorname{sign}(x)",
        cites=("cho2009kernel",),
    )
)
