"""Networks for images."""

from typing import Any

from widelimit._base.names import unknown
from widelimit._base.scalars import Scalar, as_count

from ._conv import Conv
from ._layer import Layer, Serial
from ._mixing import LayerNorm
from ._nodes import Dense, Identity, Phi, Repeat, Residual
from ._pool import AvgPool, Flatten, GlobalAvgPool
from ._windows import Extent


def cnn(
    depth: int,
    window: Extent = 3,
    activation: Any = "relu",
    readout: str = "flatten",
    padding: str = "same",
    w_std: Scalar = 2**0.5,
    b_std: Scalar = 0.0,
) -> Layer:
    r"""Convolutions with activations, then a read-out.

    Args:
        depth: The number of convolutions.
        window: Their window.
        activation: A name, an `Activation` or a function.
        readout: "flatten", or "pool" for the average over all pixels.
        padding: "same", "valid" or "circular".
        w_std: $\sigma_w$ of the convolutions; the last `Dense` has 1.
        b_std: $\sigma_b$ of all layers.

    Returns:
        A network on inputs of shape (n, *spatial, channels).

    Example:
        >>> cnn(depth=2, readout="pool", w_std=1.5)
        Repeat(Conv(3, w_std=1.5) >> Phi('relu'), 2) >> GlobalAvgPool() >> Dense()

    Reference:
        Novak et al. (2019); Arora et al. (2019), On exact computation with an infinitely wide neural net.
    """
    if readout not in ("flatten", "pool"):
        raise ValueError(unknown("readout", readout, ("flatten", "pool")))
    body = Conv(window, padding=padding, w_std=w_std, b_std=b_std) >> Phi(activation)
    last = Flatten() if readout == "flatten" else GlobalAvgPool()
    return Repeat(body, as_count(depth, "depth")) >> last >> Dense(b_std=b_std)


_MYRTLE = {5: (2, 1, 1), 7: (2, 2, 2), 10: (3, 3, 3)}


def myrtle(depth: int) -> Layer:
    r"""The Myrtle networks for images of 32 x 32 pixels: convolutions, pools, no bias, $\sigma_w=\sqrt2$.

    Args:
        depth: 5, 7 or 10.

    Returns:
        Blocks of `Conv(3) >> Phi("relu")` with `AvgPool(2)` behind each of three stages, two further
        `AvgPool(2)`, `Flatten` and `Dense`.

    Example:
        >>> len([layer for layer in myrtle(5).layers if isinstance(layer, AvgPool)])
        5

    Reference:
        Shankar et al. (2020), Neural kernels without tangents.
    """
    if depth not in _MYRTLE:
        raise ValueError(f"Myrtle networks have the depth 5, 7 or 10, got {depth!r}.")
    gain = 2**0.5
    block = Conv(3, w_std=gain) >> Phi("relu")
    layers: list[Layer] = []
    for count in _MYRTLE[depth]:
        layers += [block] * count + [AvgPool(2)]
    return Serial(*layers, AvgPool(2), AvgPool(2), Flatten(), Dense(w_std=gain))


def wide_resnet(
    blocks: int = 4,
    stages: int = 3,
    activation: Any = "relu",
    normalise: bool = False,
    w_std: Scalar = 2**0.5,
    b_std: Scalar = 0.0,
) -> Layer:
    r"""The wide residual network of Zagoruyko and Komodakis (2016) with pre-activations.

    A first `Conv(3)`; stages of residual blocks `Phi >> Conv(3) >> Phi >> Conv(3)`, the first block of each
    later stage with stride 2 and a projection `Phi >> Conv(3, stride=2)` for its skip path; the average over all
    pixels; `Dense`.

    Args:
        blocks: Residual blocks in each stage.
        stages: The number of stages; the image shrinks by 2 between them.
        activation: A name, an `Activation` or a function.
        normalise: Whether a `LayerNorm` stands before each activation.
        w_std: $\sigma_w$ of the convolutions.
        b_std: $\sigma_b$ of the convolutions.

    Returns:
        A network on images.

    Example:
        >>> wide_resnet(blocks=1, stages=1, w_std=1.0)
        Conv(3) >> Residual(Phi('relu') >> Conv(3) >> Phi('relu') >> Conv(3)) >> GlobalAvgPool() >> Dense()
    """
    count = as_count(blocks, "blocks", minimum=1)
    norm: Layer = LayerNorm() if normalise else Identity()
    phi = Serial(*([norm] if normalise else []), Phi(activation))
    conv = lambda stride: Conv(3, stride=stride, w_std=w_std, b_std=b_std)
    block = Residual(phi >> conv(1) >> phi >> conv(1))
    layers: list[Layer] = [conv(1)]
    for stage in range(as_count(stages, "stages", minimum=1)):
        if stage:
            body = phi >> conv(2) >> phi >> conv(1)
            layers.append(body + (phi >> conv(2)))
        same = count - (stage > 0)
        layers += [block] if same == 1 else [Repeat(block, same)] if same else []
    return Serial(*layers, GlobalAvgPool(), Dense())
