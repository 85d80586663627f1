"""Branches, repetition and attention of `stax` in widelimit's words."""

from collections.abc import Callable
from typing import Any

import numpy as np

from widelimit._base.structured import Masked
from widelimit.layers import Attention, Layer, Positions
from widelimit.layers import Repeat as _Repeat

from ._axes import AttentionMechanism, PositionalEmbedding, default_axes, plain
from ._triple import Triple, spelt, words_of
from ._words import FanIn, Parallel
from ._words import FanOut as _FanOut


def GlobalSelfAttention(
    n_chan_out: int,
    n_chan_key: int,
    n_chan_val: int,
    n_heads: int,
    linear_scaling: bool = True,
    W_key_std: float = 1.0,
    W_value_std: float = 1.0,
    W_query_std: float = 1.0,
    W_out_std: float = 1.0,
    b_std: float | None = None,
    attention_mechanism: str | AttentionMechanism = "SOFTMAX",
    pos_emb_type: str | PositionalEmbedding = "NONE",
    pos_emb_p_norm: float = 2,
    pos_emb_decay_fn: Callable[[float], float] | None = None,
    n_chan_pos_emb: int | None = None,
    W_pos_emb_std: float = 1.0,
    val_pos_emb: bool = False,
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Triple:
    """`wl.Attention(...)` with many heads; positions are added."""
    default_axes(batch_axis, channel_axis, "GlobalSelfAttention")
    kind = plain(pos_emb_type)
    if kind == "CONCAT" or pos_emb_decay_fn is not None or n_chan_pos_emb is not None:
        raise NotImplementedError(
            "GlobalSelfAttention: positions are added here (pos_emb_type='SUM'), and a decay is that of a Gaussian: "
            "write widelimit.Attention(positions=widelimit.Positions(std, decay=length))."
        )
    positions = None if kind == "NONE" else Positions(W_pos_emb_std, None, val_pos_emb)
    return spelt(
        Attention(
            "linear" if linear_scaling else "sqrt",
            plain(attention_mechanism).lower(),
            W_query_std,
            W_key_std,
            W_value_std,
            W_out_std,
            b_std or 0.0,
            positions,
            n_chan_out,
            n_heads,
            n_chan_key,
            n_chan_val,
        )
    )


def FanOut(num: int) -> Triple:
    """The branches of `wl.Sum`, `wl.Concat` and `wl.Product` see the same input."""
    return spelt(_FanOut(num))


def FanInSum() -> Triple:
    """`wl.Sum(...)`; paths that share randomness are combined before they are squared."""
    return spelt(FanIn("sum"))


def FanInProd() -> Triple:
    """`wl.Product(...)`."""
    return spelt(FanIn("prod"))


def FanInConcat(axis: int = -1) -> Triple:
    """`wl.Concat(...)`."""
    if axis != -1:
        raise NotImplementedError(
            f"FanInConcat(axis={axis}): branches are joined along their channels, axis=-1; joining along points or "
            "pixels has no description here."
        )
    return spelt(FanIn("concat"))


def serial(*layers: Any) -> Triple:
    """`wl.Serial(...)`, or layers joined by >>."""
    return spelt(*(word for layer in layers for word in words_of(layer)))


def parallel(*layers: Any) -> Triple:
    """One branch for each stream that FanOut made."""
    return spelt(Parallel(tuple(words_of(layer) for layer in layers)))


def repeat(layer: Any, n: int) -> Triple:
    """`wl.Repeat(layer, n)`: compilation does not grow with the depth."""
    words = words_of(layer)
    if len(words) > 1 and all(isinstance(word, Layer) for word in words):
        inner = serial(layer).kernel_fn.network.net
        return spelt(_Repeat(inner, n))
    return spelt(*words * n)


def MaskedArray(masked_value: Any, mask: Any) -> Masked:
    """`wl.Masked(x, mask)`; a mask's last axis of size 1 is dropped."""
    return Masked(masked_value, np.asarray(mask)[..., 0])
