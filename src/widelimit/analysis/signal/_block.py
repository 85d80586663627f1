r"""What one block of a network does to variances and correlations.

For an MLP the block maps pre-activations to pre-activations, $q'=\sigma_w^2E[\varphi(\sqrt qz)^2]+\sigma_b^2$; for a
residual network it is one residual block.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from widelimit.activations import How, terms_needed
from widelimit.infinite import Pair
from widelimit.interpret import facts, interpret
from widelimit.layers import Dense, Layer, Repeat, Serial


def block_of(net: Layer) -> Layer:
    """The block that a network repeats, turned so that it starts behind a Dense.

    Args:
        net: A network with one `Repeat`, such as `mlp` and `resnet` give, or a block itself.

    Returns:
        The block.
    """
    if not isinstance(net, Layer):
        raise TypeError(
            f"A network or a block of layers was expected, got {net!r} ({type(net).__name__})."
        )
    parts = net.layers if isinstance(net, Serial) else (net,)
    repeats = [part for part in parts if isinstance(part, Repeat)]
    if len(repeats) > 1:
        raise ValueError(
            f"{net} repeats {len(repeats)} different blocks; pass the one that you mean, e.g. "
            f"{repeats[0].body}."
        )
    body = repeats[0].body if repeats else net
    if isinstance(body, Serial) and len(body.layers) > 1 and isinstance(body.layers[0], Dense):
        first, *rest = body.layers
        if not isinstance(rest[-1], Dense):
            return Serial(*rest, first)
    return body


def _how(block: Layer, q: float) -> How:
    """A Hermite series that is long enough at this variance, or a quadrature."""
    terms = [32]
    with jax.enable_x64(True):
        for act in facts(block).activations:
            if not (act.closed_form or act.breaks):
                terms.append(terms_needed(act, [q], 1e-10))
    return How(0 if 0 in terms else max(terms))


@eqx.filter_jit
def _step(block: Layer, q: Any, minus: Any, plus: Any, tangent: Any, how: How) -> Any:
    out = interpret(block, Pair(q, q, minus, plus, tangent, how))
    return out.q1, out.minus, out.plus, out.ntk


def step(block: Layer, q: Any, minus: Any, plus: Any) -> tuple[np.ndarray, ...]:
    """Variance, 1 - rho, 1 + rho and the slope of rho after a block.

    Args:
        block: The block.
        q: The variance of both inputs, a number.
        minus: 1 - rho, any shape.
        plus: 1 + rho.

    Returns:
        The four arrays of the output; the first is constant.
    """
    with jax.enable_x64(True):
        numbers = jax.tree.map(lambda a: jnp.asarray(a, jnp.float64), block)
        low, high = (np.ravel(np.asarray(a, dtype=np.float64)) for a in (minus, plus))
        # A tangent kernel goes through a block with the slope of rho, plus what the block adds.
        tangent = jnp.asarray(np.repeat([0.0, 1.0], low.size))
        low, high = jnp.asarray(np.tile(low, 2)), jnp.asarray(np.tile(high, 2))
        same = jnp.full(low.shape, float(q))
        out = _step(numbers, same, low, high, tangent, _how(block, float(q)))
        (variance, _), (low, _), (high, _), (own, total) = (np.split(np.array(a), 2) for a in out)
        return tuple(a.reshape(np.shape(minus)) for a in (variance, low, high, total - own))
