"""Is the network's kernel, normalised, a function of the angle for inputs of any norm?"""

from typing import Any

from widelimit._base.passes import layer_pass
from widelimit.layers import Dense, Identity, Layer, Phi, Repeat, Residual, Scale, Serial, Sum


@layer_pass("its degree of homogeneity is found")
def homogeneity(layer: Layer) -> Any:
    """The degree D with f(cx) = c^D f(x) in law for c > 0, or None."""


@homogeneity.register
def _degree_dense(layer: Dense) -> float | None:
    return 1.0 if isinstance(layer.b_std, float) and layer.b_std == 0 else None


@homogeneity.register
def _degree_phi(layer: Phi) -> float | None:
    return layer.activation.degree


@homogeneity.register(Identity)
@homogeneity.register(Scale)
def _degree_linear(layer: Layer) -> float | None:
    return 1.0


@homogeneity.register
def _degree_serial(layer: Serial) -> float | None:
    total = 1.0
    for part in layer.layers:
        degree = homogeneity(part)
        if degree is None:
            return None
        total *= degree
    return total


@homogeneity.register
def _degree_repeat(layer: Repeat) -> float | None:
    degree = homogeneity(layer.body)
    return degree if degree is None else degree**layer.times


@homogeneity.register
def _degree_residual(layer: Residual) -> float | None:
    return _common((Identity(), layer.body))


@homogeneity.register
def _degree_sum(layer: Sum) -> float | None:
    return _common(layer.branches)


def _common(branches: tuple[Layer, ...]) -> float | None:
    degrees = {homogeneity(branch) for branch in branches}
    return degrees.pop() if len(degrees) == 1 else None
