"""Equinox modules whose structure is visible, as descriptions."""

import inspect
import math
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from widelimit._base.names import unknown
from widelimit.layers import (
    AvgPool,
    Conv,
    Dense,
    Dropout,
    Flatten,
    Layer,
    LayerNorm,
    Phi,
    Serial,
)

_FLATTEN = (jnp.ravel, np.ravel)
_NOTHING = inspect.signature(eqx.nn.MLP.__init__).parameters["final_activation"].default


def lift(module: eqx.Module, *, init: str = "default", ntk: bool = True) -> Layer:
    r"""The description of an Equinox module, whose limit is that of the module as it is initialised.

    Equinox draws the weights and biases of `Linear` and `Conv` uniformly from $\pm1/\sqrt n$, n the fan-in: variance
    $1/(3n)$, that is $\sigma_w=1/\sqrt3$ and $\sigma_b=1/\sqrt{3n}$, which vanishes with growing width but for the
    first layer. The NNGP kernel of the description is the covariance of the module's outputs; its tangent kernel
    is that of the module in which each parameter's part is multiplied by its variance at initialisation.

    Args:
        module: An `equinox.nn.MLP`, or a `Sequential`, perhaps nested, of Linear, Conv, `Lambda` with an activation or
            `jnp.ravel`, AvgPool, LayerNorm, Dropout (kept unless it is in inference mode), Identity. Anything else is
            refused by name: what a module computes in its own `__call__` cannot be seen.
        init: "default": Equinox's own, as above; "measured": standard deviations of the weights that the
            module has, for modules that were initialised otherwise.
        ntk: Whether the tangent kernel must be right. With False only the NNGP kernel is, and LayerNorm may
            have trained scales and shifts.

    Returns:
        The network; it reads points (n, d), or images (n, *spatial, channels), channels last.

    Example:
        >>> import jax
        >>> lift(eqx.nn.MLP(2, 1, width_size=64, depth=1, use_bias=False, use_final_bias=False, key=jax.random.key(0)))
        Dense(width=64, w_std=0.5773502691896258) >> Phi('relu') >> Dense(width=1, w_std=0.5773502691896258)
    """
    if init not in ("default", "measured"):
        raise ValueError(unknown("choice of init", init, ("default", "measured")))
    found: list[Layer] = []
    pixels = False
    for part in _parts(module):
        layer = _lifted(part, pixels, init == "measured", ntk)
        pixels = (pixels or isinstance(part, eqx.nn.Conv)) and not isinstance(layer, Flatten)
        found.extend([] if layer is None else [layer])
    return found[0] if len(found) == 1 else Serial(*found)


def _parts(module: Any) -> list[Any]:
    if isinstance(module, eqx.nn.Sequential):
        return [inner for part in module.layers for inner in _parts(part)]
    if isinstance(module, eqx.nn.MLP):
        *hidden, last = module.layers
        act = eqx.nn.Lambda(module.activation)
        inner = [part for layer in hidden for part in (layer, act)]
        final = module.final_activation
        return [*inner, last, *([] if final is _NOTHING else [eqx.nn.Lambda(final)])]
    return [module]


def _scales(part: Any, measured: bool) -> tuple[float, float]:
    fan_in = math.prod(part.weight.shape[1:])
    if measured:
        spread = lambda a: 0.0 if a is None else float(np.sqrt(np.mean(np.square(a, dtype=float))))
        return spread(part.weight) * math.sqrt(fan_in), spread(part.bias)
    return 1 / math.sqrt(3), 0.0 if part.bias is None else 1 / math.sqrt(3 * fan_in)


def _refusal(part: Any, reason: str) -> ValueError:
    return ValueError(f"{type(part).__name__} cannot be lifted: {reason}.")


def _lifted(part: Any, pixels: bool, measured: bool, ntk: bool) -> Layer | None:
    """One of ours, None for what does nothing; refused by name otherwise."""
    if isinstance(part, eqx.nn.Linear):
        if pixels:
            raise _refusal(part, "it meets an image; put Lambda(jnp.ravel) before it")
        return Dense(part.weight.shape[0], *_scales(part, measured))
    if isinstance(part, eqx.nn.Conv) and not isinstance(part, eqx.nn.ConvTranspose):
        return _convolution(part, measured)
    if isinstance(part, eqx.nn.Lambda):
        if part.fn in _FLATTEN:
            return Flatten() if pixels else None
        return Phi(part.fn)
    if isinstance(part, eqx.nn.AvgPool1d | eqx.nn.AvgPool2d | eqx.nn.AvgPool3d):
        if any(map(any, part.padding)) or part.use_ceil:
            raise _refusal(part, "padding and use_ceil of pools have no description here")
        return AvgPool(tuple(part.kernel_size), tuple(part.stride))
    if isinstance(part, eqx.nn.LayerNorm):
        if ntk and (part.use_weight or part.use_bias):
            reason = (
                "its scale and shift are trained and would add to the tangent kernel. Take use_weight=False and "
                "use_bias=False, or lift(module, ntk=False) for the NNGP kernel"
            )
            raise _refusal(part, reason)
        return LayerNorm("all" if pixels else "channels", part.eps)
    if isinstance(part, eqx.nn.Dropout):
        return None if part.inference or part.p == 0 else Dropout(1 - float(part.p))
    if isinstance(part, eqx.nn.Identity):
        return None
    known = "MLP, Linear, Conv, Lambda, AvgPool, LayerNorm, Dropout and Identity, in Sequential"
    raise _refusal(part, f"there are {known}. wl.empirical_ntk reads any module")


def _convolution(part: Any, measured: bool) -> Conv:
    if set(part.dilation) != {1} or part.groups != 1:
        raise _refusal(part, "dilation and groups have no description here")
    sides = part.padding if isinstance(part.padding, str) else tuple(map(tuple, part.padding))
    same = tuple(((k - 1) // 2, k // 2) for k in part.kernel_size)
    if sides == "VALID" or (not isinstance(sides, str) and not any(map(any, sides))):
        padding = "valid"
    elif sides == "SAME" or (sides == same and set(part.stride) == {1}):
        padding = "same"
    else:
        reason = (
            f"padding={sides} with stride={part.stride}: there are no padding, and padding that keeps the size, "
            "with stride 1 or as 'SAME'"
        )
        raise _refusal(part, reason)
    modes = {"ZEROS": padding, "CIRCULAR": "circular"}
    if padding == "same" and part.padding_mode not in modes:
        raise _refusal(part, f"padding_mode={part.padding_mode!r} has no description here")
    if padding == "same":
        padding = modes[part.padding_mode]
    w_std, b_std = _scales(part, measured)
    return Conv(
        tuple(part.kernel_size), part.out_channels, tuple(part.stride), padding, w_std, b_std
    )
