r"""Gradient flow and descent under any differentiable loss, by an ODE solver or step by step.

The state is the dual vector $c$ with $f_t(x)=f_0(x)+k(x)c_t$ and $\dot c=-\nabla_f L(f_0+\Theta c)$.
"""

import functools
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._losses import Loss

_STIFF = 300.0  # lambda t from which an implicit solver pays
_SMALL = 400  # unknowns up to which its linear systems are cheap


def _diffrax() -> Any:
    try:
        import diffrax
    except ImportError as error:
        raise ImportError(
            "Losses other than the squared one need Diffrax, which is not installed. "
            "Install it with: pip install 'widelimit[train]'"
        ) from error
    return diffrax


def flow_by_solver(
    loss: Loss,
    gram: np.ndarray,
    f0: np.ndarray,
    y: np.ndarray,
    times: np.ndarray,
    tolerance: float,
    friction: float | None = None,
) -> np.ndarray:
    """The dual vector at each of some increasing, finite times, shape (times, n, k)."""
    diffrax = _diffrax()
    end = float(times[-1])
    if end == 0:
        return np.zeros((len(times), *f0.shape))
    stiffness = float(np.abs(gram).sum(1).max()) * end
    implicit = stiffness > _STIFF and f0.size <= _SMALL
    with jax.enable_x64(True):
        solution = _integrate(
            loss,
            implicit,
            friction is not None,
            *(jnp.asarray(a) for a in (gram, f0, y)),
            times,
            tolerance,
            friction or 0.0,
        )
        if not bool(solution.result == diffrax.RESULTS.successful):
            raise ValueError(
                f"The ODE solver stopped before t = {end:g} (stiffness {stiffness:.1e}). "
                "Ask for a shorter time or a larger tolerance."
            )
        return np.asarray(solution.ys[0])


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _integrate(
    loss: Loss,
    implicit: bool,
    inert: bool,
    gram: Any,
    f0: Any,
    y: Any,
    times: Any,
    tolerance: Any,
    friction: Any,
) -> Any:
    diffrax = _diffrax()
    slope = jax.grad(loss)

    def field(t: Any, state: Any, args: Any) -> Any:
        pull = -slope(f0 + gram @ state[0], y)
        return (state[1], pull - friction * state[1]) if inert else (pull,)

    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Kvaerno5() if implicit else diffrax.Dopri8(),
        t0=0.0,
        t1=times[-1],
        dt0=None,
        y0=(jnp.zeros_like(f0),) * (2 if inert else 1),
        saveat=diffrax.SaveAt(ts=times),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance),
        max_steps=200_000,
        throw=False,
    )


def descend_by_steps(
    loss: Loss,
    gram: np.ndarray,
    f0: np.ndarray,
    y: np.ndarray,
    steps: int,
    learning_rate: float,
    momentum: float,
) -> np.ndarray:
    """The dual vector after the given number of steps, shape (n, k)."""
    with jax.enable_x64(True):
        c = _iterate(loss, *map(jnp.asarray, (gram, f0, y)), steps, learning_rate, momentum)
        return np.asarray(c)


@functools.partial(jax.jit, static_argnums=0)
def _iterate(
    loss: Loss, gram: Any, f0: Any, y: Any, steps: Any, learning_rate: Any, momentum: Any
) -> Any:
    slope = jax.grad(loss)

    def step(_: Any, state: Any) -> Any:
        c, v = state
        v = momentum * v + slope(f0 + gram @ c, y)
        return c - learning_rate * v, v

    zero = jnp.zeros_like(f0)
    return jax.lax.fori_loop(0, steps, step, (zero, zero))[0]


def check_loss(loss: Loss, f0: np.ndarray, y: np.ndarray) -> None:
    """Refuse a loss that gives no finite scalar, before any integration."""
    with jax.enable_x64(True):
        value = jax.eval_shape(loss, jnp.asarray(f0), jnp.asarray(y))
        if getattr(value, "shape", None) != ():
            raise ValueError(
                f"The loss must give one number, summed over the points; got {value}. "
                "Add .sum() to it."
            )
        slope = np.asarray(jax.grad(loss)(jnp.asarray(f0), jnp.asarray(y)))
    if not np.isfinite(slope).all():
        raise ValueError("The loss has no finite gradient at the initial function.")
    if not slope.any():
        warnings.warn(
            "The loss has gradient 0 at the initial function, so that training changes nothing.",
            UserWarning,
            stacklevel=4,
        )
