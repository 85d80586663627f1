"""The network that an estimator's options describe."""

from typing import Any

from widelimit._base.scalars import Scalar, as_count, as_scalar, check_scalar
from widelimit.describe import from_text
from widelimit.infinite import PreparedKernel, prepare
from widelimit.layers import Dense, Layer, Phi, Repeat, Residual


def build_network(
    network: Any,
    depth: int,
    activation: Any,
    alpha: Scalar,
    w_std: Scalar,
    b_std: Scalar,
    architecture: str,
) -> Layer:
    """A network as given, or one with a bias in its first layer only.

    Args:
        network: A network, its text, or None for one of the two architectures.
        depth: Hidden layers, or residual blocks.
        activation: A name, an `Activation` or a function.
        alpha: The attenuation of residual branches.
        w_std: Of every layer; of a ResNet's branches and last layer.
        b_std: Of the first layer.
        architecture: "mlp" or "resnet".

    Returns:
        The network.

    Example:
        >>> build_network(None, 3, "relu", 1.0, 1.5, 0.5, "mlp")
        Dense(w_std=1.5, b_std=0.5) >> Phi('relu') >> Repeat(Dense(w_std=1.5) >> Phi('relu'), 2) >> Dense(w_std=1.5)
    """
    if isinstance(network, str):
        return from_text(network)
    if network is not None:
        if not isinstance(network, Layer):
            raise TypeError(
                f"network must be a network, its text or None, got {network!r} "
                f"({type(network).__name__}). Build one with widelimit.mlp(...)."
            )
        return network
    depth, alpha = as_count(depth, "depth"), as_scalar(alpha)
    check_scalar(alpha, "alpha", minimum=None)
    if architecture == "mlp":
        return _mlp(depth, activation, w_std, b_std)
    if architecture == "resnet":
        block = Residual(Dense(w_std=w_std) >> Phi(activation) >> Dense(), alpha=alpha)
        return Dense(b_std=b_std) >> Repeat(block, depth) >> Dense(w_std=w_std)
    raise ValueError(
        f"architecture must be 'mlp' or 'resnet', got {architecture!r}; any other network can be "
        "given as network=."
    )


def network_of(options: Any) -> Layer:
    """The network that an object with these options as attributes describes."""
    names = ("network", "depth", "activation", "alpha", "w_std", "b_std", "architecture")
    return build_network(*(getattr(options, name) for name in names))


def kernel_of(options: Any) -> PreparedKernel:
    """The prepared kernel of that network."""
    if not isinstance(options.kernel, str) or options.kernel not in ("ntk", "nngp"):
        raise ValueError(f"kernel must be 'ntk' or 'nngp', got {options.kernel!r}.")
    return prepare(network_of(options), options.kernel)


def _mlp(depth: int, activation: Any, w_std: Scalar, b_std: Scalar) -> Layer:
    first, dense = Dense(w_std=w_std, b_std=b_std), Dense(w_std=w_std)
    if depth == 0:
        return first
    if depth == 1:
        return first >> Phi(activation) >> dense
    rest = Repeat(dense >> Phi(activation), depth - 1)
    return first >> Phi(activation) >> rest >> dense
