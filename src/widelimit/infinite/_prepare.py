"""A prepared kernel: the network, checked once, as a function of points."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np

from widelimit._base.arrays import is_jax
from widelimit.describe import check
from widelimit.layers import Layer

from ._kernels import nngp, ntk

_ROWS = 2048


class PreparedKernel(eqx.Module):
    """A kernel of a network.

    Attributes:
        net: The network.
        kind: "nngp" or "ntk".
    """

    net: Layer
    kind: str = eqx.field(static=True)

    def __call__(self, x1: Any, x2: Any = None) -> Any:
        """The kernel matrix."""
        return (ntk if self.kind == "ntk" else nngp)(self.net, x1, x2)

    def diagonal(self, x: Any) -> Any:
        """K(x, x) of each point."""
        parts = [self(x[i : i + 64]).diagonal() for i in range(0, len(x), 64)]
        return jnp.concatenate(parts) if is_jax(x) else np.concatenate(parts)

    def matvec(self, x1: Any, x2: Any, v: Any) -> Any:
        """K(x1, x2) @ v."""
        x2 = x1 if x2 is None else x2
        parts = [self(x1[i : i + _ROWS], x2) @ v for i in range(0, len(x1), _ROWS)]
        return jnp.concatenate(parts) if is_jax(parts[0]) else np.concatenate(parts)


def prepare(net: Layer, kind: str = "ntk", like: Any = None) -> PreparedKernel:
    """Check a network and make its kernel a value.

    Args:
        net: The network.
        kind: "nngp" or "ntk".
        like: Points whose norms and dtype are typical.

    Returns:
        The kernel.
    """
    if kind not in ("nngp", "ntk"):
        raise ValueError(f"kind must be 'ntk' or 'nngp', got {kind!r}.")
    check(net, ntk=kind == "ntk")
    return PreparedKernel(net, kind)
