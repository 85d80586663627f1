r"""What each layer does, written once.

Every line below holds for kernels, variances, expansions, exact digits, parities, shapes, LaTeX and the
checks at once; which of them is computed is decided by the state that flows.
"""

from collections.abc import Iterable
from typing import TypeVar

from widelimit._base.passes import layer_pass, once_for_each_network
from widelimit._base.scalars import Scalar
from widelimit.layers import (
    Dense,
    Frozen,
    Identity,
    Layer,
    LinearMap,
    Phi,
    Repeat,
    Residual,
    Scale,
    Serial,
    Sum,
)

from ._delegated import Untrained
from ._facts import Facts
from ._state import State, is_one

S = TypeVar("S", bound=State)


def interpret(layer: Layer, state: S) -> S:
    """The signal behind a layer, from the signal before it.

    Args:
        layer: A layer or a whole network.
        state: The signal; its type decides what is computed.

    Returns:
        A state of the same type.
    """
    return state.visited(layer, propagate)


@layer_pass("what it does to a signal is written")
def propagate(layer: Layer, state: State):
    """The rule of one layer, by the operations of a state (`interpret` runs it)."""


@propagate.register
def propagate_dense(layer: Dense, state: S) -> S:
    r"""$z=\sigma_wWx/\sqrt n+\sigma_bb$, trained."""
    return state.weighted(layer.width).scaled(layer.w_std).biased(layer.b_std).trained()


@propagate.register
def propagate_phi(layer: Phi, state: S) -> S:
    r"""$\varphi(z)$."""
    return state.activated(layer.activation)


@propagate.register
def propagate_scale(layer: Scale, state: S) -> S:
    """$cx$."""
    return state.scaled(layer.factor)


@propagate.register
def propagate_identity(layer: Identity, state: S) -> S:
    """$x$."""
    return state


@propagate.register
def propagate_serial(layer: Serial, state: S) -> S:
    """One after another."""
    for part in layer.layers:
        state = interpret(part, state)
    return state


@propagate.register
def propagate_repeat(layer: Repeat, state: S) -> S:
    """The body as often as stated; the state decides how to loop."""
    return state.repeated(lambda s: interpret(layer.body, s), layer.times)


@propagate.register
def propagate_residual(layer: Residual, state: S) -> S:
    r"""$x+\alpha\,\mathrm{body}(x)$."""
    return join(state, 1.0, [(layer.body, layer.alpha)])


@propagate.register
def propagate_sum(layer: Sum, state: S) -> S:
    """Parallel branches, added."""
    return join(state, None, [(branch, 1.0) for branch in layer.branches])


@propagate.register
def propagate_frozen(layer: Frozen, state: S) -> S:
    """The body, its weights as they are drawn."""
    return interpret(layer.body, Untrained(state)).state


def join(state: S, skip: Scalar | None, branches: Iterable[tuple[Layer, Scalar]]) -> S:
    """Skip · x + Σ factor · branch(x), for branches that all see the signal x.

    Branches without weights are linear maps of the same random variable, not independent ones: they are
    added up first (x + x is 2x, of four times the variance, not twice).
    """
    parts = []
    linear = None if skip is None else LinearMap(((skip, ()),))
    for branch, factor in branches:
        out = interpret(branch, state.branched())
        found = facts(branch).linear
        if found is None:
            parts.append(out if is_one(factor) else out.scaled(factor))
        else:
            multiple = found if is_one(factor) else found.times(factor)
            linear = multiple if linear is None else linear.plus(multiple)
    if linear is None or linear.factor is not None:
        return state.joined(None if linear is None else linear.factor, parts)
    return state.mapped(linear).joined(1.0, parts)


@once_for_each_network
def facts(layer: Layer) -> Facts:
    """What is true of a layer or network.

    Args:
        layer: The layer.

    Returns:
        Its facts.

    Example:
        >>> from widelimit import Dense, Phi, Residual, Scale
        >>> found = facts(Dense() >> Phi("relu") >> Dense())
        >>> found.fresh, found.degree, found.factor
        (True, 1.0, None)
        >>> facts(Residual(Scale(3.0), alpha=0.5)).factor
        2.5
    """
    return interpret(layer, Facts())
