"""Attention weights, and positions, of blocks of pixels."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from widelimit._base.scalars import Scalar

from ._pair import Pair, doubled


def with_positions(
    block: Pair, place: Float[np.ndarray, "pixels pixels"], std: Scalar, *, trained: bool
) -> Pair:
    """Plus embeddings of variance std^2 and correlations `place`: an independent part."""
    cast = lambda a: jnp.asarray(a[None], block.minus.dtype)
    minus = jnp.broadcast_to(cast(1 - place), block.minus.shape)
    ntk = cast(place if trained else 0 * place)
    square = doubled(std) ** 2
    size = lambda q: jnp.broadcast_to(square, q.shape)
    part = Pair(size(block.q1), size(block.q2), minus, None, ntk, block.how)
    return block.mixed([block, part])


def attention_weights(
    own: Pair, mask: Bool[Array, " n *sites"] | None, weights: str, gain: Scalar
) -> Float[Array, "n pixels pixels"]:
    r"""$\zeta(q_\sigma k_\sigma K_{xx})$ of each input, from its own block; nobody attends to what is masked."""
    cov = own.size.astype(jnp.float64) * own.rho.astype(jnp.float64) * doubled(gain)
    if weights == "softmax":
        if mask is not None:
            cov = jnp.where(mask.reshape(len(mask), 1, -1), -jnp.inf, cov)
        return jax.nn.softmax(cov, axis=-1)
    change = {"identity": lambda c: c, "relu": lambda c: jnp.maximum(c, 0), "abs": jnp.abs}
    return change[weights](cov)
