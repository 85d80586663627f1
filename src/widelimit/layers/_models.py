"""The two networks of the papers."""

from typing import Any

from widelimit._base.scalars import Scalar, as_count

from ._layer import Layer
from ._nodes import Dense, Phi, Repeat, Residual


def mlp(
    depth: int,
    activation: Any = "relu",
    w_std: Scalar = 1.0,
    b_std: Scalar = 0.0,
) -> Layer:
    r"""The fully connected network.

    $g^{(l)}=\sigma_w W^{(l)}x^{(l-1)}/\sqrt{n_{l-1}}+\sigma_b b^{(l)}$, $x^{(l)}=\varphi(g^{(l)})$,
    $f(x)=g^{(L+1)}$ (Jacot et al. 2018; Tirer et al. 2022, eq. 1).

    Args:
        depth: L, the number of hidden (non-linear) layers.
        activation: A name, an `Activation` or a function.
        w_std: $\sigma_w$ of every layer.
        b_std: $\sigma_b$ of every layer; 0 means no biases.

    Returns:
        A network.

    Example:
        >>> mlp(depth=3, activation="erf", w_std=1.5, b_std=0.1)
        Repeat(Dense(w_std=1.5, b_std=0.1) >> Phi('erf'), 3) >> Dense(w_std=1.5, b_std=0.1)
    """
    dense = Dense(w_std=w_std, b_std=b_std)
    return Repeat(dense >> Phi(activation), as_count(depth, "depth")) >> dense


def resnet(
    depth: int,
    alpha: Scalar = 1.0,
    activation: Any = "relu",
    w_std: Scalar = 1.0,
    v_std: Scalar = 1.0,
) -> Layer:
    r"""The residual network of Tirer, Bruna and Giryes (2022, eq. 6).

    $x^{(0)}=Ux/\sqrt d$, $x^{(l)}=x^{(l-1)}+\alpha\,\sigma_v V^{(l)}\varphi(\sigma_wW^{(l)}x^{(l-1)}/\sqrt n)/\sqrt n$,
    $f(x)=\sigma_w w^\top x^{(L)}/\sqrt n$; all of U, V, W, w are trained.

    Args:
        depth: L, the number of residual blocks.
        alpha: The attenuation of the residual branches.
        activation: A name, an `Activation` or a function.
        w_std: $\sigma_w$.
        v_std: $\sigma_v$.

    Returns:
        A network.

    Example:
        >>> resnet(depth=5, alpha=0.1)
        Dense() >> Repeat(Residual(Dense() >> Phi('relu') >> Dense(), alpha=0.1), 5) >> Dense()
    """
    block = Residual(Dense(w_std=w_std) >> Phi(activation) >> Dense(w_std=v_std), alpha=alpha)
    return Dense() >> Repeat(block, as_count(depth, "depth")) >> Dense(w_std=w_std)
