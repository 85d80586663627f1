"""Widths and parameter counts of the finite network."""

from typing import NamedTuple

from widelimit._base.scalars import as_count
from widelimit.layers import Layer

from ._check import check
from ._widths import infer


class Shape(NamedTuple):
    """The size of a finite network.

    Attributes:
        widths: The number of outputs of each `Dense`, in order, repetitions written out.
        num_params: How many trainable numbers there are.
    """

    widths: tuple[int, ...]
    num_params: int


def shape(net: Layer, input_dim: int | tuple[int, ...], width: int, output_dim: int = 1) -> Shape:
    r"""Widths and parameter count of the network at finite width.

    Args:
        net: The network.
        input_dim: d; for inputs with pixels their shape (*spatial, channels).
        width: The width of every hidden `Dense` that states none and is not added to anything that does.
        output_dim: k, the width of the last `Dense`.

    Returns:
        The widths of all `Dense` layers and the number of parameters.

    Example:
        >>> import widelimit as wl
        >>> shape(wl.resnet(depth=5), input_dim=2, width=100).num_params  # n + 2 L n^2 + n d
        100300
        >>> shape(wl.cnn(depth=2), input_dim=(8, 8, 3), width=10).num_params  # 9 (3 + 10) n + 64 n
        1810
    """
    check(net)
    given = input_dim if isinstance(input_dim, tuple | list) else (input_dim,)
    *sites, channels = (as_count(n, "input_dim", minimum=1) for n in given)
    found = infer(
        net,
        channels,
        as_count(width, "width", minimum=1),
        as_count(output_dim, "output_dim", minimum=1),
        tuple(sites),
    )
    return Shape(found.widths, sum(w.size for w in found.weights if w.trained))
