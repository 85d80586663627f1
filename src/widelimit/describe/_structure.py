"""Passes that ask what kind of random function a layer is."""

from typing import Any

from widelimit._base.passes import layer_pass
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum


@layer_pass("one decides whether it multiplies by a number")
def linear_factor(layer: Layer) -> Any:
    """The number by which the layer multiplies its input, or None if it does anything else."""


@linear_factor.register
def _factor_identity(layer: Identity) -> Any:
    return 1.0


@linear_factor.register
def _factor_scale(layer: Scale) -> Any:
    return layer.factor


@linear_factor.register(Dense)
@linear_factor.register(Phi)
def _factor_none(layer: Layer) -> Any:
    return None


@linear_factor.register
def _factor_serial(layer: Serial) -> Any:
    total: Any = 1.0
    for part in layer.layers:
        factor = linear_factor(part)
        if factor is None:
            return None
        total = total * factor
    return total


@linear_factor.register
def _factor_repeat(layer: Repeat) -> Any:
    if layer.times == 0:
        return 1.0
    factor = linear_factor(layer.body)
    return None if factor is None else factor**layer.times


@linear_factor.register
def _factor_residual(layer: Residual) -> Any:
    factor = linear_factor(layer.body)
    return None if factor is None else 1.0 + layer.alpha * factor


@linear_factor.register
def _factor_sum(layer: Sum) -> Any:
    factors = [linear_factor(branch) for branch in layer.branches]
    return None if any(f is None for f in factors) else sum(factors)


@layer_pass("one decides whether its output is fresh")
def is_fresh(layer: Layer) -> Any:
    """Whether the output, given the input, has mean zero and weights that no other path shares."""


@is_fresh.register
def _fresh_dense(layer: Dense) -> bool:
    return True


@is_fresh.register(Phi)
@is_fresh.register(Identity)
@is_fresh.register(Scale)
@is_fresh.register(Residual)
def _fresh_never(layer: Layer) -> bool:
    return False


@is_fresh.register
def _fresh_serial(layer: Serial) -> bool:
    for part in reversed(layer.layers):
        if linear_factor(part) is None:
            return is_fresh(part)
    return False


@is_fresh.register
def _fresh_repeat(layer: Repeat) -> bool:
    return layer.times > 0 and is_fresh(layer.body)


@is_fresh.register
def _fresh_sum(layer: Sum) -> bool:
    return all(map(is_fresh, layer.branches))


@layer_pass("its activations are listed")
def activations_of(layer: Layer) -> Any:
    """The activations inside a layer, in order, repeated ones once."""


@activations_of.register(Dense)
@activations_of.register(Identity)
@activations_of.register(Scale)
def _activations_none(layer: Layer) -> tuple[Any, ...]:
    return ()


@activations_of.register
def _activations_phi(layer: Phi) -> tuple[Any, ...]:
    return (layer.activation,)


@activations_of.register(Residual)
@activations_of.register(Repeat)
def _activations_body(layer: Any) -> tuple[Any, ...]:
    return activations_of(layer.body)


@activations_of.register
def _activations_serial(layer: Serial) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(a for part in layer.layers for a in activations_of(part)))


@activations_of.register
def _activations_sum(layer: Sum) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(a for part in layer.branches for a in activations_of(part)))
