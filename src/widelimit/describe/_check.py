"""Refuse, before any work, a network whose limit is not known."""

import enum
from typing import Any

from widelimit._base.passes import layer_pass
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum

from ._structure import activations_of, is_fresh, linear_factor


class Signal(enum.Enum):
    """What is known of the distribution of a layer's output at infinite width."""

    DATA = "the data"
    GAUSSIAN = "Gaussian pre-activations"
    FEATURES = "activations, which are not Gaussian"


@layer_pass("its limit is checked")
def signal(layer: Layer, incoming: Signal, width: int | None) -> Any:
    """The kind and (if stated) the width of the output, or an error where no limit is known."""


@signal.register
def _signal_dense(layer: Dense, incoming: Signal, width: int | None) -> Any:
    return Signal.GAUSSIAN, layer.width


@signal.register
def _signal_phi(layer: Phi, incoming: Signal, width: int | None) -> Any:
    if incoming is Signal.DATA:
        raise ValueError(
            f"{layer} is applied to the data itself. An activation's limit is known for Gaussian "
            "pre-activations only: put a Dense() before it, or transform the data yourself."
        )
    if incoming is Signal.FEATURES:
        raise ValueError(
            f"{layer} is applied to {incoming.value}. Put a Dense() between two activations, or "
            "compose them into one function and pass that to Phi."
        )
    return Signal.FEATURES, width


@signal.register(Identity)
@signal.register(Scale)
def _signal_linear(layer: Layer, incoming: Signal, width: int | None) -> Any:
    return incoming, width


@signal.register
def _signal_serial(layer: Serial, incoming: Signal, width: int | None) -> Any:
    for part in layer.layers:
        incoming, width = signal(part, incoming, width)
    return incoming, width


@signal.register
def _signal_repeat(layer: Repeat, incoming: Signal, width: int | None) -> Any:
    for _ in range(min(layer.times, 3)):  # kinds and widths are settled after two rounds
        incoming, width = signal(layer.body, incoming, width)
    return incoming, width


@signal.register
def _signal_residual(layer: Residual, incoming: Signal, width: int | None) -> Any:
    return _join((Identity(), layer.body), incoming, width, layer)


@signal.register
def _signal_sum(layer: Sum, incoming: Signal, width: int | None) -> Any:
    return _join(layer.branches, incoming, width, layer)


def _join(branches: tuple[Layer, ...], incoming: Signal, width: int | None, layer: Layer) -> Any:
    skips = [b for b in branches if linear_factor(b) is not None]
    others = [b for b in branches if linear_factor(b) is None]
    stale = [b for b in others if not is_fresh(b)]
    if len(stale) + bool(skips) > 1:
        raise ValueError(
            f"In {layer}, the branch {stale[0]} is correlated with another path: given the input its "
            "mean is not zero (it does not end in a Dense of its own), so E[x · branch(x)] does not "
            "vanish and kernels do not add. End the branch with a Dense()."
        )
    if skips and incoming is Signal.DATA and others:
        raise ValueError(
            f"In {layer}, the skip path carries the data, whose dimension is not the width of the "
            "branch. Put a Dense() before the skip."
        )
    outcomes = [signal(b, incoming, width) for b in branches]
    widths = {w for _, w in outcomes if w is not None}
    if len(widths) > 1:
        raise ValueError(
            f"The branches of {layer} have widths {sorted(widths)}; they are added, so they must be "
            "equal. Give the last Dense of each branch the width of the skip path."
        )
    kinds = {kind for kind, _ in outcomes}
    kind = kinds.pop() if len(kinds) == 1 else Signal.FEATURES
    return kind, widths.pop() if widths else None


def check(net: Layer, *, ntk: bool = False) -> None:
    """Raise a `ValueError` that says why, if the network's infinite-width limit is not known.

    Args:
        net: The network.
        ntk: Whether the tangent kernel is wanted as well.

    Example:
        >>> from widelimit import Dense, Phi, Residual
        >>> check(Dense() >> Residual(Dense() >> Phi("relu")) >> Dense())
        Traceback (most recent call last):
        ...
        ValueError: In Residual(Dense() >> Phi('relu')), the branch Dense() >> Phi('relu') is ...
    """
    if not isinstance(net, Layer):
        raise TypeError(
            f"A network was expected, got {net!r} ({type(net).__name__}). Build one with "
            "widelimit.mlp(...), widelimit.resnet(...) or layers joined by >>."
        )
    signal(net, Signal.DATA, None)
    if ntk:
        for activation in activations_of(net):
            if not activation.has_ntk:
                raise ValueError(
                    f"The tangent kernel of a network with {activation.name!r} does not exist: its "
                    "derivative is not a function (gradients vanish almost everywhere). Its NNGP "
                    "kernel does; for a tangent kernel use 'erf' or 'relu'."
                )
