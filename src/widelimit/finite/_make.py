"""A network of finite width from a description."""

import jax

from widelimit._base.scalars import as_count, concrete
from widelimit.describe import expect_network
from widelimit.layers import Layer

from ._network import FiniteNetwork
from ._parameterise import check_parameterisation


def finite(
    net: Layer, width: int = 1000, parameterisation: str = "ntk", bias: bool | None = None
) -> FiniteNetwork:
    r"""The finite network behind a description.

    Args:
        net: The network.
        width: The width of every hidden layer that does not state its own: `Dense(width=...)`.
        parameterisation: Where the scales are.
            "ntk": weights and biases N(0, 1), factors $\sigma_w/\sqrt{n}$ and $\sigma_b$ in the forward pass.
            "standard": weights $N(0,\sigma_w^2/n)$, biases $N(0,\sigma_b^2)$, no factors.
            "xavier": weights $N(0,2\sigma_w^2/(n_{in}+n_{out}))$, no factors.
            "torch": weights and biases uniform on $\pm n_{in}^{-1/2}$, the weights times $\sigma_w$; a bias everywhere.
        bias: True adds a bias to every layer, False removes all, None follows the description.

    Returns:
        An object with `init`, `apply`, `ntk`, `nngp` and `num_params`.

    Example:
        >>> import numpy as np, widelimit as wl
        >>> net = wl.finite(wl.resnet(depth=5, alpha=0.1), width=200)
        >>> params = net.init(key=0, input_dim=2)
        >>> net.apply(params, np.ones((7, 2))).shape
        (7, 1)
    """
    expect_network(net)
    width = as_count(width, "width", minimum=1)
    check_parameterisation(parameterisation)
    if bias not in (None, True, False):
        raise TypeError(f"bias must be True, False or None, got {bias!r}.")
    biased = lambda node: isinstance(node, Layer) and hasattr(node, "b_std")
    layers = [node for node in jax.tree.leaves(net, is_leaf=biased) if biased(node)]
    if bias and parameterisation == "ntk" and any(concrete(n.b_std) == 0.0 for n in layers):
        raise ValueError(
            "bias=True has no effect in a layer with b_std=0, because the NTK parameterisation "
            "multiplies the bias by b_std. Describe the biases (b_std=1.0), or choose another "
            "parameterisation."
        )
    return FiniteNetwork(net, width, parameterisation, bias)
