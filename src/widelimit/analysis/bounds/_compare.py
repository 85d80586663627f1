"""Which of two networks has the smaller Jacobian bound, and from which attenuation on."""

import math
from typing import Any

from widelimit._base.scalars import as_count
from widelimit.activations import get as get_activation
from widelimit.layers import Layer

from ._jacobian import jacobian, lipschitz


def ratio(net: Layer, reference: Layer, *, width: int, input_dim: int) -> float:
    r"""The bound of one network over that of another: below 1 the first is promised to be smoother.

    ResNet over MLP: $(1+9\alpha C\sigma_v\sigma_w)^L/(3^{L-1}(C\sigma_w)^L)$, whatever the width.

    Args:
        net: The network above the line.
        reference: The network below it.
        width: n.
        input_dim: d.

    Returns:
        The ratio.

    Example:
        >>> import widelimit as wl
        >>> round(ratio(wl.resnet(depth=3, alpha=0.1), wl.mlp(depth=3), width=50, input_dim=2), 6)
        0.762111
    """
    above = jacobian(net, width=width, input_dim=input_dim)
    below = jacobian(reference, width=width, input_dim=input_dim)
    if below.log10 == -math.inf:
        raise ValueError(
            f"The bound of {reference} is zero: it is constant. The ratio is undefined."
        )
    if math.isfinite(above.value) and math.isfinite(below.value) and below.value > 0:
        return above.value / below.value
    exponent = above.log10 - below.log10
    return 10.0**exponent if exponent < 308 else math.inf


def alpha_threshold(
    depth: int, *, activation: Any = "relu", w_std: float = 1.0, v_std: float = 1.0
) -> float:
    r"""The largest $\alpha$ for which the ResNet's bound does not exceed the MLP's, both of depth L.

    $\alpha\le(3^{1-1/L}C\sigma_w-1)/(9C\sigma_v\sigma_w)$. A negative value says that no $\alpha>0$ qualifies.

    Args:
        depth: L, at least 1.
        activation: A name, an `Activation` or a function with a declared Lipschitz constant C.
        w_std: $\sigma_w$ of both networks.
        v_std: $\sigma_v$.

    Returns:
        The threshold; it does not depend on the width.

    Example:
        >>> [round(alpha_threshold(depth), 4) for depth in (1, 2, 3, 5)]
        [0.0, 0.0813, 0.12, 0.1565]

    Reference:
        Tirer, Bruna and Giryes (2022), equation 21.
    """
    depth = as_count(depth, "depth", minimum=1)
    c = lipschitz(get_activation(activation))
    if not (w_std > 0 and v_std > 0 and c > 0):
        raise ValueError(
            f"The scales must be positive, got w_std={w_std}, v_std={v_std}, C={c}: otherwise one "
            "of the networks is constant or linear and there is no threshold."
        )
    return (3 ** (1 - 1 / depth) * c * w_std - 1) / (9 * c * v_std * w_std)
