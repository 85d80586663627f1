"""The layers of `stax` in widelimit's words: weights and pixels."""

from collections.abc import Callable, Sequence
from typing import Any

from widelimit.layers import Aggregate as _Aggregate
from widelimit.layers import AvgPool as _AvgPool
from widelimit.layers import Conv as _Conv
from widelimit.layers import ConvLocal as _ConvLocal
from widelimit.layers import ConvTranspose as _ConvTranspose
from widelimit.layers import Dense as _Dense
from widelimit.layers import Dropout as _Dropout
from widelimit.layers import Flatten as _Flatten
from widelimit.layers import GlobalAvgPool as _GlobalAvgPool
from widelimit.layers import GlobalSumPool as _GlobalSumPool
from widelimit.layers import Identity as _Identity
from widelimit.layers import Layer, Resize
from widelimit.layers import LayerNorm as _LayerNorm
from widelimit.layers import SumPool as _SumPool

from ._axes import AggregateImplementation, Padding, default_axes, plain
from ._triple import Triple, spelt
from ._words import Standard

Sizes = Sequence[int]


def _weights(layer: Layer, parameterization: str, s: tuple[int, int]) -> Triple:
    if parameterization not in ("ntk", "standard"):
        raise ValueError(f"parameterization is 'ntk' or 'standard', got {parameterization!r}.")
    if parameterization == "ntk":
        return spelt(layer)
    if tuple(s) != (1, 1):
        raise NotImplementedError(
            f"s={s}: the scales of the improved standard parameterisation change the tangent kernel by the "
            "stated widths. Leave s out; for learning rates of single layers see wl.Frozen and w_std."
        )
    return spelt(Standard(layer))


def Dense(
    out_dim: int,
    W_std: float = 1.0,
    b_std: float | None = None,
    batch_axis: int = 0,
    channel_axis: int = -1,
    parameterization: str = "ntk",
    s: tuple[int, int] = (1, 1),
) -> Triple:
    """`wl.Dense(out_dim, w_std, b_std)`."""
    default_axes(batch_axis, channel_axis, "Dense")
    return _weights(_Dense(out_dim, W_std, b_std or 0.0), parameterization, s)


def _convolution(kind: Callable[..., Layer]) -> Callable[..., Triple]:
    def convolution(
        out_chan: int,
        filter_shape: Sizes,
        strides: Sizes | None = None,
        padding: str | Padding = "VALID",
        W_std: float = 1.0,
        b_std: float | None = None,
        dimension_numbers: tuple[str, str, str] | None = None,
        parameterization: str = "ntk",
        s: tuple[int, int] = (1, 1),
    ) -> Triple:
        if dimension_numbers is not None and not (
            dimension_numbers[0].startswith("N") and dimension_numbers[0].endswith("C")
        ):
            raise NotImplementedError(
                f"dimension_numbers={dimension_numbers}: channels come last here, as in 'NHWC'. Move the axes of "
                "the data with numpy.moveaxis and leave the argument out."
            )
        stride = tuple(strides) if strides is not None else 1
        layer = kind(
            tuple(filter_shape), out_chan, stride, plain(padding).lower(), W_std, b_std or 0.0
        )
        return _weights(layer, parameterization, s)

    convolution.__name__ = convolution.__qualname__ = kind.__name__
    convolution.__doc__ = (
        f"""`wl.{kind.__name__}(filter_shape, out_chan, stride, padding, w_std, b_std)`."""
    )
    return convolution


Conv = _convolution(_Conv)
ConvLocal = _convolution(_ConvLocal)
ConvTranspose = _convolution(_ConvTranspose)


def _window(strides: Sizes | None) -> Any:
    return 1 if strides is None else tuple(strides)


def AvgPool(
    window_shape: Sizes,
    strides: Sizes | None = None,
    padding: str | Padding = "VALID",
    normalize_edges: bool = False,
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Triple:
    """`wl.AvgPool`, which without strides moves by its size; this one moves by 1."""
    default_axes(batch_axis, channel_axis, "AvgPool")
    kind = plain(padding).lower()
    return spelt(_AvgPool(tuple(window_shape), _window(strides), kind, normalize_edges))


def SumPool(
    window_shape: Sizes,
    strides: Sizes | None = None,
    padding: str | Padding = "VALID",
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Triple:
    """`wl.SumPool`, which without strides moves by its size; this one moves by 1."""
    default_axes(batch_axis, channel_axis, "SumPool")
    return spelt(_SumPool(tuple(window_shape), _window(strides), plain(padding).lower()))


def GlobalAvgPool(batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """`wl.GlobalAvgPool()`."""
    default_axes(batch_axis, channel_axis, "GlobalAvgPool")
    return spelt(_GlobalAvgPool())


def GlobalSumPool(batch_axis: int = 0, channel_axis: int = -1) -> Triple:
    """`wl.GlobalSumPool()`."""
    default_axes(batch_axis, channel_axis, "GlobalSumPool")
    return spelt(_GlobalSumPool())


def Flatten(batch_axis: int = 0, batch_axis_out: int = 0) -> Triple:
    """`wl.Flatten()`."""
    default_axes(batch_axis or batch_axis_out, -1, "Flatten")
    return spelt(_Flatten())


def Identity() -> Triple:
    """`wl.Identity()`."""
    return spelt(_Identity())


def LayerNorm(
    axis: int | Sizes = -1, eps: float = 1e-12, batch_axis: int = 0, channel_axis: int = -1
) -> Triple:
    """`wl.LayerNorm(over, eps)`; axes are the channels, or all but the points'."""
    default_axes(batch_axis, channel_axis, "LayerNorm")
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if axes not in ((-1,), (1, 2, 3), (1, 2, -1)):
        raise NotImplementedError(
            f"LayerNorm(axis={axis}): it runs over the channels (axis=-1), or over channels and all pixels of an image "
            "(axis=(1, 2, 3)); without the channels the limit is not known. For sequences write "
            "widelimit.LayerNorm('all')."
        )
    return spelt(_LayerNorm("channels" if len(axes) == 1 else "all", eps))


def Dropout(rate: float, mode: str = "train") -> Triple:
    """`wl.Dropout(keep=rate)`; rate is the probability of being kept, as in neural-tangents."""
    return spelt(_Identity() if mode == "test" else _Dropout(rate))


def ImageResize(
    shape: Sizes,
    method: Any,
    antialias: bool = True,
    precision: Any = None,
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Triple:
    """`wl.Resize(shape[1:-1], method)`."""
    default_axes(batch_axis, channel_axis, "ImageResize")
    name = str(getattr(method, "name", method)).lower()
    name = "linear" if name in ("linear", "bilinear", "trilinear", "triangle") else name
    sites = tuple(shape)[1:-1]
    if -1 in sites or not antialias:
        raise NotImplementedError(
            f"ImageResize(shape={tuple(shape)}, antialias={antialias}): give all sizes of pixels, and "
            "antialias=True, as jax.image.resize does by default."
        )
    return spelt(Resize(sites, name))


def Aggregate(
    aggregate_axis: int | Sizes | None = None,
    batch_axis: int = 0,
    channel_axis: int = -1,
    to_dense: Callable[[Any], Any] | None = None,
    implementation: str | AggregateImplementation = "DENSE",
) -> Triple:
    """`wl.Aggregate()`; graphs come as `pattern=`, dense, with the inputs."""
    default_axes(batch_axis, channel_axis, "Aggregate")
    if aggregate_axis not in (None, 1, (1,)) or to_dense or plain(implementation) != "DENSE":
        raise NotImplementedError(
            "Aggregate reads dense adjacency matrices of shape (points, nodes, nodes) over axis 1. Make the pattern "
            "dense before, and leave the arguments out."
        )
    return spelt(_Aggregate())
