"""How far a network of this width is from its limit, to first order."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from widelimit._base.arrays import as_plain
from widelimit._base.structured import Data
from widelimit.describe import infer
from widelimit.layers import Layer

from ._parameterise import How


def around_limit(net: Layer, how: How, x1: Data, x2: Data | None = None) -> Any:
    """The fluctuations of the network's kernels, its width being the reference.

    Example:
        >>> import widelimit as wl
        >>> fl = wl.finite(wl.resnet(depth=5, alpha=0.1), width=110).fluctuations([[1.0, 0.0]])
        >>> round(float((fl.ntk_std() / fl.ntk)[0, 0]), 3)
        0.1
    """
    from widelimit.width import fluctuations  # what `import widelimit` does not need

    if how.parameterisation != "ntk" or how.bias is not None:
        raise ValueError(
            "Distances from the limit are known for the NTK parameterisation with the biases that the "
            f"description has; got {how.parameterisation!r}, bias={how.bias!r}."
        )
    return fluctuations(
        net, as_plain(x1, "x1"), None if x2 is None else as_plain(x2, "x2"), width=how.width
    )


def with_distance(net: Layer, how: How) -> str:
    """The network in words, and how far its tangent kernel is from the limit.

    Example:
        >>> import widelimit as wl
        >>> print(wl.finite(wl.mlp(depth=1, w_std=2**0.5), width=300))
        Repeat(...) >> Dense(...) at width 300: where |x|^2 = d, the tangent kernel of one network
        scatters by 10.0 % around a mean that is 0.0 % off the limit
    """
    text = f"{net} at width {how.width}"
    try:
        found = around_limit(net, how, np.ones((1, 1)))
    except ValueError as error:
        return f"{text}; its distance from the limit is not known: {error}"
    size = how.width * (float(found.ntk[0, 0]) or 1.0)
    spread = (how.width * float(found.ntk_var[0, 0])) ** 0.5 / size
    shift = abs(float(found.ntk_shift[0, 0])) / size
    return (
        f"{text}: where |x|^2 = d, the tangent kernel of one network scatters by {100 * spread:.1f} % "
        f"around a mean that is {100 * shift:.1f} % off the limit"
    )


class Expected(NamedTuple):
    """What the first order in 1/n says of networks of several widths.

    Attributes:
        distance: The root mean square of the tangent kernel's distance from its limit.
        mean: The mean of one entry of the diagonal, in units of its limit.
        std: Its standard deviation over networks.
    """

    distance: Float[np.ndarray, " widths"]
    mean: Float[np.ndarray, " widths"]
    std: Float[np.ndarray, " widths"]


def expected_kernels(
    net: Layer, x: Float[np.ndarray, "n d"], widths: Sequence[int], entry: int
) -> Expected | None:
    """How kernels of these widths lie around the limit; None where that is not derived."""
    from widelimit.width import expect_derived, fluctuations

    try:
        expect_derived(net)
    except ValueError:
        return None
    outputs = infer(net, x.shape[1], 1).widths[-1]
    found = []
    for n in widths:
        fl = fluctuations(net, x, width=n)
        limit = float(fl.ntk[entry, entry]) or 1.0
        spread = float(fl.ntk_var_of(outputs)[entry, entry]) ** 0.5 / n**0.5
        shift = float(fl.ntk_shift[entry, entry]) / n
        found.append((fl.distance(outputs=outputs), 1 + shift / limit, spread / limit))
    return Expected(*np.array(found).T)
