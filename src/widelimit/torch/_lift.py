"""PyTorch's sequences of layers as descriptions, with the scales of their initialisation."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from widelimit._base.names import unknown
from widelimit.layers import (
    AvgPool,
    Conv,
    Dense,
    Dropout,
    Flatten,
    GlobalAvgPool,
    Layer,
    LayerNorm,
    Phi,
    Serial,
)

Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
_POOLS = (nn.AvgPool1d, nn.AvgPool2d, nn.AvgPool3d)
_GLOBAL = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)
_DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)

_ACTIVATIONS: dict[type[nn.Module], Callable[..., str | None]] = {
    nn.ReLU: lambda _: "relu",
    nn.LeakyReLU: lambda m: f"leaky_relu({m.negative_slope!r})",
    nn.Tanh: lambda _: "tanh",
    nn.Sigmoid: lambda _: "sigmoid",
    nn.SiLU: lambda _: "silu",
    nn.Mish: lambda _: "mish",
    nn.GELU: lambda m: "gelu" if m.approximate == "none" else None,
    nn.ELU: lambda m: "elu" if m.alpha == 1 else None,
    nn.Softplus: lambda m: "softplus" if m.beta == 1 else None,
}


class _Setting(NamedTuple):
    measured: bool
    ntk: bool


def lift(module: nn.Module, *, init: str = "default", ntk: bool = True) -> Layer:
    r"""The description of an `nn.Sequential`, whose limit is that of the module as it is initialised.

    PyTorch draws the weights of `Linear` and `Conv` uniformly from $\pm1/\sqrt{n}$, n the fan-in (for a convolution
    with the pixels of its window), and biases likewise. That is variance $1/(3n)$: $\sigma_w=1/\sqrt3$, and
    $\sigma_b=1/\sqrt{3n}$, which vanishes with growing width but for the first layer. The NNGP kernel of the
    description is the covariance of the module's outputs. Its tangent kernel is that of the module in which each
    parameter's part is multiplied by its variance at initialisation, which is what remains finite with growing width:
    `empirical_ntk(module, x, weights=initial_variances(module))`. Gradient descent on the module itself is, in NTK
    parameterisation, descent with the learning rates $\eta/\mathrm{variance}$.

    Args:
        module: An `nn.Sequential`, perhaps nested, of Linear, convolutions, activations, Flatten, average pools,
            LayerNorm, Dropout (kept in training mode, left out in `eval()` mode), Identity. Anything else is refused by
            name: what a module computes in its own `forward` cannot be seen.
        init: "default": PyTorch's own, as above; "measured": standard deviations of the weights that the module
            has, for modules that were initialised otherwise.
        ntk: Whether the tangent kernel must be right. With False only the NNGP kernel is, and LayerNorm may
            have trained scales and shifts.

    Returns:
        The network; it reads points (n, d), or images (n, *spatial, channels), channels last.

    Example:
        >>> lift(nn.Sequential(nn.Linear(3, 64, bias=False), nn.ReLU(), nn.Linear(64, 1, bias=False)))
        Dense(width=64, w_std=0.5773502691896258) >> Phi('relu') >> Dense(width=1, w_std=0.5773502691896258)
    """
    if init not in ("default", "measured"):
        raise ValueError(unknown("choice of init", init, ("default", "measured")))
    found: list[Layer] = []
    seen: set[int] = set()
    pixels = False
    for name, part in _parts(module, ""):
        if id(part) in seen and next(part.parameters(), None) is not None:
            raise ValueError(
                f"{_called(name, part)} occurs twice with the same weights; layers that share weights have another "
                "limit. Make one for each place."
            )
        seen.add(id(part))
        layer = _lifted(name, part, pixels, _Setting(init == "measured", ntk))
        pixels = (pixels or isinstance(part, _CONVOLUTIONS)) and not isinstance(
            layer, Flatten | GlobalAvgPool
        )
        found.extend([] if layer is None else [layer])
    return found[0] if len(found) == 1 else Serial(*found)


def initial_variances(module: nn.Module, *, init: str = "default") -> dict[str, float]:
    r"""The variance of each weight and bias of a module that `lift` knows, at initialisation.

    Args:
        module: As for `lift`.
        init: As for `lift`.

    Returns:
        A number for each parameter's name: $1/(3\,\mathrm{fan\,in})$, or what is measured.

    Example:
        >>> round(initial_variances(nn.Sequential(nn.Linear(4, 2)))["0.weight"] * 12, 9)
        1.0
    """
    variances: dict[str, float] = {}
    for name, part in _parts(module, ""):
        if isinstance(part, nn.Linear | Convolution):
            prefix = f"{name}." if name else ""
            w, b = _scales(part, init == "measured")
            variances[f"{prefix}weight"] = w**2 / _fan_in(part)
            if part.bias is not None:
                variances[f"{prefix}bias"] = b**2
    return variances


def _parts(module: nn.Module, name: str) -> list[tuple[str, nn.Module]]:
    if not isinstance(module, nn.Sequential):
        return [(name, module)]
    return [
        pair
        for inner, part in zip(
            module._modules, module, strict=True
        )  # named_children drops repetitions
        for pair in _parts(part, f"{name}.{inner}" if name else inner)
    ]


def _called(name: str, part: nn.Module) -> str:
    return f"{type(part).__name__} {name!r}" if name else type(part).__name__


def _fan_in(part: nn.Linear | Convolution) -> int:
    return math.prod(part.weight.shape[1:])


def _spread(values: Tensor | None) -> float:
    return 0.0 if values is None else float(values.detach().double().square().mean().sqrt())


def _scales(part: nn.Linear | Convolution, measured: bool) -> tuple[float, float]:
    fan_in = _fan_in(part)
    if measured:
        return _spread(part.weight) * math.sqrt(fan_in), _spread(part.bias)
    return 1 / math.sqrt(3), 0.0 if part.bias is None else 1 / math.sqrt(3 * fan_in)


def _lifted(name: str, part: nn.Module, pixels: bool, setting: _Setting) -> Layer | None:
    """One of ours, None for what does nothing; refused by name otherwise."""
    if isinstance(part, nn.Linear):
        if pixels:
            raise _refusal(
                name, part, "it reads the last axis of images; put nn.Flatten() before it"
            )
        return Dense(part.out_features, *_scales(part, setting.measured))
    if isinstance(part, _CONVOLUTIONS):
        return _convolution(name, part, setting.measured)
    if type(part) in _ACTIVATIONS:
        spelling = _ACTIVATIONS[type(part)](part)
        if spelling is None:
            raise _refusal(name, part, f"{part} is known with its default numbers only")
        return Phi(spelling)
    if isinstance(part, nn.Flatten):
        if part.start_dim != 1 or part.end_dim != -1:
            raise _refusal(name, part, "it must flatten all axes but the first")
        return Flatten() if pixels else None
    if isinstance(part, _POOLS):
        return _pool(name, part)
    if isinstance(part, _GLOBAL):
        sizes = part.output_size
        if set(sizes if isinstance(sizes, tuple | list) else [sizes]) != {1}:
            raise _refusal(name, part, "only pools to a single pixel are known; use AvgPool")
        return GlobalAvgPool()
    if isinstance(part, nn.LayerNorm):
        return _norm(name, part, pixels, setting.ntk)
    if isinstance(part, _DROPOUTS):
        return Dropout(1 - part.p) if part.training and part.p > 0 else None
    if isinstance(part, nn.Identity):
        return None
    known = (
        "Linear, Conv1d to 3d, AvgPool, AdaptiveAvgPool(1), Flatten, LayerNorm, Dropout, Identity"
    )
    acts = ", ".join(sorted(kind.__name__ for kind in _ACTIVATIONS))
    raise _refusal(name, part, f"there are {known}, and {acts}, in nn.Sequential")


def _refusal(name: str, part: nn.Module, reason: str) -> ValueError:
    return ValueError(f"{_called(name, part)} cannot be lifted: {reason}.")


def _convolution(name: str, part: Convolution, measured: bool) -> Conv:
    if set(part.dilation) != {1} or part.groups != 1:
        raise _refusal(name, part, "dilation and groups have no description here")
    same = tuple((size - 1) / 2 for size in part.kernel_size)
    if part.padding == "valid" or part.padding == (0,) * len(same):
        padding = "valid"
    elif (part.padding == "same" or part.padding == same) and set(part.stride) == {1}:
        padding = "same"
    else:
        reason = (
            f"padding={part.padding} with stride={part.stride}: there are no padding, and padding that keeps the size, "
            "with stride 1 (an odd window and padding=(window - 1) / 2, or 'same')"
        )
        raise _refusal(name, part, reason)
    if padding == "same" and part.padding_mode != "zeros":
        if part.padding_mode != "circular":
            raise _refusal(
                name, part, f"padding_mode={part.padding_mode!r} has no description here"
            )
        padding = "circular"
    w_std, b_std = _scales(part, measured)
    return Conv(part.kernel_size, part.out_channels, part.stride, padding, w_std, b_std)


def _pool(name: str, part: nn.Module) -> AvgPool:
    size, stride, padding = part.kernel_size, part.stride, part.padding
    whole = lambda value: tuple(value) if isinstance(value, tuple | list) else (value,)
    if set(whole(padding)) != {0} or part.ceil_mode:
        raise _refusal(name, part, "padding and ceil_mode of pools have no description here")
    if getattr(part, "divisor_override", None):
        raise _refusal(name, part, "divisor_override has no description here")
    plain = lambda value: value if isinstance(value, int) else whole(value)
    return AvgPool(plain(size), plain(stride))


def _norm(name: str, part: nn.LayerNorm, pixels: bool, ntk: bool) -> LayerNorm:
    if part.elementwise_affine and ntk:
        reason = (
            "its scale and shift are trained and would add to the tangent kernel. Take elementwise_affine=False, or "
            "lift(module, ntk=False) for the NNGP kernel"
        )
        raise _refusal(name, part, reason)
    if pixels and len(part.normalized_shape) < 2:
        raise _refusal(name, part, "on images it must run over channels and pixels, (c, h, w)")
    return LayerNorm("all" if pixels else "channels", part.eps)


def channels_last(x: Tensor) -> Tensor:
    """Images (n, channels, *spatial) as (n, *spatial, channels); points stay."""
    return x if x.ndim < 3 else torch.movedim(x, 1, -1)
