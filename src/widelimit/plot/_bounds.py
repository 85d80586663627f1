"""Jacobian bounds against depth, measured norms beside them, and the lemma behind them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from widelimit.analysis import bounds
from widelimit.layers import mlp, resnet

from ._style import figure


def jacobian_bounds(
    *,
    depths: Sequence[int] = (1, 2, 3, 4, 5, 7, 10, 15),
    alphas: Sequence[float] = (1.0, 0.1, 0.01),
    width: int = 2000,
    input_dim: int = 2,
    activation: Any = "relu",
    measured: Mapping[str, Any] | None = None,
) -> Any:
    """The bounds of the MLP and of ResNets against depth.

    Args:
        depths: The depths L.
        alphas: One curve for each attenuation.
        width: n.
        input_dim: d.
        activation: The activation of all networks.
        measured: Name to (depths, largest measured norms), drawn as dots below the bounds.

    Returns:
        The figure.
    """
    fig, panels = figure(width=4.2, height=3.0)
    panel = panels[0][0]
    nets = {"MLP": lambda depth: mlp(depth=depth, activation=activation)}
    for alpha in alphas:
        nets[f"ResNet, $\\alpha$ = {alpha:g}"] = lambda depth, alpha=alpha: resnet(
            depth=depth, alpha=alpha, activation=activation
        )
    for name, net in nets.items():
        values = [
            float(bounds.jacobian(net(depth), width=width, input_dim=input_dim)) for depth in depths
        ]
        panel.semilogy(list(depths), values, "-", label=f"bound, {name}")
    for name, (at, norms) in (measured or {}).items():
        panel.semilogy(at, norms, "o", ms=4, label=f"measured, {name}")
    panel.set_xlabel("depth L")
    panel.set_ylabel("$\\|\\partial f/\\partial x\\|$")
    panel.legend(fontsize=7, frameon=False)
    return fig


def alpha_threshold(*, depths: Sequence[int] = range(1, 31), activation: Any = "relu") -> Any:
    """The attenuation below which the ResNet's bound is the smaller one, against depth.

    Args:
        depths: The depths L.
        activation: The activation of both networks.

    Returns:
        The figure.
    """
    fig, panels = figure(width=3.8)
    panel = panels[0][0]
    values = [bounds.alpha_threshold(depth, activation=activation) for depth in depths]
    panel.plot(list(depths), values, "o-", ms=3)
    panel.fill_between(list(depths), min(0.0, *values), values, alpha=0.15)
    panel.set_xlabel("depth L")
    panel.set_ylabel("threshold $\\alpha$")
    panel.set_title("below: the ResNet's bound is smaller")
    return fig


def singular_values(check: Any) -> Any:
    """Extreme singular values of drawn Gaussian matrices and the lemma's interval.

    Args:
        check: What `bounds.check_singular_values` returns.

    Returns:
        The figure.
    """
    fig, panels = figure(width=3.8)
    panel = panels[0][0]
    bins = max(5, int(np.sqrt(len(check.largest))))
    panel.hist(check.smallest, bins=bins, alpha=0.7, label="smallest")
    panel.hist(check.largest, bins=bins, alpha=0.7, label="largest")
    for edge in (check.lemma.low, check.lemma.high):
        panel.axvline(edge, color="k", ls="--", lw=1)
    panel.set_xlabel("singular value")
    panel.set_ylabel("matrices")
    panel.set_title(
        f"inside: {100 * check.inside:.0f} %, promised: {100 * check.lemma.probability:.0f} %"
    )
    panel.legend(fontsize=7, frameon=False)
    return fig
