"""Attention with many heads, and positions."""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np
from jaxtyping import Float

from widelimit._base.names import unknown
from widelimit._base.scalars import Scalar, as_count, as_scalar, check_scalar

from ._layer import Layer
from ._nodes import as_width
from ._windows import Sites, distances

_SCALINGS = ("linear", "sqrt")
_WEIGHTS = ("softmax", "identity", "relu", "abs")


def _as_heads(value: Any) -> int | None:
    return None if value is None else as_count(value, "heads", minimum=1)


def _as_decay(value: Any) -> float | None:
    if value is None:
        return None
    number = as_scalar(value)
    if not isinstance(number, float) or not 0 < number < float("inf"):
        raise ValueError(f"decay is a distance in pixels and must be positive, got {value!r}.")
    return number


class Positions(Layer):
    r"""Adds trained positional embeddings: $x_p+\sigma_pE_p$.

    $E$ has independent channels with covariance $R(p,r)=1_{p=r}$, or with `decay` $\ell$
    $R(p,r)=e^{-|p-r|^2/\ell^2}$. $K'=K+\sigma_p^2R$, $\Theta'=\Theta+\sigma_p^2R$. As the field `positions` of
    `Attention` it is what queries and keys see; as a layer, what all that follows sees.

    Attributes:
        std: $\sigma_p\ge0$.
        decay: The distance, in pixels, over which embeddings are correlated; None: not at all.
        in_values: In `Attention`: whether values see the embeddings too.
    """

    cites: ClassVar[tuple[str, ...]] = ("hron2020infinite",)

    std: Scalar = eqx.field(default=1.0, converter=as_scalar)
    decay: float | None = eqx.field(default=None, static=True, converter=_as_decay)
    in_values: bool = eqx.field(default=False, static=True)

    def __check_init__(self) -> None:
        check_scalar(self.std, "std")

    def covariance(self, sites: Sites) -> Float[np.ndarray, "pixels pixels"]:
        """R, pixels in row-major order."""
        return position_covariance(self.decay, sites)


def position_covariance(decay: float | None, sites: Sites) -> Float[np.ndarray, "pixels pixels"]:
    """The covariance of positional embeddings of variance 1."""
    distance = distances(sites)
    return (distance == 0).astype(float) if decay is None else np.exp(-((distance / decay) ** 2))


def _as_positions(value: Any) -> Positions | None:
    if value is None or isinstance(value, Positions):
        return value
    raise TypeError(f"positions must be Positions(...) or None, got {value!r}.")


class Attention(Layer):
    r"""Self-attention with many heads, over all pixels or over the places of a sequence.

    $Q=q_\sigma XW_Q/\sqrt n$, $K=k_\sigma XW_K/\sqrt n$, $V=v_\sigma XW_V/\sqrt n$, output
    $o_\sigma[\zeta(G_1)V_1,\dots,\zeta(G_h)V_h]W_O/\sqrt{hd_v}+\sigma_bb$. *Linear* scaling: $W_Q=W_K$ and
    $G=QK^\top/d$, which becomes deterministic, $G=q_\sigma k_\sigma K_{xx}$. *Square-root* scaling:
    $G=QK^\top/\sqrt d$ with independent $W_Q,W_K$; its limit is known for identity weights alone, since the output
    is Gaussian but $\zeta(G)$ has no closed moments otherwise.

    Attributes:
        scaling: "linear" or "sqrt".
        weights: $\zeta$: "softmax", "identity", "relu" or "abs".
        q_std: $q_\sigma$.
        k_std: $k_\sigma$.
        v_std: $v_\sigma$.
        o_std: $o_\sigma$.
        b_std: $\sigma_b$.
        positions: Positional embeddings that queries and keys see, or None.
        width: The number of output channels of a finite network.
        heads: The number of heads of a finite network; None: 1 for linear scaling, one for each value
            channel for square-root scaling.
        key_width: Channels of queries and keys in each head; None: all heads together have the width.
        value_width: Channels of the values in each head; None: likewise.

    Reference:
        Hron, Bahri, Sohl-Dickstein and Novak (2020), Infinite attention.
    """

    cites: ClassVar[tuple[str, ...]] = ("hron2020infinite",)

    scaling: str = eqx.field(default="linear", static=True)
    weights: str = eqx.field(default="softmax", static=True)
    q_std: Scalar = eqx.field(default=1.0, converter=as_scalar)
    k_std: Scalar = eqx.field(default=1.0, converter=as_scalar)
    v_std: Scalar = eqx.field(default=1.0, converter=as_scalar)
    o_std: Scalar = eqx.field(default=1.0, converter=as_scalar)
    b_std: Scalar = eqx.field(default=0.0, converter=as_scalar)
    positions: Positions | None = eqx.field(default=None, converter=_as_positions)
    width: int | None = eqx.field(default=None, static=True, converter=as_width)
    heads: int | None = eqx.field(default=None, static=True, converter=_as_heads)
    key_width: int | None = eqx.field(default=None, static=True, converter=as_width)
    value_width: int | None = eqx.field(default=None, static=True, converter=as_width)

    def __check_init__(self) -> None:
        for name, known in (("scaling", _SCALINGS), ("weights", _WEIGHTS)):
            if getattr(self, name) not in known:
                raise ValueError(unknown(f"{name} of Attention", getattr(self, name), known))
        if self.scaling == "sqrt" and self.weights != "identity":
            raise ValueError(
                f"Attention with square-root scaling and weights={self.weights!r} has no known kernel: its "
                "attention weights stay random, and only for weights='identity' are their moments "
                "known. Use scaling='linear', or weights='identity'."
            )
        for name in ("q_std", "k_std", "v_std", "o_std", "b_std"):
            check_scalar(getattr(self, name), name)

    @property
    def value_channels(self) -> int | None:
        """Those of all heads together, if they are stated."""
        heads = 1 if self.heads is None and self.scaling == "linear" else self.heads
        return None if heads is None or self.value_width is None else heads * self.value_width

    @property
    def key_channels(self) -> int | None:
        """Those of all heads together, if they are stated."""
        heads = 1 if self.heads is None and self.scaling == "linear" else self.heads
        return None if heads is None or self.key_width is None else heads * self.key_width
