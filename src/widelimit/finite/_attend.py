"""Weights and outputs of attention and of positional embeddings."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from widelimit._base.scalars import Scalar
from widelimit._base.types import Params
from widelimit.interpret import Visit
from widelimit.layers import Attention, Positions, Sites, position_covariance

from ._forward import DRAW_AGAIN, Outputs, apply_weights, forward, named, tapped
from ._init import draw, draw_matrix
from ._parameterise import How, cast
from ._tap import Tap
from ._values import Numbers, Signals, Values, as_values, handed

Heads = Float[Array, "points pixels heads channels"]


@draw.register
def draw_positions(
    layer: Positions, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How
) -> Params:
    """A vector for each pixel."""
    shape = (*visit.before.sites, int(visit.before.channels))
    _, spread = how.embedding(layer.std)
    return {"e": how.scheme.draw(key, shape, dtype) * cast(spread, dtype)}


@forward.register
def forward_positions(
    layer: Positions, params: Params, x: Signals, shift: PyTree, how: How
) -> Outputs:
    r"""$x_p+c\sum_aL_{pa}E_a$ with $LL^\top=R$: one matrix $E$ for all pixels, whose input is $L_p$."""
    values, e = as_values(x), params["e"]
    sites, dtype = values.sites, values.x.dtype
    if e.shape != values.x.shape[1:]:
        raise ValueError(
            f"{named(layer)} has embeddings of shape {e.shape}, but is given inputs of shape "
            f"{values.x.shape[1:]}. {DRAW_AGAIN}"
        )
    factor, _ = how.embedding(cast(layer.std, dtype))
    root = jnp.asarray(_root(layer.decay, sites), dtype)
    embedded = jnp.matmul(root, e.reshape(math.prod(sites), -1), precision="highest")
    z = values.x + (factor * embedded).reshape(1, *e.shape)
    if shift is not None:
        z = z + shift
    reads = jnp.broadcast_to(root.reshape(1, *sites, -1), (*values.x.shape[:-1], len(root)))
    prior = cast(layer.std, dtype) ** 2
    return tapped(values.now(z), Tap(reads, z, (factor**2, 0.0), (prior, 0.0)))


@functools.lru_cache(maxsize=64)
def _root(decay: float | None, sites: Sites) -> Float[np.ndarray, "pixels pixels"]:
    """The symmetric root of the embeddings' covariance, which may be nearly singular."""
    values, vectors = np.linalg.eigh(position_covariance(decay, sites))
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


@draw.register
def draw_attention(
    layer: Attention, visit: Visit, key: PRNGKeyArray, dtype: np.dtype, how: How
) -> Params:
    """Values, keys (and queries where they have weights of their own), output, positions."""
    values, keys, out = visit.after.weights[visit.after.new - 2 : visit.after.new + 1]
    _heads(layer, int(values.fan_out), int(keys.fan_out))
    plain = how._replace(bias=False)  # only the output has a bias
    parts = [jax.random.fold_in(key, i) for i in range(5)]
    matrix = lambda i, group, std: draw_matrix(
        parts[i], (int(group.fan_in), int(group.fan_out)), dtype, plain, w_std=std, b_std=0.0
    )
    linear = layer.scaling == "linear"
    params = {
        "values": matrix(0, values, layer.v_std),
        "keys": matrix(1, keys, 1.0 if linear else layer.k_std),
        "output": draw_matrix(
            parts[3],
            (int(out.fan_in), int(out.fan_out)),
            dtype,
            how,
            w_std=layer.o_std,
            b_std=layer.b_std,
        ),
    }
    if not linear:
        params["queries"] = matrix(2, keys, layer.q_std)
    if layer.positions is not None:
        params["positions"] = draw(layer.positions, visit.inner[0], parts[4], dtype, how)
    return params


def _heads(layer: Attention, values: int, keys: int) -> int:
    """The number of heads among which channels are divided."""
    heads = layer.heads
    if heads is None:
        heads = 1 if layer.scaling == "linear" else values // (layer.value_width or 1)
    for name, channels in (("value", values), ("key", keys)):
        if heads < 1 or channels % heads:
            raise ValueError(
                f"{named(layer)} has {heads} heads, among which {channels} {name} channels cannot be divided. State "
                "heads, key_width and value_width, or choose a width that the number of heads divides."
            )
    return heads


@forward.register
def forward_attention(
    layer: Attention, params: Params, x: Signals, shift: PyTree, how: How
) -> Outputs:
    """Values, mixed by attention weights, then output weights; taps in this order, positions first."""
    taps: list[Tap] = []
    shifts = iter([]) if shift is None else iter(shift)
    linear = layer.scaling == "linear"

    def weigh(name: str, signal: Signals, w_std: Scalar, b_std: Scalar = 0.0) -> Signals:
        now = next(shifts, None)
        out, tap = apply_weights(
            params[name], signal, now, how, w_std=w_std, b_std=b_std, layer=layer
        )
        taps.append(tap)
        return out

    seen = x
    if layer.positions is not None:
        seen, tap = forward(layer.positions, params["positions"], x, next(shifts, None), how)
        taps.append(tap)
    inside = layer.positions is not None and layer.positions.in_values
    values = as_values(weigh("values", seen if inside else x, layer.v_std))
    keys = as_values(weigh("keys", seen, 1.0 if linear else layer.k_std))
    heads = _heads(layer, values.x.shape[-1], keys.x.shape[-1])
    k = _divided(keys.x, heads)
    if linear:
        gain = layer.q_std * layer.k_std / k.shape[-1]
        q = cast(gain, k.dtype) * k
    else:
        q = _divided(as_values(weigh("queries", seen, layer.q_std)).x, heads)
        q = q / k.shape[-1] ** 0.5
    scores = jnp.einsum("nphd,nahd->nhpa", q, k, precision="highest")
    weights = _weights(layer.weights, scores, values)
    mixed = jnp.einsum("nhpa,nahv->nphv", weights, _divided(values.x, heads), precision="highest")
    signal = handed(values.now(mixed.reshape(values.x.shape)))
    return weigh("output", signal, layer.o_std, layer.b_std), taps


def _divided(x: Numbers, heads: int) -> Heads:
    return jnp.asarray(x).reshape(x.shape[0], -1, heads, x.shape[-1] // heads)


def _weights(
    name: str, scores: Float[Array, "points heads pixels pixels"], values: Values
) -> Float[Array, "points heads pixels pixels"]:
    """The attention weights; what is not there gets none."""
    if name != "softmax":
        change = {"identity": lambda s: s, "relu": jax.nn.relu, "abs": jnp.abs}
        return change[name](scores)
    if values.mask is not None:
        hidden = values.mask.reshape(values.mask.shape[0], 1, 1, -1)
        scores = jnp.where(hidden, jnp.asarray(-jnp.inf, scores.dtype), scores)
    return jax.nn.softmax(scores, axis=-1)
